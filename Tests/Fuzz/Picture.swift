// Pictures: whatever is scanned, what is shared of a whole one has nothing left to leave out.
import ParleyPictures

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: count))
  var source = ByteSource(bytes: bytes)
  guard let scan = PictureScan(&source) else { return 0 }
  let clean = scan.bytes(from: bytes)
  // Each kind of metadata is replaced by one orientation at most.
  precondition(clean.count <= bytes.count + 64, "cleaning makes nothing longer but by an orientation")
  guard scan.isWhole else { return 0 }
  var cleaned = ByteSource(bytes: clean)
  guard let again = PictureScan(&cleaned) else { preconditionFailure("what is shared is still a picture") }
  precondition(again.isWhole && again.isClean(byteCount: UInt64(clean.count)), "what is shared is clean")
  precondition((again.width, again.height) == (scan.width, scan.height), "it looks as before")
  return 0
}
