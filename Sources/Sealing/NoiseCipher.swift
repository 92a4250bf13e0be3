import CSodium
import ParleyHashing
import Synchronization

/// Why a Noise message was not read or written.
package enum NoiseError: Error, Equatable, Sendable, CustomStringConvertible {
  case tooLong(byteCount: Int, byteCountMax: Int)
  case tooShort(byteCount: Int, byteCountMin: Int)
  /// The tag does not fit: altered, out of order, or under another key.
  case notAuthentic
  /// The other's public key leads to a shared secret of zeros.
  case lowOrderPoint
  /// 2⁶⁴ − 1 messages were sealed; the nonce is reserved (Noise section 5.1).
  case noncesExhausted
  /// This processor has no AES instructions.
  case cipherUnavailable
  /// An earlier message of this handshake failed.
  case handshakeFailed

  package var description: String {
    switch self {
    case .tooLong(let byteCount, let byteCountMax): "\(byteCount) bytes; at most \(byteCountMax) are allowed"
    case .tooShort(let byteCount, let byteCountMin): "\(byteCount) bytes; at least \(byteCountMin) are needed"
    case .notAuthentic: "the message was altered or is not for this key"
    case .lowOrderPoint: "the public key is of small order"
    case .noncesExhausted: "the key has sealed as much as it may"
    case .cipherUnavailable: "AES-GCM needs AES instructions, which this processor lacks"
    case .handshakeFailed: "the handshake failed before"
    }
  }
}

/// The ciphers of Noise section 12 that sessions use.
package enum NoiseSuite: Sendable, Hashable {
  case aesGCM
  case chaChaPoly

  /// ChaChaPoly always; AESGCM where the processor has AES and carry-less multiplication.
  package var isAvailable: Bool {
    Sodium.requireReady()
    return self == .chaChaPoly || crypto_aead_aes256gcm_is_available() == 1
  }

  var noiseName: String { self == .aesGCM ? "AESGCM" : "ChaChaPoly" }
}

/// A key with its counter (CipherState, Noise section 5.1). Nonces are four zero bytes and the counter: big-endian for
/// AESGCM, little-endian for ChaChaPoly. A reference, so that no copy can use a nonce twice.
package final class NoiseCipher: Sendable {
  package static let tagByteCount = 16
  private static let aesStateByteCount = 512

  package let suite: NoiseSuite
  /// The key; for AESGCM its schedule (`crypto_aead_aes256gcm_state`, aligned to 16).
  private let key: SecretBytes
  private let counter: Mutex<UInt64>

  init(suite: NoiseSuite, key bytes: UnsafeRawBufferPointer, counter: UInt64 = 0) {
    precondition(bytes.count == 32, "both ciphers take keys of 32 bytes")
    self.suite = suite
    self.counter = Mutex(counter)
    switch suite {
    case .aesGCM:
      precondition(crypto_aead_aes256gcm_statebytes() == Self.aesStateByteCount, "libsodium's state is 512 bytes")
      key = SecretBytes(byteCount: Self.aesStateByteCount) { place in
        let state = place.baseAddress!.assumingMemoryBound(to: crypto_aead_aes256gcm_state.self)
        crypto_aead_aes256gcm_beforenm(state, bytes.octets)
      }
    case .chaChaPoly:
      key = SecretBytes(byteCount: 32) { $0.copyMemory(from: bytes) }
    }
  }

  /// Encrypts into `target`, which is the plaintext's length and 16 bytes longer, and may begin where it begins.
  package func seal(
    _ plaintext: UnsafeRawBufferPointer, associated: [UInt8] = [], into target: UnsafeMutableRawBufferPointer
  ) throws(NoiseError) {
    precondition(target.count == plaintext.count + Self.tagByteCount, "the place is the plaintext's and the tag's")
    let nonce = counter.withLock { counter -> UInt64? in
      guard counter < .max else { return nil }
      defer { counter += 1 }
      return counter
    }
    guard let nonce else { throw .noncesExhausted }
    encrypt(plaintext, nonce: nonce, associated: associated, into: target)
  }

  /// Decrypts into `target`, 16 bytes shorter than `sealed`, which may begin where that begins. A failure leaves the
  /// counter, as Noise wants it, and zeros in `target`.
  package func open(
    _ sealed: UnsafeRawBufferPointer, associated: [UInt8] = [], into target: UnsafeMutableRawBufferPointer
  ) throws(NoiseError) {
    guard sealed.count >= Self.tagByteCount else {
      throw .tooShort(byteCount: sealed.count, byteCountMin: Self.tagByteCount)
    }
    precondition(target.count == sealed.count - Self.tagByteCount, "the place is the plaintext's")
    let failure = counter.withLock { counter -> NoiseError? in
      guard counter < .max else { return .noncesExhausted }
      guard decrypt(sealed, nonce: counter, associated: associated, into: target) else { return .notAuthentic }
      counter += 1
      return nil
    }
    if let failure { throw failure }
  }

  package func seal(_ plaintext: [UInt8], associated: [UInt8] = []) throws(NoiseError) -> [UInt8] {
    var sealed = plaintext + [UInt8](repeating: 0, count: Self.tagByteCount)
    var failure: NoiseError?
    sealed.withUnsafeMutableBytes { place in
      let source = UnsafeRawBufferPointer(rebasing: place[..<plaintext.count])
      do throws(NoiseError) {
        try seal(source, associated: associated, into: place)
      } catch { failure = error }
    }
    if let failure { throw failure }
    return sealed
  }

  package func open(_ sealed: [UInt8], associated: [UInt8] = []) throws(NoiseError) -> [UInt8] {
    guard sealed.count >= Self.tagByteCount else {
      throw .tooShort(byteCount: sealed.count, byteCountMin: Self.tagByteCount)
    }
    var opened = sealed
    var failure: NoiseError?
    opened.withUnsafeMutableBytes { place in
      let target = UnsafeMutableRawBufferPointer(rebasing: place[..<(place.count - Self.tagByteCount)])
      do throws(NoiseError) {
        try open(UnsafeRawBufferPointer(place), associated: associated, into: target)
      } catch { failure = error }
    }
    if let failure { throw failure }
    opened.removeLast(Self.tagByteCount)
    return opened
  }

  private func withNonce<Result>(_ nonce: UInt64, _ body: (UnsafePointer<UInt8>) -> Result) -> Result {
    let counter = suite == .aesGCM ? nonce.bigEndian : nonce.littleEndian
    return withUnsafeTemporaryAllocation(byteCount: 12, alignment: 8) { place in
      place.storeBytes(of: 0, as: UInt32.self)
      place.storeBytes(of: counter, toByteOffset: 4, as: UInt64.self)
      return body(UnsafePointer(place.octets))
    }
  }

  private func encrypt(
    _ plaintext: UnsafeRawBufferPointer, nonce: UInt64, associated: [UInt8],
    into target: UnsafeMutableRawBufferPointer
  ) {
    let source = plaintext.baseAddress?.assumingMemoryBound(to: UInt8.self)
    let sourceCount = UInt64(plaintext.count)
    let associatedCount = UInt64(associated.count)
    key.withBytes { key in
      withNonce(nonce) { nonce in
        switch suite {
        case .aesGCM:
          let state = key.baseAddress!.assumingMemoryBound(to: crypto_aead_aes256gcm_state.self)
          crypto_aead_aes256gcm_encrypt_afternm(
            target.octets, nil, source, sourceCount, associated, associatedCount, nil, nonce, state)
        case .chaChaPoly:
          crypto_aead_chacha20poly1305_ietf_encrypt(
            target.octets, nil, source, sourceCount, associated, associatedCount, nil, nonce, key.octets)
        }
      }
    }
  }

  private func decrypt(
    _ sealed: UnsafeRawBufferPointer, nonce: UInt64, associated: [UInt8],
    into target: UnsafeMutableRawBufferPointer
  ) -> Bool {
    let sealedCount = UInt64(sealed.count)
    let associatedCount = UInt64(associated.count)
    // An empty plaintext may have no address, but libsodium wants one.
    let place = target.baseAddress ?? UnsafeMutableRawPointer(mutating: sealed.baseAddress!)
    let start = place.assumingMemoryBound(to: UInt8.self)
    return key.withBytes { key in
      withNonce(nonce) { nonce in
        switch suite {
        case .aesGCM:
          let state = key.baseAddress!.assumingMemoryBound(to: crypto_aead_aes256gcm_state.self)
          return crypto_aead_aes256gcm_decrypt_afternm(
            start, nil, nil, sealed.octets, sealedCount, associated, associatedCount, nonce, state) == 0
        case .chaChaPoly:
          return crypto_aead_chacha20poly1305_ietf_decrypt(
            start, nil, nil, sealed.octets, sealedCount, associated, associatedCount, nonce, key.octets) == 0
        }
      }
    }
  }
}
