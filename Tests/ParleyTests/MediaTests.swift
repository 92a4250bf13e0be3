import Glibc
import Parley
import Synchronization
import Testing

/// Files from one node's folder to another's.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct MediaTests {
  @Test(arguments: [0, 1, 16_384, 1 << 20, 3 << 20 + 17])
  func aFileArrivesWhole(_ byteCount: Int) async throws {
    let (channel, ana, ben) = try await pair("media-tests-\(byteCount)")
    let bytes = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    let path = try ana.home.write(bytes, "notes.txt")
    let shared = try await ana.node.share(path: path, in: channel)
    #expect(shared.byteCount == UInt64(byteCount) && shared.fileName == "notes.txt")
    try await ben.node.wait(forMedia: shared.id, in: channel)

    let landed = try await finish(ben.node.download(shared.id, to: .folder(ben.home.path)))
    #expect(landed == ben.home.path + "/notes.txt")
    #expect(try TemporaryHome.read(landed) == bytes)
    // A second time it is here already, and the name is taken.
    let second = try await finish(ben.node.download(shared.id, to: .folder(ben.home.path)))
    #expect(second == ben.home.path + "/notes (2).txt")
    #expect(try TemporaryHome.read(second) == bytes)
    let summary = try #require(try await ana.node.media(of: channel).first)
    #expect(summary.holderCount == 2 && summary.isHeldHere && summary.sender == ana.node.peerID)
    try await ana.stop()
    try await ben.stop()
  }

  /// The history is looked through in pages of 100 entries.
  @Test func announcementsAreKnownAfterARestartHoweverMuchWasSaidBetween() async throws {
    let channel = try name("media-tests-restart")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    var shared: [MediaID] = []
    for (file, textCount) in [99, 0, 130, 20].enumerated() {
      shared.append(try await ana.node.share(path: ana.home.write([UInt8(file)], "file \(file)"), in: channel).id)
      for text in 0..<textCount { _ = try await ana.node.send("text \(text)", to: channel, waiting: nil) }
    }
    try await ana.stop()
    let again = try await RunningNode("Ana", home: ana.home)
    #expect(try await again.node.media(of: channel).map(\.media.id) == shared)
    try await again.stop()
  }

  /// This program, which was built before it runs: a file changed just now is not remembered.
  @Test func whatWasHashedIsNotReadAgainAlsoAfterARestart() async throws {
    let channel = try name("media-tests-scans")
    let path = try #require(CommandLine.arguments.first)
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    let steps = Mutex<[UInt64]>([])
    let first = try await ana.node.share(path: path, in: channel) { step in
      steps.withLock { $0.append(step.hashedByteCount) }
    }
    #expect(steps.withLock { $0.count > 1 && $0 == $0.sorted() && $0.last == first.media.byteCount })
    try await ana.node.unshare(first.media.id)
    try await ana.stop()
    let again = try await RunningNode("Ana", home: ana.home)
    let second = try await again.node.share(path: path, in: channel) { step in
      #expect(step.hashedByteCount == step.byteCount, "read again")
    }
    #expect(second == first && second.fileCount == 1 && second.skipped.isEmpty)
    try await again.stop()
  }

  @Test func aFolderIsSharedAndServedAgainUnlessItChanged() async throws {
    let channel = try name("media-tests-folder")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    let folder = ana.home.path + "/trip"
    mkdir(folder, 0o700)
    _ = try ana.home.write([1, 2, 3], "trip/a")
    let changing = try ana.home.write([4], "trip/b")
    symlink("a", folder + "/link")
    let shared = try await ana.node.share(path: folder, in: channel) { _ in }
    #expect(shared.media.isFolder && shared.media.fileName == "trip" && shared.media.byteCount == 4)
    #expect(shared.fileCount == 2 && shared.skippedCount == 1)
    #expect(shared.skipped == [SkippedFile(path: "link", reason: "it is a symbolic link")])
    try await ana.stop()
    let again = try await RunningNode("Ana", home: ana.home)
    try await again.node.wait { try await $0.media(of: channel).first?.isHeldHere == true }
    try await again.stop()
    // The rest of it is what it was.
    #expect(truncate(changing, 2) == 0)
    let third = try await RunningNode("Ana", home: ana.home)
    try await third.node.wait { try await $0.media(of: channel).first?.isHeldHere == true }
    try await third.stop()
    #expect(truncate(folder + "/a", 2) == 0)
    let fourth = try await RunningNode("Ana", home: ana.home)
    try await fourth.node.wait { try await $0.media(of: channel).first?.isHeldHere == false }
    try await fourth.stop()
  }

  @Test func nothingIsReplacedUnlessAsked() async throws {
    let (channel, ana, ben) = try await pair("media-tests-replace")
    let shared = try await ana.node.share(path: ana.home.write([1, 2, 3], "new"), in: channel)
    try await ben.node.wait(forMedia: shared.id, in: channel)
    let target = try ben.home.write([9], "old")
    await #expect(throws: ParleyError.alreadyExists(path: target)) {
      _ = try await finish(ben.node.download(shared.id, to: .file(target, replacing: false)))
    }
    #expect(try TemporaryHome.read(target) == [9])
    #expect(try await finish(ben.node.download(shared.id, to: .file(target, replacing: true))) == target)
    #expect(try TemporaryHome.read(target) == [1, 2, 3])
    try await ana.stop()
    try await ben.stop()
  }

  @Test func whatIsNoLongerSharedHasNoSource() async throws {
    let (channel, ana, ben) = try await pair("media-tests-unshared")
    let shared = try await ana.node.share(path: ana.home.write([1, 2, 3], "gone"), in: channel)
    try await ben.node.wait(forMedia: shared.id, in: channel)
    try await ana.node.unshare(shared.id)
    await #expect(throws: ParleyError.noSource(shared.id)) {
      _ = try await finish(ben.node.download(shared.id, to: .folder(ben.home.path)))
    }
    try await ana.stop()
    try await ben.stop()
  }
}

/// Where it landed.
func finish(_ download: (DownloadID, AsyncStream<DownloadEvent>)) async throws -> String {
  for await event in download.1 {
    switch event {
    case .progress, .paused: continue
    case .finished(let path): return path
    case .failed(let error): throw error
    }
  }
  throw ParleyError.cancelled
}
