import ParleyHashing
import ParleyVocabulary

/// What a media ID stands for: the files, their sizes and the roots of their trees. The ID is the SHA-256 of these
/// bytes:
///
/// | field | form |
/// |---|---|
/// | version | 1 byte, 1 |
/// | MIME type | varint length, UTF-8; empty when unknown |
/// | number of files | varint |
/// | per file: flags | 1 byte; bit 0: executable, the others 0 |
/// | per file: path | varint count of components, each varint length and UTF-8 |
/// | per file: size | varint, bytes |
/// | per file: root | 32 bytes; zeros for an empty file |
///
/// Files stand in ascending order of their paths, compared component by component as bytes, so the same files have one
/// manifest and duplicates are neighbours.
package struct MediaManifest: Hashable, Sendable {
  package struct File: Hashable, Sendable {
    /// Components as the sharer's disk spells them. Anything made from them on a receiver's disk goes through
    /// `SafeFileName` first.
    package let path: [String]
    package let byteCount: UInt64
    /// The root of the file's tree (BEP 52).
    package let root: Hash32
    package let isExecutable: Bool

    package init(path: [String], byteCount: UInt64, root: Hash32, isExecutable: Bool = false) {
      self.path = path
      self.byteCount = byteCount
      self.root = root
      self.isExecutable = isExecutable
    }

    package var pieceCount: UInt64 { byteCount.quotient(roundedUpBy: UInt64(Limit.mediaPieceByteCount)) }
    package var blockCount: UInt64 { byteCount.quotient(roundedUpBy: UInt64(Limit.mediaBlockByteCount)) }
  }

  package static let version: UInt8 = 1
  package static let componentCountMax = 64
  package static let mimeTypeByteCountMax = 127
  /// More than fit the byte limit, so that the byte limit decides.
  package static let fileCountMax = Limit.manifestByteCountMax / fileByteCountMin
  /// Flags, count of components, a component of one byte, size, root.
  private static let fileByteCountMin = 1 + 1 + 2 + 1 + 32

  package let mimeType: String?
  package let files: [File]
  package let encoded: [UInt8]
  package let id: MediaID

  /// Puts the files in order. Refuses what a decoder would refuse.
  package init(files: [File], mimeType: String? = nil) throws(WireError) {
    let ordered = files.map { ($0, $0.path.map { Array($0.utf8) }) }.sorted { Self.precedes($0.1, $1.1) }
    try Self.check(ordered.map(\.0), mimeType: mimeType ?? "")
    var writer = ByteWriter(reserving: 64 + ordered.reduce(0) { $0 + 48 + $1.1.reduce(0) { $0 + $1.count + 2 } })
    writer.uint8(Self.version)
    writer.text(mimeType ?? "")
    writer.varint(UInt64(ordered.count))
    for (file, path) in ordered {
      writer.uint8(file.isExecutable ? 1 : 0)
      writer.varint(UInt64(path.count))
      for component in path { writer.block(component) }
      writer.varint(file.byteCount)
      writer.bytes32(file.root.value)
    }
    guard writer.bytes.count <= Limit.manifestByteCountMax else {
      throw .tooLong(
        field: "manifest", byteCount: UInt64(writer.bytes.count), byteCountMax: Limit.manifestByteCountMax)
    }
    self.mimeType = mimeType
    self.files = ordered.map(\.0)
    encoded = writer.bytes
    id = MediaID(MediaTree.sha256(writer.bytes).value)
  }

  package init(decoding bytes: [UInt8]) throws(WireError) {
    guard bytes.count <= Limit.manifestByteCountMax else {
      throw .tooLong(field: "manifest", byteCount: UInt64(bytes.count), byteCountMax: Limit.manifestByteCountMax)
    }
    var reader = ByteReader(bytes)
    let version = try reader.uint8("manifest.version")
    guard version == Self.version else { throw .outOfRange(field: "manifest.version", value: UInt64(version)) }
    let mimeType = try reader.text("manifest.mimeType", byteCountMax: Self.mimeTypeByteCountMax)
    let count = try reader.count(
      "manifest.files", countMax: Self.fileCountMax, byteCountEach: Self.fileByteCountMin)
    var files: [File] = []
    files.reserveCapacity(count)
    for _ in 0..<count { files.append(try File(from: &reader)) }
    try reader.finish()
    try Self.check(files, mimeType: mimeType)
    self.mimeType = mimeType.isEmpty ? nil : mimeType
    self.files = files
    encoded = bytes
    id = MediaID(MediaTree.sha256(bytes).value)
  }

  /// All sizes together; below 2⁶².
  package var byteCount: UInt64 { files.reduce(0) { $0 + $1.byteCount } }

  package static func == (a: Self, b: Self) -> Bool { a.id == b.id }
  package func hash(into hasher: inout Hasher) { hasher.combine(id) }

  private static func check(_ files: [File], mimeType: String) throws(WireError) {
    guard mimeType.utf8.count <= mimeTypeByteCountMax else {
      throw .tooLong(
        field: "manifest.mimeType", byteCount: UInt64(mimeType.utf8.count), byteCountMax: mimeTypeByteCountMax)
    }
    guard mimeType.unicodeScalars.allSatisfy({ !$0.isControl }) else {
      throw .malformed(field: "manifest.mimeType", reason: "it holds a control character")
    }
    guard !files.isEmpty else { throw .malformed(field: "manifest.files", reason: "there is none") }
    var sum: UInt64 = 0
    var previous: [[UInt8]]?
    for file in files {
      try file.check()
      sum += file.byteCount
      guard sum <= Limit.counterMax else { throw .outOfRange(field: "manifest.byteCount", value: sum) }
      let path = file.path.map { Array($0.utf8) }
      if let previous {
        guard previous != path else { throw .malformed(field: "manifest.path", reason: "the same path twice") }
        guard precedes(previous, path) else {
          throw .malformed(field: "manifest.files", reason: "the paths are not in ascending order")
        }
        guard !path.starts(with: previous) else {
          throw .malformed(field: "manifest.path", reason: "a path names a file and a folder")
        }
      }
      previous = path
    }
  }

  private static func precedes(_ a: [[UInt8]], _ b: [[UInt8]]) -> Bool {
    a.lexicographicallyPrecedes(b) { $0.lexicographicallyPrecedes($1) }
  }
}

extension MediaManifest.File {
  fileprivate init(from reader: inout ByteReader) throws(WireError) {
    let flags = try reader.uint8("manifest.flags")
    guard flags <= 1 else { throw .outOfRange(field: "manifest.flags", value: UInt64(flags)) }
    let count = try reader.count(
      "manifest.path", countMax: MediaManifest.componentCountMax, byteCountEach: 2)
    var path: [String] = []
    for _ in 0..<count {
      path.append(try reader.text("manifest.component", byteCountMax: Limit.fileNameByteCountMax))
    }
    let byteCount = try reader.varint("manifest.byteCount")
    let root = Hash32(try reader.bytes32("manifest.root"))
    self.init(path: path, byteCount: byteCount, root: root, isExecutable: flags == 1)
  }

  fileprivate func check() throws(WireError) {
    guard !path.isEmpty else { throw .malformed(field: "manifest.path", reason: "no component") }
    guard path.count <= MediaManifest.componentCountMax else {
      throw .tooMany(
        field: "manifest.path", count: UInt64(path.count), countMax: MediaManifest.componentCountMax)
    }
    for component in path {
      guard !component.isEmpty else { throw .malformed(field: "manifest.component", reason: "it is empty") }
      guard component.utf8.count <= Limit.fileNameByteCountMax else {
        throw .tooLong(
          field: "manifest.component", byteCount: UInt64(component.utf8.count),
          byteCountMax: Limit.fileNameByteCountMax)
      }
      guard component != ".", component != ".." else {
        throw .malformed(field: "manifest.component", reason: "\(component) names another folder")
      }
      guard !component.utf8.contains(UInt8(ascii: "/")), !component.utf8.contains(0) else {
        throw .malformed(field: "manifest.component", reason: "it holds a separator or NUL")
      }
    }
    guard byteCount <= Limit.counterMax else { throw .outOfRange(field: "manifest.byteCount", value: byteCount) }
    guard byteCount > 0 || root == Hash32(Bytes32(words: (0, 0, 0, 0))) else {
      throw .malformed(field: "manifest.root", reason: "an empty file has a root of zeros")
    }
  }
}

extension UInt64 {
  fileprivate func quotient(roundedUpBy divisor: UInt64) -> UInt64 { self / divisor + (self % divisor == 0 ? 0 : 1) }
}
