import Parley
import Testing

/// Real nodes: each message once, in the order in which it was stored, however slow or interrupted the reader.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct SinceTests {
  private static func messages(_ events: AsyncStream<NodeEvent>, count: Int) async -> [Message] {
    var found: [Message] = []
    for await case .message(let message) in events {
      found.append(message)
      if found.count == count { break }
    }
    return found
  }

  /// Two authors, two channels and messages from peer to peer at once, in many batches: live events come in the order
  /// of cursors, and that is what the store gives, to a reader whose queue takes four.
  @Test func cursorsRiseAsEventsAreToldAndTheStoreGivesTheSame() async throws {
    let channels = [try name("since-tests-one"), try name("since-tests-two")]
    let ana = try await RunningNode("Ana of since")
    let ben = try await RunningNode("Ben of since")
    for channel in channels {
      for node in [ana, ben] { try await node.node.join(channel, secret: .open) }
      try await ana.node.wait(for: ben.node.peerID, in: channel)
      try await ben.node.wait(for: ana.node.peerID, in: channel)
    }
    let (start, slow) = try await ben.node.events(since: 0, bufferingCount: 4)
    #expect(start == 0)
    let live = await ben.node.events(bufferingCount: 100_000)
    let count = 3 * 100
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<100 {
        let channel = channels[number % 2]
        group.addTask { _ = try await ana.node.send("a\(number)", to: channel) }
        group.addTask { _ = try await ben.node.send("b\(number)", to: channel) }
        group.addTask { _ = try await ana.node.tell("t\(number)", peer: ben.node.peerID.text) }
      }
      try await group.waitForAll()
    }
    let told = await Self.messages(live, count: count)
    #expect(told.map(\.cursor) == told.map(\.cursor).sorted())
    #expect(Set(told.map(\.cursor)).count == count)
    let read = await Self.messages(slow, count: count)
    #expect(read.map(\.cursor) == told.map(\.cursor))
    #expect(read.map(\.json) == told.map(\.json))

    // From any of them on, of one channel or of all.
    for index in [0, 1, 77, count - 2] {
      let (_, rest) = try await ben.node.events(since: told[index].cursor)
      let wanted = told[(index + 1)...].map(\.id)
      #expect(await Self.messages(rest, count: wanted.count).map(\.id) == wanted)
      let (_, one) = try await ben.node.events(since: told[index].cursor, in: channels[1], bufferingCount: 1)
      let ofOne = told[(index + 1)...].filter { $0.channel == channels[1] }.map(\.id)
      guard !ofOne.isEmpty else { continue }
      #expect(await Self.messages(one, count: ofOne.count).map(\.id) == ofOne)
    }
    try await ana.stop()
    try await ben.stop()
  }

  @Test func aReaderGoesOnAfterARestartOfTheNode() async throws {
    let channel = try name("since-tests-restart")
    var ana = try await RunningNode("Ana")
    let home = ana.home
    try await ana.node.join(channel, secret: .open)
    let (start, first) = try await ana.node.events(since: nil)
    let ids = [
      try await ana.node.send("one", to: channel).id, try await ana.node.send("two", to: channel).id,
      try await ana.node.send("three", to: channel).id,
    ]
    let seen = await Self.messages(first, count: 2)
    #expect(seen.map(\.id) == Array(ids.prefix(2)))
    try await ana.stop()
    ana = try await RunningNode("Ana", home: home)
    let fourth = try await ana.node.send("four", to: channel).id
    let (_, again) = try await ana.node.events(since: seen[1].cursor)
    let fifth = try await ana.node.send("five", to: channel).id
    #expect(await Self.messages(again, count: 3).map(\.id) == [ids[2], fourth, fifth])
    let (_, whole) = try await ana.node.events(since: start)
    #expect(await Self.messages(whole, count: 5).map(\.id) == ids + [fourth, fifth])
    // Only channels that the node is in.
    let other = try name("since-tests-restart-2")
    try await ana.node.join(other, secret: .open)
    try await ana.node.leave(channel)
    let sixth = try await ana.node.send("six", to: other).id
    let (_, rest) = try await ana.node.events(since: 0)
    #expect(await Self.messages(rest, count: 1).map(\.id) == [sixth])
    try await ana.stop()
  }

  @Test func aCursorOfAnotherStoreIsRefused() async throws {
    let channel = try name("since-tests-other")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    let (start, _) = try await ana.node.events(since: nil)
    _ = try await ana.node.events(since: start)
    let error = await #expect(throws: ParleyError.self) { _ = try await ana.node.events(since: start + 1) }
    #expect(error == .unknownCursor(start + 1, last: start))
    #expect(error?.description.contains("begin again with 0") == true)
    _ = try await ana.node.send("one", to: channel)
    _ = try await ana.node.events(since: start + 1)
    try await ana.stop()
    await #expect(throws: ParleyError.stopped) { _ = try await ana.node.events(since: nil) }
  }
}
