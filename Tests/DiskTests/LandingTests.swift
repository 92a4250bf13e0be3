import Glibc
import ParleyVocabulary
import Synchronization
import Testing

@testable import ParleyDisk

@Suite struct LandingTests {
  private let folder = TemporaryFolder()

  private func land(_ received: String, _ bytes: [UInt8]) throws -> String {
    let landing = try Landing(
      .folder(folder.path, SafeFileName(received: received)), byteCount: UInt64(bytes.count))
    let pieces = stride(from: 0, to: bytes.count, by: 1 << 20)
    for start in pieces.reversed() {
      try landing.write(Array(bytes[start..<min(start + (1 << 20), bytes.count)]), at: UInt64(start))
    }
    return try landing.finish()
  }

  @Test(arguments: [0, 1, 16_383, 16_384, 16_385, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])
  func everySizeLandsWhole(_ byteCount: Int) throws {
    #expect(try land("a.bin", pattern(byteCount)) == folder.path + "/a.bin")
    #expect(folder.read("a.bin") == pattern(byteCount))
    #expect(folder.names == ["a.bin"])
  }

  @Test(arguments: [
    "../x", "/etc/x", "a\\..\\x", ".", "..", "", "a\0b", "a\nb", "\u{1B}[2J", "x\u{202E}gpj.exe",
    String(repeating: "я", count: 127) + "a", "e\u{301}", "\u{e9}", "CON", "x.", "🎉.png",
  ])
  func noReceivedNameLeavesTheFolderOrHides(_ name: String) throws {
    let outside = TemporaryFolder()
    mkdir(outside.path + "/in", 0o700)
    let landing = try Landing(.folder(outside.path + "/in", SafeFileName(received: name)), byteCount: 1)
    try landing.write([7], at: 0)
    let path = try landing.finish()
    #expect(outside.names == ["in"])
    #expect(path == outside.path + "/in/" + SafeFileName(received: name).text)
    let last = path.dropFirst(outside.path.count + 4)
    #expect(!last.contains("/") && !last.hasPrefix(".") && outside.read("in/" + last) == [7])
    #expect(path.escapedLine == path || name.unicodeScalars.contains("🎉"))
  }

  @Test func bothFormsOfAnAccentAreOneName() throws {
    #expect(try land("e\u{301}", [1]) == folder.path + "/\u{e9}")
    #expect(try land("\u{e9}", [2]) == folder.path + "/\u{e9} (2)")
    #expect(folder.read("\u{e9}") == [1] && folder.read("\u{e9} (2)") == [2])
  }

  @Test func fiftyOfOneNameAtOnceAreFiftyWholeFiles() {
    let folder = folder
    let paths = Mutex<[String]>([])
    parallel(50) { number in
      let bytes = [UInt8](repeating: UInt8(number), count: 100_000)
      guard let landing = try? Landing(.folder(folder.path, SafeFileName(received: "a.txt")), byteCount: 100_000),
        (try? landing.write(bytes, at: 0)) != nil, let path = try? landing.finish()
      else { return }
      paths.withLock { $0.append(path) }
    }
    let all = paths.withLock { $0 }
    #expect(Set(all).count == 50)
    #expect(Set(folder.names) == Set(["a.txt"] + (2...50).map { "a (\($0)).txt" }))
    let contents = folder.names.compactMap { folder.read($0) }
    #expect(
      contents.allSatisfy { $0.count == 100_000 && Set($0).count == 1 } && Set(contents.map { $0[0] }).count == 50)
  }

  @Test func withoutRenameThatReplacesNothingALinkDoes() throws {
    for number in 1...3 {
      let landing = try Landing(
        .folder(folder.path, SafeFileName(received: "a")), .file(byteCount: 1), noReplaceRename: false,
        candidates: { ".parley-\(number).part" })
      try landing.write([UInt8(number)], at: 0)
      _ = try landing.finish()
    }
    #expect(folder.names == ["a", "a (2)", "a (3)"])
    #expect(folder.read("a") == [1] && folder.read("a (3)") == [3])
  }

  @Test func nothingExistingIsReplacedUnlessAllowed() throws {
    folder.write([9], "a")
    let path = folder.path + "/a"
    #expect(throws: DiskError.exists(path: path)) { try Landing(.file(path, mayReplace: false), byteCount: 1) }
    let allowed = try Landing(.file(path, mayReplace: true), byteCount: 1)
    try allowed.write([1], at: 0)
    #expect(folder.read("a") == [9])
    #expect(try allowed.finish() == path)
    #expect(folder.read("a") == [1] && folder.names == ["a"])

    let late = try Landing(.file(folder.path + "/b", mayReplace: false), byteCount: 1)
    folder.write([8], "b")
    #expect(throws: DiskError.exists(path: folder.path + "/b")) { try late.finish() }
    #expect(folder.read("b") == [8])
    unlink(folder.path + "/b")
    #expect(try late.finish() == folder.path + "/b")
  }

  @Test func aLinkAtTheTargetIsNotFollowed() throws {
    let outside = TemporaryFolder()
    outside.write([9], "victim")
    symlink(outside.path + "/victim", folder.path + "/a")
    symlink(outside.path + "/none", folder.path + "/b")
    #expect(try land("a", [1]) == folder.path + "/a (2)")
    #expect(try land("b", [1]) == folder.path + "/b (2)")
    let replacing = try Landing(.file(folder.path + "/a", mayReplace: true), byteCount: 1)
    try replacing.write([3], at: 0)
    _ = try replacing.finish()
    #expect(folder.read("a") == [3])
    #expect(outside.read("victim") == [9] && outside.names == ["victim"])
  }

  @Test func aLinkInPlaceOfThePartIsNotFollowed() throws {
    let outside = TemporaryFolder()
    outside.write([9], "victim")
    symlink(outside.path + "/victim", folder.path + "/.parley-0.part")
    var names = [".parley-0.part", ".parley-1.part"]
    let target = Landing.Target.folder(folder.path, SafeFileName(received: "a"))
    let landing = try Landing(target, .file(byteCount: 1), candidates: { names.removeFirst() })
    #expect(landing.partName == ".parley-1.part")
    try landing.write([1], at: 0)
    unlink(folder.path + "/.parley-1.part")
    symlink(outside.path + "/victim", folder.path + "/.parley-1.part")
    #expect(throws: DiskError.changed(path: folder.path + "/.parley-1.part")) { try landing.finish() }
    landing.abort(keepingPart: false)
    #expect(throws: DiskError.notARegularFile(path: folder.path + "/.parley-0.part", kind: "symbolic link")) {
      try Landing(target, byteCount: 1, resuming: ".parley-0.part")
    }
    #expect(outside.read("victim") == [9] && folder.names == [".parley-0.part"])
  }

  @Test func theFileIsPrivateUntilItIsWholeAndNeverExecutable() throws {
    let landing = try Landing(.folder(folder.path, SafeFileName(received: "run.sh")), byteCount: 1)
    #expect(folder.mode(landing.partName) == 0o600)
    try landing.write([1], at: 0)
    _ = try landing.finish()
    let mask = umask(0o022)
    umask(mask)
    #expect(folder.mode("run.sh") == 0o644 & ~mask)
  }

  @Test func givingUpLeavesNothingUnlessThePartIsKept() throws {
    let target = Landing.Target.folder(folder.path, SafeFileName(received: "a"))
    try Landing(target, byteCount: 5).abort(keepingPart: false)
    _ = try Landing(target, byteCount: 5)
    #expect(folder.names == [])
    let first = try Landing(target, byteCount: 3 << 20)
    try first.write(pattern(1 << 20), at: 2 << 20)
    try first.synchronize()
    first.abort(keepingPart: true)
    #expect(folder.names == [first.partName])
    #expect(throws: DiskError.changed(path: folder.path + "/" + first.partName)) {
      try Landing(target, byteCount: 5, resuming: first.partName)
    }
    let second = try Landing(target, byteCount: 3 << 20, resuming: first.partName)
    try second.write(pattern(2 << 20), at: 0)
    _ = try second.finish()
    #expect(folder.names == ["a"])
    #expect(folder.read("a") == pattern(2 << 20) + pattern(1 << 20))
    #expect(throws: DiskError.self) { try Landing(target, byteCount: 5, resuming: "../etc/passwd") }
    #expect(throws: DiskError.self) { try Landing(target, byteCount: 5, resuming: ".parley-none.part") }
  }

  @Test func spaceIsCheckedFirst() throws {
    let error = #expect(throws: DiskError.self) {
      try Landing(.folder(folder.path, SafeFileName(received: "a")), byteCount: 1 << 60)
    }
    guard case .noSpace(let path, let need, let have)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(path == folder.path && need == 1 << 60 && have > 0 && have < need && folder.names == [])
  }

  @Test func whatIsNoFolderOrNoFileNameIsRefused() throws {
    folder.write([1], "file")
    let safe = SafeFileName(received: "a")
    #expect(throws: DiskError.notAFolder(path: folder.path + "/file")) {
      try Landing(.folder(folder.path + "/file", safe), byteCount: 1)
    }
    #expect(throws: DiskError.noSuchFile(path: folder.path + "/none")) {
      try Landing(.folder(folder.path + "/none", safe), byteCount: 1)
    }
    for path in ["", "/", folder.path + "/", folder.path + "/..", folder.path + "/a\0b"] {
      #expect(throws: DiskError.self) { try Landing(.file(path, mayReplace: true), byteCount: 1) }
    }
    #expect(throws: DiskError.notARegularFile(path: folder.path, kind: "folder")) {
      try Landing(.file(folder.path, mayReplace: true), byteCount: 1)
    }
  }

  @Test func aRemovedFolderIsAClearError() throws {
    mkdir(folder.path + "/in", 0o700)
    let landing = try Landing(.folder(folder.path + "/in", SafeFileName(received: "a")), byteCount: 1)
    unlink(folder.path + "/in/" + landing.partName)
    rmdir(folder.path + "/in")
    try landing.write([1], at: 0)
    #expect(throws: DiskError.noSuchFile(path: folder.path + "/in/" + landing.partName)) { try landing.finish() }
  }

  @Test(.enabled(if: Tmpfs.isAllowed, "mounting a tmpfs needs root"))
  func aFullDiskIsNamedWithItsNumbers() throws {
    let tmpfs = Tmpfs(byteCount: 8 << 20)
    let first = try Landing(.folder(tmpfs.path, SafeFileName(received: "a")), byteCount: 5 << 20)
    // Reserved, so a second cannot count on the same space.
    let second = #expect(throws: DiskError.self) {
      try Landing(.folder(tmpfs.path, SafeFileName(received: "b")), byteCount: 5 << 20)
    }
    #expect(second == .noSpace(path: tmpfs.path, need: 5 << 20, have: 3 << 20))
    try first.write(pattern(1 << 20), at: 0)
    first.abort(keepingPart: true)
    let again = try Landing(first.target, byteCount: 5 << 20, resuming: first.partName)
    _ = try again.finish()
    let third = try Landing(.folder(tmpfs.path, SafeFileName(received: "b")), byteCount: 3 << 20)
    third.abort(keepingPart: false)
  }
}

/// A small file system of one test's own.
private final class Tmpfs {
  private let folder = TemporaryFolder()
  var path: String { folder.path }

  static let isAllowed: Bool = {
    guard geteuid() == 0 else { return false }
    let folder = TemporaryFolder()
    guard mount("tmpfs", folder.path, "tmpfs", 0, "size=1m") == 0 else { return false }
    return umount(folder.path) == 0
  }()

  init(byteCount: Int) {
    guard mount("tmpfs", folder.path, "tmpfs", 0, "size=\(byteCount)") == 0 else { fatalError("cannot mount") }
  }

  deinit { umount2(folder.path, Int32(MNT_DETACH)) }
}

/// Runs `body` on so many threads at once and waits for all.
func parallel(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
  final class Job: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }
  let threads = (0..<count).map { number in
    var thread = pthread_t()
    let job = Unmanaged.passRetained(Job { body(number) })
    let code = pthread_create(
      &thread, nil,
      { argument in
        Unmanaged<Job>.fromOpaque(argument!).takeRetainedValue().run()
        return nil
      }, job.toOpaque())
    precondition(code == 0)
    return thread
  }
  for thread in threads { pthread_join(thread, nil) }
}
