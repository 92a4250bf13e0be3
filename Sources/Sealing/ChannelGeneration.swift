import CSodium
import ParleyHashing
import ParleyVocabulary
import Synchronization

extension ChannelOwnership {
  /// BLAKE2b-256(`parley/1/channel/owned` ‖ founder (32) ‖ salt (16) ‖ name in UTF-8); of a room with
  /// `parley/1/room/owned`.
  package func id(of name: ChannelName) -> ChannelID {
    var stream = BLAKE2b.Stream(byteCount: 32)
    stream.update(type.label("owned"))
    stream.update(founder.bytes)
    stream.update(salt)
    stream.update(Array(name.text.utf8))
    return ChannelID(bytes: stream.finish())!
  }
}

extension ChannelType {
  /// What the derivations begin with that tell rooms from groups.
  func label(_ what: String) -> [UInt8] {
    switch self {
    case .group: Array("parley/1/channel/\(what)".utf8)
    case .room: Array("parley/1/room/\(what)".utf8)
    }
  }
}

/// One secret of a channel and the keys derived from it. Channels that nobody owns have one for ever.
package final class ChannelGeneration: Sendable {
  package let id: GenerationID
  /// Who made it, signed, as it travels (Wire's `GenerationStatement`); empty when it came with an invitation.
  package let statement: [UInt8]
  /// When a newer one took its place; milliseconds since 1970.
  package let replacedAt: UInt64?
  /// Four times 32 bytes: secret, discovery key, datagram key, proof key.
  private let secrets: SecretBytes
  /// Tags travel in clear: nothing secret. Each costs a hash, and stands in every datagram of its instance.
  private let tags: Tags
  private static let tagCountMax = 4_096

  private final class Tags: Sendable {
    let known = Mutex<[Instance: UInt64]>([:])
  }

  private init(
    id: GenerationID, statement: [UInt8], replacedAt: UInt64?, secrets: SecretBytes, tags: Tags
  ) {
    self.id = id
    self.statement = statement
    self.replacedAt = replacedAt
    self.secrets = secrets
    self.tags = tags
  }

  /// `context` is hashed into each key behind its label: the ChannelID for owned channels, else nothing.
  convenience init(
    number: UInt64, secret: SecretBytes, channel: ChannelID, context: [UInt8], statement: [UInt8] = [],
    replacedAt: UInt64? = nil
  ) {
    precondition(secret.byteCount == ChannelKeys.secretByteCount, "a channel's secret has 32 bytes")
    let secrets = SecretBytes(byteCount: 128) { place in
      secret.withBytes { secret in
        UnsafeMutableRawBufferPointer(rebasing: place[0..<32]).copyMemory(from: secret)
        for (index, label) in ["discovery", "datagram", "proof"].enumerated() {
          var stream = BLAKE2b.Stream(byteCount: 32, keyBytes: secret)
          stream.update(Array("parley/1/channel/\(label)".utf8))
          stream.update(context)
          stream.finish(into: UnsafeMutableRawBufferPointer(rebasing: place[(index + 1) * 32..<(index + 2) * 32]))
        }
      }
    }
    let id = GenerationID(number: number, hash: Self.hash(of: secret, number: number, channel: channel))
    self.init(id: id, statement: statement, replacedAt: replacedAt, secrets: secrets, tags: Tags())
  }

  /// BLAKE2b-256(`parley/1/channel/generation` ‖ ChannelID ‖ number (8) ‖ secret).
  package static func hash(of secret: SecretBytes, number: UInt64, channel: ChannelID) -> Bytes32 {
    var stream = BLAKE2b.Stream(byteCount: 32)
    stream.update(Array("parley/1/channel/generation".utf8))
    stream.update(channel.bytes)
    stream.update(number.bigEndianBytes)
    secret.withBytes { stream.update($0) }
    return Bytes32(stream.finish())!
  }

  func replaced(at moment: UInt64?) -> ChannelGeneration {
    ChannelGeneration(id: id, statement: statement, replacedAt: moment, secrets: secrets, tags: tags)
  }

  func stated(_ statement: [UInt8]) -> ChannelGeneration {
    ChannelGeneration(id: id, statement: statement, replacedAt: replacedAt, secrets: secrets, tags: tags)
  }

  /// What a datagram of `instance` carries so that members find the channel: the first 8 bytes, read big-endian, of
  /// BLAKE2b-128 under the discovery key of the instance's 8 bytes. Tags of different instances cannot be linked.
  package func tag(of instance: Instance) -> UInt64 {
    if let known = tags.known.withLock({ $0[instance] }) { return known }
    let tag = secrets.withBytes(32..<64) { key in
      var stream = BLAKE2b.Stream(byteCount: 16, keyBytes: key)
      stream.update(instance.bytes)
      return stream.finish().prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
    tags.known.withLock { tags in
      if tags.count >= Self.tagCountMax { tags = [:] }
      tags[instance] = tag
    }
    return tag
  }

  /// The secret itself, for the profile's file, for invitations, and for members that lack it.
  package func withSecret<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    secrets.withBytes(0..<32, body)
  }

  func withDatagramKey<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    secrets.withBytes(64..<96, body)
  }

  func withProofKey<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    secrets.withBytes(96..<128, body)
  }
}
