import Glibc
import Parley
import Testing

/// What is refused, at its edges.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct ErrorTests {
  @Test func refusalsSayWhatIsWrong() async throws {
    let channel = try name("error-tests")
    let ana = try await RunningNode("Ana")
    let node = ana.node
    await #expect(throws: ParleyError.notInChannel(channel)) { _ = try await node.send("x", to: channel, waiting: nil) }
    await #expect(throws: ParleyError.notInChannel(channel)) { _ = try await node.members(of: channel) }
    await #expect(throws: ParleyError.notInChannel(channel)) { _ = try await node.history(of: channel, limit: 1) }
    await #expect(throws: ParleyError.notInChannel(channel)) { try await node.setHand(raised: true, in: channel) }
    await #expect(throws: ParleyError.notInChannel(channel)) { try await node.leave(channel) }
    await #expect(throws: ParleyError.noSuchPeer("nobody")) { _ = try await node.tell("x", peer: "nobody") }
    await #expect(throws: ParleyError.emptyMessage) { _ = try await node.tell("", peer: "nobody") }
    let edge = String(repeating: "é", count: 512)
    #expect(try await node.search(edge, in: nil, limit: 1).isEmpty)
    await #expect(throws: ParleyError.searchTooLong(byteCount: 1_025, byteCountMax: 1_024)) {
      _ = try await node.search(edge + "e", in: nil, limit: 1)
    }
    let media = try #require(MediaID(bytes: [UInt8](repeating: 1, count: 32)))
    await #expect(throws: ParleyError.noSuchMedia(media)) { _ = try await node.download(media, to: .folder("/tmp")) }
    await #expect(throws: ParleyError.noSuchMedia(media)) { try await node.unshare(media) }

    try await node.join(channel, secret: .open)
    try await node.join(channel, secret: .open)
    await #expect(throws: ParleyError.otherSecret(channel)) { try await node.join(channel, secret: .passphrase([1])) }
    await #expect(throws: ParleyError.emptyMessage) { _ = try await node.send("", to: channel, waiting: nil) }
    await #expect(throws: ParleyError.noSuchFile(path: "/tmp/parley-nothere")) {
      _ = try await node.share(path: "/tmp/parley-nothere", in: channel)
    }
    await #expect(throws: ParleyError.notAFile(path: "/dev/null")) {
      _ = try await node.share(path: "/dev/null", in: channel)
    }
    for length in [0, 1_025] {
      let other = try name("error-tests-2")
      let secret = ChannelSecret.passphrase([UInt8](repeating: 1, count: length))
      let error = await #expect(throws: ParleyError.self) { try await node.join(other, secret: secret) }
      guard case .badPassphrase(let reason) = error else {
        Issue.record("a passphrase has 1 to 1,024 bytes")
        continue
      }
      #expect(reason.contains("\(length) bytes"))
    }
    try await ana.stop()
  }

  @Test func noHistoryAtAllCannotBeAskedFor() {
    let home = "/tmp/parley-not-made"
    #expect(throws: ParleyError.badSetting("days of history", value: 0, allowed: 1...36_500)) {
      try Node(NodeSettings(home: home, historyDays: 0))
    }
    let error = #expect(throws: ParleyError.self) { try Node(NodeSettings(home: home, historyEntryCountMax: 0)) }
    #expect(error?.description == "0 entries of history cannot be kept; choose 100 to 10000000")
    #expect(access(home, F_OK) != 0, "nothing was made")
  }

  @Test func theOtherSecretIsNotKept() async throws {
    let channel = try name("error-tests-kept")
    let home = TemporaryHome()
    let ana = try await RunningNode("Ana", home: home)
    try await ana.node.join(channel, secret: .open)
    await #expect(throws: ParleyError.otherSecret(channel)) {
      try await ana.node.join(channel, secret: .passphrase([1]))
    }
    _ = try await ana.node.send("still open", to: channel, waiting: nil)
    try await ana.stop()
    let again = try await RunningNode("Ana", home: home)
    #expect(await again.node.channels().map(\.isOpen) == [true])
    #expect(try await again.node.history(of: channel, limit: 1).first?.body == .text("still open"))
    try await again.stop()
  }

  @Test func theLargestTextArrivesAndAByteMoreIsRefused() async throws {
    let channel = try name("error-tests-edge")
    let ana = try await RunningNode("Ana")
    let ben = try await RunningNode("Ben")
    try await ana.node.join(channel, secret: .open)
    try await ben.node.join(channel, secret: .open)
    try await ana.node.wait(for: ben.node.peerID, in: channel)
    var overhead = 0
    let long = String(repeating: "a", count: 40_000)
    let error = await #expect(throws: ParleyError.self) {
      _ = try await ana.node.send(long, to: channel, waiting: nil)
    }
    if case .messageTooLong(let byteCount, 30_000) = error { overhead = byteCount - 40_000 }
    try #require(overhead > 0)
    let largest = String(repeating: "a", count: 30_000 - overhead)
    await #expect(throws: ParleyError.messageTooLong(byteCount: 30_001, byteCountMax: 30_000)) {
      _ = try await ana.node.send(largest + "a", to: channel, waiting: nil)
    }
    let receipt = try await ana.node.send(largest, to: channel, waiting: 10)
    #expect(receipt.deliveredTo == [ben.node.peerID])
    try await ben.node.wait(forText: largest, in: channel)
    guard case .delivered = try await ana.node.tell(largest, peer: ben.node.peerID.text) else {
      Issue.record("the largest text fits a message to one person, too")
      return
    }
    await #expect(throws: ParleyError.messageTooLong(byteCount: 30_001, byteCountMax: 30_000)) {
      _ = try await ana.node.tell(largest + "a", peer: ben.node.peerID.text)
    }
    try await ana.stop()
    try await ben.stop()
  }

  @Test func aSubscriberThatDoesNotReadIsToldHowMuchItLost() async throws {
    let channel = try name("error-tests-dropped")
    let ana = try await RunningNode("Ana")
    let early = await ana.node.events(bufferingCount: 64)
    try await ana.node.join(channel, secret: .open)
    // What joining tells may come a little after the call returns: it is not to be counted here.
    for await case .memberChanged(channel, let member) in early where member.isSelf { break }
    let slow = await ana.node.events(bufferingCount: 4)
    for number in 0..<10 { _ = try await ana.node.send("\(number)", to: channel, waiting: nil) }
    var iterator = slow.makeAsyncIterator()
    var readCount = 0
    var lastCursor: UInt64?
    for _ in 0..<4 {
      guard case .message(let message) = await iterator.next() else { continue }
      readCount += 1
      lastCursor = message.cursor
    }
    #expect(readCount == 4)
    // The next event has room again; the loss is told before it.
    _ = try await ana.node.send("after", to: channel, waiting: nil)
    guard case .dropped(let count, let cursor) = await iterator.next() else {
      Issue.record("the loss is told")
      return
    }
    #expect(count == 6)
    #expect(cursor == lastCursor)
    guard case .message(let message) = await iterator.next() else {
      Issue.record("what fits again is there")
      return
    }
    #expect(message.body == .text("after"))
    try await ana.stop()
  }

  @Test func namesAreCheckedAndKept() async throws {
    let home = TemporaryHome()
    #expect(throws: ParleyError.badName(.empty)) {
      _ = try Node(NodeSettings(home: home.path + "/a", displayName: ""))
    }
    #expect(throws: ParleyError.badName(.controlCharacter(codePoint: 7))) {
      _ = try Node(NodeSettings(home: home.path + "/a", displayName: "a\u{7}"))
    }
    #expect(throws: ParleyError.badName(.tooLong(byteCount: 65, byteCountMax: 64))) {
      _ = try Node(NodeSettings(home: home.path + "/a", displayName: String(repeating: "a", count: 65)))
    }
    _ = try Node(NodeSettings(home: home.path + "/a", displayName: String(repeating: "a", count: 64)))
    #expect(try Node(NodeSettings(home: home.path + "/a")).name == String(repeating: "a", count: 64))
  }
}
