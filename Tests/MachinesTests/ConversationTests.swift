import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

/// What is done to messages, as every member folds it. The message is B's; F founded the owned channel, A is an admin.
@Suite struct ConversationTests {
  private static let start: UInt64 = 1_600_000_000_000
  private static let key = MessageKey(sender: Notation.letter("B"), id: MessageID("m")!)
  private static let owned = Governance(
    """
    F1.1@1 admin A
    B1.1@2 join F
    C1.1@3 join F
    F1.2@4 ban X
    """)

  private static func facts(_ type: String = "text") -> MessageFacts {
    MessageFacts(key: key, type: type, timestamp: start)
  }

  /// `A1.3@7`, so many milliseconds after the message.
  private static func act(
    _ place: String, _ content: MessageAct.Content, after: UInt64 = 1_000, on target: MessageKey = key
  ) -> MessageAct {
    MessageAct(
      place: Act.Place(Notation.order(place[...])), timestamp: start + after, target: target, content: content)
  }

  private func fold(
    _ acts: [MessageAct], type: String = "text", rule: ConversationRule = ConversationRule(),
    _ governance: Governance? = nil
  ) -> (state: MessageState, faults: [MessageActFault]) {
    var faults: [MessageActFault] = []
    let state = MessageState(of: Self.facts(type), acts, rule, governance) { faults.append($1) }
    return (state, faults)
  }

  private static func edit(_ number: Int, _ body: String) -> MessageAct {
    act("B1.\(number)@\(number)", .edit(.body(body), ext: nil))
  }

  // MARK: Recall

  /// KINDS.md, recall: own message within 2 minutes; the edge is inside.
  @Test(arguments: [(119_000, true), (120_000, true), (120_001, false), (121_000, false)])
  func recallWithinTwoMinutes(after: UInt64, counts: Bool) {
    let (state, faults) = fold([Self.act("B1.9@9", .recall, after: after)])
    #expect((state.recall != nil) == counts)
    #expect(faults == (counts ? [] : [.tooLate(after: after, limit: 120_000)]))
  }

  /// KINDS.md, recall: configurable to 7 days.
  @Test func recallWithinSevenDaysWhereSoSet() {
    let rule = ConversationRule(recallWithin: ConversationRule.recallWithinMax)
    let limit: UInt64 = 604_800_000
    #expect(fold([Self.act("B1.9@9", .recall, after: limit)], rule: rule).state.recall != nil)
    #expect(fold([Self.act("B1.9@9", .recall, after: limit + 1)], rule: rule).state.recall == nil)
  }

  /// KINDS.md, recall: owner and admins any time, any member's; nobody else another's.
  @Test func recallByOwnerAndAdminsAnyTime() {
    for who in ["F1.9@9", "A1.9@9"] {
      let (state, faults) = fold([Self.act(who, .recall, after: 900_000_000_000)], Self.owned)
      #expect(state.recall?.author == Notation.letter(String(who.prefix(1))))
      #expect(faults == [])
    }
    #expect(fold([Self.act("C1.9@9", .recall)], Self.owned).faults == [.notModerator])
    #expect(fold([Self.act("C1.9@9", .recall)]).faults == [.notModerator])
    #expect(fold([Self.act("X1.9@9", .recall)], Self.owned).faults == [.excluded(.banned)])
  }

  /// The rank at the place of the act counts: what an admin took back before she lost the rank stays so.
  @Test func recallByOneWhoIsAdminNoMore() {
    var governance = Self.owned
    _ = governance.take("F1.3@20 member A 1:9")
    #expect(fold([Self.act("A1.9@9", .recall)], governance).state.recall != nil)
    #expect(fold([Self.act("A1.10@30", .recall)], governance).faults == [.notModerator])
  }

  /// KINDS.md, recall: never cmd. Nor anything else.
  @Test func nothingIsDoneToCommands() {
    let acts: [MessageAct.Content] = [.recall, .edit(nil, ext: []), .react(emoji: "👍", isOn: true)]
    for content in acts {
      #expect(fold([Self.act("B1.9@9", content)], type: "cmd").faults == [.wrongKind])
      #expect(fold([Self.act("B1.9@9", content)], type: "cmd").state == .untouched)
    }
    #expect(fold([Self.act("F1.9@9", .recall)], type: "cmd", Self.owned).faults == [.wrongKind])
  }

  @Test func recallDatedBeforeWhatItsAuthorSaidChangesNothing() {
    var recall = Self.act("B1.9@9", .recall)
    recall.isBackdated = true
    #expect(fold([recall]).faults == [.backdated])
    #expect(fold([recall]).state.recall == nil)
  }

  /// KINDS.md: a recall beats any edit, before it or after it.
  @Test func recallBeatsAnyEdit() {
    let acts = [
      Self.edit(3, "one"), Self.act("C1.1@4", .react(emoji: "👍", isOn: true)), Self.act("B1.5@5", .recall),
      Self.edit(6, "two"),
    ]
    let state = fold(acts).state
    #expect(state.recall == Doing(author: Notation.letter("B"), timestamp: Self.start + 1_000))
    #expect(state.content == nil && state.editCount == 0 && state.reactions == [])
  }

  // MARK: Edit

  /// KINDS.md, edit: at most 10 edits; the eleventh in order counts for nobody.
  @Test func tenEditsAndNotEleven() {
    let acts = (1...11).map { Self.edit($0, "edit \($0)") }
    for order in [acts, acts.reversed(), acts.shuffled()] {
      let (state, faults) = fold(order)
      #expect(state.editCount == 10)
      #expect(state.content == .body("edit 10"))
      #expect(faults == [.tooManyEdits])
    }
    #expect(fold(Array(acts.prefix(10))).faults == [])
  }

  /// KINDS.md, edit: text and custom body and ext; the other kinds ext only.
  @Test(arguments: ["text", "custom", "photo", "voice", "video", "file", "location", "combine", "later"])
  func editByKind(type: String) {
    let custom = EditKind.Content.custom(CustomKind(event: "seat"))
    let ext = [JSONMember("a", .integer(1))]
    #expect(
      fold([Self.act("B1.1@1", .edit(.body("b"), ext: nil))], type: type).faults == (type == "text" ? [] : [.wrongKind])
    )
    #expect(
      fold([Self.act("B1.1@1", .edit(custom, ext: nil))], type: type).faults == (type == "custom" ? [] : [.wrongKind]))
    let state = fold([Self.act("B1.1@1", .edit(nil, ext: ext))], type: type).state
    #expect(state.ext == ext && state.editCount == 1)
  }

  /// Only the author edits, whatever rank others have.
  @Test func editOfAnothersMessage() {
    for who in ["C1.1@1", "A1.1@9", "F1.9@9"] {
      #expect(fold([Self.act(who, .edit(.body("x"), ext: nil))], Self.owned).faults == [.notAuthor])
    }
  }

  @Test func twoEditsAtOnceResolveByOrder() {
    let ext = [JSONMember("a", .null)]
    let acts = [
      Self.act("B1.4@7", .edit(.body("one"), ext: nil)), Self.act("B2.1@7", .edit(.body("two"), ext: nil)),
      Self.act("B1.5@6", .edit(nil, ext: ext)),
    ]
    for order in [acts, acts.reversed()] {
      let state = fold(order).state
      #expect(state.content == .body("two"))
      #expect(state.ext == ext && state.editCount == 3)
    }
  }

  /// To change what one said is to say something.
  @Test func theMutedChangeNothingThatIsShown() {
    var governance = Self.owned
    _ = governance.take("F1.3@5 mute B 1:1")
    let (state, faults) = fold(
      [Self.act("B1.6@6", .edit(.body("x"), ext: nil)), Self.act("B1.7@7", .react(emoji: "x", isOn: true))], governance)
    #expect(state == .untouched && faults == [.excluded(.muted(until: nil)), .excluded(.muted(until: nil))])
    #expect(fold([Self.act("B1.8@8", .recall)], governance).state.recall != nil)
  }

  // MARK: Reactions, pins, receipts

  /// KINDS.md, react: 20 different emoji a message; one that is gone makes room.
  @Test func twentyEmojiAndNotTwentyOne() {
    func react(_ number: Int, _ emoji: String, _ isOn: Bool = true, by who: String = "C") -> MessageAct {
      Self.act("\(who)1.\(number)@\(number)", .react(emoji: emoji, isOn: isOn))
    }
    let twenty = (1...20).map { react($0, "e\($0)") }
    let (state, faults) = fold(twenty + [react(21, "e21"), react(22, "e1", by: "B")])
    #expect(state.reactions.count == 20 && faults == [.tooManyEmoji])
    #expect(state.reactions[0].peers == [Notation.letter("C"), Notation.letter("B")])
    let after = fold(twenty + [react(21, "e3", false), react(22, "e21")]).state
    #expect(after.reactions.map(\.emoji) == (1...20).filter { $0 != 3 }.map { "e\($0)" } + ["e21"])
  }

  @Test func emojiAreTheSameWhenTheirBytesAre() {
    let acts = ["\u{E9}", "e\u{301}", "\u{E9}"].enumerated().map {
      Self.act("C1.\($0 + 1)@\($0 + 1)", .react(emoji: $1, isOn: true))
    }
    #expect(fold(acts).state.reactions.map(\.peers.count) == [1, 1])
  }

  private func pin(_ number: Int, _ isOn: Bool = true, by who: String = "C", at order: Int? = nil) -> MessageAct {
    Self.act(
      "\(who)1.\(order ?? number)@\(order ?? number)", .pin(isOn: isOn),
      on: MessageKey(sender: Notation.letter("B"), id: MessageID("m\(number)")!))
  }

  /// KINDS.md, pin: 20 pins a channel.
  @Test func twentyPinsAndNotTwentyOne() {
    var faults: [MessageActFault] = []
    let board = PinBoard((1...21).map { pin($0) }.shuffled(), nil) { faults.append($1) }
    #expect(board.pins.map(\.target.id.text) == (1...20).map { "m\($0)" })
    #expect(faults == [.tooManyPins])
    let after = PinBoard((1...20).map { pin($0) } + [pin(7, false, at: 21), pin(22)], nil)
    #expect(after.pins.count == 20 && after.pins.last?.target.id.text == "m22")
  }

  @Test func inAnOwnedChannelOwnerAndAdminsPin() {
    var faults: [MessageActFault] = []
    let board = PinBoard(
      [pin(5), pin(6, by: "A"), pin(7, by: "F"), pin(6, false, at: 8)], Self.owned
    ) { faults.append($1) }
    #expect(board.pins.map(\.target.id.text) == ["m6", "m7"])
    #expect(faults == [.notModerator, .notModerator])
  }

  /// KINDS.md, read receipts: tallied by member, never in rooms; what one says of one's own message is none.
  @Test func readersAreTallied() {
    let acts = [
      Self.act("C1.3@3", .read), Self.act("A1.2@2", .read), Self.act("C1.4@4", .read), Self.act("B1.9@9", .read),
    ]
    #expect(fold(acts, Self.owned).state.readers.map(\.author) == ["A", "C"].map { Notation.letter($0) })
    #expect(fold(acts, rule: ConversationRule(hasReceipts: false)).state.readers == [])
  }

  // MARK: The fold

  @Test func whateverOrderActsComeInAllFoldAlike() {
    let contents: [MessageAct.Content] = [
      .edit(.body("x"), ext: nil), .edit(nil, ext: [JSONMember("a", .bool(true))]), .react(emoji: "👍", isOn: true),
      .react(emoji: "👍", isOn: false), .read, .recall, .edit(.body("y"), ext: []), .pin(isOn: true),
    ]
    var acts: [MessageAct] = []
    for (index, content) in contents.enumerated() {
      for (shift, who) in ["A", "B", "C", "F", "X"].enumerated() {
        acts.append(Self.act("\(who)1.\(index + 5)@\(index + shift + 5)", content, after: UInt64(index) * 20_000))
      }
    }
    for without in [[], [MessageAct.Content.recall]] {
      let some = acts.filter { !without.contains($0.content) }
      let expected = fold(some, Self.owned).state
      #expect(expected != .untouched)
      for _ in 0..<50 { #expect(fold(some.shuffled(), Self.owned).state == expected) }
    }
  }

  @Test func actsAreReadOnlyUnderTheirKindInHiddenEntries() {
    let sender = Sender(peer: Notation.letter("B"), displayName: try! DisplayName("Ben"))
    func entry(_ kind: UInt64, _ content: any MessageKind, isHidden: Bool) -> Entry {
      let message = SchemaMessage(
        sender: sender, messageID: MessageID("a")!, timestamp: "2021-03-12T09:05:16Z", content: content)
      return Entry(
        key: LogKey(author: sender.peer, log: Instance(1)), number: 1, lamport: 1, timestamp: 5, isHidden: isHidden,
        items: [Entry.Item(kind: kind, body: message.encoded)])
    }
    let read = ReadKind(targets: [Self.key, MessageKey(sender: Self.key.sender, id: MessageID("n")!)])
    #expect(MessageAct.acts(of: entry(ReadKind.code, read, isHidden: true)).map(\.target) == read.targets)
    #expect(MessageAct.acts(of: entry(ReadKind.code, read, isHidden: false)) == [])
    #expect(MessageAct.acts(of: entry(PinKind.code, read, isHidden: true)) == [])
    #expect(
      MessageAct.acts(of: entry(RecallKind.code, RecallKind(target: Self.key), isHidden: true)).map(\.content) == [
        .recall
      ])
  }
}
