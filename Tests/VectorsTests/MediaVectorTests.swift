import ParleyHashing
import ParleyVocabulary
import ParleyWire
import Testing

@Suite struct MediaVectorTests {
  private static let root = Hash32(bytes: [UInt8](repeating: 7, count: 32))!

  private static let zeros = Hash32(bytes: [UInt8](repeating: 0, count: 32))!

  @Test func messages() throws {
    var file = VectorFile("media_messages")
    for (name, message) in Self.messages {
      #expect(try MediaMessage(decoding: message.encoded) == message)
      file.add(name, [JSONMember("bytes", hex: message.encoded), JSONMember("value", message.value)])
    }
    try file.check()
  }

  static let messages: [(name: String, message: MediaMessage)] = [
    ("manifest", .request(0, .manifest(Facts.media, offset: 24_000))),
    ("piece hashes", .request(63, .pieceHashes(Facts.media, file: 1, first: 700, count: 700))),
    ("block", .request(1 << 32, .block(Facts.media, file: 0, index: 65))),
    ("blocks", .request(1 << 32 | 64, .block(Facts.media, file: 0, index: 64, count: 64))),
    ("have", .request(Limit.counterMax, .have(Facts.media, first: 8))), ("cancel", .cancel(64)),
    ("cancel several", .cancel(64, count: 2)),
    ("manifest part", .reply(1, .manifestPart(total: 24_003, offset: 24_000, [1, 2, 3]))),
    ("piece hashes part", .reply(2, .pieceHashes(root.bytes[...] + Facts.otherMedia.bytes))),
    ("block data", .reply(3, .block([9, 8, 7]))), ("holding all", .reply(4, .holdingAll)),
    ("holding some", .reply(5, .holding(count: 21, first: 8, bitmap: [0x80, 0b1010_1000]))),
    ("holding of an empty file", .reply(6, .holding(count: 0, first: 0, bitmap: []))),
    ("refused: unknown", .reply(7, .refused(.unknown))), ("refused: changed", .reply(8, .refused(.changed))),
    ("refused: not a member", .reply(9, .refused(.notAMember))), ("refused: busy", .reply(10, .refused(.busy))),
  ]

  @Test func manifests() throws {
    var file = VectorFile("manifests")
    for (name, manifest) in try Self.manifests() {
      file.add(
        name,
        [
          JSONMember("bytes", hex: manifest.encoded), JSONMember("value", manifest.value),
          JSONMember("media_id", hex: manifest.id.bytes), JSONMember("media_id_text", manifest.id.text),
        ])
    }
    try file.check()
  }

  static func manifests() throws -> [(name: String, manifest: MediaManifest)] {
    func one(_ path: [String], _ size: UInt64, _ root: Hash32 = root, executable: Bool = false) -> MediaManifest.File {
      MediaManifest.File(path: path, byteCount: size, root: root, isExecutable: executable)
    }
    return [
      ("one file", try MediaManifest(files: [one(["a.txt"], 5)], mimeType: "text/plain")),
      ("empty file, no type", try MediaManifest(files: [one(["leer"], 0, zeros)])),
      ("largest size", try MediaManifest(files: [one(["кот.bin"], Limit.counterMax)])),
      (
        "folder, in order",
        try MediaManifest(files: [
          one(["b", "z"], 1), one(["b-"], 16_384), one(["a"], 64),
          one(["b", "y", "run.sh"], 1 << 30, executable: true),
        ])
      ),
    ]
  }

  /// Everything about the file follows from its size; see `Facts.content`.
  @Test(.timeLimit(.minutes(1))) func trees() throws {
    var file = VectorFile("trees")
    let mebibyte = 1 << 20
    for size in [
      0, 1, 16_383, 16_384, 16_385, 3 * 16_384 + 1, mebibyte - 1, mebibyte, mebibyte + 1, 2 * mebibyte,
      3 * mebibyte + 5,
    ] {
      let content = Facts.content(size)
      let hashes = stride(from: 0, to: size, by: mebibyte).map { start in
        content[start..<min(start + mebibyte, size)].withUnsafeBytes {
          MediaTree.pieceHash(of: $0, isOnlyPiece: size <= mebibyte)
        }
      }
      let root = MediaTree.root(pieceHashes: hashes, byteCount: UInt64(size))
      let manifest = try MediaManifest(files: [
        MediaManifest.File(path: ["f"], byteCount: UInt64(size), root: root)
      ])
      file.add(
        "\(size) bytes",
        [
          JSONMember("size", size), JSONMember("sha256", hex: MediaTree.sha256(content).bytes),
          JSONMember("piece_hashes", .array(hashes.map(\.value.json))), JSONMember("root", hex: root.bytes),
          JSONMember("media_id", hex: manifest.id.bytes),
        ])
    }
    try file.check()
  }
}
