import CSodium
import ParleyHashing
import ParleyVocabulary

/// A person's Ed25519 key pair (RFC 8032), made from a seed of 32 bytes.
package final class Identity: Sendable {
  package static let seedByteCount = 32

  package let peerID: PeerID
  /// The Ed25519 secret key of 64 bytes (seed ‖ public key), then its X25519 form of 32.
  private let secrets: SecretBytes
  private let pairwiseKeys = PairwiseKeys()

  package init(seed: SecretBytes) {
    precondition(seed.byteCount == Self.seedByteCount, "an Ed25519 seed has 32 bytes")
    var publicKey = [UInt8](repeating: 0, count: 32)
    secrets = SecretBytes(byteCount: 96) { place in
      seed.withBytes { _ = crypto_sign_seed_keypair(&publicKey, place.octets, $0.octets) }
      crypto_sign_ed25519_sk_to_curve25519(place.octets + 64, place.octets)
    }
    peerID = PeerID(bytes: publicKey)!
  }

  /// For tests, where seeds are facts.
  package convenience init(seed: [UInt8]) { self.init(seed: SecretBytes(seed)) }

  package static func random() -> Identity { Identity(seed: SecretBytes(randomByteCount: seedByteCount)) }

  /// Signs an object of a channel. The signed bytes are
  /// `parley/1/` ‖ context ‖ 0x00 ‖ ChannelID (32) ‖ instance (8) ‖ object. A context is ASCII without 0x00; `id` and
  /// `proof` are taken by the session.
  package func sign(context: String, channel: ChannelID, log: Instance, object: [UInt8]) -> [UInt8] {
    sign(Signature.objectBytes(context: context, channel: channel, log: log, object: object))
  }

  /// Signs bytes as they are; who calls this has put a context of its own in front.
  package func sign(_ message: [UInt8]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Signature.byteCount) { buffer, count in
      secrets.withBytes(0..<64) {
        _ = crypto_sign_detached(buffer.baseAddress!, nil, message, UInt64(message.count), $0.octets)
      }
      count = Signature.byteCount
    }
  }

  /// How many peers' keys are remembered, over all channels.
  var pairwiseKeyCount: Int { pairwiseKeys.pairCount }

  /// The seed, for the profile's file alone.
  func withSeed<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    secrets.withBytes(0..<Self.seedByteCount, body)
  }

  /// Runs `body` with the key for datagrams between this identity and `peer` in `channel`, in one direction; nil when
  /// no key can be agreed on with that PeerID.
  func withPairwiseKey<Result>(
    with peer: PeerID, in channel: ChannelID, sending: Bool, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result? {
    secrets.withBytes(64..<96) { secretKey in
      pairwiseKeys.withKey(
        peer: peer, channel: channel, sending: sending, own: peerID, secretKey: secretKey, body)
    }
  }
}

/// Ed25519 signatures (RFC 8032) of 64 bytes.
package enum Signature {
  package static let byteCount = 64

  /// See `Identity.sign(context:channel:log:object:)` for the bytes. False, never a trap, for anything received.
  package static func verify(
    _ signature: [UInt8], by peer: PeerID, context: String, channel: ChannelID, log: Instance, object: [UInt8]
  ) -> Bool {
    verify(
      signature, by: peer, message: objectBytes(context: context, channel: channel, log: log, object: object))
  }

  /// Refuses public keys of small order and signatures that are not canonical.
  package static func verify(_ signature: [UInt8], by peer: PeerID, message: [UInt8]) -> Bool {
    guard signature.count == byteCount else { return false }
    return crypto_sign_verify_detached(signature, message, UInt64(message.count), peer.bytes) == 0
  }

  fileprivate static func objectBytes(
    context: String, channel: ChannelID, log: Instance, object: [UInt8]
  ) -> [UInt8] {
    precondition(!context.isEmpty && context.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a context is ASCII")
    precondition(context != "id" && context != "proof", "these contexts are the session's")
    var bytes = Array("parley/1/".utf8)
    bytes.reserveCapacity(bytes.count + context.utf8.count + 41 + object.count)
    bytes += context.utf8
    bytes.append(0)
    bytes += channel.bytes
    bytes += log.bytes
    bytes += object
    return bytes
  }
}
