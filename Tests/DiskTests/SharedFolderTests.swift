import Glibc
import ParleyHashing
import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleyDisk

@Suite struct SharedFolderTests {
  private let folder = TemporaryFolder()

  private func makeFolder(_ name: String) { precondition(mkdir(folder.path + "/" + name, 0o700) == 0) }

  @Test func aFolderIsOneManifestInItsOrder() throws {
    makeFolder("b")
    makeFolder("b/y")
    makeFolder("empty")
    folder.write(pattern(3), "b/y/run.sh")
    chmod(folder.path + "/b/y/run.sh", 0o755)
    folder.write(pattern((1 << 20) + 5), "b/z")
    folder.write([], "b-")
    folder.write(pattern(16_385), "a")
    let share = try SharedFile.scan(folder.path + "/")
    #expect(share.isFolder && "/tmp/" + share.name == folder.path && share.skipped.count == 0)
    #expect(share.files.map(\.components) == [["a"], ["b", "y", "run.sh"], ["b", "z"], ["b-"]])
    #expect(share.files.map(\.isExecutable) == [false, true, false, false])
    let manifest = try share.manifest(mimeType: "text/plain")
    #expect(manifest.isFolder && manifest.mimeType == "inode/directory")
    #expect(manifest.files.map(\.path) == share.files.map(\.components))
    #expect(manifest.byteCount == UInt64(3 + (1 << 20) + 5 + 16_385) && share.byteCount == manifest.byteCount)
    for (file, entry) in zip(share.files, manifest.files) {
      let alone = try SharedFile.scan(folder.path + "/" + entry.path.joined(separator: "/")).files[0]
      #expect(alone.root == entry.root && alone.pieceHashes == file.pieceHashes)
      #expect(
        try SharedFileReader(file.source).read(offset: 0, byteCount: Int(entry.byteCount)).count == entry.byteCount)
    }
  }

  @Test func aFolderOfOneFileIsNotThatFile() throws {
    folder.write([1], "a")
    let whole = try SharedFile.scan(folder.path).manifest()
    let alone = try SharedFile.scan(folder.path + "/a").manifest(mimeType: "text/plain")
    #expect(whole.isFolder && !alone.isFolder && whole.id != alone.id)
  }

  @Test func whatIsNoFileOrCannotBeReadIsLeftOutWithAWord() throws {
    makeFolder("deep")
    folder.write([1], "good")
    folder.write([2], "deep/good")
    symlink("good", folder.path + "/link")
    symlink("/", folder.path + "/deep/root")
    mkfifo(folder.path + "/fifo", 0o600)
    folder.write([3], ".parley-x.part")
    let path = [UInt8]((folder.path + "/\u{e9}").utf8).map { CChar(bitPattern: $0 == 0xC3 ? 0xFF : $0) } + [0]
    close(open(path, O_CREAT | O_WRONLY, 0o600))
    let share = try SharedFile.scan(folder.path)
    #expect(share.files.map(\.components) == [["deep", "good"], ["good"]])
    let reasons = Dictionary(uniqueKeysWithValues: share.skipped.first.map { ($0.path, $0.reason) })
    #expect(share.skipped.count == 5)
    #expect(reasons["link"] == "it is a symbolic link" && reasons["deep/root"] == "it is a symbolic link")
    #expect(reasons["fifo"] == "it is a FIFO" && reasons[".parley-x.part"] == "it is an unfinished download")
    #expect(reasons["\u{FFFD}\u{FFFD}"] == "its name is not UTF-8")
    unlink(path)
  }

  @Test(.enabled(if: geteuid() != 0, "root may read everything"))
  func oneUnreadableFileIsLeftOut() throws {
    folder.write([1], "a")
    folder.write([2], "b")
    chmod(folder.path + "/a", 0)
    let share = try SharedFile.scan(folder.path)
    #expect(share.files.map(\.components) == [["b"]] && share.skipped.first.map(\.path) == ["a"])
  }

  @Test func aFileThatChangesMeanwhileIsLeftOut() throws {
    folder.write(pattern(3 << 20), "a")
    folder.write([1], "b")
    let listing = try SharedListing.of(folder.path)
    truncate(folder.path + "/a", 100)
    let share = try SharedFile.scan(listing)
    #expect(share.files.map(\.components) == [["b"]] && share.skipped.first.map(\.path) == ["a"])
    unlink(folder.path + "/b")
    symlink("a", folder.path + "/b")
    #expect(throws: DiskError.noFiles(path: folder.path, skippedCount: 2)) { try SharedFile.scan(listing) }
  }

  @Test func aFolderWithoutFilesOrOfTooManyIsRefused() throws {
    makeFolder("empty")
    #expect(throws: DiskError.noFiles(path: folder.path, skippedCount: 0)) { try SharedFile.scan(folder.path) }
    var path = folder.path + "/empty"
    for _ in 0..<64 {
      path += "/d"
      mkdir(path, 0o700)
    }
    close(open(path + "/file", O_CREAT | O_WRONLY, 0o600))
    #expect(throws: DiskError.noFiles(path: folder.path, skippedCount: 1)) { try SharedFile.scan(folder.path) }
  }

  @Test func whatIsKnownIsNotReadAgain() throws {
    for name in ["a", "b"] { folder.write(pattern(2 << 20), name) }
    let listing = try SharedListing.of(folder.path)
    let first = try SharedFile.scan(listing)
    let invented = [MediaTree.zeroPieceHash, MediaTree.emptyPieceHash]
    var told: [UInt64] = []
    let second = try SharedFile.scan(listing, known: [0: invented, 1: [MediaTree.zeroPieceHash]], threadCountMax: 1) {
      told.append($0)
      return $1 == 4 << 20
    }
    #expect(second.files[0].pieceHashes == invented)
    #expect(second.files[1] == first.files[1], "as many hashes as pieces, or they are not those of this file")
    #expect(told == [3 << 20, 4 << 20])
  }

  @Test func whenAChangeCouldGoUnseenNothingIsRemembered() {
    func facts(_ nanoseconds: Int64) -> FileFacts {
      FileFacts(byteCount: 1, modifiedNanoseconds: nanoseconds, inode: 1, device: 1)
    }
    let second: Int64 = 1_000_000_000
    #expect(facts(7 * second + 1).isSettled(at: 7 * second + 60_000_000))
    #expect(!facts(7 * second + 1).isSettled(at: 7 * second + 40_000_000))
    #expect(!facts(7 * second).isSettled(at: 9 * second) && facts(7 * second).isSettled(at: 11 * second))
    #expect(!facts(8 * second + 1).isSettled(at: 7 * second) && !facts(.min).isSettled(at: .max))
  }

  /// The way where the kernel has no openat2.
  @Test func noLinkIsFollowedBelowAFolder() throws {
    makeFolder("in")
    folder.write([1], "in/a")
    symlink("in", folder.path + "/link")
    symlink("a", folder.path + "/in/b")
    let open = try OpenFolder(folder.path)
    let number = open.descriptor.number
    for openBelow in [
      { openBeneath(number, $0, O_RDONLY) }, { openStepwise(number, $0, O_RDONLY | O_NOFOLLOW, mode: 0) },
    ]
      as [(String) -> Int32]
    {
      let file = openBelow("in/a")
      #expect(file >= 0)
      close(file)
      for path in ["link/a", "in/b", "../etc/passwd", "in/none"] {
        #expect(openBelow(path) < 0, "\(path)")
      }
    }
  }

  /// The root that libtorrent computes; see `Peers/Python/test_libtorrent.py`.
  @Test(
    .enabled(if: getenv("PARLEY_LONG") != nil, "PARLEY_LONG is not set"),
    arguments: [
      ((4 << 30) - 1, "81f0427a63a42dafae2b5f8eff855be69df1d9c9107cbe85c2730bef7291c238"),
      (4 << 30, "199a232ea3cc6efa07a08151b47f9de9c8401c7326c32c186f34797146545a97"),
      ((4 << 30) + 1, "c499088c78e453f347e971c5149fc2b74a5f303548b9c009338cc24fee16eb01"),
    ])
  func aroundFourGibibytes(_ byteCount: Int, _ root: String) throws {
    let path = folder.path + "/sparse"
    close(open(path, O_CREAT | O_WRONLY, 0o600))
    truncate(path, byteCount)
    let file = try SharedFile.scan(path).files[0]
    #expect(file.root.bytes.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined() == root)
    #expect(try SharedFileReader(file.source).read(offset: UInt64(byteCount - 1), byteCount: 1) == [0])
  }
}
