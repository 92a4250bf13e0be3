import Parley
import Testing

/// Priorities in rooms, and what is said to all rooms, among real nodes.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct RoomPriorityTests {
  /// Ana's room with Ben and Cho in it.
  private func stage(_ title: String) async throws -> (channel: ChannelName, nodes: [RunningNode]) {
    let channel = try name(title)
    var nodes: [RunningNode] = []
    for name in ["Ana", "Ben", "Cho"] { nodes.append(try await RunningNode(name)) }
    for node in nodes { try await node.node.join(channel, as: .room, secret: .open) }
    for node in nodes {
      for other in nodes where other !== node { try await node.node.wait(for: other.node.peerID, in: channel) }
    }
    return (channel, nodes)
  }

  private struct Tally: Sendable {
    var sent: [Message.Priority: Set<MessageID>] = [:]
    var dropped: [Message.Priority: Int] = [:]
    var sentIDs: Set<MessageID> { sent.values.reduce(into: []) { $0.formUnion($1) } }
    var droppedCount: Int { dropped.values.reduce(0, +) }
  }

  /// As fast as it goes, all at once.
  private func say(
    _ counts: [Message.Priority: Int], _ node: Node, in channel: ChannelName
  ) async throws -> Tally {
    try await withThrowingTaskGroup(of: (Message.Priority, MessageID?).self) { group in
      for (priority, count) in counts {
        let draft = try MessageDraft.text("\(priority)").with(priority: priority)
        for _ in 0..<count {
          group.addTask {
            do { return (priority, try await node.send(draft, to: channel).id) } catch ParleyError.messageDropped(
              channel, priority, _)
            { return (priority, nil) }
          }
        }
      }
      var tally = Tally()
      for try await (priority, id) in group {
        if let id { tally.sent[priority, default: []].insert(id) } else { tally.dropped[priority, default: 0] += 1 }
      }
      return tally
    }
  }

  @Test func priorityAtSpeedAllHighAreDeliveredAndTheSumsAgree() async throws {
    let (channel, nodes) = try await stage("room-speed")
    let events = await nodes[2].node.events(bufferingCount: 8_192)
    let counts: [Message.Priority: Int] = [.high: 100, .normal: 150, .low: 250]
    async let anas = say(counts, nodes[0].node, in: channel)
    async let bens = say(counts, nodes[1].node, in: channel)
    let (ana, ben) = (try await anas, try await bens)
    for tally in [ana, ben] {
      #expect(tally.sent[.high]?.count == 100, "below 200 a second none of them is dropped")
      #expect(tally.sentIDs.count + tally.droppedCount == 500)
      #expect(tally.droppedCount > 0)
    }
    // All that was sent comes, and nothing else.
    let expected = ana.sentIDs.union(ben.sentIDs)
    var heard: Set<MessageID> = []
    for await event in events {
      guard case .message(let message) = event else { continue }
      heard.insert(message.id)
      if heard.count == expected.count { break }
    }
    #expect(heard == expected)
    for (node, tally) in [(nodes[0], ana), (nodes[1], ben)] {
      #expect(await node.node.channels().first?.droppedCount == tally.droppedCount)
    }
    #expect(await nodes[2].node.channels().first?.droppedCount == 0)
    for node in nodes { try await node.stop() }
  }

  @Test func priorityDroppedIsReportedAndOnlyInRooms() async throws {
    let (channel, nodes) = try await stage("room-report")
    let ana = nodes[0].node
    let events = await ana.events(bufferingCount: 1_024)
    let tally = try await say([.low: 100], ana, in: channel)
    #expect(tally.droppedCount > 0)
    var told = 0
    for await event in events {
      guard case .messageDropped(channel, .low, let count) = event else { continue }
      told += 1
      #expect(count == told)
      if told == tally.droppedCount { break }
    }
    let group = try name("room-report-group")
    try await ana.join(group, secret: .open)
    await #expect(throws: ParleyError.badField("priority", value: "high", allowed: "in rooms only")) {
      try await ana.send(try MessageDraft.text("x").with(priority: .high), to: group)
    }
    for _ in 0..<30 { _ = try await ana.send("in groups nothing is dropped", to: group) }
    for node in nodes { try await node.stop() }
  }

  @Test func receiptInARoomIsRefused() async throws {
    let (channel, nodes) = try await stage("room-receipt")
    await #expect {
      try await nodes[0].node.send(try MessageDraft.text("x").needingReceipt(), to: channel)
    } throws: { error in
      guard case .badField("needs_receipt", _, _) = error as? ParleyError else { return false }
      return true
    }
    for node in nodes { try await node.stop() }
  }

  @Test func broadcastGoesToAllRoomsOfItsOwner() async throws {
    let (first, second, group) = (try name("stage-1"), try name("stage-2"), try name("class"))
    let (ana, ben) = (try await RunningNode("Ana"), try await RunningNode("Ben"))
    await #expect(throws: ParleyError.self) { try await ana.node.broadcast(.text("nobody hears")) }
    for (channel, type) in [(first, ChannelType.room), (second, .room), (group, .group)] {
      try await ana.node.create(channel, as: type)
      try await ben.node.join(invitation: try await ana.node.invite(to: channel).link)
      try await ben.node.wait(for: ana.node.peerID, in: channel)
    }
    let outcomes = try await ana.node.broadcast(.text("The doors close at nine"))
    #expect(outcomes.map(\.channel) == [first, second])
    #expect(outcomes.allSatisfy { $0.receipt != nil && $0.error == nil })
    for channel in [first, second] {
      try await ben.node.wait(forText: "The doors close at nine", in: channel)
      #expect(try await ben.node.history(of: channel, limit: 1).first?.options.isBroadcast == true)
    }
    #expect(try await ben.node.history(of: group, limit: 10).isEmpty)
    try await ben.node.wait { try await $0.role(in: first)?.rank == .member }
    await #expect(throws: ParleyError.notAllowed(first, .notAdmin)) {
      try await ben.node.send(try MessageDraft.text("me too").broadcast(), to: first)
    }
    await #expect(throws: ParleyError.badField("broadcast", value: "true", allowed: "in rooms only")) {
      try await ana.node.send(try MessageDraft.text("x").broadcast(), to: group)
    }
    try await ana.stop()
    try await ben.stop()
  }
}
