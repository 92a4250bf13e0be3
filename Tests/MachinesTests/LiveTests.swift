import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleyMachines

private func json(
  _ author: PeerID, _ content: any MessageKind, id: String, _ change: (inout MessageOptions) -> Void = { _ in }
) -> [UInt8] {
  var options = MessageOptions.none
  change(&options)
  return SchemaMessage(
    sender: Sender(peer: author, displayName: name("X")), messageID: MessageID(id)!,
    timestamp: "2021-03-12T09:05:16Z", content: content, options: options
  ).encoded
}

private func onlineOnly(_ author: PeerID, _ body: String) -> [UInt8] {
  json(author, TextKind(body: body), id: body) { $0.isOnlineOnly = true }
}

private func submission(_ request: UInt64, _ json: [UInt8], id: String, isKept: Bool = true) -> LiveSubmission {
  LiveSubmission(
    request: RequestID(request), id: MessageID(id)!, kind: TextKind.code, json: json, timestamp: 5, isKept: isKept)
}

extension Messages {
  fileprivate var locals: [LocalMessage] {
    batches.flatMap { $0.records.compactMap { if case .local(let message, _) = $0 { message } else { nil } } }
  }
}

@Test func aCommandGoesOutOnceAndIsKeptByNobody() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  let command = json(ana, CmdKind(action: "refresh"), id: "c")
  messages.handle(.submittedLive(garden, submission(1, command, id: "c", isKept: false)))
  let live = LiveObject(author: ana, instance: run(1), counter: 0, json: command)
  #expect(messages.told == [.links(.multicast(garden, [.live(live)]))])
  #expect(messages.notices == [.sent(RequestID(1))])
  #expect(messages.batches.isEmpty)
  // And so does another's: it is told, and that is all.
  let theirs = json(ben, CmdKind(action: "refresh"), id: "d")
  messages.handle(.liveHeard(garden, ben, json: theirs))
  #expect(messages.notices == [.live(garden, ben, json: theirs)])
  #expect(messages.batches.isEmpty)
}

@Test func whatIsForThoseWhoAreThereIsKeptWhereItCame() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.hear(entry(ben, run: run(2), 1, lamport: 40))
  messages.commit()
  messages.handle(.liveHeard(garden, ben, json: onlineOnly(ben, "theirs")))
  #expect(messages.locals.map(\.lamport) == [40])
  messages.commit()
  let stored = LocalMessage(
    channel: garden, author: ben, id: MessageID("theirs")!, lamport: 40, kind: TextKind.code,
    json: onlineOnly(ben, "theirs"))
  #expect(messages.notices == [.localStored(stored, cursor: 2)])
  // Nobody is told that it is here: it was said by multicast.
  #expect(messages.sent(to: ben) == [])
  messages.handle(.submittedLive(garden, submission(1, onlineOnly(ana, "ours"), id: "ours")))
  #expect(messages.notices == [])
  messages.commit()
  #expect(messages.notices.contains(.sent(RequestID(1))))
  // Neither is an entry of any log.
  #expect(messages.machine.channels[garden]!.logs.keys.allSatisfy { $0.author == ben && $0.log == run(2) })
}

@Test func liveObjectsThatAreNoneAreRefused() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  let receivers = MessageDirection(channel: garden, receivers: [ana])
  let refused = [
    // For everybody, and to be kept: it has to come as an entry.
    text(ben, "plain", id: "1"), hand(ben, true),
    // Another's.
    onlineOnly(cho, "forged"),
    // To some, which all have heard.
    json(ben, CmdKind(action: "a"), id: "2") { $0.direction = receivers }, [1, 2, 3],
  ]
  for json in refused { messages.handle(.liveHeard(garden, ben, json: json)) }
  #expect(messages.machine.refusedCount == UInt64(refused.count))
  #expect(messages.batches.isEmpty && messages.notices.isEmpty)
  messages.handle(.liveHeard(kitchen, ben, json: onlineOnly(ben, "elsewhere")))
  #expect(messages.batches.isEmpty)
}

@Test func whoIsMutedIsNotHeardLive() {
  var messages = Messages()
  messages.handle(.owned(garden, ChannelOwnership(founder: cho, salt: [UInt8](repeating: 0, count: 16))!))
  messages.come(ben, run: run(2))
  // Nobody let Ben in.
  messages.handle(.liveHeard(garden, ben, json: onlineOnly(ben, "a")))
  messages.handle(.liveHeard(garden, ben, json: json(ben, CmdKind(action: "a"), id: "b")))
  #expect(messages.machine.refusedCount == 2 && messages.batches.isEmpty && messages.notices.isEmpty)
  messages.handle(.liveHeard(garden, cho, json: onlineOnly(cho, "owner")))
  #expect(messages.locals.map(\.author) == [cho])
  // Nor is Ana, at home.
  messages.handle(.submittedLive(garden, submission(1, onlineOnly(ana, "x"), id: "x")))
  #expect(messages.notices == [.failed(RequestID(1), .excluded(.notAdmitted(.noInvitation)))])
}

@Test func toOnePersonItGoesWhenTheyAreThere() {
  var messages = Messages()
  messages.handle(.toldLive(ben, submission(1, onlineOnly(ana, "a"), id: "a")))
  #expect(messages.notices == [.failed(RequestID(1), .peerAway)])
  messages.come(ben, run: run(2))
  messages.handle(.toldLive(ben, submission(2, onlineOnly(ana, "b"), id: "b")))
  #expect(messages.sent(to: ben) == [.livePeerMessage(MessageID("b")!, json: onlineOnly(ana, "b"))])
  messages.commit()
  #expect(messages.notices.contains(.sent(RequestID(2))))
  messages.handle(.sessionMessage(ben, .peerStored(MessageID("b")!)))
  #expect(messages.notices == [.peerDelivered(ben, MessageID("b")!)])
  // Said twice it is told once, and what was not asked is not.
  messages.handle(.sessionMessage(ben, .peerStored(MessageID("b")!)))
  #expect(messages.notices == [])
  // Nothing waits: it is not said again.
  messages.handle(.memberGone(garden, ben))
  messages.come(ben, run: run(3))
  messages.pass(60_000)
  #expect(messages.sent(to: ben).isEmpty)
}

@Test func whatComesToOneLiveIsAnswered() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  let command = json(ben, CmdKind(action: "a"), id: "c")
  messages.handle(.sessionMessage(ben, .livePeerMessage(MessageID("c")!, json: command)))
  #expect(messages.notices == [.live(nil, ben, json: command)])
  #expect(messages.sent(to: ben) == [.peerStored(MessageID("c")!)])
  messages.handle(.sessionMessage(ben, .livePeerMessage(MessageID("o")!, json: onlineOnly(ben, "o"))))
  #expect(messages.sent(to: ben) == [])
  messages.commit()
  #expect(messages.sent(to: ben) == [.peerStored(MessageID("o")!)])
  // A command that comes as what waits, and what waits as a command.
  messages.handle(.sessionMessage(ben, .peerMessage(MessageID("c")!, json: command)))
  messages.handle(.sessionMessage(ben, .livePeerMessage(MessageID("t")!, json: text(ben, "t", id: "t"))))
  #expect(messages.machine.refusedCount == 2)
}

@Test func aMessageToSomeWaitsForEachOfThemAndNobodyElse() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  let json = json(ana, TextKind(body: "psst"), id: "d") {
    $0.direction = MessageDirection(channel: garden, receivers: [ben, cho])
  }
  messages.handle(.directed(garden, submission(1, json, id: "d"), to: [ben, cho], isLive: false, queuedAt: 7))
  #expect(messages.notices == [] && messages.told == [])
  #expect(messages.locals.map(\.id.text) == ["d"])
  messages.commit()
  #expect(messages.notices.contains(.sent(RequestID(1))))
  // Ben is there, Cho comes later; no one else is sent anything.
  #expect(
    messages.told.filter { if case .links = $0 { true } else { false } }
      == [.links(.send(ben, .peerMessage(MessageID("d")!, json: json)))])
  messages.come(person(9), run: run(9))
  #expect(messages.sent(to: person(9)).isEmpty)
  messages.come(cho, run: run(3))
  #expect(messages.sent(to: cho) == [.peerMessage(MessageID("d")!, json: json)])
  messages.handle(.sessionMessage(cho, .peerStored(MessageID("d")!)))
  #expect(messages.notices == [.peerDelivered(cho, MessageID("d")!)])
}

@Test func whatIsToSomeIsAllOrNothing() {
  var messages = Messages()
  messages.machine = MessagingMachine(me: ana, instance: run(1), seed: 1, outbox: OutboxLimits(countMax: 2))
  messages.handle(.joined(garden, logs: [], lamport: 0))
  let json = onlineOnly(ana, "d")
  let receivers = [ben, cho, person(4)]
  messages.handle(.directed(garden, submission(1, json, id: "d"), to: receivers, isLive: false, queuedAt: 7))
  #expect(
    messages.notices == [
      .failed(
        RequestID(1), .outboxFull(count: 0, countMax: 2, byteCount: 3 * json.count, byteCountMax: 64 << 20))
    ])
  #expect(messages.batches.isEmpty && messages.machine.outbox.count == 0)
  messages.handle(.directed(garden, submission(2, json, id: "d"), to: [ben, cho], isLive: false, queuedAt: 7))
  #expect(messages.machine.outbox.count == 2)
}

@Test func aReceiverKeepsItInTheChannelItNames() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  func hear(_ id: String, _ channel: ChannelID, to receivers: [PeerID]) {
    let json = json(ben, TextKind(body: "psst"), id: id) {
      $0.direction = MessageDirection(channel: channel, receivers: receivers)
    }
    messages.handle(.sessionMessage(ben, .peerMessage(MessageID(id)!, json: json)))
  }
  hear("here", garden, to: [cho, ana])
  #expect(messages.locals.map(\.channel) == [garden])
  messages.commit()
  #expect(messages.sent(to: ben) == [.peerStored(MessageID("here")!)])
  // Again: answered, and not shown.
  hear("here", garden, to: [cho, ana])
  let batch = messages.batches.removeFirst()
  messages.handle(.persisted(batch: batch.id, cursors: [0]))
  #expect(messages.notices == [] && messages.sent(to: ben) == [.peerStored(MessageID("here")!)])
  // Not for us.
  hear("other", garden, to: [cho])
  #expect(messages.machine.refusedCount == 1 && messages.batches.isEmpty)
  // Of a channel we are not in it is a word between two.
  hear("left", kitchen, to: [ana])
  guard case .peerMessage(ben, MessageID("left"), _, isOwn: false)? = messages.batches.first?.records.first else {
    Issue.record("it was not kept")
    return
  }
}

@Test func whatIsForThoseThereAndForSomeGoesToThoseOfThemWhoAre() {
  var messages = Messages()
  messages.come(ben, run: run(2))
  messages.come(person(4), run: run(4))
  let json = onlineOnly(ana, "d")
  messages.handle(.directed(garden, submission(1, json, id: "d"), to: [ben, cho], isLive: true, queuedAt: 7))
  #expect(messages.told == [.links(.send(ben, .livePeerMessage(MessageID("d")!, json: json)))])
  #expect(messages.machine.outbox.count == 0)
}

// MARK: On the wire

@Test func aLiveObjectOfAnySizeGoesInDatagramsAndIsWholeAgain() throws {
  for size in [10, 900, 1_100, 1_105, 1_200, 29_000] {
    var links = Links()
    links.hear(presence(ben, "Ben", run: run(2), counter: 1), from: address(2))
    let json = json(ben, TextKind(body: String(repeating: "b", count: size)), id: "m") { $0.isOnlineOnly = true }
    let live = LiveObject(author: ben, instance: run(2), counter: 2, json: json)
    let datagrams = FragmentRule.datagrams(of: [.live(signed(live.encoded)), .suspect(cho, incarnation: 1)])
    for frames in datagrams {
      var out = ByteWriter()
      for frame in frames { frame.write(to: &out) }
      #expect(out.bytes.count <= Limit.datagramByteCountMax - 44 - 16)
      #expect(try DatagramFrame.decodeAll(out.bytes) == frames)
    }
    var claims: [LiveClaim] = []
    for frames in datagrams.reversed() {
      links.handle(.datagramOpened(garden, run(2), from: address(2), frames))
      claims += links.effects.compactMap { if case .verify(_, let claim, _, _) = $0 { claim } else { nil } }
    }
    #expect(claims == [.live(live, signed(live.encoded))], "\(size) bytes")
    links.handle(.claimVerified(garden, claims[0], from: address(2)))
    #expect(links.told == [.membership(.liveHeard(garden, live))])
  }
}

@Test func aLiveObjectCountsOnceAndOnlyOfThoseWhoAreThere() {
  var links = Links()
  links.hear(presence(ben, "Ben", run: run(2), counter: 1), from: address(2))
  let live = LiveObject(author: ben, instance: run(2), counter: 2, json: onlineOnly(ben, "a"))
  links.handle(.claimVerified(garden, .live(live, signed(live.encoded)), from: address(2)))
  #expect(links.told == [.membership(.liveHeard(garden, live))])
  links.handle(.claimVerified(garden, .live(live, signed(live.encoded)), from: address(2)))
  #expect(links.told == [])
}

@Test func liveObjectsOfOneMemberAreLimitedByNumberAndBytes() {
  var limits = MemberLimits()
  limits.liveObjects = .init(perSecond: 200, atOnce: 201)
  limits.liveBytes = .init(perSecond: 1_000, atOnce: 50_000)
  var costs = LiveCosts()
  for _ in 0..<201 { #expect(costs.liveExcess(byteCount: 1, limits, at: start) == nil) }
  #expect(costs.liveExcess(byteCount: 1, limits, at: start) == .liveObjects)
  // 200 a second go on for ever, as in a room.
  for step in 1...400 { #expect(costs.liveExcess(byteCount: 1, limits, at: start.plus(5 * step)) == nil) }
  let later = start.plus(60_000)
  #expect(costs.liveExcess(byteCount: 30_000, limits, at: later) == nil)
  #expect(costs.liveExcess(byteCount: 30_000, limits, at: later) == .liveObjects)
}
