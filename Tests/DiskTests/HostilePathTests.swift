import Glibc
import ParleyVocabulary
import Synchronization
import Testing

@testable import ParleyDisk

/// Names and folders made to lead a download elsewhere.
@Suite struct HostilePathTests {
  private let folder = TemporaryFolder()
  private let outside = TemporaryFolder()

  /// What the two threads know of each other.
  private struct Course {
    var part = ""
    var exchangedCount = 0
    var landedCount = 0
    var refusedCount = 0
    var isOver: Bool { exchangedCount >= 10_000 && landedCount + refusedCount >= 100 || exchangedCount >= 1_000_000 }
  }

  /// Somebody who may write beside the download exchanges the part, and a folder in it, for links outwards and back, as
  /// fast as it goes, while files land, are read, finished and given up. 10,000 exchanges.
  @Test func foldersExchangedForLinksAllTheTimeLeadNowhere() {
    outside.write([7], "keep")
    mkdir(outside.path + "/b", 0o700)
    let (folder, outside) = (folder, outside)
    let course = Mutex(Course())
    parallel(2) { number in
      var count = 0
      while !course.withLock({ $0.isOver }) {
        count += 1
        if number == 0 {
          let part = course.withLock { $0.part }
          if !part.isEmpty { Self.exchange(folder.path + "/" + part, with: outside.path, count) } else { sched_yield() }
          course.withLock { $0.exchangedCount += part.isEmpty ? 0 : 1 }
        } else {
          let part = ".parley-hostile-\(count).part"
          course.withLock { $0.part = part }
          let isLanded = Self.land(in: folder, part: part)
          course.withLock { if isLanded { $0.landedCount += 1 } else { $0.refusedCount += 1 } }
        }
      }
    }
    let all = course.withLock { $0 }
    #expect(all.exchangedCount >= 10_000 && all.landedCount + all.refusedCount >= 100, "\(all)")
    #expect(outside.names == ["b", "keep"] && outside.read("keep") == [7], "\(all)")
    #expect(TemporaryFolder.names(in: outside.path + "/b") == [], "\(all)")
  }

  /// The part, and the folder in it, by turns.
  private static func exchange(_ part: String, with outside: String, _ number: Int) {
    let (place, target) = number % 2 == 0 ? (part, outside) : (part + "/b", outside + "/b")
    let away = part + "-away"
    let isMoved = rename(place, away) == 0
    // Nothing there: a link in advance is as good an attack.
    if symlink(target, place) == 0 {
      sched_yield()
      // Never what a landing has put there meanwhile.
      var status = stat()
      if lstat(place, &status) == 0, status.st_mode & S_IFMT == S_IFLNK { unlink(place) }
    }
    if isMoved { rename(away, place) }
  }

  /// Whether it landed; errors are what an attacked download ends with.
  private static func land(in folder: TemporaryFolder, part: String) -> Bool {
    var tryCount = 0
    do {
      let landing = try Landing(
        .folder(folder.path, SafeFileName(received: "trip")),
        .folder([Landing.File(relative: "a", byteCount: 2), Landing.File(relative: "b/c", byteCount: 3)]),
        candidates: {
          tryCount += 1
          return tryCount == 1 ? part : ".parley-other-\(tryCount)-\(part.dropFirst(8))"
        })
      do {
        try landing.write([1, 2], at: 0, file: 0)
        try landing.write([3, 4, 5], at: 0, file: 1)
        _ = try landing.read(offset: 0, byteCount: 3, file: 1)
        _ = try landing.finish()
        return true
      } catch {
        landing.abort(keepingPart: false)
        return false
      }
    } catch { return false }
  }

  /// A download of an earlier run is known by the name of its part, which may have been changed on the disk.
  @Test(arguments: [
    "../../keep", "../keep", "/etc/passwd", "..", ".", "", "keep/../../keep", "sub/keep", ".parley-\u{0}.part",
  ])
  func aPartOfAnotherPlaceIsNeitherResumedNorRemoved(_ name: String) {
    let deep = folder.path + "/deep"
    mkdir(deep, 0o700)
    mkdir(deep + "/deeper", 0o700)
    mkdir(deep + "/deeper/sub", 0o700)
    folder.write([7], "keep")
    folder.write([8], "deep/keep")
    folder.write([9], "deep/deeper/sub/keep")
    let target = Landing.Target.folder(deep + "/deeper", SafeFileName(received: "x"))
    #expect(throws: DiskError.self) { try Landing(target, byteCount: 1, resuming: name) }
    #expect(folder.read("keep") == [7] && folder.read("deep/keep") == [8] && folder.read("deep/deeper/sub/keep") == [9])
  }

  /// Cancelling a download of a file that calls itself `../../keep` removes its part and nothing else.
  @Test func cancellingRemovesThePartOnly() throws {
    let deep = folder.path + "/deep"
    mkdir(deep, 0o700)
    mkdir(deep + "/deeper", 0o700)
    folder.write([7], "keep")
    folder.write([8], "deep/deeper/keep")
    let landing = try Landing(.folder(deep + "/deeper", SafeFileName(received: "../../keep")), byteCount: 1)
    try landing.write([1], at: 0)
    landing.abort(keepingPart: false)
    #expect(folder.read("keep") == [7] && folder.read("deep/deeper/keep") == [8])
    #expect(TemporaryFolder.names(in: deep + "/deeper") == ["keep"])
    #expect(folder.names == ["deep", "keep"])
  }

  /// Control characters of both sets, HTML, hidden names, names of shells and of nothing: a harmless name in the
  /// folder.
  @Test(arguments: [
    "\u{9B}31mred", "a\u{9B}2J.png", "\u{1B}]0;title\u{7}", "<img src=x onerror=alert(1)>.png", "<script>x</script>",
    "\"><svg onload=x>", ".bashrc", ".ssh", "..hidden", "-rf", "run.sh", "a\u{202E}gnp.exe", "\u{85}next", "\u{2028}",
    "&lt;b&gt;", "'; DROP TABLE", "$(id)", "`id`", "%2e%2e%2fx", "....//....//x",
  ])
  func anyNameLandsHarmlessAndPlain(_ received: String) throws {
    let landing = try Landing(.folder(folder.path, SafeFileName(received: received)), byteCount: 1)
    try landing.write([1], at: 0)
    let path = try landing.finish()
    let names = folder.names
    try #require(names.count == 1)
    #expect(path == folder.path + "/" + names[0] && folder.read(names[0]) == [1])
    #expect(folder.mode(names[0]) & 0o111 == 0, "nothing that runs")
    #expect(!names[0].hasPrefix(".") && !names[0].contains("<") && !names[0].contains(">") && !names[0].contains("\""))
    for scalar in names[0].unicodeScalars {
      #expect(scalar.value >= 0x20 && !(0x7F...0x9F).contains(scalar.value) && scalar.value != 0x202E)
    }
  }
}
