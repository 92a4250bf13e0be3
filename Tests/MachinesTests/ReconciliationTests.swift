import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleyMachines

private let benKey = LogKey(author: ben, log: run(2))
private let danKey = LogKey(author: person(9), log: run(9))

extension Messages {
  /// Heads that a member names, all at once.
  mutating func heads(_ heads: [Head], of peer: PeerID) {
    handle(.sessionMessage(peer, .heads(garden, .all, heads, isLast: true, answerWanted: false)))
  }

  /// Answers what is asked of a member with those of these entries that it asks for.
  mutating func answer(_ peer: PeerID, with entries: [Entry]) {
    for case .want(_, let request, let ranges) in sent(to: peer) {
      let wanted = entries.filter { entry in
        ranges.contains { $0.key == entry.key && $0.from <= entry.number && entry.number <= $0.through }
      }
      handle(.sessionMessage(peer, .entries(garden, request: request, wanted.map(\.encoded), isLast: true)))
      for entry in wanted { handle(.entryVerified(garden, entry, isGenuine: true)) }
    }
  }

  /// Lets everything come to the disk; what was stored, in order.
  mutating func commitAll() -> [UInt64] {
    var stored: [UInt64] = []
    while !batches.isEmpty {
      commit()
      for case .entryStored(_, let entry, _) in notices { stored.append(entry.number) }
    }
    return stored
  }

  /// Lets time pass in steps, while members answer what they are asked with what they have; how often they were asked.
  @discardableResult
  mutating func pass(_ milliseconds: Int, answering holders: [PeerID: [Entry]], times: Int) -> Int {
    var askedCount = 0
    for _ in 0..<times {
      pass(milliseconds)
      for (peer, entries) in holders.sorted(by: { $0.key < $1.key }) where wanted(of: peer) != nil {
        askedCount += 1
        answer(peer, with: entries)
      }
    }
    return askedCount
  }

  /// What was asked of a member last.
  func question(to peer: PeerID) -> (request: UInt64, ranges: [LogRange])? {
    for case .want(garden, let request, let ranges) in sent(to: peer) { return (request, ranges) }
    return nil
  }

  var contiguous: UInt64 { machine.channels[garden]!.logs[danKey]?.stored ?? 0 }
}

private let absent = (1...6).map { entry(person(9), run: run(9), UInt64($0)) }

@Test func whatNobodyHasAnyMoreIsPassedOverOnceItsAuthorsRunIsOver() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.heads([Head(key: danKey, number: 6, floor: 3)], of: ben)
  messages.answer(ben, with: Array(absent[3...]))
  messages.pass(100, answering: [ben: Array(absent[3...])], times: 50)
  // What comes after the gap is shown; Dan may be somewhere, with all of it.
  #expect(messages.commitAll() == [4, 5, 6])
  #expect(messages.contiguous == 0)
  messages.come(person(9), run: run(99))
  messages.pass(1_000, answering: [ben: Array(absent[3...]), person(9): []], times: 130)
  _ = messages.commitAll()
  #expect(messages.contiguous == 6)
  // Nothing is missing, so nobody is asked.
  let askedCount = messages.pass(100, answering: [ben: [], person(9): []], times: 100)
  #expect(askedCount == 0)
}

@Test func anAuthorWhoStaysAwayForAnHourWritesNoMore() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.heads([Head(key: danKey, number: 6, floor: 3)], of: ben)
  messages.answer(ben, with: Array(absent[3...]))
  messages.pass(10_000, answering: [ben: Array(absent[3...])], times: 350)
  _ = messages.commitAll()
  #expect(messages.contiguous == 0)
  messages.pass(10_000, answering: [ben: Array(absent[3...])], times: 20)
  _ = messages.commitAll()
  #expect(messages.contiguous == 6)
}

@Test func whoHasMoreOfALogIsHeardBeforeItsBeginningIsSettled() {
  var messages = Messages()
  messages.come(person(9), run: run(99))
  messages.come(ben, run: run(2))
  messages.come(cho, run: run(3))
  messages.heads([Head(key: danKey, number: 6, floor: 3)], of: ben)
  // Another one is asked where the log begins there.
  let asked = [cho, person(9)].filter { peer in
    messages.sent(to: peer).contains { if case .heads(_, _, _, _, true) = $0 { true } else { false } }
  }
  #expect(asked.count == 1)
  messages.answer(ben, with: Array(absent[3...]))
  #expect(messages.contiguous == 0)
  messages.heads([Head(key: danKey, number: 6, floor: 1)], of: cho)
  messages.pass(100, answering: [cho: Array(absent[1...]), ben: Array(absent[3...]), person(9): []], times: 60)
  #expect(messages.commitAll().sorted() == [2, 3, 4, 5, 6])
  #expect(messages.contiguous == 6)
}

/// One member's word must not make us skip what an absent author has yet to write.
@Test func aFloorWithoutAnEntryAboveItIsNotBelieved() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.heads([Head(key: danKey, number: 1_000, floor: 999)], of: ben)
  for _ in 0..<100 {
    messages.pass(100)
    messages.answer(ben, with: [])
  }
  messages.hear(absent[0])
  #expect(messages.commitAll() == [1])
}

@Test func anAuthorIsBelievedAboutItsOwnLogOnceItHasGivenWhatItKept() {
  var messages = Messages()
  let hand = entry(ben, run: run(2), 2)
  messages.come(ben, run: run(2), head: 5)
  messages.heads([Head(key: benKey, number: 5, floor: 5)], of: ben)
  messages.answer(ben, with: [hand])
  for _ in 0..<30 {
    messages.pass(100)
    messages.answer(ben, with: [hand])
  }
  #expect(messages.commitAll() == [2])
  #expect(messages.machine.channels[garden]!.logs[benKey]!.stored == 5)
  var isAsked = false
  for _ in 0..<100 {
    messages.pass(100)
    if messages.wanted(of: ben) != nil { isAsked = true }
  }
  #expect(isAsked == false)
  messages.hear(entry(ben, run: run(2), 6))
  #expect(messages.commitAll() == [6])
}

/// Whoever said that it has what is missing may go before it was asked.
@Test func whenTheOnlyHolderGoesTheRestIsPassedOver() {
  var messages = Messages()
  messages.come(person(9), run: run(99))
  messages.come(ben, run: run(2))
  messages.come(cho, run: run(3))
  messages.heads([Head(key: danKey, number: 6, floor: 3)], of: ben)
  messages.heads([Head(key: danKey, number: 6, floor: 0)], of: cho)
  messages.handle(.memberGone(garden, cho))
  messages.pass(100, answering: [ben: Array(absent[3...]), person(9): []], times: 200)
  #expect(messages.commitAll() == [4, 5, 6])
  #expect(messages.contiguous == 6)
}

@Test func whatHasGoneFromTheDiskIsNamedByItsFloorAndThenNotAtAll() {
  var messages = Messages(logs: [RestoredLog(key: danKey, contiguous: 6)])
  messages.come(ben, run: run(2))
  func heads() -> [Head] {
    for case .heads(_, _, let heads, true, _) in messages.sent(to: ben) { return heads }
    return []
  }
  let before = messages.machine.channels[garden]!.digest
  messages.handle(.pruned(garden, [LogFloor(key: danKey, floor: 4)]))
  messages.handle(.sessionMessage(ben, .heads(garden, .all, [], isLast: true, answerWanted: true)))
  #expect(heads() == [Head(key: danKey, number: 6, floor: 4)])
  // How much somebody keeps makes no difference to what is said.
  #expect(messages.machine.channels[garden]!.digest == before)
  messages.handle(.pruned(garden, [LogFloor(key: danKey, floor: 6)]))
  messages.handle(.sessionMessage(ben, .heads(garden, .all, [], isLast: true, answerWanted: true)))
  #expect(heads() == [])
  #expect(messages.machine.channels[garden]!.digest == HeadsDigest(of: [:]))
  messages.hear(absent[5])
  #expect(messages.batches.isEmpty)
}

@Test func ofManyLogsOnlyTheDifferingBucketsAreNamed() {
  let logs = (0..<1_000).map { index in
    RestoredLog(key: LogKey(author: person(9), log: Instance(UInt64(index) &* 0x9E37_79B9_7F4A_7C15)), contiguous: 3)
  }
  var many = Messages(logs: logs)
  let other = HeadsDigest(of: [danKey: 1])
  many.come(ben, run: run(2), digest: other)
  many.pass(40)
  guard case .summary(_, let digests)? = many.sent(to: ben).first else {
    Issue.record("no summary was sent")
    return
  }
  // Ben lacks one of the logs and has another further.
  var theirs = logs.map(\.key).reduce(into: [LogKey: UInt64]()) { $0[$1] = 3 }
  theirs[logs[500].key] = nil
  theirs[logs[10].key] = 5
  var benMachine = Messages(logs: theirs.map { RestoredLog(key: $0.key, contiguous: $0.value) })
  benMachine.come(ana, run: run(1))
  benMachine.handle(.sessionMessage(ana, .summary(garden, digests)))
  guard case .heads(_, let buckets, let heads, true, true)? = benMachine.sent(to: ana).first else {
    Issue.record("no heads were sent")
    return
  }
  #expect(heads.count < 12)
  let size = benMachine.sent(to: ana).reduce(0) { $0 + $1.encoded.count }
  #expect(size < 700)
  many.handle(.sessionMessage(ben, .heads(garden, buckets, heads, isLast: true, answerWanted: true)))
  #expect(many.wanted(of: ben) == [LogRange(key: logs[10].key, from: 4, through: 5)])
  guard case .heads(_, buckets, let answer, true, false)? = many.sent(to: ben).first else {
    Issue.record("no heads were sent back")
    return
  }
  #expect(answer.contains(Head(key: logs[500].key, number: 3)))
}

@Test func whoeverHoldsTheSameHoldsWhatWeSaid() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.say("one")
  messages.sign()
  messages.commit()
  let digest = messages.machine.channels[garden]!.digest
  messages.handle(.presenceHeard(garden, ben, PresenceFacts(digest: digest, head: 0, lamport: 0)))
  #expect(messages.notices == [.delivered(garden, log: run(1), after: 0, through: 1, to: ben)])
}

@Test func fewAnswersAreReadAtOnceAndEverybodyGetsOne() {
  var messages = Messages(logs: [RestoredLog(key: danKey, contiguous: 6)])
  let peers = (0..<50).map { person(UInt64(100 + $0)) }
  var open: [LoadID] = []
  var answered: [PeerID] = []
  func collect() { for case .load(let id, _, _, _) in messages.effects { open.append(id) } }
  for peer in peers {
    for request in 1...3 {
      let ranges = [LogRange(key: danKey, from: 1, through: 6)]
      messages.handle(.sessionMessage(peer, .want(garden, request: UInt64(request), ranges)))
      collect()
    }
  }
  #expect(open.count == 4)
  var most = 0
  while !open.isEmpty {
    most = max(most, open.count)
    messages.handle(.loaded(open.removeFirst(), [absent[0].encoded]))
    for case .links(.send(let peer, .entries(_, _, _, true))) in messages.told { answered.append(peer) }
    collect()
  }
  #expect(most == 4)
  #expect(answered.count == 150)
  #expect(Set(answered.prefix(60)).count > 40)
}

/// A digest that is computed bucket by bucket is the one of everything at once.
@Test func theDigestFollowsEveryChange() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  var heads: [LogKey: UInt64] = [:]
  var random = Jitter(seed: 5)
  for _ in 0..<200 {
    let key = LogKey(author: ben, log: Instance(random.next() % 8 << 56))
    heads[key, default: 0] += 1
    messages.hear(entry(ben, run: key.log, heads[key]!))
    _ = messages.commitAll()
    #expect(messages.machine.channels[garden]!.digest == HeadsDigest(of: heads))
  }
}

/// Where somebody always writes, the tail of a log whose author went stayed missing for ever.
@Test func whoLacksSomethingComparesThoughOthersGoOnWriting() {
  var messages = Messages(logs: [RestoredLog(key: danKey, contiguous: 1)])
  let other = HeadsDigest(of: [danKey: 2])
  messages.come(cho, run: run(3))
  messages.heads([], of: cho)
  messages.handle(.presenceHeard(garden, cho, PresenceFacts(digest: other, head: 0, lamport: 0)))
  var comparedAfter: Int?
  for step in 1...100 {
    messages.hear(entry(ben, run: run(2), UInt64(step)))
    _ = messages.commitAll()
    messages.pass(100)
    let compares = messages.sent(to: cho).contains { if case .heads(_, _, _, _, true) = $0 { true } else { false } }
    if compares { comparedAfter = comparedAfter ?? step }
  }
  #expect(comparedAfter.map { (15...60).contains($0) } == true)
}

@Test(arguments: [false, true])
func whenAMemberGoesOrBeginsAnewTheOthersCompareAtOnce(_ returns: Bool) {
  var messages = Messages(logs: [RestoredLog(key: danKey, contiguous: 1)])
  messages.come(cho, run: run(3))
  messages.heads([], of: cho)
  messages.come(ben, run: run(2))
  let other = HeadsDigest(of: [danKey: 2])
  messages.handle(.presenceHeard(garden, cho, PresenceFacts(digest: other, head: 0, lamport: 0)))
  if returns { messages.come(ben, run: run(7), digest: other) } else { messages.handle(.memberGone(garden, ben)) }
  messages.hear(entry(ben, run: run(2), 1))
  messages.pass(301)
  let compared = (messages.sent(to: cho) + messages.sent(to: ben)).contains { message in
    if case .heads(_, _, _, _, true) = message { true } else { false }
  }
  #expect(compared)
}

/// Two runs above a hole: both count once the hole is passed over, and what follows goes straight to the disk.
@Test func everyRunUpToTheFloorIsTakenIn() {
  let beyond = RangeSet<UInt64>([5..<7, 10..<11])
  var log = LogState(contiguous: 2, beyond: beyond)
  let hasChanged = log.skip(through: 9)
  #expect(hasChanged)
  #expect(log.queued == 10)
  log.raiseFloor(9)
  #expect(log.stored == 10)
  #expect(log.isLacking == false)
  #expect(log.missing(countMax: 8) == [])
}

/// What waits below a floor is here: it is kept, and comes to the disk before the floor.
@Test func whatIsHeldBelowAFloorIsKept() {
  var messages = Messages()
  messages.come(person(9), run: run(99))
  messages.come(ben, run: run(2))
  messages.hear(absent[2])
  messages.hear(absent[5])
  messages.heads([Head(key: danKey, number: 6, floor: 5)], of: ben)
  messages.pass(100, answering: [ben: [], person(9): []], times: 28)
  #expect(messages.commitAll() == [3, 6])
  #expect(messages.machine.channels[garden]!.logs[danKey]!.held.isEmpty)
  #expect(messages.contiguous == 6)
}

/// Heads that were heard before the log existed say nothing of where it begins.
@Test func aFloorIsNotTakenFromOneMembersWordThoughOthersWereHeardBefore() {
  var messages = Messages()
  let others = (20..<23).map { person(UInt64($0)) }
  for (index, other) in others.enumerated() {
    messages.come(other, run: run(UInt64(20 + index)))
    messages.heads([], of: other)
  }
  messages.come(ben, run: run(2))
  messages.heads([Head(key: danKey, number: 6, floor: 5)], of: ben)
  messages.answer(ben, with: [absent[5]])
  _ = messages.commitAll()
  #expect(messages.contiguous == 0)
  let asked = others.filter { other in
    messages.machine.channels[garden]!.unheardForFloors.contains(other)
  }
  #expect(asked == others)
  for other in others { messages.heads([Head(key: danKey, number: 6)], of: other) }
  for _ in 0..<60 {
    messages.pass(100)
    for other in others { messages.answer(other, with: absent) }
    messages.answer(ben, with: [absent[5]])
  }
  #expect(messages.commitAll().sorted() == [1, 2, 3, 4, 5, 6])
}

/// Names cost nothing: they must take no room from real logs, nor hide them from repair.
@Test func inventedLogsNeitherFillTheTableNorHideWhatIsLacking() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.come(cho, run: run(3))
  var made = 0
  while made < 40_000 {
    let heads = (0..<500).map { Head(key: LogKey(author: person(1), log: Instance(UInt64(made + $0))), number: 9) }
    messages.handle(.sessionMessage(cho, .heads(garden, .all, heads, isLast: true, answerWanted: false)))
    made += 500
  }
  #expect(messages.machine.channels[garden]!.logs.count <= MessagingRule.rumouredLogsMax)
  messages.hear(absent[5])
  _ = messages.commitAll()
  // Everybody answers, only with what there is.
  var steps = 0
  while messages.contiguous < 6, steps < 500 {
    messages.pass(2_000)
    for peer in [cho, ben] { messages.answer(peer, with: absent) }
    _ = messages.commitAll()
    steps += 1
  }
  #expect(messages.contiguous == 6)
}

/// One who keeps less than another differs from it for ever: that is no reason to compare for ever.
@Test func membersWhoKeepDifferentLengthsComeToRest() {
  var messages = Messages(logs: [RestoredLog(key: danKey, floor: 3, contiguous: 6)])
  messages.come(ben, run: run(2), digest: HeadsDigest(of: [:]))
  messages.come(cho, run: run(3), digest: messages.machine.channels[garden]!.digest)
  var comparedCount = 0
  for _ in 0..<600 {
    messages.pass(100)
    for case .heads(_, _, _, true, true) in messages.sent(to: ben) {
      comparedCount += 1
      messages.heads([], of: ben)
    }
    let facts = PresenceFacts(digest: HeadsDigest(of: [:]), head: 0, lamport: 0)
    messages.handle(.presenceHeard(garden, ben, facts))
    let same = PresenceFacts(digest: messages.machine.channels[garden]!.digest, head: 0, lamport: 0)
    messages.handle(.presenceHeard(garden, cho, same))
  }
  #expect((1...2).contains(comparedCount))
}

/// Whoever sends something just often enough kept all others from being asked.
@Test func whoDripsNothingUsefulIsNotWaitedFor() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.come(cho, run: run(3))
  messages.heads([Head(key: danKey, number: 6)], of: ben)
  var request: UInt64?
  for case .want(_, let id, _) in messages.sent(to: ben) { request = id }
  var isChoAsked = false
  for _ in 0..<50 {
    messages.pass(100)
    if messages.wanted(of: cho) != nil { isChoAsked = true }
    messages.handle(.sessionMessage(ben, .entries(garden, request: request!, [], isLast: false)))
    if messages.wanted(of: cho) != nil { isChoAsked = true }
  }
  #expect(isChoAsked)
}

/// A head whose entry was lost to all is asked for less and less, and then no more.
@Test func whatNobodyHasIsForgottenOnceAllHaveSaidSo() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.come(cho, run: run(3))
  messages.heads([Head(key: danKey, number: 1)], of: ben)
  var asked = 0
  for _ in 0..<600 {
    messages.pass(100)
    for peer in [ben, cho] where messages.wanted(of: peer) != nil {
      asked += 1
      messages.answer(peer, with: [])
    }
  }
  #expect((2...4).contains(asked))
  #expect(messages.machine.channels[garden]!.logs[danKey] == nil)
}

@Test func headsAreAnsweredOnceASecondToEach() {
  var messages = Messages(logs: [RestoredLog(key: danKey, contiguous: 6)])
  messages.come(ben, run: run(2))
  var answered = 0
  for _ in 0..<30 {
    messages.pass(100)
    messages.handle(.sessionMessage(ben, .heads(garden, .all, [], isLast: true, answerWanted: true)))
    answered += messages.sent(to: ben).count { if case .heads(_, _, _, _, false) = $0 { true } else { false } }
    messages.handle(.sessionMessage(ben, .summary(garden, [:])))
    answered += messages.sent(to: ben).count { if case .heads(_, _, _, _, true) = $0 { true } else { false } }
  }
  #expect((2...5).contains(answered))
}

/// One alone may lack the same: a dead author's last words stayed missing for 16 s.
@Test func whenAMemberGoesSeveralAreComparedWithSoon() {
  var messages = Messages(logs: [RestoredLog(key: danKey, contiguous: 1)])
  let others = (20..<26).map { person(UInt64($0)) }
  let other = HeadsDigest(of: [danKey: 2])
  for (index, peer) in others.enumerated() { messages.come(peer, run: run(UInt64(20 + index)), digest: other) }
  messages.heads([], of: others[0])
  messages.come(ben, run: run(2))
  messages.handle(.memberGone(garden, ben))
  var compared: [PeerID] = []
  for step in 1...10 {
    messages.hear(entry(cho, run: run(3), UInt64(step)))
    messages.pass(100)
    for peer in others {
      for case .heads(_, _, _, _, true) in messages.sent(to: peer) { compared.append(peer) }
    }
  }
  #expect(compared.count == 3)
  #expect(Set(compared).count == 3)
}
