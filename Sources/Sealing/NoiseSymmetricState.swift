import CSodium
import ParleyHashing

/// SymmetricState of Noise revision 34, section 5.2, with SHA-256 (HASHLEN 32).
struct NoiseSymmetricState: Sendable {
  let suite: NoiseSuite
  private(set) var hash: [UInt8]
  private var chainingKey: SecretBytes
  private var cipher: NoiseCipher?

  init(protocolName: String, suite: NoiseSuite) {
    let name = Array(protocolName.utf8)
    hash = name.count <= 32 ? name + [UInt8](repeating: 0, count: 32 - name.count) : Self.sha256(name)
    chainingKey = SecretBytes(hash)
    self.suite = suite
  }

  mutating func mixHash(_ data: [UInt8]) { hash = Self.sha256(hash + data) }

  /// `material` is a shared secret.
  mutating func mixKey(_ material: UnsafeRawBufferPointer) {
    let keys = expand(material)
    chainingKey = keys.withBytes(0..<32) { first in SecretBytes(byteCount: 32) { $0.copyMemory(from: first) } }
    cipher = keys.withBytes(32..<64) { NoiseCipher(suite: suite, key: $0) }
  }

  mutating func encryptAndHash(_ plaintext: [UInt8]) throws(NoiseError) -> [UInt8] {
    let sealed = try cipher?.seal(plaintext, associated: hash) ?? plaintext
    mixHash(sealed)
    return sealed
  }

  mutating func decryptAndHash(_ sealed: [UInt8]) throws(NoiseError) -> [UInt8] {
    let plaintext = try cipher?.open(sealed, associated: hash) ?? sealed
    mixHash(sealed)
    return plaintext
  }

  /// The tag's length, once there is a key.
  var overheadByteCount: Int { cipher == nil ? 0 : NoiseCipher.tagByteCount }

  func split() -> (initiatorToResponder: NoiseCipher, responderToInitiator: NoiseCipher) {
    let keys = expand(UnsafeRawBufferPointer(start: nil, count: 0))
    return (
      keys.withBytes(0..<32) { NoiseCipher(suite: suite, key: $0) },
      keys.withBytes(32..<64) { NoiseCipher(suite: suite, key: $0) }
    )
  }

  private static func sha256(_ bytes: [UInt8]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
      crypto_hash_sha256(buffer.baseAddress!, bytes, UInt64(bytes.count))
      count = 32
    }
  }

  /// HKDF with two outputs (Noise section 4.3), one after the other.
  private func expand(_ material: UnsafeRawBufferPointer) -> SecretBytes {
    let temporary = SecretMemory(byteCount: 32)
    chainingKey.withBytes {
      Self.hmac(key: $0, material, UnsafeRawBufferPointer(start: nil, count: 0), temporary.bytes)
    }
    let temporaryKey = UnsafeRawBufferPointer(temporary.bytes)
    return SecretBytes(byteCount: 64) { place in
      let first = UnsafeMutableRawBufferPointer(rebasing: place[0..<32])
      let second = UnsafeMutableRawBufferPointer(rebasing: place[32..<64])
      [1].withUnsafeBytes {
        Self.hmac(key: temporaryKey, UnsafeRawBufferPointer(start: nil, count: 0), .init(rebasing: $0[..<1]), first)
      }
      [2].withUnsafeBytes {
        Self.hmac(key: temporaryKey, UnsafeRawBufferPointer(first), .init(rebasing: $0[..<1]), second)
      }
    }
  }

  /// HMAC-SHA-256 (RFC 2104) of two parts.
  private static func hmac(
    key: UnsafeRawBufferPointer, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer,
    _ result: UnsafeMutableRawBufferPointer
  ) {
    var state = crypto_auth_hmacsha256_state()
    crypto_auth_hmacsha256_init(&state, key.octets, key.count)
    for part in [first, second] where !part.isEmpty {
      crypto_auth_hmacsha256_update(&state, part.octets, UInt64(part.count))
    }
    crypto_auth_hmacsha256_final(&state, result.octets)
    sodium_memzero(&state, MemoryLayout<crypto_auth_hmacsha256_state>.size)
  }
}
