// The local API's own JSON reader, and percent-decoding.
// Together with: Sources/LocalAPI/JSON Sources/LocalAPI/PercentEncoding.swift
import ParleyVocabulary

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: count))
  if let value = try? JSON(parsing: bytes) {
    let text = value.text
    precondition(text.unicodeScalars.allSatisfy { !$0.isControl }, "one line without control characters")
    let again = try? JSON(parsing: text)
    precondition(again == value && again?.text == text, "a value is written as it was read")
  }
  let text = String(decoding: bytes, as: UTF8.self)
  if !text.utf8.contains(0) {
    precondition(
      (try? PercentEncoding.decoded(PercentEncoding.encoded(text)))?.utf8.elementsEqual(text.utf8) == true,
      "decoding undoes encoding")
  }
  if let decoded = try? PercentEncoding.decoded(text) {
    precondition(!decoded.utf8.contains(0) && decoded.utf8.count <= text.utf8.count, "no NUL, nothing added")
  }
  return 0
}
