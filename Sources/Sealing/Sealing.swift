import CSodium
import ParleyHashing
import ParleyVocabulary

/// The room that makes and holds every secret. Nothing else in the house draws keys, nonces, instances or identifiers.
///
/// Notation of the derivations in this room: `‖` joins bytes with nothing between; strings are ASCII without a
/// terminator; integers are big-endian; BLAKE2b-n is BLAKE2b (RFC 7693) with a result of n bits, "under K" means keyed
/// with K, and no salt or personalization is ever used.
package enum Sealing {
  /// Makes libsodium ready; call it once at the start so that a machine without randomness stops there.
  package static func initialize() { Sodium.requireReady() }

  package static func randomBytes(_ count: Int) -> [UInt8] {
    Sodium.requireReady()
    guard count > 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
      randombytes_buf(buffer.baseAddress!, count)
      written = count
    }
  }

  package static func randomUInt64() -> UInt64 { randomBytes(8).reduce(0) { $0 << 8 | UInt64($1) } }

  package static func randomInstance() -> Instance { Instance(randomUInt64()) }

  /// 16 random bytes in base32.
  package static func randomMessageID() -> MessageID { MessageID(random: randomBytes(16)) }
}

/// Why something could not be sealed or derived.
package enum SealingError: Error, Equatable, Sendable, CustomStringConvertible {
  case passphraseLength(byteCount: Int, byteCountMax: Int)
  /// Argon2id wanted its 64 MiB and the system had none.
  case noMemoryForPassphrase
  case datagramTooLong(byteCount: Int, byteCountMax: Int)
  /// The PeerID is not a point one may agree on a key with; nobody's honest key is such.
  case unusablePeer(PeerID)

  package var description: String {
    switch self {
    case .passphraseLength(let byteCount, let byteCountMax):
      "the passphrase is \(byteCount) bytes; 1 to \(byteCountMax) are allowed"
    case .noMemoryForPassphrase: "there is no memory for the 64 MiB that a passphrase takes: close something, try again"
    case .datagramTooLong(let byteCount, let byteCountMax):
      "the datagram would be \(byteCount) bytes; at most \(byteCountMax) are allowed"
    case .unusablePeer(let peer): "\(peer.fingerprint) is not a usable public key"
    }
  }
}

extension Instance {
  /// Eight bytes, big-endian: how an instance is written in headers, tags and signatures.
  package var bytes: [UInt8] { value.bigEndianBytes }

  package init?(bytes: some Collection<UInt8>) {
    guard bytes.count == 8 else { return nil }
    self.init(bytes.reduce(0) { $0 << 8 | UInt64($1) })
  }
}

extension UInt64 {
  var bigEndianBytes: [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: self >> UInt64(56 - 8 * $0)) } }
}
