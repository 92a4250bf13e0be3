import Glibc
import Parley
import Testing

/// The list of downloads, and what can be done with them; reading to memory.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct DownloadTests {
  private struct Pair {
    let ana: RunningNode
    let ben: RunningNode
    let channel: ChannelName
    let shared: MediaReference
    let bytes: [UInt8]

    /// `byteRate`: what Ben fetches a second, so that he is not done before he thinks better of it.
    init(_ title: String, byteCount: Int, byteRate: Int? = nil, parts: Int? = nil) async throws {
      (channel, ana, ben) = try await pair("download-tests-\(title)") {
        $0.downloadByteRateMax = byteRate
        $0.partByteCountMax = parts
      }
      bytes = pattern(byteCount)
      let id = try await ana.node.share(path: ana.home.write(bytes, "long"), in: channel)
      shared = id
      let channel = channel
      try await ben.node.wait(forMedia: id.id, in: channel)
    }

    func stop() async throws {
      try await ana.stop()
      try await ben.stop()
    }
  }

  private func entries(_ path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// Pauses at the first piece; the events until then and after it are those of one stream.
  @Test func aPausedDownloadGoesOnInTheSameStream() async throws {
    let pair = try await Pair("pause", byteCount: 24 << 20, byteRate: 6 << 20)
    let node = pair.ben.node
    let target = TemporaryHome()
    let (id, events) = try await node.download(pair.shared.id, to: .file(target.path + "/copy", replacing: false))
    var pausedCount = 0
    var isAsked = false
    var landed: String?
    for await event in events {
      switch event {
      case .progress(let received, let total, _, _):
        #expect(total == UInt64(pair.bytes.count))
        if received > 0, !isAsked {
          isAsked = true
          try await node.pause(id)
        }
      case .paused:
        pausedCount += 1
        let item = try #require(try await node.downloads().first)
        #expect(item.id == id && item.state == .paused && item.bytesPerSecond == 0 && item.secondsLeft == nil)
        #expect(item.fileName == "long" && item.target == target.path + "/copy")
        #expect(item.byteCount == UInt64(pair.bytes.count) && item.doneByteCount > 0)
        try await node.pause(id)
        try await node.resume(id)
      case .finished(let path): landed = path
      case .failed(let error): Issue.record("\(error)")
      }
    }
    #expect(pausedCount == 1)
    #expect(try TemporaryHome.read(try #require(landed)) == pair.bytes)
    #expect(try await node.downloads().map(\.state) == [.finished(path: target.path + "/copy")])
    await #expect(throws: ParleyError.noSuchDownload(id)) { try await node.resume(id) }
    await #expect(throws: ParleyError.noSuchDownload(DownloadID(99))) { try await node.pause(DownloadID(99)) }
    try await pair.stop()
  }

  @Test func aCancelledDownloadLeavesNothing() async throws {
    let pair = try await Pair("cancel", byteCount: 24 << 20, byteRate: 6 << 20)
    let node = pair.ben.node
    let target = TemporaryHome()
    for isPausedFirst in [false, true] {
      let (id, events) = try await node.download(pair.shared.id, to: .folder(target.path))
      var error: ParleyError?
      var isAsked = false
      for await event in events {
        switch event {
        case .progress(let received, _, _, _) where received > 0 && !isAsked:
          isAsked = true
          if isPausedFirst { try await node.pause(id) } else { try await node.cancel(id) }
        case .paused: try await node.cancel(id)
        case .failed(let end): error = end
        case .finished: Issue.record("it was cancelled at its first piece")
        case .progress: continue
        }
      }
      #expect(error == .cancelled)
    }
    // The disk's thread removes it after the news.
    let (_, small) = try await node.download(pair.shared.id, to: .folder(target.path))
    for await event in small { if case .failed(let error) = event { Issue.record("\(error)") } }
    #expect(entries(target.path) == ["long"])
    try await pair.stop()
  }

  /// Begins a download and pauses it at its first piece.
  private func pause(_ id: MediaID, _ node: Node, _ target: TemporaryHome) async throws -> DownloadID {
    let (download, events) = try await node.download(id, to: .folder(target.path))
    var isAsked = false
    for await event in events {
      if case .progress(let received, _, _, _) = event, received > 0, !isAsked {
        isAsked = true
        try await node.pause(download)
      }
      if case .paused = event { break }
    }
    return download
  }

  /// Two parts of 24 MiB where 30 MiB may lie: the one used longest ago goes, and begins anew.
  @Test func partsBeyondTheirSpaceGoTheOldestFirst() async throws {
    let pair = try await Pair("parts", byteCount: 24 << 20, byteRate: 6 << 20, parts: 30 << 20)
    let node = pair.ben.node
    let target = TemporaryHome()
    let other = try await pair.ana.node.share(
      path: pair.ana.home.write(pair.bytes.reversed(), "other"), in: pair.channel)
    try await node.wait { try await $0.history(of: pair.channel, limit: 1).first?.media?.id == other.id }
    let first = try await pause(pair.shared.id, node, target)
    #expect(entries(target.path).count == 1)
    let second = try await pause(other.id, node, target)
    // The disk's thread removes it after the news; the time limit bounds the wait.
    while entries(target.path).count != 1 { await Task.yield() }
    let items = try await node.downloads()
    #expect(items.first { $0.id == first }?.doneByteCount == 0)
    #expect(try #require(items.first { $0.id == second }).doneByteCount > 0)
    try await pair.stop()
  }

  @Test func whatAnEarlierRunLeftIsListedAndGoesOn() async throws {
    let pair = try await Pair("restart", byteCount: (40 << 20) + 5, byteRate: 6 << 20)
    let home = pair.ben.home
    let target = TemporaryHome()
    let copy = target.path + "/copy"
    let (id, events) = try await pair.ben.node.download(pair.shared.id, to: .file(copy, replacing: false))
    for await event in events {
      if case .progress(let received, _, _, _) = event, received > 0 { try await pair.ben.node.pause(id) }
      if case .paused = event { break }
    }
    try await pair.ben.stop()
    let ben = try await RunningNode("Ben", home: home)
    try await ben.node.wait(for: pair.ana.node.peerID, in: pair.channel)
    let item = try #require(try await ben.node.downloads().first)
    #expect(item.state == .paused && item.media == pair.shared.id && item.target == copy)
    #expect(item.doneByteCount > 0 && item.byteCount == UInt64(pair.bytes.count))
    try await ben.node.resume(item.id)
    while true {
      let state = try await ben.node.downloads().first?.state
      if case .finished(let path) = state {
        #expect(path == copy)
        break
      }
      if case .failed(let error) = state { throw error }
      await Task.yield()
    }
    #expect(try TemporaryHome.read(copy) == pair.bytes)
    #expect(entries(target.path) == ["copy"])
    try await ben.stop()
    try await pair.ana.stop()
  }

  @Test func aFileIsReadToMemoryWholeAndInParts() async throws {
    let pair = try await Pair("memory", byteCount: (20 << 20) + 17)
    for node in [pair.ben.node, pair.ana.node] {
      #expect(try await node.data(of: pair.shared.id, byteCountMax: 32 << 20) == pair.bytes)
      let count = UInt64(pair.bytes.count)
      await #expect(
        throws: ParleyError.tooLargeForMemory(pair.shared.id, byteCount: count, byteCountMax: 1_000)
      ) { _ = try await node.data(of: pair.shared.id, byteCountMax: 1_000) }
      let cases: [(ByteRange, Range<Int>)] = [
        (.bytes(0..<1), 0..<1), (.bytes(1_048_570..<1_048_590), 1_048_570..<1_048_590),
        (.from(count - 3), pair.bytes.count - 3..<pair.bytes.count),
        (.last(70_000), pair.bytes.count - 70_000..<pair.bytes.count),
        (.bytes(5 << 20..<9 << 20 + 1), 5 << 20..<9 << 20 + 1),
        (.bytes(count - 1..<count + 100), pair.bytes.count - 1..<pair.bytes.count),
      ]
      for (range, expected) in cases {
        let bytes = try await node.bytes(of: pair.shared.id, range: range)
        #expect(bytes.byteCount == count && bytes.range == UInt64(expected.lowerBound)..<UInt64(expected.upperBound))
        var got: [UInt8] = []
        for try await chunk in bytes { got += chunk }
        #expect(got == Array(pair.bytes[expected]))
      }
      await #expect(throws: ParleyError.outOfRange(pair.shared.id, byteCount: count)) {
        _ = try await node.bytes(of: pair.shared.id, range: .from(count))
      }
    }
    // Nothing was written.
    #expect(try await pair.ben.node.media(of: pair.channel).first?.isHeldHere == false)
    try await pair.stop()
  }

  /// Of 64 MiB, what is asked for ahead of the reader is bounded: the sender's file is unshared after the first chunk,
  /// and what comes then is what was on its way.
  @Test func aReaderThatWaitsIsNotSentMoreThanAWindow() async throws {
    let pair = try await Pair("window", byteCount: 64 << 20)
    let node = pair.ben.node
    let bytes = try await node.bytes(of: pair.shared.id)
    var iterator = bytes.makeAsyncIterator()
    var got = try #require(try await iterator.next())
    try await pair.ana.node.unshare(pair.shared.id)
    var error: ParleyError?
    do {
      while let chunk = try await iterator.next() { got += chunk }
    } catch let end {
      error = end
    }
    #expect(error != nil && got.count <= 17 << 20)
    #expect(got == Array(pair.bytes[..<got.count]))
    let item = try #require(try await node.downloads().last)
    #expect(item.id == bytes.download && item.target == nil && item.doneByteCount == UInt64(got.count))
    guard case .failed = item.state else {
      Issue.record("the reason stays listed: \(item.state)")
      return
    }
    try await pair.stop()
  }

  @Test func readersAreBoundedAndEndWithTheirLastReference() async throws {
    let pair = try await Pair("readers", byteCount: 3 << 20)
    let node = pair.ben.node
    var open: [MediaBytes] = []
    for _ in 0..<8 { open.append(try await node.bytes(of: pair.shared.id)) }
    do {
      _ = try await node.bytes(of: pair.shared.id)
      Issue.record("a ninth reader is refused")
    } catch {
      guard case .queueFull = error else { throw error }
    }
    #expect(try await node.downloads().count == 8)
    let task = Task { [bytes = open[0]] in
      var count = 0
      for try await chunk in bytes { count += chunk.count }
      return count
    }
    #expect(try await task.value == 3 << 20)
    open = []
    #expect(try await node.data(of: pair.shared.id, byteCountMax: 4 << 20) == pair.bytes)
    try await pair.stop()
  }
}
