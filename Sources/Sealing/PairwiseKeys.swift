import CSodium
import ParleyHashing
import ParleyVocabulary
import Synchronization

/// The keys of an identity for datagrams to and from single peers, remembered because agreeing on one takes two curve
/// operations.
///
/// key = BLAKE2b-256(`parley/1/pairwise` ‖ S ‖ ChannelID (32) ‖ sender's PeerID (32) ‖ receiver's PeerID (32)), where S
/// is X25519 (RFC 7748) of one's own secret and the other's public key, both in their Montgomery form: for the secret
/// key the clamped first 32 bytes of SHA-512 of the seed, for the public key u = (1 + y) / (1 − y).
final class PairwiseKeys: Sendable {
  private struct Pair: Hashable {
    let peer: PeerID
    let channel: ChannelID
  }

  /// 128 bytes of locked memory each.
  static let pairCountMax = 512

  private struct Known {
    /// Sending, then receiving, 32 bytes each.
    var keys: [Pair: SecretBytes] = [:]
    /// In the order in which they came; from `oldest` on, the next to go.
    var order: [Pair] = []
    var oldest = 0

    mutating func remember(_ pair: Pair, _ key: SecretBytes) {
      guard keys.updateValue(key, forKey: pair) == nil else { return }
      guard order.count == pairCountMax else { return order.append(pair) }
      keys[order[oldest]] = nil
      order[oldest] = pair
      oldest = (oldest + 1) % pairCountMax
    }
  }

  private let known = Mutex(Known())

  var pairCount: Int { known.withLock { $0.keys.count } }

  /// Nil when `peer` is not a point of the main subgroup, or is of small order. `secretKey` is the X25519 form of the
  /// secret key of `own`.
  func withKey<Result>(
    peer: PeerID, channel: ChannelID, sending: Bool, own: PeerID, secretKey: UnsafeRawBufferPointer,
    _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result? {
    let pair = Pair(peer: peer, channel: channel)
    let keys: SecretBytes
    if let found = known.withLock({ $0.keys[pair] }) {
      keys = found
    } else {
      guard let derived = Self.derive(pair, own: own, secretKey: secretKey) else { return nil }
      known.withLock { $0.remember(pair, derived) }
      keys = derived
    }
    return keys.withBytes(sending ? 0..<32 : 32..<64, body)
  }

  private static func derive(_ pair: Pair, own: PeerID, secretKey: UnsafeRawBufferPointer) -> SecretBytes? {
    var point = [UInt8](repeating: 0, count: 32)
    guard crypto_sign_ed25519_pk_to_curve25519(&point, pair.peer.bytes) == 0 else { return nil }
    let shared = SecretMemory(byteCount: 32)
    guard crypto_scalarmult_curve25519(shared.bytes.octets, secretKey.octets, point) == 0 else { return nil }
    let agreed = UnsafeRawBufferPointer(shared.bytes)
    return SecretBytes(byteCount: 64) { place in
      for (index, direction) in [(own, pair.peer), (pair.peer, own)].enumerated() {
        var stream = BLAKE2b.Stream(byteCount: 32)
        stream.update(Array("parley/1/pairwise".utf8))
        stream.update(agreed)
        stream.update(pair.channel.bytes)
        stream.update(direction.0.bytes)
        stream.update(direction.1.bytes)
        stream.finish(into: UnsafeMutableRawBufferPointer(rebasing: place[index * 32..<index * 32 + 32]))
      }
    }
  }
}
