import Glibc
import ParleyHashing
import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleyDisk

@Suite struct FolderLandingTests {
  private let folder = TemporaryFolder()

  private func target(_ name: String = "trip") -> Landing.Target {
    .folder(folder.path, SafeFileName(received: name))
  }

  private func files(_ sizes: [(String, Int)]) -> Landing.Content {
    .folder(sizes.map { Landing.File(relative: $0.0, byteCount: UInt64($0.1)) })
  }

  @Test func aFolderLandsWholeUnderItsName() throws {
    let sizes = [("a", 5), ("b/c/d", (1 << 20) + 1), ("b/e", 0), ("f/g", 16_384)]
    let landing = try Landing(target(), files(sizes))
    #expect(folder.names == [landing.partName] && folder.mode(landing.partName) == 0o700)
    #expect(landing.byteCount == UInt64(5 + (1 << 20) + 1 + 16_384))
    for (index, (_, size)) in sizes.enumerated().reversed() {
      let bytes = pattern(size)
      for start in stride(from: 0, to: size, by: 1 << 20) {
        try landing.write(Array(bytes[start..<min(size, start + (1 << 20))]), at: UInt64(start), file: index)
      }
      #expect(try landing.read(offset: 0, byteCount: size, file: index) == bytes)
    }
    try landing.synchronize()
    let path = try landing.finish()
    #expect(path == folder.path + "/trip" && folder.names == ["trip"])
    for (relative, size) in sizes {
      #expect(folder.read("trip/" + relative) == pattern(size))
      #expect(folder.mode("trip/" + relative) & 0o111 == 0)
    }
    let mask = umask(0o022)
    umask(mask)
    #expect(folder.mode("trip") == 0o755 & ~mask && folder.mode("trip/b/c") == 0o755 & ~mask)
    // What landed is served from there, and is what would be shared.
    let sources = try landing.sources(at: path)
    #expect(sources == (try SharedListing.of(path).files.map(\.source)))
  }

  @Test func onlyWhatIsWantedHasAPlace() throws {
    let content = Landing.Content.folder([
      Landing.File(relative: "a/x", byteCount: 3, isWanted: false), Landing.File(relative: "b/y", byteCount: 4),
      Landing.File(relative: "huge", byteCount: 1 << 60, isWanted: false),
    ])
    let landing = try Landing(target(), content)
    #expect(landing.byteCount == 4)
    try landing.write([1, 2, 3, 4], at: 0, file: 1)
    let path = try landing.finish()
    #expect(TemporaryFolder.names(in: path) == ["b"] && folder.read("trip/b/y") == [1, 2, 3, 4])
    #expect(try landing.sources(at: path).map { $0?.relative } == [nil, "b/y", nil])
  }

  @Test func theExecutableFlagIsAppliedOnlyWhenAskedFor() throws {
    let file = MediaManifest.File(path: ["run.sh"], byteCount: 1, root: MediaTree.sha256([]), isExecutable: true)
    let manifest = try MediaManifest(files: [file], mimeType: MediaManifest.folderType)
    for (isAsked, name) in [(false, "one"), (true, "two")] {
      let landing = try Landing(target(name), Landing.Content(manifest, isApplyingExecutable: isAsked))
      try landing.write([1], at: 0)
      _ = try landing.finish()
      #expect((folder.mode("\(name)/run.sh") & 0o100 != 0) == isAsked)
    }
  }

  @Test(arguments: [true, false]) func nothingIsReplacedByAFolder(_ hasNoReplaceRename: Bool) throws {
    mkdir(folder.path + "/trip", 0o700)
    folder.write([9], "trip (2)")
    var number = 0
    for expected in ["trip (3)", "trip (4)"] {
      let landing = try Landing(target(), files([("a", 1)]), noReplaceRename: hasNoReplaceRename) {
        number += 1
        return ".parley-\(number).part"
      }
      try landing.write([1], at: 0)
      #expect(try landing.finish() == folder.path + "/" + expected)
    }
    #expect(folder.names == ["trip", "trip (2)", "trip (3)", "trip (4)"] && folder.read("trip (2)") == [9])
    #expect(TemporaryFolder.names(in: folder.path + "/trip") == [])
    let path = folder.path + "/trip"
    #expect(throws: DiskError.exists(path: path)) {
      try Landing(.file(path, mayReplace: true), files([("a", 1)]))
    }
  }

  @Test func givingUpRemovesTheWholePartUnlessItIsKept() throws {
    let content = files([("a/b/c", 5), ("d", 1 << 20)])
    try Landing(target(), content).abort(keepingPart: false)
    _ = try Landing(target(), content)
    #expect(folder.names == [])
    let first = try Landing(target(), content)
    try first.write([1, 2, 3, 4, 5], at: 0, file: 0)
    first.abort(keepingPart: true)
    let second = try Landing(target(), content, resuming: first.partName)
    #expect(try second.read(offset: 0, byteCount: 5, file: 0) == [1, 2, 3, 4, 5])
    try second.write(pattern(1 << 20), at: 0, file: 1)
    _ = try second.finish()
    #expect(folder.names == ["trip"] && folder.read("trip/d") == pattern(1 << 20))
  }

  @Test func aKeptPartIsResumedAsItWasLeftOrNotAtAll() throws {
    let content = files([("a", 5), ("b", 6)])
    let first = try Landing(target(), content)
    first.abort(keepingPart: true)
    let part = folder.path + "/" + first.partName
    // More is wanted now, and what had not been begun may be missing.
    unlink(part + "/b")
    let more = Landing.Content.folder([
      Landing.File(relative: "a", byteCount: 5, isBegun: true), Landing.File(relative: "b", byteCount: 6),
      Landing.File(relative: "c/d", byteCount: 7),
    ])
    try Landing(target(), more, resuming: first.partName).abort(keepingPart: true)
    #expect(TemporaryFolder.names(in: part) == ["a", "b", "c"])
    let outside = TemporaryFolder()
    outside.write([1, 2, 3, 4, 5], "victim")
    for change in ["cut", "gone", "linked", "symbolic"] {
      unlink(part + "/a")
      switch change {
      case "cut": folder.write([1], first.partName + "/a")
      case "linked": link(outside.path + "/victim", part + "/a")
      case "symbolic": symlink(outside.path + "/victim", part + "/a")
      default: break
      }
      #expect(throws: DiskError.self, "\(change)") { try Landing(target(), more, resuming: first.partName) }
    }
    #expect(outside.read("victim") == [1, 2, 3, 4, 5])
    #expect(throws: DiskError.self) { try Landing(target(), byteCount: 5, resuming: first.partName) }
  }

  @Test func whatIsNoLongerWantedGoesAtResuming() throws {
    let first = try Landing(target(), files([("a/b/c", 5), ("a/d", 6), ("e", 7)]))
    try first.write([1, 2, 3, 4, 5, 6], at: 0, file: 1)
    first.abort(keepingPart: true)
    let less = Landing.Content.folder([
      Landing.File(relative: "a/b/c", byteCount: 5, isWanted: false),
      Landing.File(relative: "a/d", byteCount: 6, isBegun: true),
      Landing.File(relative: "e", byteCount: 7, isWanted: false),
    ])
    let second = try Landing(target(), less, resuming: first.partName)
    let path = try second.finish()
    #expect(TemporaryFolder.names(in: path) == ["a"] && TemporaryFolder.names(in: path + "/a") == ["d"])
    #expect(folder.read("trip/a/d") == [1, 2, 3, 4, 5, 6])
  }

  @Test func aPartOfAnEarlierRunIsRemoved() throws {
    for content in [files([("a/b", 5)]), Landing.Content.file(byteCount: 3)] {
      let landing = try Landing(target(), content)
      landing.abort(keepingPart: true)
      #expect(Landing.lastTouched(folder.path + "/" + landing.partName) != nil)
      Landing.removePart(landing.partName, in: folder.path)
      #expect(folder.names == [])
    }
    folder.write([1], "mine")
    Landing.removePart("mine", in: folder.path)
    #expect(folder.names == ["mine"])
  }

  @Test func aPartExchangedForALinkIsNotFollowed() throws {
    let outside = TemporaryFolder()
    let landing = try Landing(target(), files([("a", 1)]))
    rename(folder.path + "/" + landing.partName, folder.path + "/moved")
    symlink(outside.path, folder.path + "/" + landing.partName)
    try landing.write([1], at: 0)
    #expect(throws: DiskError.changed(path: folder.path + "/" + landing.partName)) { try landing.finish() }
    landing.abort(keepingPart: false)
    #expect(outside.names == [])
  }

  @Test func spaceIsCheckedForAllFilesTogether() throws {
    let error = #expect(throws: DiskError.self) {
      try Landing(target(), files([("a", 1 << 59), ("b", 1 << 59), ("c", 1)]))
    }
    guard case .noSpace(let path, let need, let have)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(path == folder.path && need > 1 << 60 && have < need && folder.names == [])
  }

  @Test func aPathThatTheSystemCannotTakeIsRefusedBeforeAnythingIsMade() {
    let long = (0..<20).map { _ in String(repeating: "x", count: 200) }.joined(separator: "/")
    #expect(throws: DiskError.self) { try Landing(target(), files([(long, 1)])) }
    #expect(folder.names == [])
  }

  @Test func thousandsOfFilesKeepFewOpen() throws {
    let sizes = (0..<3_000).map { ("d\($0 / 100)/\($0)", 10) }
    let landing = try Landing(target(), files(sizes))
    for index in sizes.indices { try landing.write(pattern(10), at: 0, file: index) }
    let open = TemporaryFolder.names(in: "/proc/self/fd").count
    #expect(open < 500, "\(open) descriptors")
    _ = try landing.finish()
    #expect(folder.read("trip/d29/2999") == pattern(10))
  }

  // MARK: Names

  @Test func receivedPathsStayBelowTheFolderAndApart() throws {
    let received = [
      ["..x"], [".git", "config"], ["CON"], ["a:b"], ["a?b"], ["a?b (2)"], ["a\\b"], ["dir?", "f"],
      ["dir|", "f"], ["e\u{301}"], ["\u{e9}"],
    ]
    let paths = try MediaManifest(
      files: received.map { MediaManifest.File(path: $0, byteCount: 0, root: Hash32(Bytes32(words: (0, 0, 0, 0)))) }
    ).files.map(\.path)
    let places = SafePaths.of(paths)
    #expect(Set(places).count == paths.count)
    for (path, place) in zip(paths, places) {
      let components = place.split(separator: "/").map(String.init)
      #expect(components.count == path.count)
      for component in components { #expect(SafeFileName(received: component).text == component) }
    }
    #expect(places[paths.firstIndex(of: ["dir?", "f"])!] == "dir_/f")
    #expect(places[paths.firstIndex(of: ["dir|", "f"])!] == "dir_ (2)/f")
    #expect(places[paths.firstIndex(of: ["a:b"])!] == "a_b" && places[paths.firstIndex(of: ["a?b"])!] == "a_b (2)")
    #expect(places[paths.firstIndex(of: ["a?b (2)"])!] == "a_b (2) (2)")
  }

  /// Trying every number anew for every file would take minutes.
  @Test func manyNamesThatBecomeTheSameAreNumberedInTurn() {
    let controls = (1..<32).map { Character(Unicode.Scalar(UInt8($0))) }
    let paths = (0..<29_000).map { index in
      [String([controls[index / 961], controls[index / 31 % 31], controls[index % 31]])]
    }
    let places = SafePaths.of(paths)
    #expect(places.first == "___" && places.last == "___ (29000)" && Set(places).count == 29_000)
  }

  // MARK: Landlock

  @Test(.enabled(if: Confined.isPossible, "this kernel has no Landlock"))
  func aConfinedThreadWritesNowhereElse() throws {
    let outside = TemporaryFolder()
    outside.write([9], "victim")
    let inside = try OpenFolder(folder.path)
    let refused = try Confined.run(to: inside.descriptor.number) { () throws(DiskError) in
      let codes = [
        open(outside.path + "/new", O_CREAT | O_WRONLY, 0o600), open(outside.path + "/victim", O_WRONLY),
        truncate(outside.path + "/victim", 0), unlink(outside.path + "/victim"), mkdir(outside.path + "/new", 0o700),
        rename(outside.path + "/victim", outside.path + "/other"), symlink("/", outside.path + "/link"),
        symlink("/", folder.path + "/link"),
      ].map { $0 < 0 }
      let file = open(folder.path + "/a", O_CREAT | O_WRONLY, 0o600)
      defer { close(file) }
      return codes + [
        file < 0, mkdir(folder.path + "/b", 0o700) != 0, rename(folder.path + "/a", folder.path + "/c") != 0,
      ]
    }
    #expect(refused == [Bool](repeating: true, count: 8) + [false, false, false])
    #expect(outside.names == ["victim"] && outside.read("victim") == [9] && folder.names == ["b", "c"])
    // Only that thread was.
    outside.write([1], "new")
    #expect(outside.read("new") == [1])
  }
}
