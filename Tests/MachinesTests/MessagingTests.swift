import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

/// Ana's messaging machine in the garden; its disk commits when told.
struct Messages {
  var machine = MessagingMachine(me: ana, instance: run(1), seed: 1)
  var now = start
  var effects: [MessagingEffect] = []
  /// Batches on their way to the disk.
  var batches: [(id: UInt64, records: [MessagingRecord])] = []
  var cursor: UInt64 = 0
  private var request: UInt64 = 0

  init(logs: [RestoredLog] = []) { handle(.joined(garden, logs: logs, lamport: 0)) }

  mutating func handle(_ event: MessagingEvent) {
    effects = machine.handle(event, at: now)
    for case .persist(let batch, let records) in effects { batches.append((batch, records)) }
  }

  mutating func pass(_ milliseconds: Int) {
    now = now.plus(milliseconds)
    handle(.woke)
  }

  @discardableResult
  mutating func say(_ body: String) -> RequestID {
    request += 1
    let submission = Submission(
      request: RequestID(request), kind: TextKind.code, isHidden: false, json: text(ana, body, id: body),
      timestamp: 5)
    handle(.submitted(garden, submission))
    return RequestID(request)
  }

  @discardableResult
  mutating func tell(_ peer: PeerID, _ body: String) -> RequestID {
    request += 1
    let message = OutboxMessage(peer: peer, id: MessageID(body)!, json: text(ana, body, id: body))
    handle(.told(RequestID(request), message, queuedAt: 5))
    return RequestID(request)
  }

  /// Signs what is to be signed.
  mutating func sign() {
    for case .sign(let channel, var entry) in effects {
      entry.signature = [UInt8](repeating: 1, count: 64)
      handle(.entrySigned(channel, entry))
    }
  }

  mutating func commit() {
    let batch = batches.removeFirst()
    let cursors = batch.records.map { _ -> UInt64 in
      cursor += 1
      return cursor
    }
    handle(.persisted(batch: batch.id, cursors: cursors))
  }

  mutating func come(
    _ peer: PeerID, run instance: Instance, digest: HeadsDigest = HeadsDigest(of: [:]), head: UInt64 = 0
  ) {
    handle(.memberPresent(garden, peer, instance, PresenceFacts(digest: digest, head: head, lamport: 0)))
  }

  /// A genuine entry comes by datagram.
  mutating func hear(_ entry: Entry) {
    handle(.entryHeard(garden, entry.encoded, from: entry.key.author))
    if effects.contains(.verify(garden, entry)) { handle(.entryVerified(garden, entry, isGenuine: true)) }
  }

  /// But for `.synced`, which comes with every batch.
  var notices: [MessagingNotice] {
    effects.compactMap { effect in
      guard case .notify(let notice) = effect else { return nil }
      if case .synced = notice { return nil }
      return notice
    }
  }
  var told: [NodeEvent] { effects.compactMap { if case .tell(let event) = $0 { event } else { nil } } }
  var signing: [Entry] { effects.compactMap { if case .sign(_, let entry) = $0 { entry } else { nil } } }

  func sent(to peer: PeerID) -> [SessionMessage] {
    told.compactMap { if case .links(.send(peer, let message)) = $0 { message } else { nil } }
  }

  /// What was just acknowledged to a peer.
  func acknowledged(to peer: PeerID) -> [UInt64] {
    told.flatMap { event -> [UInt64] in
      guard case .links(.unicast(garden, peer, [], let parts)) = event else { return [] }
      return parts.compactMap { if case .acknowledge(_, let number) = $0 { number } else { nil } }
    }
  }

  func wanted(of peer: PeerID) -> [LogRange]? {
    for case .want(garden, _, let ranges) in sent(to: peer) { return ranges }
    return nil
  }
}

@Test func whatIsSaidWhileAnEntryIsOnItsWaySharesTheNext() {
  var messages = Messages()
  let first = messages.say("one")
  #expect(messages.signing.map(\.items.count) == [1])
  messages.sign()
  let more = ["two", "three", "four"].map { messages.say($0) }
  #expect(messages.signing == [])
  messages.commit()
  #expect(messages.notices.contains(.stored(first, garden, LogKey(author: ana, log: run(1)), number: 1)))
  #expect(messages.signing.map(\.items.count) == [3])
  messages.sign()
  messages.commit()
  let stored = messages.notices.compactMap { if case .stored(let request, _, _, 2) = $0 { request } else { nil } }
  #expect(stored == more)
}

@Test func anEntryIsOnTheWireAtOnceAndPromisedOnceItIsOnTheDisk() {
  var messages = Messages()
  messages.say("one")
  messages.sign()
  #expect(messages.told.count == 1)
  #expect(messages.notices == [])
  messages.commit()
  #expect(messages.notices.count == 2)
}

@Test func whatIsCommittedIsShownAndPromisedOnceItIsSynced() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  for number in [1, 2] as [UInt64] { messages.hear(entry(ben, run: run(2), number)) }
  #expect(messages.batches.count == 1)
  messages.handle(.committed(batch: messages.batches.removeFirst().id, cursors: [7]))
  #expect(messages.notices.count == 1)
  messages.pass(100)
  #expect(messages.acknowledged(to: ben) == [])
  // The next commit does not wait for the sync.
  let second = messages.batches.removeFirst()
  messages.handle(.committed(batch: second.id, cursors: [8]))
  messages.handle(.synced(through: second.id))
  #expect(messages.effects.contains(.notify(.synced(cursor: 8))))
  messages.pass(100)
  #expect(messages.acknowledged(to: ben) == [2])
}

@Test func whatMayNotBeOnTheDiskIsWrittenAgainAndNotShownAgain() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.hear(entry(ben, run: run(2), 1))
  let batch = messages.batches.removeFirst()
  messages.handle(.committed(batch: batch.id, cursors: [7]))
  messages.handle(.syncFailed(reason: "broken"))
  messages.handle(.synced(through: batch.id))
  messages.pass(1_000)
  #expect(messages.acknowledged(to: ben) == [])
  let again = messages.batches.removeFirst()
  #expect(again.records == batch.records)
  messages.handle(.persisted(batch: again.id, cursors: [0]))
  #expect(messages.notices == [])
  #expect(messages.effects.contains(.notify(.synced(cursor: 7))))
  messages.pass(100)
  #expect(messages.acknowledged(to: ben) == [1])
}

@Test func anEntryIsAcknowledgedOnlyOnceItIsOnTheDisk() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.hear(entry(ben, run: run(2), 1))
  messages.pass(100)
  #expect(messages.acknowledged(to: ben) == [])
  messages.commit()
  messages.pass(100)
  #expect(messages.acknowledged(to: ben) == [1])
}

@Test func aRepeatedEntryIsAcknowledgedAgainWithoutBeingVerified() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.hear(entry(ben, run: run(2), 1))
  messages.commit()
  messages.pass(100)
  messages.handle(.entryHeard(garden, entry(ben, run: run(2), 1).encoded, from: ben))
  #expect(messages.effects.contains { if case .verify = $0 { true } else { false } } == false)
  messages.pass(100)
  #expect(messages.acknowledged(to: ben) == [1])
}

@Test func aForgedEntryLeavesNoTrace() {
  var messages = Messages()
  messages.handle(.entryVerified(garden, entry(ben, run: run(2), 1), isGenuine: false))
  #expect(messages.batches.isEmpty)
  #expect(messages.machine.refusedCount == 1)
  messages.hear(entry(ben, run: run(2), 1))
  #expect(messages.batches.count == 1)
}

@Test func aHoleIsAskedForAndFilled() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.hear(entry(ben, run: run(2), 3))
  #expect(messages.batches.isEmpty)
  messages.pass(100)
  let key = LogKey(author: ben, log: run(2))
  #expect(messages.wanted(of: ben) == [LogRange(key: key, from: 1, through: 2)])
  let answer = [entry(ben, run: run(2), 1), entry(ben, run: run(2), 2)]
  messages.handle(
    .sessionMessage(ben, .entries(garden, request: 1, answer.map(\.encoded), isLast: true)))
  for entry in answer { messages.handle(.entryVerified(garden, entry, isGenuine: true)) }
  var stored: [UInt64] = []
  while !messages.batches.isEmpty {
    messages.commit()
    for case .entryStored(_, let entry, _) in messages.notices { stored.append(entry.number) }
  }
  #expect(stored == [1, 2, 3])
}

@Test func aHoleThatNobodyCanFillHidesNothing() {
  var messages = Messages()
  messages.come(cho, run: run(3))
  messages.hear(entry(ben, run: run(2), 2))
  var asked = 0
  for _ in 0..<40 {
    messages.pass(100)
    if messages.wanted(of: cho) != nil { asked += 1 }
    for case .want(_, let request, _) in messages.sent(to: cho) {
      messages.handle(.sessionMessage(cho, .entries(garden, request: request, [], isLast: true)))
    }
  }
  #expect(asked > 1 && asked < 20)
  messages.commit()
  let numbers = messages.notices.compactMap { if case .entryStored(_, let entry, _) = $0 { entry.number } else { nil } }
  #expect(numbers == [2])
  // Who lacks what comes after the hole must see the difference, or would never ask.
  let digests = messages.told.compactMap { event -> HeadsDigest? in
    if case .membership(.headsChanged(_, let digest, _, _)) = event { digest } else { nil }
  }
  #expect(digests.last != HeadsDigest(of: [:]))
  messages.hear(entry(ben, run: run(2), 1))
  messages.commit()
  let healed = messages.told.compactMap { event -> HeadsDigest? in
    if case .membership(.headsChanged(_, let digest, _, _)) = event { digest } else { nil }
  }
  #expect(healed.last == HeadsDigest(of: [LogKey(author: ben, log: run(2)): 2]))
}

/// One who answers with what we have, or with rubbish, was asked for ever.
@Test func whoAnswersNothingNewIsNotAskedAgainAtOnce() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.come(cho, run: run(3))
  messages.hear(entry(ben, run: run(2), 2))
  var asked: [PeerID] = []
  for _ in 0..<10 {
    messages.pass(100)
    for peer in [ben, cho] {
      for case .want(_, let request, _) in messages.sent(to: peer) {
        asked.append(peer)
        messages.handle(.sessionMessage(peer, .entries(garden, request: request, [[1, 2, 3]], isLast: true)))
      }
    }
  }
  #expect(Set(asked.prefix(2)) == [ben, cho])
  #expect(asked.count <= 6)
}

@Test func whenTheDiskFailsCallersAreToldAndItIsTriedAgain() {
  var messages = Messages()
  let request = messages.say("one")
  messages.sign()
  let batch = messages.batches.removeFirst()
  messages.handle(.persistFailed(batch: batch.id, reason: "full"))
  #expect(messages.notices == [.failed(request, .disk("full"))])
  #expect(messages.batches.isEmpty)
  // What is said meanwhile does not wait for a disk that may never take it.
  let second = messages.say("two")
  messages.pass(1_000)
  messages.handle(.persistFailed(batch: messages.batches.removeFirst().id, reason: "full"))
  #expect(messages.notices.last == .failed(second, .diskRefuses("full")))
  messages.pass(1_000)
  #expect(messages.batches.map(\.records) == [batch.records])
  messages.commit()
  let stored = messages.notices.contains { if case .stored = $0 { true } else { false } }
  #expect(stored == false)
  #expect(messages.notices.count == 1)
}

@Test func noNumberIsGivenTwiceWhenAChannelIsLeftAndJoinedAgain() {
  var messages = Messages()
  messages.say("one")
  messages.sign()
  messages.handle(.left(garden))
  // The disk had nothing yet when it was asked.
  messages.handle(.joined(garden, logs: [], lamport: 0))
  messages.say("two")
  #expect(messages.signing == [])
  messages.commit()
  #expect(messages.signing.map(\.number) == [2])
}

@Test func aNumberTakenBeforeLeavingIsKeptThoughItsSignatureComesLater() {
  var messages = Messages()
  messages.say("one")
  let unsigned = messages.signing[0]
  messages.handle(.left(garden))
  #expect(messages.notices.count == 1)
  var late = unsigned
  late.signature = [UInt8](repeating: 1, count: 64)
  messages.handle(.entrySigned(garden, late))
  messages.commit()
  messages.handle(.joined(garden, logs: [], lamport: 0))
  messages.say("two")
  #expect(messages.signing.map(\.number) == [2])
}

@Test func aPeerMessageGoesOutOnceItIsStoredAndThePeerIsThere() {
  var messages = Messages()
  let request = messages.tell(ben, "psst")
  #expect(messages.notices == [])
  messages.commit()
  #expect(messages.notices.contains(.queued(request)))
  #expect(messages.sent(to: ben) == [])
  messages.come(ben, run: run(2))
  #expect(messages.sent(to: ben).count == 1)
  messages.handle(.sessionMessage(ben, .peerStored(MessageID("psst")!)))
  #expect(messages.notices == [.peerDelivered(ben, MessageID("psst")!)])
  messages.handle(.sessionMessage(ben, .peerStored(MessageID("psst")!)))
  #expect(messages.notices == [])
  for _ in 0..<10 {
    messages.pass(1_000)
    #expect(messages.sent(to: ben) == [])
  }
}

@Test func aPeerMessageWithoutAnswerIsSaidAgain() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.tell(ben, "psst")
  messages.commit()
  #expect(messages.sent(to: ben).count == 1)
  messages.pass(2_900)
  #expect(messages.sent(to: ben) == [])
  messages.pass(200)
  #expect(messages.sent(to: ben).count == 1)
}

/// Only the timer sent the next ones: ten a second.
@Test func manyPeerMessagesFollowEachOtherWithoutWaiting() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  for number in 0..<100 { messages.tell(ben, "m\(number)") }
  var sent: [MessageID] = []
  func collect() { for case .peerMessage(let id, _) in messages.sent(to: ben) { sent.append(id) } }
  while !messages.batches.isEmpty {
    messages.commit()
    collect()
  }
  #expect(sent.count == 32)
  var answered = 0
  while answered < sent.count {
    messages.handle(.sessionMessage(ben, .peerStored(sent[answered])))
    answered += 1
    collect()
  }
  #expect(sent == (0..<100).map { MessageID("m\($0)")! })
}

@Test func saidTwiceUnderOneIDItIsSentOnceAndBothCallersAreAnswered() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  let first = messages.tell(ben, "psst")
  let second = messages.tell(ben, "psst")
  var queued: [MessagingNotice] = []
  var sent = 0
  while !messages.batches.isEmpty {
    messages.commit()
    queued += messages.notices.filter { if case .queued = $0 { true } else { false } }
    sent += messages.sent(to: ben).count
  }
  #expect(queued == [.queued(first), .queued(second)])
  #expect(sent == 1)
}

@Test func aReceivedPeerMessageIsStoredBeforeItIsAnswered() {
  var messages = Messages()
  let id = MessageID("psst")!
  messages.handle(.sessionMessage(ben, .peerMessage(id, json: text(ben, "psst", id: "psst"))))
  #expect(messages.told == [])
  messages.commit()
  #expect(messages.sent(to: ben) == [.peerStored(id)])
  // The disk says that it has it: answered, and shown to nobody.
  messages.handle(.sessionMessage(ben, .peerMessage(id, json: text(ben, "psst", id: "psst"))))
  messages.handle(.persisted(batch: messages.batches.removeFirst().id, cursors: [0]))
  #expect(messages.sent(to: ben) == [.peerStored(id)])
  #expect(messages.notices == [])
}

@Test func aPeerMessageUnderAnothersNameIsRefused() {
  var messages = Messages()
  messages.handle(.sessionMessage(ben, .peerMessage(MessageID("m")!, json: text(cho, "x", id: "m"))))
  messages.handle(.sessionMessage(ben, .peerMessage(MessageID("m")!, json: text(ben, "x", id: "other"))))
  #expect(messages.batches.isEmpty)
  #expect(messages.machine.refusedCount == 2)
}

@Test func anAcknowledgementOfWhatWasNeverSaidIsIgnored() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.say("one")
  messages.sign()
  messages.handle(.acknowledged(garden, ben, log: run(1), number: 2))
  #expect(messages.notices == [])
  messages.handle(.acknowledged(garden, ben, log: run(1), number: 1))
  #expect(messages.notices == [.delivered(garden, log: run(1), after: 0, through: 1, to: ben)])
}

@Test func upToThirtyTwoAllAcknowledgeAndBeyondThatSome() {
  for (count, range) in [(33, 33...33), (101, 10...60)] as [(Int, ClosedRange<Int>)] {
    // Each of the others decides for itself whether it acknowledges Ben's entries.
    let acknowledgers = (1..<count).filter { index in
      var machine = MessagingMachine(me: person(UInt64(1_000 + index * 7)), instance: run(1), seed: 1)
      _ = machine.handle(.joined(garden, logs: [], lamport: 0), at: start)
      for other in 0..<count - 1 {
        let peer = other == 0 ? ben : person(UInt64(5_000 + other))
        let facts = PresenceFacts(digest: HeadsDigest(of: [:]), head: 0, lamport: 0)
        _ = machine.handle(.memberPresent(garden, peer, run(2), facts), at: start)
      }
      _ = machine.handle(.entryVerified(garden, entry(ben, run: run(2), 1), isGenuine: true), at: start)
      _ = machine.handle(.persisted(batch: 1, cursors: [1]), at: start)
      return machine.handle(.woke, at: start.plus(50)).contains { effect in
        if case .tell(.links(.unicast(garden, ben, [], let parts))) = effect { !parts.isEmpty } else { false }
      }
    }
    #expect(range.contains(acknowledgers.count + (count == 33 ? 1 : 0)), "\(acknowledgers.count) of \(count)")
  }
}

@Test func whatLacksAnAcknowledgementIsAnnouncedAndThenNotAnyMore() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.say("one")
  messages.sign()
  messages.commit()
  messages.pass(250)
  #expect(messages.told.contains(.membership(.announceHead(garden))))
  messages.handle(.acknowledged(garden, ben, log: run(1), number: 1))
  messages.pass(500)
  messages.pass(8_000)
  #expect(messages.told.contains(.membership(.announceHead(garden))) == false)
}
