// Login tokens, as anyone may send them: their form, their claims, their dates; and that nobody signs for another.
import ParleySealing
import ParleyVocabulary
import ParleyWire

private let signer = TokenSigner(seed: [UInt8](repeating: 1, count: 32))

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: count))
  let text = String(decoding: bytes, as: UTF8.self)
  if let paseto = try? Paseto(text) {
    precondition(paseto.text.utf8.elementsEqual(text.utf8), "one token has one text")
    // No input holds the private key; the seed corpus is signed with another.
    precondition(!paseto.isSigned(by: signer.publicKey), "nobody signs for another")
    _ = TokenClaims.keyID(inFooter: paseto.footer)
    check(paseto.payload)
  }
  check(bytes)
  if let moment = Timestamp(rfc3339: text) {
    precondition(Timestamp(rfc3339: moment.text)?.text == moment.text, "a moment that was read is one")
  }
  if let bytes = Base64URL.decode(text.utf8) {
    precondition(Base64URL.encode(bytes).utf8.elementsEqual(text.utf8), "one value has one text")
  }
  if let key = OrganiserKey(paserk: text) { precondition(key.paserk == text, "one key has one text") }
  return 0
}

private func check(_ payload: [UInt8]) {
  guard let claims = try? TokenClaims(decoding: payload) else { return }
  precondition(claims.validFrom < claims.expires, "there is a time at which it is valid")
  // Milliseconds are not written, so that little may be left of a moment.
  guard claims.expires.milliseconds - claims.validFrom.milliseconds >= 1_000 else { return }
  guard let again = try? TokenClaims(decoding: claims.encoded) else {
    preconditionFailure("claims that were accepted are some")
  }
  precondition(again.encoded == claims.encoded, "the same claims have one text")
  let token = Paseto(signing: claims.encoded, footer: [1], with: signer)
  precondition(token.isSigned(by: signer.publicKey), "what was signed is")
}
