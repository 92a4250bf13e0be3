import Glibc
import Parley
import Testing

/// Downloads that break off and go on, and nodes that end.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct ResumeTests {
  @Test func aCancelledDownloadGoesOnAfterARestart() async throws {
    let channel = try name("resume-tests")
    let ana = try await RunningNode("Ana")
    // Slow enough that it is not done before it is cancelled.
    var ben = try await RunningNode("Ben") { $0.downloadByteRateMax = 6 << 20 }
    let home = ben.home
    let target = TemporaryHome()
    try await ana.node.join(channel, secret: .open)
    try await ben.node.join(channel, secret: .open)
    try await ana.node.wait(for: ben.node.peerID, in: channel)
    let bytes = (0..<(48 << 20) + 5).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 7) }
    let shared = try await ana.node.share(path: ana.home.write(bytes, "long"), in: channel)
    try await ben.node.wait(forMedia: shared.id, in: channel)

    let (id, events) = try await ben.node.download(shared.id, to: .folder(target.path))
    var kept: UInt64 = 0
    for await event in events {
      switch event {
      case .progress(let received, _, _, _):
        if received > 0 { try await ben.node.cancel(id, keepingPart: true) }
      case .paused: Issue.record("nobody paused it")
      case .finished: Issue.record("it was cancelled at its first piece")
      case .failed(let error):
        guard case .downloadBroken(shared.id, "cancelled", let keptByteCount, UInt64(bytes.count)) = error else {
          Issue.record("what was received is kept: \(error)")
          continue
        }
        kept = keptByteCount
      }
    }
    #expect(kept > 0)
    #expect(entries(target.path).count == 1)

    try await ben.stop()
    ben = try await RunningNode("Ben", home: home)
    try await ben.node.wait(for: ana.node.peerID, in: channel)
    let (_, again) = try await ben.node.download(shared.id, to: .folder(target.path))
    var firstReceived: UInt64?
    var path: String?
    for await event in again {
      switch event {
      case .paused: Issue.record("nobody paused it")
      case .progress(let received, _, _, _): if received > 0, firstReceived == nil { firstReceived = received }
      case .finished(let landed): path = landed
      case .failed(let error): Issue.record("\(error)")
      }
    }
    #expect(try #require(firstReceived) >= kept)
    #expect(try TemporaryHome.read(try #require(path)) == bytes)
    #expect(entries(target.path) == ["long"])
    try await ana.stop()
    try await ben.stop()
  }

  @Test func twoDownloadsOfOneFileAtOnceAndAFolderThatIsMissing() async throws {
    let (channel, ana, ben) = try await pair("resume-tests-two")
    let target = TemporaryHome()
    let bytes = (0..<(5 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 7) }
    let shared = try await ana.node.share(path: ana.home.write(bytes, "twice"), in: channel)
    try await ben.node.wait(forMedia: shared.id, in: channel)
    let missing = target.path + "/missing"
    let (_, refused) = try await ben.node.download(shared.id, to: .folder(missing))
    var last: DownloadEvent?
    for await event in refused { last = event }
    #expect(last == .failed(.fileTrouble(path: missing, reason: "there is no such folder: make it first")))
    let downloads = [
      try await ben.node.download(shared.id, to: .folder(target.path)),
      try await ben.node.download(shared.id, to: .folder(target.path)),
    ]
    for (_, events) in downloads {
      var path: String?
      for await case .finished(let landed) in events { path = landed }
      #expect(try TemporaryHome.read(try #require(path)) == bytes)
    }
    #expect(entries(target.path) == ["twice", "twice (2)"])
    try await ana.stop()
    try await ben.stop()
  }

  @Test func aChangedFileIsToldOnceAndCanBeSharedAgain() async throws {
    let (channel, ana, ben) = try await pair("resume-tests-changed")
    let path = try ana.home.write([1, 2, 3], "changes")
    let shared = try await ana.node.share(path: path, in: channel)
    try await ben.node.wait(forMedia: shared.id, in: channel)
    var times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
    #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
    let (_, events) = try await ben.node.download(shared.id, to: .folder(ben.home.path))
    var error: ParleyError?
    for await case .failed(let end) in events { error = end }
    #expect(error?.description.contains("its file changed since it was shared") == true)
    #expect(try await ana.node.media(of: channel).first?.isHeldHere == false)
    #expect(try await ana.node.share(path: path, in: channel).id == shared.id)
    let (_, again) = try await ben.node.download(shared.id, to: .folder(ben.home.path))
    var landed: String?
    for await case .finished(let place) in again { landed = place }
    #expect(landed == ben.home.path + "/changes")
    try await ana.node.unshare(shared.id)
    await #expect(throws: ParleyError.noSuchMedia(shared.id)) { try await ana.node.unshare(shared.id) }
    try await ana.stop()
    try await ben.stop()
  }

  @Test func aCancelledRunSaysGoodbyeAndFreesTheHome() async throws {
    let channel = try name("resume-tests-end")
    let ana = try await RunningNode("Ana")
    let home = TemporaryHome()
    let settings = NodeSettings(home: home.path + "/home", displayName: "Ben", interfaces: ["lo"])
    let ben = try Node(settings)
    let run = Task { try await ben.run() }
    try await ben.ready()
    try await ana.node.join(channel, secret: .open)
    try await ben.join(channel, secret: .open)
    try await ana.node.wait(for: ben.peerID, in: channel)
    let benID = ben.peerID
    await #expect(throws: ParleyError.stopped) { try await ben.run() }
    run.cancel()
    try await run.value
    try await ana.node.wait { try await $0.members(of: channel).contains { $0.peer == benID && $0.status == .offline } }
    // Streams asked for afterwards end; the home is another's while the old object is still there.
    for await _ in await ben.events() { Issue.record("nothing happens after the end") }
    let next = try Node(settings)
    #expect(next.peerID == benID)
    await ben.stop()
    await next.stop()
    await #expect(throws: ParleyError.stopped) { try await next.ready() }
    try await ana.stop()
  }

  private func entries(_ path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }
}
