import CSodium
import Glibc
import ParleyHashing
import ParleyVocabulary

/// An organiser's key pair, with which login tokens are signed. It lies in a file of its own, as PASERK writes it
/// (paserk, `types/secret.md`): one line `k4.secret.` and the base64url of seed and public key.
package final class TokenSigner: Sendable {
  package let publicKey: OrganiserKey
  private let pair: Identity

  private static let header = "k4.secret."
  /// Seed and public key: 64 bytes, 86 characters.
  private static let lineByteCount = 96

  private init(pair: Identity) {
    self.pair = pair
    publicKey = OrganiserKey(pair.peerID.value)
  }

  /// For tests, where seeds are facts.
  package convenience init(seed: [UInt8]) { self.init(pair: Identity(seed: seed)) }

  package func sign(_ bytes: [UInt8]) -> [UInt8] { pair.sign(bytes) }

  /// Makes a new key and keeps it in a file of mode 0600; what is there already is left as it is.
  package static func create(path: String) throws(ProfileError) -> TokenSigner {
    let signer = TokenSigner(pair: .random())
    let file = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_t(0o600))
    guard file >= 0 else { throw .system(path: path, operation: "make", code: errno) }
    defer { close(file) }
    let line = signer.line
    var failure: Int32?
    line.withBytes { bytes in
      var written = 0
      while written < bytes.count {
        let count = write(file, bytes.baseAddress! + written, bytes.count - written)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return failure = errno }
        written += count
      }
      if fsync(file) != 0 { failure = errno }
    }
    if let failure {
      unlink(path)
      throw .system(path: path, operation: "write", code: failure)
    }
    return signer
  }

  /// Refuses a file that others may read or write, or that is another user's.
  package static func open(path: String) throws(ProfileError) -> TokenSigner {
    let file = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { throw .system(path: path, operation: "open", code: errno) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw .system(path: path, operation: "look at", code: errno) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .damaged(path: path, reason: "it is not a file") }
    guard status.st_uid == geteuid() else { throw .ownedByAnother(path: path, owner: status.st_uid) }
    guard status.st_mode & 0o077 == 0 else { throw .notPrivate(path: path, mode: status.st_mode & 0o777) }
    var count = 0
    let line = SecretBytes(byteCount: lineByteCount + 2) { place in
      while count < place.count {
        let more = read(file, place.baseAddress! + count, place.count - count)
        if more < 0, errno == EINTR { continue }
        if more <= 0 { return }
        count += more
      }
    }
    let isWhole = line.withBytes { bytes in
      count == lineByteCount || count == lineByteCount + 1 && bytes[lineByteCount] == UInt8(ascii: "\n")
    }
    guard isWhole, let signer = TokenSigner(line: line) else {
      throw .damaged(path: path, reason: "it is not a token key, which is one line beginning with \(header)")
    }
    return signer
  }

  private convenience init?(line: SecretBytes) {
    let headerByteCount = Self.header.utf8.count
    let hasHeader = line.withBytes { $0.starts(with: Self.header.utf8) }
    guard hasHeader else { return nil }
    var isRead = false
    let key = SecretBytes(byteCount: 64) { place in
      line.withBytes(headerByteCount..<Self.lineByteCount) { text in
        var count = 0
        let status = sodium_base642bin(
          place.octets, place.count, text.baseAddress!.assumingMemoryBound(to: CChar.self), text.count, nil, &count,
          nil, Int32(sodium_base64_VARIANT_URLSAFE_NO_PADDING))
        isRead = status == 0 && count == place.count
      }
    }
    guard isRead else { return nil }
    let seed = SecretBytes(byteCount: Identity.seedByteCount) { place in
      key.withBytes(0..<Identity.seedByteCount) { place.copyMemory(from: $0) }
    }
    let pair = Identity(seed: seed)
    // Both halves must belong together: a signature made with a wrong public key tells the secret one.
    guard key.withBytes({ Array($0[32...]) == pair.peerID.bytes }) else { return nil }
    self.init(pair: pair)
  }

  private var line: SecretBytes {
    let key = SecretBytes(byteCount: 64) { place in
      pair.withSeed { UnsafeMutableRawBufferPointer(rebasing: place[..<32]).copyMemory(from: $0) }
      UnsafeMutableRawBufferPointer(rebasing: place[32...]).copyBytes(from: publicKey.bytes)
    }
    // The text ends with a zero, which becomes the line's end.
    return SecretBytes(byteCount: Self.lineByteCount + 1) { place in
      let header = Self.header.utf8
      place.copyBytes(from: header)
      key.withBytes { key in
        _ = sodium_bin2base64(
          (place.baseAddress! + header.count).assumingMemoryBound(to: CChar.self), place.count - header.count,
          key.octets, key.count, Int32(sodium_base64_VARIANT_URLSAFE_NO_PADDING))
      }
      place[Self.lineByteCount] = UInt8(ascii: "\n")
    }
  }
}

extension OrganiserKey {
  /// Nil for anything but the form of `paserk`.
  package init?(paserk text: String) {
    let header = "k4.public."
    guard text.hasPrefix(header), let bytes = Base64URL.decode(text.utf8.dropFirst(header.utf8.count)) else {
      return nil
    }
    self.init(bytes: bytes)
  }

  /// As other implementations of PASETO take it (paserk, `types/public.md`).
  package var paserk: String { "k4.public." + Base64URL.encode(bytes) }

  /// What a token's footer names its key by (paserk, `types/pid.md`): BLAKE2b-264 of `k4.pid.` and the key's PASERK.
  package var paserkID: String {
    "k4.pid." + Base64URL.encode(BLAKE2b.hash(Array("k4.pid.".utf8) + Array(paserk.utf8), byteCount: 33))
  }
}
