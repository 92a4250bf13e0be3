import ParleyHashing
import ParleyVocabulary

/// A token of PASETO, version 4, purpose public (paseto-standard, `docs/01-Protocol-Versions/Version4.md`): a payload
/// that anyone can read and an Ed25519 signature over it, the footer and an implicit assertion that does not travel.
package struct Paseto: Equatable, Sendable {
  package static let header = "v4.public."

  package let payload: [UInt8]
  package let footer: [UInt8]
  private let signature: [UInt8]

  /// Takes a token apart; nothing it says is true before `verify`. At most `Limit.tokenByteCountMax` bytes are looked
  /// at.
  package init(_ token: String) throws(TokenFormError) {
    let bytes = token.utf8
    guard bytes.count <= Limit.tokenByteCountMax else {
      throw .tooLong(byteCount: bytes.count, byteCountMax: Limit.tokenByteCountMax)
    }
    guard bytes.starts(with: Self.header.utf8) else { throw .notPublicVersion4 }
    let parts = bytes.dropFirst(Self.header.utf8.count).split(
      separator: UInt8(ascii: "."), maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count <= 2 else { throw .malformed("it has too many parts") }
    guard let body = Base64URL.decode(parts[0]), body.count >= Signature.byteCount else {
      throw .malformed("its body is not base64url of a payload and a signature")
    }
    payload = Array(body.dropLast(Signature.byteCount))
    signature = Array(body.suffix(Signature.byteCount))
    guard parts.count == 2 else {
      footer = []
      return
    }
    guard let footer = Base64URL.decode(parts[1]), !footer.isEmpty else {
      throw .malformed("its footer is not base64url, or empty")
    }
    self.footer = footer
  }

  /// Signs a payload, which is JSON by PASETO's convention.
  package init(signing payload: [UInt8], footer: [UInt8] = [], assertion: [UInt8] = [], with key: TokenSigner) {
    self.payload = payload
    self.footer = footer
    signature = key.sign(Self.signedBytes(payload, footer, assertion))
  }

  /// False, never a trap, for anything received.
  package func isSigned(by key: OrganiserKey, assertion: [UInt8] = []) -> Bool {
    // Signatures are checked by public key; a PeerID is one.
    Signature.verify(signature, by: PeerID(key.value), message: Self.signedBytes(payload, footer, assertion))
  }

  package var text: String {
    Self.header + Base64URL.encode(payload + signature) + (footer.isEmpty ? "" : "." + Base64URL.encode(footer))
  }

  private static func signedBytes(_ payload: [UInt8], _ footer: [UInt8], _ assertion: [UInt8]) -> [UInt8] {
    preAuthenticationEncoding([Array(header.utf8), payload, footer, assertion])
  }

  /// PAE (paseto-standard, `docs/01-Protocol-Versions/Common.md`): no two lists of pieces have the same encoding.
  static func preAuthenticationEncoding(_ pieces: [[UInt8]]) -> [UInt8] {
    var out = littleEndian(pieces.count)
    for piece in pieces { out += littleEndian(piece.count) + piece }
    return out
  }

  /// 64 bits; the top one is never set, as counts are not negative.
  private static func littleEndian(_ count: Int) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: count >> (8 * $0)) }
  }
}

/// Why a text is no token at all.
package enum TokenFormError: Error, Equatable, Sendable, CustomStringConvertible {
  case tooLong(byteCount: Int, byteCountMax: Int)
  case notPublicVersion4
  case malformed(String)

  package var description: String {
    switch self {
    case .tooLong(let byteCount, let byteCountMax): "it is \(byteCount) bytes long; at most \(byteCountMax) are read"
    case .notPublicVersion4: "it does not begin with v4.public.: only this version and purpose of PASETO is taken"
    case .malformed(let reason): reason
    }
  }
}
