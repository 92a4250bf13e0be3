// What names and texts from the network become: safe on a disk, safe on a terminal, one text for one value.
import ParleyVocabulary

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: count))
  let text = String(decoding: bytes, as: UTF8.self)
  checkFileName(text)
  checkShownText(text)
  checkBase32(bytes, text)
  if let name = try? DisplayName(text) {
    precondition(Skeleton(name.text).resembles(Skeleton(" " + name.text)), "a name looks like itself")
    precondition((1...Limit.displayNameByteCountMax).contains(name.text.utf8.count), "a name keeps its limit")
    precondition((try? DisplayName(name.text)) == name, "a name that was checked is one")
  }
  return 0
}

private func checkFileName(_ text: String) {
  let name = SafeFileName(received: text)
  for created in [name.text, name.numbered(2), name.numbered(1_000_000)] {
    precondition((1...Limit.fileNameByteCountMax).contains(created.utf8.count), "a file name has 1 to 255 bytes")
    precondition(!created.unicodeScalars.contains { "/\\:\0".unicodeScalars.contains($0) }, "no separators")
    precondition(!created.unicodeScalars.contains { $0.isControl }, "no control characters")
    precondition(!created.utf8.starts(with: ".".utf8), "not hidden, nor . or ..")
    // No reordering either: what is left beyond plain characters are joiners.
    precondition(
      created.unicodeScalars.allSatisfy { !$0.isTreacherous || $0.value == 0x200C || $0.value == 0x200D },
      "nothing that hides or reorders")
  }
  precondition(SafeFileName(received: text) == name, "the same everywhere")
}

private func checkShownText(_ text: String) {
  for scalar in text.escapedLine.unicodeScalars {
    precondition(!scalar.isControl, "no control character reaches a terminal")
    precondition(
      !(0x202A...0x202E).contains(scalar.value) && !(0x2066...0x2069).contains(scalar.value), "no reordering")
    precondition(scalar.value != 0x2028 && scalar.value != 0x2029, "one line stays one line")
  }
  precondition(
    text.escapedText.unicodeScalars.allSatisfy { !$0.isControl || $0 == "\n" }, "nor but line feeds in texts")
}

private func checkBase32(_ bytes: [UInt8], _ text: String) {
  precondition(Base32.decode(Base32.encode(bytes)) == bytes, "decoding undoes encoding")
  if let decoded = Base32.decode(text) {
    precondition(Base32.encode(decoded).utf8.elementsEqual(text.utf8), "one value has one text")
  }
}
