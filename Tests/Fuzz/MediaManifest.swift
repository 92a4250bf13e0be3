// Manifests: the same files have one manifest, whoever makes it.
import ParleyVocabulary
import ParleyWire

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: count))
  guard let manifest = try? MediaManifest(decoding: bytes) else { return 0 }
  precondition(manifest.encoded == bytes, "a manifest is kept as it came: its hash is its name")
  let files = Array(manifest.files.reversed())
  guard let again = try? MediaManifest(files: files, mimeType: manifest.mimeType) else {
    preconditionFailure("what a decoder takes can be made")
  }
  precondition(again.encoded == bytes && again.id == manifest.id, "the same files have one manifest")
  precondition(manifest.byteCount <= Limit.counterMax, "sizes add up below 2^62")
  for file in manifest.files {
    precondition(file.blockCount >= file.pieceCount, "a piece has a block at least")
    precondition(!file.path.contains(".."), "no way out of a folder")
  }
  return 0
}
