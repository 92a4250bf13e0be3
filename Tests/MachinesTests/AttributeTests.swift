import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

/// Acts as tests write them, a line each: `B1@7 seat=Ben keep leave over:2`: Ben in his run 1, at Lamport time 7, sets
/// seat to Ben; without overwriting (`keep`); until he leaves (`leave`); in the place of what run 2 left behind
/// (`over:`). `seat-` takes it away.
private func act(_ line: Substring) -> AttributeAct {
  var words = line.split(separator: " ")
  let order = words.removeFirst()
  let parts = order.dropFirst().split(separator: "@")
  let author = person(UInt64(order.utf8.first!))
  let what = words.removeFirst()
  let isDeleted = what.last == "-"
  let pair = what.split(separator: "=")
  let replaces = words.first { $0.hasPrefix("over:") }.map { run(UInt64($0.dropFirst(5))!) }
  return AttributeAct(
    place: Act.Place(
      OrderKey(lamport: UInt64(parts[1])!, author: author, log: run(UInt64(parts[0])!), number: UInt64(parts[1])!)),
    timestamp: 0,
    content: AttributeKind(
      key: String(isDeleted ? what.dropLast() : pair[0]), value: isDeleted ? nil : String(pair[1]),
      isUntilLeave: words.contains("leave"), isOverwriting: !words.contains("keep"), replaces: replaces))
}

private func acts(_ text: String) -> [AttributeAct] { text.split(separator: "\n").map { act($0) } }
private func letter(_ text: String) -> PeerID { person(UInt64(text.utf8.first!)) }

/// `key=value by A`, by key.
private func text(_ state: AttributeState) -> [String] {
  state.standing.values.map {
    "\($0.content.key)=\($0.content.value!) by \(Character(UnicodeScalar(UInt8($0.author.value.words.0))))"
  }
  .sorted()
}

/// In whatever order they come.
private func end(_ acts: [AttributeAct], run present: (PeerID) -> Instance? = { _ in run(1) }) -> [String] {
  var random = Jitter(seed: 1)
  let expected = text(state(acts, present))
  for _ in 0..<20 {
    #expect(text(state(acts.shuffled(using: &random), present)) == expected)
  }
  return expected
}

private func state(_ acts: [AttributeAct], _ present: (PeerID) -> Instance?) -> AttributeState {
  var book = AttributeBook()
  for act in acts { _ = book.take([act, act]) }
  return book.state(run: present)
}

@Suite struct AttributeTests {
  @Test func attributesAreSetReplacedAndDeletedInTheChannelsOrder() {
    #expect(end(acts("A1@1 topic=May\nB1@2 topic=June\nA1@3 seat=Ana")) == ["seat=Ana by A", "topic=June by B"])
    #expect(end(acts("A1@1 topic=May\nB1@2 topic-\nA1@3 seat=Ana")) == ["seat=Ana by A"])
    #expect(end(acts("A1@1 topic=May\nB1@2 topic-\nA1@3 topic=July")) == ["topic=July by A"])
    #expect(end(acts("B1@2 topic-")) == [])
  }

  @Test func anAttributeSetWithoutOverwritingLeavesWhatAnotherHasSet() {
    #expect(end(acts("A1@1 seat=Ana keep\nB1@2 seat=Ben keep")) == ["seat=Ana by A"])
    #expect(end(acts("A1@1 seat=Ana keep\nA1@2 seat=Anna keep\nB1@3 seat=Ben keep")) == ["seat=Anna by A"])
    #expect(end(acts("A1@1 seat=Ana keep\nA1@2 seat- keep\nB1@3 seat=Ben keep")) == ["seat=Ben by B"])
    #expect(end(acts("A1@1 seat=Ana keep\nB1@2 seat- keep\nB1@3 seat=Ben keep")) == ["seat=Ana by A"])
    #expect(end(acts("A1@1 seat=Ana keep\nB1@2 seat=Ben\nA1@3 seat=Ana keep")) == ["seat=Ben by B"])
  }

  @Test func twoWhoSetAnAttributeAtOnceEndAlikeEverywhere() {
    #expect(end(acts("A1@5 seat=Ana\nB1@5 seat=Ben")) == ["seat=Ben by B"])
    #expect(end(acts("A1@5 seat=Ana keep\nB1@5 seat=Ben keep")) == ["seat=Ana by A"])
  }

  @Test func anAttributeUntilLeaveGoesWithItsAuthorAndStaysGone() {
    let seat = acts("A1@1 seat=Ana leave keep\nB1@2 topic=May")
    #expect(end(seat) { $0 == letter("A") ? run(1) : nil } == ["seat=Ana by A", "topic=May by B"])
    #expect(end(seat) { _ in nil } == ["topic=May by B"])
    #expect(end(seat) { _ in run(2) } == ["topic=May by B"], "another run of hers is not who set it")
    // Of two who take her place the first in order has it.
    let taken = seat + acts("B1@3 seat=Ben keep over:1\nC1@4 seat=Cho keep over:1")
    #expect(end(taken) { _ in nil } == ["seat=Ben by B", "topic=May by B"])
    #expect(end(seat + acts("B1@3 seat=Ben keep over:2")) { _ in nil } == ["topic=May by B"])
    #expect(end(acts("A1@1 seat=Ana\nB1@3 seat=Ben keep over:1")) == ["seat=Ana by A"], "it was to stay")
  }

  @Test func aHundredAttributesStandAndTheHundredAndFirstDoesNot() {
    var book = AttributeBook()
    let hundred = (1...100).map { act("A1@\($0) k\($0)=v"[...]) }
    _ = book.take(hundred)
    #expect(book.state { _ in nil }.standing.count == 100)
    #expect(book.state { _ in nil }.isFull)
    _ = book.take([act("B1@101 more=v")])
    #expect(book.state { _ in nil }.standing.count == 100)
    #expect(book.state { _ in nil }.standing[Array("more".utf8)] == nil)
    // One is replaced, one deleted: there is room again.
    _ = book.take(acts("B1@102 k1=w\nB1@103 k2-"))
    let state = book.state { _ in nil }
    #expect(state.standing.count == 100)
    #expect(state.standing[Array("more".utf8)]?.content.value == "v")
    #expect(state.standing[Array("k1".utf8)]?.content.value == "w")
  }

  @Test func whatChangesNothingAnyMoreIsLetGo() {
    var book = AttributeBook()
    var released: Set<UInt64> = []
    for number in 1...1_000 {
      released.formUnion(book.take([act("A1@\(number) topic=\(number)"[...])]).map(\.number))
    }
    #expect(released == Set(1...999))
    var other = AttributeBook()
    released = []
    for number in 1...1_000 {
      released.formUnion(other.take([act("A1@\(number) seat=\(number) keep"[...])]).map(\.number))
    }
    #expect(released.count == 984, "16 acts a key")
    #expect(text(other.state { _ in nil }) == ["seat=1000 by A"])
    // Somebody who took the seat between is kept out still, however late that is heard.
    _ = other.take([act("B1@500 seat=Ben keep")])
    #expect(text(other.state { _ in nil }) == ["seat=1000 by A"])
  }

  @Test func aMemberCannotFillTheMemoryWithAttributes() {
    var book = AttributeBook()
    var released: Set<UInt64> = []
    for number in 1...1_000 {
      released.formUnion(book.take([act("A1@\(number) k\(number)=v"[...])]).map(\.number))
    }
    #expect(released.count == 1_000 - 128)
    for number in 1_001...2_000 {
      released.formUnion(book.take([act("A1@\(number) x\(number)-"[...])]).map(\.number))
    }
    #expect(released.count == 2_000 - 128 - 256)
    #expect(book.state { _ in nil }.standing.count == 100)
  }

  /// Fewer acts under a key than are kept: then nothing depends on the order in which they are heard.
  @Test(arguments: 0..<50)
  func attributesEndAlikeWhateverOrderTheyAreHeardIn(_ seed: UInt64) {
    var random = Jitter(seed: seed)
    var lines: [String] = []
    for time in 1...45 {
      let who = "ABC".randomElement(using: &random)!
      let key = "xyz".randomElement(using: &random)!
      let what = Bool.random(using: &random) ? "\(key)=\(time)" : "\(key)-"
      let options = ["", " keep", " keep over:1", what.hasSuffix("-") ? "" : " leave keep"]
      lines.append(
        "\(who)\(Int.random(in: 1...2, using: &random))@\(time) \(what)\(options.randomElement(using: &random)!)")
    }
    _ = end(acts(lines.joined(separator: "\n"))) { $0 == letter("A") ? nil : run(1) }
  }

  @Test func whatDoesNotCountReplacesNothing() {
    var book = AttributeBook()
    let counts: (EntryFacts) -> Bool = { $0.order.author != letter("M") }
    _ = book.take(acts("A1@1 topic=May\nM1@2 topic=June"), counts: counts)
    #expect(text(book.state(counts: counts) { _ in nil }) == ["topic=May by A"])
    #expect(text(book.state { _ in nil }) == ["topic=June by M"], "should it count later, it is there")
  }

  @Test func changesSayWhoAndWhatWasBefore() {
    var book = AttributeBook()
    _ = book.take(acts("A1@1 topic=May\nA1@2 seat=Ana leave"))
    let present: (PeerID) -> Instance? = { _ in run(1) }
    let before = book.state(run: present)
    _ = book.take(acts("B1@3 topic=June\nB1@4 new=1"))
    let after = book.state(run: present)
    #expect(
      after.changes(since: before).map { "\($0.key) \($0.old?.content.value ?? "-") \($0.new?.content.value ?? "-")" }
        == ["new - 1", "topic May June"])
    #expect(after.changes(since: before).allSatisfy { $0.by == letter("B") })
    _ = book.take(acts("C1@5 topic-"))
    let gone = book.state { _ in nil }
    let changes = gone.changes(since: after)
    #expect(changes.map(\.key) == ["seat", "topic"])
    #expect(changes.map(\.by) == [letter("A"), letter("C")])
    #expect(changes.allSatisfy { $0.new == nil })
  }

  @Test func twoSpellingsOfALetterAreTwoKeys() {
    #expect(end(acts("A1@1 K\u{FC}che=1\nA1@2 Ku\u{308}che=2")).count == 2)
  }

  @Test func onlyHiddenEntriesHoldAttributes() {
    let json = SchemaMessage(
      sender: Sender(peer: ana, displayName: name("Ana")), messageID: MessageID("m")!,
      timestamp: "2021-03-12T09:05:16Z", content: AttributeKind(key: "k", value: "v")
    ).encoded
    func made(_ kind: UInt64, isHidden: Bool) -> Entry {
      Entry(
        key: LogKey(author: ana, log: run(1)), number: 1, lamport: 1, timestamp: 0, isHidden: isHidden,
        items: [Entry.Item(kind: kind, body: json)])
    }
    #expect(AttributeAct.acts(of: made(AttributeKind.code, isHidden: true)).count == 1)
    #expect(AttributeAct.acts(of: made(AttributeKind.code, isHidden: false)).isEmpty)
    #expect(AttributeAct.acts(of: made(TextKind.code, isHidden: true)).isEmpty)
    #expect(Act.isNeeded(made(AttributeKind.code, isHidden: true)))
  }
}
