import CSodium
import ParleyHashing
import ParleyVocabulary

/// What a profile with a passphrase is sealed with on the disk. One random master key of 32 bytes; from it, each
/// BLAKE2b-256 under the master key:
///
/// - file key: of `parley/1/rest/file`
/// - store key: of `parley/1/rest/store`
/// - likeness key: of `parley/1/rest/like`, for nonces that follow from what is sealed
///
/// A sealed thing is nonce (24) ‖ XChaCha20-Poly1305 of it ‖ tag (16), with what it is as associated data, so that
/// nothing can stand in the place of another.
package final class RestKeys: Sendable {
  static let masterByteCount = 32
  package static let overheadByteCount = nonceByteCount + 16
  private static let nonceByteCount = 24

  /// Master key, file key, store key, likeness key; 32 bytes each.
  private let secrets: SecretBytes

  init(master: SecretBytes) {
    precondition(master.byteCount == Self.masterByteCount, "a master key has 32 bytes")
    secrets = SecretBytes(byteCount: 128) { place in
      master.withBytes { master in
        UnsafeMutableRawBufferPointer(rebasing: place[0..<32]).copyMemory(from: master)
        for (index, label) in ["file", "store", "like"].enumerated() {
          var stream = BLAKE2b.Stream(byteCount: 32, keyBytes: master)
          stream.update(Array("parley/1/rest/\(label)".utf8))
          stream.finish(into: UnsafeMutableRawBufferPointer(rebasing: place[(index + 1) * 32..<(index + 2) * 32]))
        }
      }
    }
  }

  package static func random() -> RestKeys { RestKeys(master: SecretBytes(randomByteCount: masterByteCount)) }

  /// The master key itself, for the file that the passphrase seals.
  func withMaster<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result { secrets.withBytes(0..<32, body) }

  // MARK: The store

  /// For a row of the store; `identity` says which value of which row.
  package func seal(_ bytes: [UInt8], as identity: [UInt8]) -> [UInt8] {
    secrets.withBytes(64..<96) { key in
      Seal.sealed(bytes, nonce: Sealing.randomBytes(Self.nonceByteCount), identity: identity, key: key)
    }
  }

  /// The same for the same bytes, so that they can be looked up: the nonce is BLAKE2b-192 under the likeness key of the
  /// identity's length (8) ‖ identity ‖ bytes. Who reads the disk sees what is alike under one identity.
  package func sealAlike(_ bytes: [UInt8], as identity: [UInt8]) -> [UInt8] {
    let nonce = secrets.withBytes(96..<128) { key in
      var stream = BLAKE2b.Stream(byteCount: Self.nonceByteCount, keyBytes: key)
      stream.update(UInt64(identity.count).bigEndianBytes)
      stream.update(identity)
      stream.update(bytes)
      return stream.finish()
    }
    return secrets.withBytes(64..<96) { Seal.sealed(bytes, nonce: nonce, identity: identity, key: $0) }
  }

  /// What was sealed in either way; nil when it is not that, or was for another place.
  package func open(_ sealed: [UInt8], as identity: [UInt8]) -> [UInt8]? {
    guard sealed.count >= Self.overheadByteCount else { return nil }
    let count = sealed.count - Self.overheadByteCount
    var isOpened = false
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
      isOpened = sealed.withUnsafeBytes { sealed in
        secrets.withBytes(64..<96) { key in
          Seal.open(sealed, into: UnsafeMutableRawBufferPointer(buffer), identity: identity, key: key)
        }
      }
      written = isOpened ? count : 0
    }
    return isOpened ? bytes : nil
  }

  // MARK: Files of the profile

  func sealFile(_ bytes: SecretBytes, as identity: [UInt8]) -> [UInt8] {
    secrets.withBytes(32..<64) { key in
      bytes.withBytes {
        Seal.sealed($0, nonce: Sealing.randomBytes(Self.nonceByteCount), identity: identity, key: key)
      }
    }
  }

  func openFile(_ sealed: UnsafeRawBufferPointer, as identity: [UInt8]) -> SecretBytes? {
    guard sealed.count > Self.overheadByteCount else { return nil }
    var isOpened = false
    let bytes = SecretBytes(byteCount: sealed.count - Self.overheadByteCount) { place in
      isOpened = secrets.withBytes(32..<64) { Seal.open(sealed, into: place, identity: identity, key: $0) }
    }
    return isOpened ? bytes : nil
  }
}

/// Nonce (24) ‖ XChaCha20-Poly1305 ‖ tag (16).
enum Seal {
  static let nonceByteCount = 24
  static let overheadByteCount = nonceByteCount + 16

  static func sealed(_ bytes: [UInt8], nonce: [UInt8], identity: [UInt8], key: UnsafeRawBufferPointer) -> [UInt8] {
    bytes.withUnsafeBytes { sealed($0, nonce: nonce, identity: identity, key: key) }
  }

  static func sealed(
    _ bytes: UnsafeRawBufferPointer, nonce: [UInt8], identity: [UInt8], key: UnsafeRawBufferPointer
  ) -> [UInt8] {
    precondition(nonce.count == nonceByteCount, "XChaCha20 takes 24 bytes")
    let count = bytes.count + overheadByteCount
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
      for (index, byte) in nonce.enumerated() { buffer[index] = byte }
      crypto_aead_xchacha20poly1305_ietf_encrypt(
        buffer.baseAddress! + nonceByteCount, nil, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
        UInt64(bytes.count), identity, UInt64(identity.count), nil, nonce, key.octets)
      written = count
    }
  }

  /// `place` is as long as what was sealed. False, and nothing of use in it, when it does not open.
  static func open(
    _ sealed: UnsafeRawBufferPointer, into place: UnsafeMutableRawBufferPointer, identity: [UInt8],
    key: UnsafeRawBufferPointer
  ) -> Bool {
    precondition(place.count == sealed.count - overheadByteCount, "the caller knows the length")
    // libsodium takes no null for a place, though nothing is written to an empty one.
    var nowhere: UInt8 = 0
    return withUnsafeMutablePointer(to: &nowhere) { nowhere in
      crypto_aead_xchacha20poly1305_ietf_decrypt(
        place.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? nowhere, nil, nil, sealed.octets + nonceByteCount,
        UInt64(sealed.count - nonceByteCount), identity, UInt64(identity.count), sealed.octets, key.octets) == 0
    }
  }
}
