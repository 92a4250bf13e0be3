import Parley
import Testing

/// Rooms, attributes and typing among real nodes.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct RoomTests {
  private func attribute(
    _ key: String, of node: Node, in channel: ChannelName
  ) async throws -> ChannelAttribute? {
    try await node.attributes(of: channel).first { $0.key == key }
  }

  private func wait(_ node: Node, until key: String, is value: String?, in channel: ChannelName) async throws {
    try await node.wait { try await attribute(key, of: $0, in: channel)?.value == value }
  }

  @Test func channelTypeRoomAndGroupOfOneNameAreTwoChannels() async throws {
    let stage = try name("room-type")
    let (ana, ben, cho) = (
      try await RunningNode("Ana"), try await RunningNode("Ben"), try await RunningNode("Cho")
    )
    try await ana.node.join(stage, as: .room, secret: .open)
    try await ben.node.join(stage, as: .room, secret: .open)
    try await cho.node.join(stage, secret: .open)
    try await ana.node.wait(for: ben.node.peerID, in: stage)
    try await ben.node.wait(for: ana.node.peerID, in: stage)
    _ = try await ana.node.send("on stage", to: stage)
    try await ben.node.wait(forText: "on stage", in: stage)
    #expect(try await cho.node.members(of: stage).count == 1)
    #expect(await ana.node.channels().map(\.type) == [.room])
    #expect(await cho.node.channels().map(\.type) == [.group])
    await #expect(throws: ParleyError.otherSecret(stage)) { try await ana.node.join(stage, secret: .open) }
    for node in [ana, ben, cho] { try await node.stop() }
  }

  @Test func channelTypeIsRememberedAndInvitationsCarryIt() async throws {
    let (stage, cellar) = (try name("room-owned"), try name("room-secret"))
    let (ana, ben) = (try await RunningNode("Ana"), try await RunningNode("Ben"))
    try await ana.node.create(stage, as: .room)
    try await ana.node.join(cellar, as: .room, secret: .passphrase(Array("mushrooms".utf8)))
    let link = try await ana.node.invite(to: stage).link
    try await ben.node.join(invitation: link)
    #expect(await ben.node.channels().map(\.type) == [.room])
    try await ana.stop()
    let again = try await RunningNode("Ana", home: ana.home)
    #expect(await again.node.channels().map(\.type) == [.room, .room])
    try await again.stop()
    try await ben.stop()
  }

  @Test func attributesAreSeenByAllWithWhoSetThem() async throws {
    let (channel, ana, ben) = try await pair("attributes-seen")
    let events = await ben.node.events(bufferingCount: 256)
    try await ana.node.setAttribute("topic", to: "May", in: channel)
    try await wait(ben.node, until: "topic", is: "May", in: channel)
    #expect(try await attribute("topic", of: ben.node, in: channel)?.author == ana.node.peerID)
    try await ben.node.setAttribute("topic", to: "June", in: channel)
    try await wait(ana.node, until: "topic", is: "June", in: channel)
    await #expect(throws: ParleyError.attribute(channel, key: "topic", .heldBy(ben.node.peerID))) {
      try await ana.node.setAttribute("topic", to: "July", isOverwriting: false, in: channel)
    }
    await #expect(throws: ParleyError.attribute(channel, key: "topic", .heldBy(ben.node.peerID))) {
      try await ana.node.removeAttribute("topic", isOverwriting: false, in: channel)
    }
    try await ana.node.removeAttribute("topic", in: channel)
    try await wait(ben.node, until: "topic", is: nil, in: channel)
    await #expect(throws: ParleyError.attribute(channel, key: "topic", .notThere)) {
      try await ben.node.removeAttribute("topic", in: channel)
    }
    try await ana.stop()
    try await ben.stop()
    var changes: [String] = []
    for await event in events {
      guard case .attributeChanged(channel, let change) = event else { continue }
      let who = change.by == ana.node.peerID ? "Ana" : "Ben"
      changes.append("\(change.key) \(change.old?.value ?? "-") \(change.new?.value ?? "-") \(who)")
    }
    #expect(changes == ["topic - May Ana", "topic May June Ben", "topic June - Ana"])
  }

  @Test func attributeLimits100KeysKeys128BytesValues4096Bytes() async throws {
    let channel = try name("attributes-limits")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    let (key, value) = (String(repeating: "k", count: 128), String(repeating: "v", count: 4_096))
    try await ana.node.setAttribute(key, to: value, in: channel)
    #expect(try await attribute(key, of: ana.node, in: channel)?.value == value)
    for (key, field) in [(key + "k", "key"), ("", "key")] {
      await #expect {
        try await ana.node.setAttribute(key, to: "v", in: channel)
      } throws: { error in
        guard case .badField(field, _, _) = error as? ParleyError else { return false }
        return true
      }
    }
    await #expect(
      throws: ParleyError.badField("value", value: "4097 bytes", allowed: "at most 4096 bytes")
    ) { try await ana.node.setAttribute("k", to: value + "v", in: channel) }
    for number in 2...100 { try await ana.node.setAttribute("k\(number)", to: "v", in: channel) }
    try await ana.node.wait { try await $0.attributes(of: channel).count == 100 }
    await #expect(throws: ParleyError.attribute(channel, key: "more", .full(countMax: 100))) {
      try await ana.node.setAttribute("more", to: "v", in: channel)
    }
    try await ana.node.setAttribute("k2", to: "w", in: channel)
    try await ana.node.removeAttribute("k3", in: channel)
    try await wait(ana.node, until: "k3", is: nil, in: channel)
    try await ana.node.setAttribute("more", to: "v", in: channel)
    try await wait(ana.node, until: "more", is: "v", in: channel)
    #expect(try await ana.node.attributes(of: channel).count == 100)
    try await ana.stop()
  }

  @Test func attributesUntilLeaveGoWithTheirAuthor() async throws {
    let (channel, ana, ben) = try await pair("attributes-leave")
    try await ana.node.setAttribute("seat", to: "Ana", isOverwriting: false, isUntilLeave: true, in: channel)
    try await ana.node.setAttribute("topic", to: "May", in: channel)
    try await wait(ben.node, until: "topic", is: "May", in: channel)
    try await wait(ben.node, until: "seat", is: "Ana", in: channel)
    await #expect(throws: ParleyError.attribute(channel, key: "seat", .heldBy(ana.node.peerID))) {
      try await ben.node.setAttribute("seat", to: "Ben", isOverwriting: false, in: channel)
    }
    // She stops without a word about the seat.
    try await ana.stop()
    try await wait(ben.node, until: "seat", is: nil, in: channel)
    #expect(try await attribute("topic", of: ben.node, in: channel)?.value == "May")
    try await ben.node.setAttribute("seat", to: "Ben", isOverwriting: false, isUntilLeave: true, in: channel)
    try await wait(ben.node, until: "seat", is: "Ben", in: channel)
    // Hers stays gone when she is back.
    let again = try await RunningNode("Ana", home: ana.home)
    try await again.node.wait(for: ben.node.peerID, in: channel)
    try await wait(again.node, until: "seat", is: "Ben", in: channel)
    // Who leaves takes it along, and does not bring it back.
    try await ben.node.leave(channel)
    try await wait(again.node, until: "seat", is: nil, in: channel)
    try await ben.node.join(channel, secret: .open)
    try await ben.node.wait(for: again.node.peerID, in: channel)
    _ = try await ben.node.send("back", to: channel)
    try await again.node.wait(forText: "back", in: channel)
    #expect(try await again.node.attributes(of: channel).map(\.key) == ["topic"])
    try await again.stop()
    try await ben.stop()
  }

  @Test func attributesSurviveARestartAndJoinersHaveThem() async throws {
    let channel = try name("attributes-kept")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, as: .room, secret: .open)
    try await ana.node.setAttribute("topic", to: "May", in: channel)
    try await ana.node.setAttribute("topic", to: "June", in: channel)
    try await ana.node.setAttribute("gone", to: "x", in: channel)
    try await ana.node.removeAttribute("gone", in: channel)
    try await ana.stop()
    let again = try await RunningNode("Ana", home: ana.home)
    #expect(try await again.node.attributes(of: channel).map { "\($0.key)=\($0.value)" } == ["topic=June"])
    let ben = try await RunningNode("Ben")
    try await ben.node.join(channel, as: .room, secret: .open)
    try await wait(ben.node, until: "topic", is: "June", in: channel)
    try await again.stop()
    try await ben.stop()
  }

  @Test func typingIsSeenAndEndsWithTheMessage() async throws {
    let (channel, ana, ben) = try await pair("typing")
    let events = await ben.node.events(bufferingCount: 256)
    for _ in 0..<3 { try await ana.node.setTyping(true, in: channel) }
    var seen: [String] = []
    for await event in events {
      switch event {
      case .typing(channel, ana.node.peerID, let isTyping):
        seen.append(isTyping ? "writes" : "has written")
        if isTyping { _ = try await ana.node.send("here it is", to: channel) }
      case .message(let message) where message.sender == ana.node.peerID: seen.append("message")
      default: continue
      }
      if seen.last == "message" { break }
    }
    #expect(seen == ["writes", "has written", "message"])
    try await ana.stop()
    try await ben.stop()
  }
}
