import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

@testable import Parley

/// Real nodes: what is done to messages is seen alike by all, told once, and outlives a restart.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct ConversationTests {
  private static func changes(_ events: AsyncStream<Parley.NodeEvent>, count: Int) async -> [MessageChange] {
    var found: [MessageChange] = []
    for await event in events {
      guard case .messageChanged(let change) = event else { continue }
      found.append(change)
      if found.count == count { break }
    }
    return found
  }

  private func say(_ text: String, _ node: RunningNode, in channel: ChannelName) async throws -> MessageReference {
    MessageReference(sender: node.node.peerID, id: try await node.node.send(text, to: channel).id)
  }

  /// KINDS.md, edit: body and ext of a text; all members get it with who, when and how often.
  @Test func anEditIsSeenByAll() async throws {
    let (channel, ana, ben) = try await pair("deeds-edit")
    let said = try await say("Lunch at 12", ana, in: channel)
    try await ben.node.wait(forText: "Lunch at 12", in: channel)
    let events = await ben.node.events()
    try await ana.node.edit(said, try .text("Lunch at 1").with(ext: #"{"a":1}"#), in: channel)
    try await ana.node.edit(said, .ext(#"{"b":2}"#), in: channel)
    let told = await Self.changes(events, count: 2)
    #expect(told.map(\.deed) == [.edited, .edited] && told.map(\.peer) == [said.sender, said.sender])
    #expect(told.map { $0.messages.map(\.state.editCount) } == [[1], [2]])
    #expect(told[0].cursor < told[1].cursor)
    for node in [ana.node, ben.node] {
      let message = try #require(try await node.message(said, in: channel))
      #expect(message.body == .text("Lunch at 1") && message.ext == #"{"b":2}"#)
      #expect(message.json.contains(#""body":"Lunch at 1","ext":{"b":2}"#))
      #expect(message.state.edited?.peer == said.sender && message.state.editCount == 2)
      #expect(try await node.history(of: channel, limit: 10) == [message])
    }
    try await ana.stop()
    try await ben.stop()
  }

  /// KINDS.md, recall: all members get an event with who and when; nothing of it is shown or found any more, after a
  /// restart neither.
  @Test func whatIsTakenBackIsGoneForAll() async throws {
    let (channel, ana, ben) = try await pair("deeds-recall")
    let said = try await say("a secret word", ana, in: channel)
    try await ben.node.wait(forText: "a secret word", in: channel)
    #expect(try await ben.node.search("secret", in: channel, limit: 10).count == 1)
    let events = await ben.node.events()
    try await ana.node.recall(said, in: channel)
    let told = try #require(await Self.changes(events, count: 1).first)
    #expect(told.deed == .recalled && told.peer == said.sender && told.messages.map(\.reference) == [said])
    let home = ben.home
    try await ben.stop()
    let again = try await RunningNode("Ben", home: home)
    for node in [ana.node, again.node] {
      let history = try await node.history(of: channel, limit: 10)
      #expect(history.map(\.body) == [.recalled(kind: "text")])
      #expect(history.first?.json.contains("secret") == false && history.first?.state.recalled?.peer == said.sender)
      #expect(try await node.search("secret", in: channel, limit: 10) == [])
    }
    await #expect(throws: ParleyError.refusedDeed(said, .recalled)) {
      try await ana.node.edit(said, .text("another"), in: channel)
    }
    try await ana.stop()
    try await again.stop()
  }

  /// KINDS.md, react, pin and read receipts over real nodes.
  @Test func reactionsPinsAndReceiptsAreTallied() async throws {
    let (channel, ana, ben) = try await pair("deeds-react")
    let said = try await say("Who comes?", ana, in: channel)
    try await ben.node.wait(forText: "Who comes?", in: channel)
    let events = await ana.node.events()
    try await ben.node.react("🙋", to: said, in: channel)
    try await ben.node.pin(said, in: channel)
    try await ben.node.markRead([said, said], in: channel)
    try await ben.node.markRead([said], in: channel)
    let told = await Self.changes(events, count: 3)
    #expect(told.map(\.deed) == [.reacted(emoji: "🙋", isOn: true), .pinned(isOn: true), .read])
    let message = try #require(try await ana.node.message(said, in: channel))
    let ben1 = ben.node.peerID
    #expect(message.state.reactions == [.init(emoji: "🙋", peers: [ben1])])
    #expect(message.state.pinned?.peer == ben1 && message.state.readBy.map(\.peer) == [ben1])
    #expect(try await ana.node.pins(in: channel) == [message])
    try await ben.node.react("🙋", to: said, isOn: false, in: channel)
    try await ben.node.pin(said, isOn: false, in: channel)
    try await ana.node.wait { try await $0.message(said, in: channel)?.state.pinned == nil }
    #expect(try await ana.node.message(said, in: channel)?.state.reactions == [])
    #expect(try await ana.node.pins(in: channel) == [])
    try await ana.stop()
    try await ben.stop()
  }

  /// A reader that resumes is told of each deed once, where it stands among the messages.
  @Test func deedsComeOnceToWhoeverResumes() async throws {
    let (channel, ana, ben) = try await pair("deeds-since")
    let said = try await say("one", ana, in: channel)
    let other = try await say("two", ana, in: channel)
    try await ana.node.edit(said, .text("uno"), in: channel)
    _ = try await say("three", ana, in: channel)
    try await ana.node.recall(other, in: channel)
    let last = try await say("four", ana, in: channel)
    try await ben.node.wait(forText: "four", in: channel)
    var cursors: [UInt64] = []
    var words: [String] = []
    for await event in try await ben.node.events(since: 0, in: channel, bufferingCount: 2).events {
      guard let cursor = event.cursor else { continue }
      cursors.append(cursor)
      switch event {
      case .message(let message): words.append("\(message.body)")
      case .messageChanged(let change): words.append("\(change.deed)")
      default: break
      }
      if case .message(let message) = event, message.reference == last { break }
    }
    #expect(cursors == cursors.sorted() && Set(cursors).count == cursors.count)
    #expect(
      words == [
        #"text("uno")"#, #"recalled(kind: "text")"#, "edited", #"text("three")"#, "recalled", #"text("four")"#,
      ])
    var rest: [UInt64] = []
    for await event in try await ben.node.events(since: cursors[2], in: channel, bufferingCount: 8).events {
      guard let cursor = event.cursor else { continue }
      rest.append(cursor)
      if cursor == cursors.last { break }
    }
    #expect(rest == Array(cursors[3...]))
    try await ana.stop()
    try await ben.stop()
  }

  /// Each rule is checked where somebody wishes something: field, value, limit.
  @Test func whoMayNotIsToldWhy() async throws {
    let (channel, ana, ben) = try await pair("deeds-refused")
    let said = try await say("mine", ana, in: channel)
    try await ben.node.wait(forText: "mine", in: channel)
    let place = try await ana.node.send(.location(try Location(latitude: 1, longitude: 2)), to: channel)
    let placed = MessageReference(sender: ana.node.peerID, id: place.id)
    await #expect(throws: ParleyError.refusedDeed(said, .notAuthor)) {
      try await ben.node.edit(said, .text("yours"), in: channel)
    }
    await #expect(throws: ParleyError.refusedDeed(said, .notModerator)) { try await ben.node.recall(said, in: channel) }
    await #expect(throws: ParleyError.refusedDeed(placed, .wrongKind("location"))) {
      try await ana.node.edit(placed, .text("there"), in: channel)
    }
    try await ana.node.edit(placed, .ext("{}"), in: channel)
    await #expect(throws: ParleyError.badField("emoji", value: "", allowed: "1 to 64 bytes")) {
      try await ana.node.react("", to: said, in: channel)
    }
    let nothing = MessageReference(sender: ana.node.peerID, id: MessageID("nothing")!)
    await #expect(throws: ParleyError.noSuchMessage(nothing)) { try await ana.node.recall(nothing, in: channel) }
    for number in 1...10 { try await ana.node.edit(said, .text("edit \(number)"), in: channel) }
    await #expect(throws: ParleyError.refusedDeed(said, .tooManyEdits(countMax: 10))) {
      try await ana.node.edit(said, .text("edit 11"), in: channel)
    }
    for number in 1...20 { try await ben.node.react("e\(number)", to: said, in: channel) }
    await #expect(throws: ParleyError.refusedDeed(said, .tooManyEmoji(countMax: 20))) {
      try await ben.node.react("e21", to: said, in: channel)
    }
    try await ben.node.react("e20", to: said, in: channel)
    for number in 1...20 { try await ana.node.pin(try await say("pin \(number)", ana, in: channel), in: channel) }
    await #expect(throws: ParleyError.refusedDeed(said, .tooManyPins(countMax: 20))) {
      try await ana.node.pin(said, in: channel)
    }
    try await ana.stop()
    try await ben.stop()
  }

  /// A changed client says what this one refuses to: nobody heeds it, and it is reported.
  @Test func aChangedClientIsHeededByNobodyAndReported() async throws {
    let (channel, ana, ben) = try await pair("deeds-forged")
    let said = try await say("hers", ana, in: channel)
    try await ben.node.wait(forText: "hers", in: channel)
    let mine = try await say("his", ben, in: channel)
    try await ana.node.wait(forText: "his", in: channel)
    let key = MessageKey(sender: said.sender, id: said.id)
    for (number, deed) in [
      EditKind(target: key, content: .body("forged"), ext: nil) as any MessageActKind, RecallKind(target: key),
    ].enumerated() {
      let events = await ana.node.events()
      try await ben.node.forge(deed, in: channel)
      if number == 0 {
        for await event in events where event == .memberOverLimit(channel, ben.node.peerID, .forbiddenActs) { break }
      }
    }
    for number in 1...11 {
      let edit = EditKind(
        target: MessageKey(sender: mine.sender, id: mine.id), content: .body("edit \(number)"), ext: nil)
      try await ben.node.forge(edit, in: channel)
    }
    _ = try await say("the end", ben, in: channel)
    try await ana.node.wait(forText: "the end", in: channel)
    for node in [ana.node, ben.node] {
      let bodies = try await node.history(of: channel, limit: 10).map(\.body)
      #expect(bodies == [.text("hers"), .text("edit 10"), .text("the end")])
      #expect(try await node.message(said, in: channel)?.state == .untouched)
    }
    let member = try await ana.node.members(of: channel).first { $0.peer == ben.node.peerID }
    #expect(member?.excesses == [.forbiddenActs])
    try await ana.stop()
    try await ben.stop()
  }

  /// Owner and admins take back what others said, whenever, and they alone pin.
  @Test func theOwnerTakesBackWhatOthersSaid() async throws {
    let channel = try name("deeds-owned")
    let ana = try await RunningNode("Ana")
    let ben = try await RunningNode("Ben")
    try await ana.node.create(channel)
    try await ben.node.join(invitation: try await ana.node.invite(to: channel).link)
    try await ana.node.wait(for: ben.node.peerID, in: channel)
    let said = try await say("rude", ben, in: channel)
    try await ana.node.wait(forText: "rude", in: channel)
    await #expect(throws: ParleyError.refusedDeed(said, .notModerator)) { try await ben.node.pin(said, in: channel) }
    try await ana.node.pin(said, in: channel)
    try await ana.node.recall(said, in: channel)
    try await ben.node.wait { try await $0.message(said, in: channel)?.state.recalled?.peer == ana.node.peerID }
    #expect(try await ben.node.history(of: channel, limit: 5).map(\.body) == [.recalled(kind: "text")])
    try await ana.stop()
    try await ben.stop()
  }
}

extension Node {
  /// Says it past all checks.
  fileprivate func forge(_ deed: some MessageActKind, in name: ChannelName) async throws {
    try await say(deed, of: try channel(name), try await running())
  }
}
