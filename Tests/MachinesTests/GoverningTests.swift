import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

/// The garden belongs to Ben; Ana is in it.
private func owned() -> Messages {
  var messages = Messages()
  messages.handle(.owned(garden, ChannelOwnership(founder: ben, salt: [UInt8](repeating: 0, count: 16))!))
  return messages
}

private func act(_ author: PeerID, _ number: UInt64, _ kind: any ActKind) -> Entry {
  let json = SchemaMessage(
    sender: Sender(peer: author, displayName: name("X")), messageID: MessageID("a\(number)")!,
    timestamp: "2021-03-12T09:05:16Z", content: kind
  ).encoded
  return Entry(
    key: LogKey(author: author, log: run(2)), number: number, lamport: number, timestamp: number, isHidden: true,
    items: [Entry.Item(kind: KindRegistry.code(of: kind.type), body: json)],
    signature: [UInt8](repeating: 1, count: 64))
}

private func make(_ role: RoleKind.Role, _ number: UInt64) -> Entry {
  act(ben, number, RoleKind(target: ana, role: role, heads: ActHeads([:])))
}

extension Messages {
  /// The entry is stored, and its acts are read, every grant being genuine.
  fileprivate mutating func learn(_ entry: Entry) {
    hear(entry)
    commit()
    for case .readActs(let channel, let entries) in effects {
      handle(.actsRead(channel, entries.flatMap { Act.acts(of: $0) { _ in true } }))
    }
  }
}

@Test func whatWouldCountForNobodyIsRefusedAtHome() {
  var messages = owned()
  let first = messages.say("one")
  #expect(messages.notices == [.failed(first, .excluded(.notAdmitted(.noInvitation)))])
  messages.learn(make(.member, 1))
  let second = messages.say("two")
  #expect(messages.notices == [])
  #expect(messages.signing.count == 1)
  messages.sign()
  messages.commit()
  #expect(messages.notices.contains(.stored(second, garden, LogKey(author: ana, log: run(1)), number: 1)))
  messages.learn(make(.muted, 2))
  let third = messages.say("three")
  #expect(messages.notices == [.failed(third, .excluded(.muted(until: nil)))])
}

@Test func actsAreReadBeforeWhatTheyDecideOnIsShown() {
  var messages = owned()
  // While this one is on its way to the disk, the others gather for one batch.
  messages.hear(entry(ben, run: run(2), 1))
  messages.hear(make(.member, 2))
  messages.hear(entry(ben, run: run(2), 3))
  messages.commit()
  messages.commit()
  let kinds = messages.effects.compactMap { effect -> String? in
    switch effect {
    case .readActs(_, let entries): "acts of \(entries.map(\.number))"
    case .notify(.entryStored(_, let entry, _)): "shown \(entry.number)"
    default: nil
    }
  }
  #expect(kinds == ["acts of [2]", "shown 2", "shown 3"])
}

@Test func inAChannelThatNobodyOwnsActsAreNothing() {
  var messages = Messages()
  messages.hear(make(.muted, 1))
  messages.commit()
  #expect(messages.effects.contains { if case .readActs = $0 { true } else { false } } == false)
  messages.say("one")
  #expect(messages.signing.count == 1)
  #expect(messages.machine.kept(of: [.entry(garden, make(.muted, 1))]) == [])
}

@Test func actsOfThoseWhoMayHaveARightAreKeptForEver() {
  var messages = owned()
  let stranger = act(cho, 9, AnnouncementKind(body: "me"))
  #expect(messages.machine.kept(of: [.entry(garden, stranger), .entry(garden, make(.admin, 1))]) == [1])
  messages.learn(act(ben, 1, RoleKind(target: cho, role: .admin, heads: ActHeads([:]))))
  #expect(messages.machine.kept(of: [.entry(garden, stranger)]) == [0])
}
