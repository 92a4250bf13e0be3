import Glibc
import Parley
import Testing

/// Folders from one node to another, whole and in part.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct FolderTests {
  private static let contents: [(path: String, byteCount: Int)] = [
    ("a.txt", 5), ("docs/deep/b.bin", 3 << 20 + 17), ("docs/empty", 0), ("docs/run.sh", 16_384), ("z?.jpg", 1 << 20),
  ]

  private static func bytes(_ byteCount: Int) -> [UInt8] {
    (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
  }

  private func makeFolder(_ home: TemporaryHome) throws -> String {
    for folder in ["trip", "trip/docs", "trip/docs/deep"] { mkdir(home.path + "/" + folder, 0o700) }
    for file in Self.contents { _ = try home.write(Self.bytes(file.byteCount), "trip/" + file.path) }
    chmod(home.path + "/trip/docs/run.sh", 0o755)
    return home.path + "/trip"
  }

  @Test func aFolderArrivesWholeAndIsServedOn() async throws {
    let (channel, ana, ben) = try await pair("folder-tests-whole")
    let shared = try await ana.node.share(path: makeFolder(ana.home), in: channel)
    try await ben.node.wait(forMedia: shared.id, in: channel)
    #expect(try await ben.node.history(of: channel, limit: 1).first?.media?.isFolder == true)

    let contents = try await ben.node.contents(of: shared.id)
    #expect(contents.isFolder && contents.byteCount == shared.byteCount)
    #expect(contents.files.map(\.path) == Self.contents.map(\.path))
    #expect(contents.files.map(\.byteCount) == Self.contents.map { UInt64($0.byteCount) })
    #expect(contents.files.map(\.isExecutable) == [false, false, false, true, false])
    #expect(try await ana.node.contents(of: shared.id) == contents)

    let landed = try await finish(ben.node.download(shared.id, to: .folder(ben.home.path)))
    #expect(landed == ben.home.path + "/trip")
    for file in Self.contents {
      let path = landed + "/" + (file.path == "z?.jpg" ? "z_.jpg" : file.path)
      #expect(try TemporaryHome.read(path) == Self.bytes(file.byteCount), "\(file.path)")
    }
    #expect(access(landed + "/docs/run.sh", X_OK) != 0, "nobody asked for programs")
    // It is here already, and the name is taken.
    let second = try await finish(
      ben.node.download(shared.id, to: .folder(ben.home.path), DownloadChoice(isApplyingExecutable: true)))
    #expect(second == ben.home.path + "/trip (2)")
    #expect(access(second + "/docs/run.sh", X_OK) == 0)
    let third = try await RunningNode("Cleo")
    try await third.node.join(channel, secret: .open)
    try await third.node.wait(for: ben.node.peerID, in: channel)
    try await third.node.wait { try await $0.media(of: channel).first?.media.id == shared.id }
    try await ana.stop()
    let onward = try await finish(
      third.node.download(shared.id, to: .file(third.home.path + "/copy", replacing: false)))
    #expect(try TemporaryHome.read(onward + "/docs/deep/b.bin") == Self.bytes(3 << 20 + 17))
    try await third.stop()
    try await ben.stop()
  }

  @Test func ofAFolderAPartIsDownloaded() async throws {
    let (channel, ana, ben) = try await pair("folder-tests-part")
    let shared = try await ana.node.share(path: makeFolder(ana.home), in: channel)
    try await ben.node.wait(forMedia: shared.id, in: channel)
    let landed = try await finish(
      ben.node.download(
        shared.id, to: .folder(ben.home.path), DownloadChoice(paths: ["docs/deep/", "*.txt", "docs/r??.sh"])))
    #expect(try TemporaryHome.read(landed + "/docs/deep/b.bin") == Self.bytes(3 << 20 + 17))
    #expect(try TemporaryHome.read(landed + "/a.txt") == Self.bytes(5))
    #expect(try TemporaryHome.read(landed + "/docs/run.sh") == Self.bytes(16_384))
    #expect(access(landed + "/docs/empty", F_OK) != 0 && access(landed + "/z_.jpg", F_OK) != 0)
    #expect(try await ben.node.media(of: channel).first?.isHeldHere == false)
    await #expect(throws: ParleyError.self) {
      _ = try await ben.node.download(
        shared.id, to: .folder(ben.home.path), DownloadChoice(paths: ["a.txt", "none/*"]))
    }
    // From the folder itself, without the network.
    let own = try await finish(
      ana.node.download(shared.id, to: .file(ana.home.path + "/own", replacing: false), DownloadChoice(paths: ["docs"]))
    )
    #expect(try TemporaryHome.read(own + "/docs/deep/b.bin") == Self.bytes(3 << 20 + 17))
    #expect(access(own + "/docs/empty", F_OK) == 0 && access(own + "/a.txt", F_OK) != 0)
    try await ana.stop()
    try await ben.stop()
  }

  /// Paused at its first piece and gone on with by another run of the node, which knows what was chosen.
  @Test func aFolderGoesOnAfterARestart() async throws {
    let (channel, ana, ben) = try await pair("folder-tests-restart") { $0.downloadByteRateMax = 4 << 20 }
    let (home, target) = (ben.home, TemporaryHome())
    let path = try makeFolder(ana.home)
    _ = try ana.home.write(pattern(12 << 20), "trip/docs/long")
    let shared = try await ana.node.share(path: path, in: channel)
    try await ben.node.wait(forMedia: shared.id, in: channel)
    let (id, events) = try await ben.node.download(
      shared.id, to: .folder(target.path), DownloadChoice(paths: ["docs"], isApplyingExecutable: true))
    for await event in events {
      if case .progress(let received, _, _, _) = event, received > 0 { try await ben.node.pause(id) }
      if case .paused = event { break }
    }
    try await ben.stop()
    let again = try await RunningNode("Ben", home: home)
    try await again.node.wait(for: ana.node.peerID, in: channel)
    let item = try #require(try await again.node.downloads().first)
    #expect(item.state == .paused && item.doneByteCount > 0)
    #expect(item.byteCount == UInt64((12 << 20) + (3 << 20) + 17 + 16_384), "only what was chosen")
    try await again.node.resume(item.id)
    var landed: String?
    while landed == nil {
      let state = try await again.node.downloads().first?.state
      if case .finished(let path) = state { landed = path }
      if case .failed(let error) = state { throw error }
      await Task.yield()
    }
    let folder = try #require(landed)
    #expect(try TemporaryHome.read(folder + "/docs/long") == pattern(12 << 20))
    #expect(try TemporaryHome.read(folder + "/docs/deep/b.bin") == Self.bytes(3 << 20 + 17))
    #expect(access(folder + "/docs/run.sh", X_OK) == 0, "what was to become a program did")
    #expect(access(folder + "/docs/empty", F_OK) == 0 && access(folder + "/a.txt", F_OK) != 0)
    try await ana.stop()
    try await again.stop()
  }

  @Test func aFileOfAFolderThatChangesIsNotServedAndTheRestIs() async throws {
    let (channel, ana, ben) = try await pair("folder-tests-changed")
    let path = try makeFolder(ana.home)
    let shared = try await ana.node.share(path: path, in: channel)
    try await ben.node.wait(forMedia: shared.id, in: channel)
    #expect(truncate(path + "/docs/deep/b.bin", 100) == 0)
    await #expect(throws: ParleyError.self) {
      _ = try await finish(ben.node.download(shared.id, to: .folder(ben.home.path)))
    }
    #expect(access(ben.home.path + "/trip", F_OK) != 0)
    let part = try await finish(
      ben.node.download(shared.id, to: .folder(ben.home.path), DownloadChoice(paths: ["docs/run.sh"])))
    #expect(access(part + "/docs/run.sh", F_OK) == 0 && access(part + "/docs/deep/b.bin", F_OK) != 0)
    try await ana.stop()
    try await ben.stop()
  }
}
