import CSodium
import ParleyHashing
import ParleyVocabulary
import Synchronization

/// A channel's secret of 32 bytes and what is derived from it.
///
/// - open secret = BLAKE2b-256(`parley/1/channel/open` ‖ name)
/// - passphrase secret = Argon2id (RFC 9106, version 0x13; 3 passes, 65,536 KiB, one lane, 32 bytes) of the passphrase
///   with salt BLAKE2b-128(`parley/1/channel/salt` ‖ name)
/// - ChannelID = BLAKE2b-256 under the secret of `parley/1/channel/id`
/// - discovery key = BLAKE2b-256 under the secret of `parley/1/channel/discovery`
/// - datagram key = BLAKE2b-256 under the secret of `parley/1/channel/datagram`
/// - proof key = BLAKE2b-256 under the secret of `parley/1/channel/proof`
///
/// The name is its UTF-8 bytes in NFC.
package final class ChannelKeys: Sendable {
  package static let secretByteCount = 32
  package static let passphraseByteCountMax = 1_024

  package let name: ChannelName
  package let id: ChannelID
  /// The secret follows from the name: whoever guesses the name can read.
  package let isOpen: Bool
  /// Four times 32 bytes: secret, discovery key, datagram key, proof key.
  private let secrets: SecretBytes
  /// Tags travel in clear: nothing secret. Each costs a hash, and stands in every datagram of its instance.
  private let tags = Mutex<[Instance: UInt64]>([:])
  private static let tagCountMax = 4_096

  package init(name: ChannelName, secret: SecretBytes, isOpen: Bool) {
    precondition(secret.byteCount == Self.secretByteCount, "a channel's secret has 32 bytes")
    self.name = name
    self.isOpen = isOpen
    id = secret.withBytes { ChannelID(bytes: Self.identifierBytes(of: $0))! }
    secrets = SecretBytes(byteCount: 128) { place in
      secret.withBytes { secret in
        UnsafeMutableRawBufferPointer(rebasing: place[0..<32]).copyMemory(from: secret)
        for (index, label) in ["discovery", "datagram", "proof"].enumerated() {
          var stream = BLAKE2b.Stream(byteCount: 32, keyBytes: secret)
          stream.update(Array("parley/1/channel/\(label)".utf8))
          stream.finish(into: UnsafeMutableRawBufferPointer(rebasing: place[(index + 1) * 32..<(index + 2) * 32]))
        }
      }
    }
  }

  /// The channel that anybody who knows its name can read.
  package static func open(name: ChannelName) -> ChannelKeys {
    let secret = SecretBytes(byteCount: secretByteCount) { place in
      var stream = BLAKE2b.Stream(byteCount: 32)
      stream.update(Array("parley/1/channel/open".utf8))
      stream.update(Array(name.text.utf8))
      stream.finish(into: place)
    }
    return ChannelKeys(name: name, secret: secret, isOpen: true)
  }

  /// The channel of those who know the name and the passphrase, 1 to 1,024 bytes. Takes 64 MiB and some tenths of a
  /// second: not for a thread that others wait for.
  package static func passphrase(name: ChannelName, _ passphrase: [UInt8]) throws(SealingError) -> ChannelKeys {
    Sodium.requireReady()
    guard (1...passphraseByteCountMax).contains(passphrase.count) else {
      throw .passphraseLength(byteCount: passphrase.count, byteCountMax: passphraseByteCountMax)
    }
    let salt = BLAKE2b.hash(Array("parley/1/channel/salt".utf8) + Array(name.text.utf8), byteCount: 16)
    var status: Int32 = -1
    let secret = SecretBytes(byteCount: secretByteCount) { place in
      passphrase.withUnsafeBytes { characters in
        status = crypto_pwhash_argon2id(
          place.octets, UInt64(place.count), characters.baseAddress!.assumingMemoryBound(to: CChar.self),
          UInt64(characters.count), salt, 3, 64 << 20, crypto_pwhash_argon2id_alg_argon2id13())
      }
    }
    guard status == 0 else { throw .noMemoryForPassphrase }
    return ChannelKeys(name: name, secret: secret, isOpen: false)
  }

  /// A channel with a secret that nobody can guess, to be handed on in an invitation.
  package static func random(name: ChannelName) -> ChannelKeys {
    ChannelKeys(name: name, secret: SecretBytes(randomByteCount: secretByteCount), isOpen: false)
  }

  /// What a datagram of `instance` carries so that members find the channel: the first 8 bytes, read big-endian, of
  /// BLAKE2b-128 under the discovery key of the instance's 8 bytes. Tags of different instances cannot be linked.
  package func tag(of instance: Instance) -> UInt64 {
    if let known = tags.withLock({ $0[instance] }) { return known }
    let tag = secrets.withBytes(32..<64) { key in
      var stream = BLAKE2b.Stream(byteCount: 16, keyBytes: key)
      stream.update(instance.bytes)
      return stream.finish().prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
    tags.withLock { tags in
      if tags.count >= Self.tagCountMax { tags = [:] }
      tags[instance] = tag
    }
    return tag
  }

  /// The secret itself, for the profile's file and for invitations.
  package func withSecret<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    secrets.withBytes(0..<32, body)
  }

  func withDatagramKey<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    secrets.withBytes(64..<96, body)
  }

  func withProofKey<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    secrets.withBytes(96..<128, body)
  }

  private static func identifierBytes(of secret: UnsafeRawBufferPointer) -> [UInt8] {
    var stream = BLAKE2b.Stream(byteCount: 32, keyBytes: secret)
    stream.update(Array("parley/1/channel/id".utf8))
    return stream.finish()
  }
}
