import CSodium
import ParleyHashing

/// What guessing a passphrase costs: Argon2id, version 0x13 (RFC 9106), one lane, since libsodium has no more.
package struct PassphraseCost: Sendable, Equatable {
  package let passCount: UInt32
  /// In KiB.
  package let memory: UInt32

  /// As RFC 9106 recommends where memory is scarce (section 4, second option): 3 passes over 64 MiB.
  package static let standard = PassphraseCost(passCount: 3, memory: 65_536)

  package init(passCount: UInt32, memory: UInt32) {
    self.passCount = passCount
    self.memory = memory
  }

  /// A file that was written by somebody else must not make this machine work or allocate for hours: at most 64 passes
  /// over 4 GiB. Argon2 itself needs 8 KiB.
  var isAllowed: Bool { (1...64).contains(passCount) && (8...4 << 20).contains(memory) }
}

/// A key of 32 bytes from a passphrase.
struct PassphraseKey {
  static let saltByteCount = 16
  static let passphraseByteCountMax = 1_024

  let bytes: SecretBytes

  /// Nil when the system has no memory for it.
  init?(_ passphrase: [UInt8], salt: [UInt8], cost: PassphraseCost) {
    precondition(salt.count == Self.saltByteCount && cost.isAllowed, "the caller checks what it read")
    Sodium.requireReady()
    var status: Int32 = -1
    bytes = SecretBytes(byteCount: 32) { place in
      passphrase.withUnsafeBytes { characters in
        status = crypto_pwhash_argon2id(
          place.octets, UInt64(place.count), characters.baseAddress!.assumingMemoryBound(to: CChar.self),
          UInt64(characters.count), salt, UInt64(cost.passCount), Int(cost.memory) << 10,
          crypto_pwhash_argon2id_alg_argon2id13())
      }
    }
    guard status == 0 else { return nil }
  }
}

/// Something small that a passphrase seals. Big-endian:
///
/// mark (8) ‖ version 1 (1) ‖ note (1) ‖ passes (4) ‖ KiB (4) ‖ salt (16) ‖ nonce (24) ‖ XChaCha20-Poly1305 of the
/// content under Argon2id of passphrase and salt, with everything before the nonce as associated data ‖ tag (16) ‖
/// BLAKE2b-128 of all before (16), which tells a damaged file from a wrong passphrase.
package struct PassphraseEnvelope {
  package enum Failure: Error {
    case damaged(String)
    case newerVersion(UInt8)
    case wrongPassphrase
    case noMemory(kibibytes: UInt32)
  }

  static let headByteCount = 34
  static let overheadByteCount = headByteCount + Seal.overheadByteCount + 16
  private static let version: UInt8 = 1

  let mark: [UInt8]
  let note: UInt8
  package let cost: PassphraseCost
  let salt: [UInt8]
  private let sealed: [UInt8]

  private var head: [UInt8] { Self.head(mark, note, cost, salt) }

  private static func head(_ mark: [UInt8], _ note: UInt8, _ cost: PassphraseCost, _ salt: [UInt8]) -> [UInt8] {
    mark + [version, note] + (UInt64(cost.passCount) << 32 | UInt64(cost.memory)).bigEndianBytes + salt
  }

  /// Seals under a key that was made of this salt at this cost.
  init(
    sealing content: UnsafeRawBufferPointer, mark: String, note: UInt8, cost: PassphraseCost, salt: [UInt8],
    key: PassphraseKey
  ) {
    self.mark = Array(mark.utf8)
    self.note = note
    self.cost = cost
    self.salt = salt
    let head = Self.head(self.mark, note, cost, salt)
    sealed = key.bytes.withBytes {
      Seal.sealed(content, nonce: Sealing.randomBytes(Seal.nonceByteCount), identity: head, key: $0)
    }
  }

  package var bytes: [UInt8] {
    let body = head + sealed
    return body + BLAKE2b.hash(body, byteCount: 16)
  }

  package init(_ bytes: [UInt8], mark: String) throws(Failure) {
    guard bytes.count > Self.overheadByteCount else { throw .damaged("it is \(bytes.count) bytes long") }
    guard bytes.starts(with: mark.utf8) else { throw .damaged("it does not begin with \(mark)") }
    let body = Array(bytes.dropLast(16))
    guard BLAKE2b.hash(body, byteCount: 16).elementsEqual(bytes.suffix(16)) else {
      throw .damaged("its sum is not that of its bytes")
    }
    guard bytes[8] == Self.version else { throw .newerVersion(bytes[8]) }
    let numbers = bytes[10..<18].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    cost = PassphraseCost(
      passCount: UInt32(truncatingIfNeeded: numbers >> 32), memory: UInt32(truncatingIfNeeded: numbers))
    guard cost.isAllowed else { throw .damaged("it asks for \(cost.passCount) passes over \(cost.memory) KiB") }
    self.mark = Array(mark.utf8)
    note = bytes[9]
    salt = Array(bytes[18..<Self.headByteCount])
    sealed = Array(body[Self.headByteCount...])
  }

  /// Also gives the key, with which the content may be sealed again under the same salt.
  func open(_ passphrase: [UInt8]) throws(Failure) -> (content: SecretBytes, key: PassphraseKey) {
    guard let key = PassphraseKey(passphrase, salt: salt, cost: cost) else { throw .noMemory(kibibytes: cost.memory) }
    var isOpened = false
    let content = SecretBytes(byteCount: sealed.count - Seal.overheadByteCount) { place in
      isOpened = key.bytes.withBytes { key in
        sealed.withUnsafeBytes { Seal.open($0, into: place, identity: head, key: key) }
      }
    }
    guard isOpened else { throw .wrongPassphrase }
    return (content, key)
  }
}
