// What somebody hands over to be imported as an identity: the envelope, and what is in it once it was opened.
import ParleySealing
import ParleyVocabulary

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: count))
  if let bundle = IdentityBundle(decoding: bytes) {
    precondition(bundle.encoded == bytes, "one bundle has one form")
    for file in bundle.files {
      precondition(!file.name.hasPrefix("/") && !file.name.contains(".."), "no name leads elsewhere")
      precondition((1...49_152).contains(file.bytes.count), "a profile's files are small")
    }
    precondition(bundle.files.contains { $0.name == "identity" }, "a bundle has an identity")
  }
  if let envelope = try? PassphraseEnvelope(bytes, mark: IdentityBundle.mark) {
    precondition(envelope.bytes == bytes, "one envelope has one form")
    precondition(envelope.cost.passCount <= 64 && envelope.cost.memory <= 4 << 20, "no hours of work")
  }
  return 0
}
