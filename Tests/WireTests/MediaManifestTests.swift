import ParleyHashing
import ParleyVocabulary
import ParleyWire
import Testing

private let root = Hash32(bytes: [UInt8](repeating: 7, count: 32))!
private let zeros = Hash32(bytes: [UInt8](repeating: 0, count: 32))!

private func file(_ path: String..., byteCount: UInt64 = 5, root: Hash32 = root) -> MediaManifest.File {
  MediaManifest.File(path: path, byteCount: byteCount, root: root)
}

/// The bytes of a manifest whose files are given raw: flags, path, size, root.
private func bytes(_ files: [(UInt8, [[UInt8]], UInt64, Hash32)], mimeType: String = "") -> [UInt8] {
  var writer = ByteWriter()
  writer.uint8(1)
  writer.text(mimeType)
  writer.varint(UInt64(files.count))
  for (flags, path, byteCount, root) in files {
    writer.uint8(flags)
    writer.varint(UInt64(path.count))
    for component in path { writer.block(component) }
    writer.varint(byteCount)
    writer.bytes32(root.value)
  }
  return writer.bytes
}

private func bytes(path: String...) -> [UInt8] { bytes([(0, path.map { Array($0.utf8) }, 5, root)]) }

@Suite struct MediaManifestTests {
  @Test func oneFileHasExactlyTheseBytes() throws {
    let manifest = try MediaManifest(files: [file("a.txt")], mimeType: "text/plain")
    #expect(
      manifest.encoded == [1, 10] + Array("text/plain".utf8) + [1, 0, 1, 5] + Array("a.txt".utf8) + [5] + root.bytes)
    #expect(manifest.id.value == MediaTree.sha256(manifest.encoded).value)
    let decoded = try MediaManifest(decoding: manifest.encoded)
    #expect(decoded == manifest && decoded.files == manifest.files && decoded.mimeType == "text/plain")
  }

  @Test func filesStandInOneOrderWhateverTheirFirst() throws {
    let files = [file("b"), file("a", "z"), file("a!"), file("a", "b", "c"), file("e\u{301}"), file("\u{e9}")]
    let manifest = try MediaManifest(files: files)
    #expect(try MediaManifest(files: files.reversed()).id == manifest.id)
    #expect(
      manifest.files.map { $0.path.joined(separator: "/") }
        == ["a/b/c", "a/z", "a!", "b", "e\u{301}", "\u{e9}"])
    #expect(try MediaManifest(decoding: manifest.encoded).files == manifest.files)
  }

  @Test func anEmptyFileHasARootOfZeros() throws {
    #expect(try MediaManifest(files: [file("a", byteCount: 0, root: zeros)]).byteCount == 0)
    #expect(throws: WireError.malformed(field: "manifest.root", reason: "an empty file has a root of zeros")) {
      try MediaManifest(files: [file("a", byteCount: 0)])
    }
  }

  @Test func anotherNameSizeRootFlagOrTypeIsAnotherID() throws {
    let ids = try [
      MediaManifest(files: [file("a")]), MediaManifest(files: [file("b")]),
      MediaManifest(files: [file("a", byteCount: 6)]), MediaManifest(files: [file("a", root: zeros)]),
      MediaManifest(files: [file("a")], mimeType: "image/png"),
      MediaManifest(files: [.init(path: ["a"], byteCount: 5, root: root, isExecutable: true)]),
    ].map(\.id)
    #expect(Set(ids).count == 6)
  }

  @Test(arguments: [
    (bytes(path: ".."), "manifest.component: .. names another folder"),
    (bytes(path: "a", "..", "b"), "manifest.component: .. names another folder"),
    (bytes(path: "."), "manifest.component: . names another folder"),
    (bytes(path: "/etc/x"), "manifest.component: it holds a separator or NUL"),
    (bytes(path: "a\0b"), "manifest.component: it holds a separator or NUL"),
    (bytes([(0, [[]], 1 << 40, root)]), "manifest.component: it is empty"),
    (bytes([(0, [], 1 << 40, root)]), "manifest.path: no component"),
    (bytes([(0, [[0xFF]], 5, root)]), "manifest.component: not valid UTF-8"),
    (bytes(path: String(repeating: "я", count: 128)), "manifest.component: 256 bytes, at most 255 allowed"),
    (bytes([(0, .init(repeating: [97], count: 65), 5, root)]), "manifest.path: 65 of them, at most 64 allowed"),
    (bytes([(2, [[97]], 5, root)]), "manifest.flags: 2 is out of range"),
    (bytes([(0, [[97]], 5, root), (0, [[97]], 6, root)]), "manifest.path: the same path twice"),
    (bytes([(0, [[98]], 5, root), (0, [[97]], 6, root)]), "manifest.files: the paths are not in ascending order"),
    (bytes([(0, [[97]], 5, root), (0, [[97], [98]], 6, root)]), "manifest.path: a path names a file and a folder"),
    (
      bytes([(0, [[97]], Limit.counterMax, root), (0, [[98]], 1, root)]),
      "manifest.byteCount: 4611686018427387904 is out of range"
    ),
    (bytes([]), "manifest.files: there is none"),
    (bytes(path: "a") + [0], "1 bytes too many at the end"),
    ([2, 0, 0], "manifest.version: 2 is out of range"),
    ([1, 0, 0xBF, 0xFF, 0xFF, 0xFF], "manifest.files: 1073741823 of them, at most 453438 allowed"),
    (bytes([(0, [[97]], 5, root)], mimeType: "a\nb"), "manifest.mimeType: it holds a control character"),
  ])
  func whatCouldHurtIsRefusedWithItsReason(_ bytes: [UInt8], _ reason: String) {
    let error = #expect(throws: WireError.self) { try MediaManifest(decoding: bytes) }
    #expect(error?.description == reason)
  }

  @Test func moreThanSixteenMebibytesAreRefusedEitherWay() throws {
    let long = String(repeating: "x", count: 255)
    let files = (0..<1_000).map { number in
      MediaManifest.File(path: ["\(number)"] + .init(repeating: long, count: 63), byteCount: 1, root: root)
    }
    let fits = try MediaManifest(files: files)
    #expect(fits.encoded.count > 16_000_000 && fits.encoded.count <= Limit.manifestByteCountMax)
    #expect(throws: WireError.self) { try MediaManifest(files: files + files.map { $0.elsewhere }) }
    let big = [UInt8](repeating: 1, count: Limit.manifestByteCountMax + 1)
    #expect(
      throws: WireError.tooLong(field: "manifest", byteCount: UInt64(big.count), byteCountMax: big.count - 1)
    ) { try MediaManifest(decoding: big) }
  }

  @Test func everyTruncationAndBitFlipIsRefusedOrAnotherManifest() throws {
    let manifest = try MediaManifest(files: [file("a", "b"), file("c", byteCount: 1 << 40)], mimeType: "image/png")
    for count in 0..<manifest.encoded.count {
      #expect(throws: WireError.self) { try MediaManifest(decoding: Array(manifest.encoded.prefix(count))) }
    }
    for bit in 0..<manifest.encoded.count * 8 {
      var flipped = manifest.encoded
      flipped[bit / 8] ^= 1 << UInt8(bit % 8)
      if let other = try? MediaManifest(decoding: flipped) {
        #expect(other.id != manifest.id)
        #expect(try MediaManifest(files: other.files, mimeType: other.mimeType).encoded == flipped)
      }
    }
  }
}

extension MediaManifest.File {
  fileprivate var elsewhere: Self { .init(path: ["y" + path[0]] + path.dropFirst(), byteCount: byteCount, root: root) }
}
