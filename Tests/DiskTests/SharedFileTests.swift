import Glibc
import ParleyHashing
import ParleyVocabulary
import Testing

@testable import ParleyDisk

private let sizes = [0, 1, 16_383, 16_384, 16_385, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20]

@Suite struct SharedFileTests {
  private let folder = TemporaryFolder()

  @Test(arguments: sizes) func scanningGivesTheRootOfTheBytes(_ byteCount: Int) throws {
    let bytes = pattern(byteCount)
    folder.write(bytes, "a.bin")
    let share = try SharedFile.scan(folder.path + "/a.bin")
    let scanned = share.files[0]
    let pieces = stride(from: 0, to: byteCount, by: 1 << 20).map { bytes[$0..<min($0 + (1 << 20), byteCount)] }
    let hashes = pieces.map { piece in
      piece.withUnsafeBytes { MediaTree.pieceHash(of: $0, isOnlyPiece: pieces.count == 1) }
    }
    #expect(scanned.pieceHashes == hashes && scanned.byteCount == UInt64(byteCount) && share.name == "a.bin")
    #expect(scanned.root == MediaTree.root(pieceHashes: hashes, byteCount: UInt64(byteCount)))
    #expect(try share.manifest().files.first?.root == scanned.root)
    let reader = try SharedFileReader(scanned.source)
    #expect(try reader.read(offset: 0, byteCount: byteCount) == bytes)
    if byteCount > 0 { #expect(try reader.read(offset: UInt64(byteCount - 1), byteCount: 1) == [bytes.last!]) }
  }

  @Test func oneThreadOrManyGiveTheSame() throws {
    folder.write(pattern(9_000_001), "a")
    let one = try SharedFile.scan(folder.path + "/a", threadCountMax: 1)
    var last: UInt64 = 0
    let two = try SharedFile.scan(folder.path + "/a") { done, total in
      defer { last = done }
      return done > last && done <= total && total == 9_000_001
    }
    #expect(one == two && last > 0)
  }

  @Test func scanningStopsWhenToldTo() throws {
    folder.write(pattern(5 << 20), "a")
    #expect(throws: DiskError.stopped(path: folder.path + "/a")) {
      try SharedFile.scan(folder.path + "/a") { _, _ in false }
    }
  }

  @Test func onlyRegularFilesAreShared() throws {
    mkfifo(folder.path + "/fifo", 0o600)
    symlink("/dev/zero", folder.path + "/zero")
    symlink("loop", folder.path + "/loop")
    folder.write([1], "file")
    symlink("file", folder.path + "/link")
    #expect(throws: DiskError.notARegularFile(path: folder.path + "/fifo", kind: "FIFO")) {
      try SharedFile.scan(folder.path + "/fifo")
    }
    #expect(throws: DiskError.notARegularFile(path: folder.path + "/zero", kind: "device")) {
      try SharedFile.scan(folder.path + "/zero")
    }
    #expect(throws: DiskError.noSuchFile(path: folder.path + "/none")) { try SharedFile.scan(folder.path + "/none") }
    #expect(throws: DiskError.self) { try SharedFile.scan(folder.path + "/loop") }
    #expect(try SharedFile.scan(folder.path + "/link").byteCount == 1)
  }

  @Test func aChangedFileIsNoticedWhileScanning() throws {
    folder.write(pattern(4 << 20), "a")
    let path = folder.path + "/a"
    #expect(throws: DiskError.changed(path: path)) {
      try SharedFile.scan(path, threadCountMax: 1) { _, _ in truncate(path, 100) == 0 }
    }
  }

  @Test(arguments: ["grown", "cut", "touched", "replaced"])
  func aChangedFileIsNotServed(_ change: String) throws {
    folder.write(pattern(2 << 20), "a")
    let path = folder.path + "/a"
    let source = try SharedFile.scan(path).files[0].source
    let reader = try SharedFileReader(source)
    #expect(try reader.read(offset: 16_384, byteCount: 16_384).count == 16_384)
    switch change {
    case "grown": truncate(path, 3 << 20)
    case "cut": truncate(path, 100)
    case "touched":
      var times = [timespec(tv_sec: 1, tv_nsec: 1), timespec(tv_sec: 1, tv_nsec: 1)]
      utimensat(AT_FDCWD, path, &times, 0)
    default:
      folder.write(pattern(2 << 20), "b")
      rename(folder.path + "/b", path)
      // What is open is still what was shared; a new opening finds the other file.
      #expect(try reader.read(offset: 0, byteCount: 1) == [0])
      #expect(throws: DiskError.changed(path: path)) { try SharedFileReader(source) }
      return
    }
    #expect(throws: DiskError.changed(path: path)) { try reader.read(offset: 0, byteCount: 16_384) }
    #expect(throws: DiskError.changed(path: path)) { try SharedFileReader(source) }
  }

  @Test func aSparseGibibyteTakesLittleMemory() throws {
    let path = folder.path + "/sparse"
    close(open(path, O_CREAT | O_WRONLY, 0o600))
    truncate(path, 1 << 30)
    let before = residentByteCountPeak()
    let hashes = try SharedFile.scan(path).files[0].pieceHashes
    #expect(hashes.count == 1_024 && Set(hashes) == [MediaTree.zeroPieceHash])
    #expect(residentByteCountPeak() - before < 64 << 20)
  }
}

private func residentByteCountPeak() -> Int {
  var usage = rusage()
  getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
  return usage.ru_maxrss * 1_024
}
