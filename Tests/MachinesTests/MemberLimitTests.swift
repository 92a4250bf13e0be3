@testable import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

/// A flood is taken at the limit's rate, and in the end heads agree; nobody else is kept waiting.

private func limited(_ rate: MemberLimits.Rate) -> Messages {
  var limits = MemberLimits()
  limits.entries = rate
  limits.entriesAsked = .init(perSecond: rate.perSecond, atOnce: 10)
  var messages = Messages()
  messages.machine = MessagingMachine(me: ana, instance: run(1), seed: 1, members: limits)
  messages.handle(.joined(garden, logs: [], lamport: 0))
  return messages
}

extension Messages {
  fileprivate var excesses: [MemberExcess] {
    notices.compactMap { if case .overLimit(garden, ben, let excess) = $0 { excess } else { nil } }
  }

  /// What was just asked of a peer, and under which request.
  fileprivate func wants(of peer: PeerID) -> (UInt64, [LogRange])? {
    sent(to: peer).lazy.compactMap { if case .want(_, let id, let ranges) = $0 { (id, ranges) } else { nil } }.first
  }

  /// Takes the entries of a session message, as genuine.
  fileprivate mutating func give(_ entries: [Entry], request: UInt64, from peer: PeerID) {
    handle(
      .sessionMessage(peer, .entries(garden, request: request, entries.map(\.encoded), isLast: true)))
    let verifying = effects.compactMap { if case .verify(_, let entry) = $0 { entry } else { nil } }
    for entry in verifying { handle(.entryVerified(garden, entry, isGenuine: true)) }
  }
}

@Test func aFloodIsTakenAtTheLimitAndNothingIsLost() throws {
  var messages = limited(.init(perSecond: 10, atOnce: 20))
  messages.come(ben, run: run(2))
  let all = (1...100).map { entry(ben, run: run(2), UInt64($0)) }
  var verifiedCount = 0
  var reports: [MemberExcess] = []
  for entry in all {
    messages.handle(.entryHeard(garden, entry.encoded, from: ben))
    reports += messages.excesses
    guard messages.effects.contains(.verify(garden, entry)) else { continue }
    verifiedCount += 1
    messages.handle(.entryVerified(garden, entry, isGenuine: true))
  }
  #expect(verifiedCount == 20)
  #expect(reports == [.entries])
  _ = messages.commitAll()
  // Its head says what is missing; nothing is asked for before the limit allows it.
  messages.handle(
    .presenceHeard(garden, ben, PresenceFacts(digest: HeadsDigest(of: [:]), head: 100, lamport: 0)))
  var askedAt: [Instant] = []
  var known = 20
  let from = messages.now
  for _ in 0..<4_000 where known < 100 {
    messages.pass(10)
    guard let (request, ranges) = messages.wants(of: ben) else { continue }
    let range = try #require(ranges.first)
    #expect(range.from == UInt64(known + 1))
    askedAt.append(messages.now)
    let answer = Array(all[known..<min(known + 10, 100)])
    known += answer.count
    messages.give(answer, request: request, from: ben)
    _ = messages.commitAll()
  }
  #expect(known == 100)
  #expect(messages.machine.channels[garden]?.logs[LogKey(author: ben, log: run(2))]?.stored == 100)
  // 80 more at 10 a second, of which the first answers come at once.
  let took = try #require(askedAt.last) - from
  #expect(took >= .seconds(5) && took <= .seconds(9), "\(took)")
}

@Test func othersAreTakenWhileOneIsHeldBack() {
  var messages = limited(.init(perSecond: 1, atOnce: 5))
  for number in 1...50 { messages.hear(entry(ben, run: run(2), UInt64(number))) }
  for number in 1...5 {
    let said = entry(cho, run: run(3), UInt64(number))
    messages.handle(.entryHeard(garden, said.encoded, from: cho))
    #expect(messages.effects.contains(.verify(garden, said)))
    messages.handle(.entryVerified(garden, said, isGenuine: true))
  }
}

/// Whoever passes a flood on is not its author; and what nobody asked for is a flood whichever way it comes.
@Test func whatIsRelayedCountsAgainstItsAuthor() {
  var messages = limited(.init(perSecond: 1, atOnce: 10))
  messages.come(cho, run: run(3))
  messages.give((1...50).map { entry(ben, run: run(2), UInt64($0)) }, request: 0, from: cho)
  messages.handle(.entryHeard(garden, entry(ben, run: run(2), 60).encoded, from: ben))
  #expect(messages.effects.contains { if case .verify = $0 { true } else { false } } == false)
  let own = entry(cho, run: run(3), 1)
  messages.handle(.entryHeard(garden, own.encoded, from: cho))
  #expect(messages.effects.contains(.verify(garden, own)))
}

@Test func forgedEntriesUseUpNobodysShare() {
  var messages = limited(.init(perSecond: 1, atOnce: 10))
  for number in 1...1_000 {
    let forged = entry(ben, run: run(2), UInt64(number))
    messages.handle(.entryHeard(garden, forged.encoded, from: cho))
    messages.handle(.entryVerified(garden, forged, isGenuine: false))
  }
  let genuine = entry(ben, run: run(2), 1)
  messages.handle(.entryHeard(garden, genuine.encoded, from: ben))
  #expect(messages.effects.contains(.verify(garden, genuine)))
}

/// A class that all write at once: thirty people, fifty messages each, within a second.
@Test func thirtyPeopleMayWriteFiftyMessagesInASecond() {
  var messages = Messages()
  for number in 1...50 {
    for person in 10..<40 {
      let said = entry(somebody(person), run: run(UInt64(person)), UInt64(number))
      messages.handle(.entryHeard(garden, said.encoded, from: said.key.author))
      #expect(messages.effects.contains(.verify(garden, said)))
      messages.handle(.entryVerified(garden, said, isGenuine: true))
      #expect(messages.notices.isEmpty)
    }
    messages.now = messages.now.plus(20)
  }
}

private func somebody(_ number: Int) -> PeerID { person(UInt64(number)) }

// MARK: Links

@Test func presencesAndLiveObjectsOfOneMemberAreBounded() {
  var links = Links()
  var passed = 0
  for counter in 1...1_000 {
    links.hear(presence(ben, "Ben", run: run(2), counter: UInt64(counter)), from: address(2))
    passed += links.told.count
  }
  #expect(passed == 200)
  var live = 0
  var reports = 0
  for counter in 1_001...3_000 {
    let object = LiveObject(
      author: ben, instance: run(2), counter: UInt64(counter), json: status(ben, "Ben", isOnline: true))
    links.handle(.claimVerified(garden, .live(object, signed(object.encoded)), from: address(2)))
    live += links.told.count
    reports += links.effects.count { if case .report = $0 { true } else { false } }
  }
  #expect(live == 1_000)
  // It was reported for its presences within this minute.
  #expect(reports == 0)
  links.now = links.now.plus(60_000)
  links.hear(presence(ben, "Ben", run: run(2), counter: 4_000), from: address(2))
  #expect(links.told.count == 1)
}

@Test func aHostThatMakesUpIdentitiesKeepsNobodyOut() {
  var links = Links()
  var passed = 0
  for number in 10..<10_010 {
    links.hear(presence(person(UInt64(number)), "M", run: run(UInt64(number)), counter: 1), from: address(66))
    passed += links.told.count
  }
  #expect(passed == 500)
  links.hear(presence(ben, "Ben", run: run(2), counter: 1), from: address(2))
  #expect(links.told.count == 1)
}

@Test func aHostThatSendsSignaturesWithoutEndIsNotListenedTo() {
  var links = Links()
  func passed(_ count: Int, from host: UInt8) -> Int {
    (0..<count).count { number in
      let frame = DatagramFrame.entry([UInt8(number & 0xFF)])
      links.handle(.datagramOpened(garden, run(2), from: address(host, port: UInt16(number & 0xFFFF)), [frame]))
      return !links.told.isEmpty
    }
  }
  #expect(passed(30_000, from: 66) == 6_000)
  #expect(passed(100, from: 2) == 100)
  links.now = links.now.plus(1_000)
  #expect(passed(5_000, from: 66) == 2_500)
}

@Test func connectionsAreCountedByAddressAndHandshakesByIdentity() {
  var meters = ConnectionMeters(MemberLimits())
  let dialled = (0..<1_000).count { meters.mayDial(address(66, port: UInt16($0)), at: start) }
  let other = meters.mayDial(address(2), at: start)
  #expect(dialled == 300 && other)
  let shaken = (0..<1_000).count { _ in meters.mayShakeHands(ben, at: start) }
  let chos = meters.mayShakeHands(cho, at: start)
  #expect(shaken == 40 && chos)
  let later = (0..<1_000).count { _ in meters.mayShakeHands(ben, at: start.plus(1_000)) }
  #expect(later == 5)
}

@Test func anAllowanceNeverTraps() {
  var allowance = RateAllowance(perSecond: .max, burst: .max)
  let taken = [
    allowance.take(.max, at: Instant(microseconds: 0)), allowance.take(1, at: Instant(microseconds: 0)),
    allowance.take(.max, at: Instant(microseconds: 1 << 62)),
  ]
  #expect(taken == [true, false, true])
  allowance.charge(.max, at: Instant(microseconds: 5))
  allowance.charge(.max, at: Instant(microseconds: 5))
  #expect(allowance.opens(after: Instant(microseconds: 5)) > Instant(microseconds: 5))
  var none = RateAllowance(perSecond: 0, burst: 0)
  let some = none.take(1, at: Instant(microseconds: 1 << 40))
  #expect(!some)
  #expect(none.opens(after: start) > start)
}
