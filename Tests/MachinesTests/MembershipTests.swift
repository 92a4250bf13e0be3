import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

/// A membership machine in the garden, as Ana's, and what it announced.
struct Members {
  var machine = MembershipMachine(me: ana, instance: run(1), nonceKey: [UInt8](repeating: 7, count: 32), seed: 1)
  var now = start
  var effects: [MembershipEffect] = []

  init(remembered: [MemberRecord] = []) {
    handle(.joined(garden, displayName: name("Ana"), incarnation: 1, remembered: remembered))
  }

  mutating func handle(_ event: MembershipEvent) { effects = machine.handle(event, at: now) }

  mutating func pass(_ milliseconds: Int) {
    now = now.plus(milliseconds)
    handle(.woke)
  }

  var announced: [MemberView] {
    effects.compactMap { if case .announce(_, let view) = $0 { view } else { nil } }
  }

  var told: [NodeEvent] { effects.compactMap { if case .tell(let event) = $0 { event } else { nil } } }

  /// Nonces of probes in what was just sent to a peer.
  func probes(to peer: PeerID) -> [UInt64] {
    told.flatMap { event -> [UInt64] in
      guard case .links(.unicast(_, peer, _, let parts)) = event else { return [] }
      return parts.compactMap { if case .probe(let nonce) = $0 { nonce } else { nil } }
    }
  }

  /// Such as `ana+ ben-`: listed, online or offline; `^` for a raised hand.
  var list: String {
    machine.members(of: garden).sorted { $0.peer < $1.peer }
      .map { "\($0.displayName.text.lowercased())\($0.isOnline ? "+" : "-")\($0.isHandRaised ? "^" : "")" }
      .joined(separator: " ")
  }

  mutating func hear(_ presence: Presence) { handle(.presenceHeard(garden, presence, overSession: false)) }

  mutating func benComes(run instance: Instance = run(2), incarnation: UInt64 = 1) {
    hear(presence(ben, "Ben", run: instance, counter: 1, incarnation: incarnation))
    handle(.echoed(garden, ben, nonce: probes(to: ben)[0]))
  }

  mutating func goodbye(_ counter: UInt64, run instance: Instance = run(2)) {
    let json = status(ben, "Ben", isOnline: false)
    handle(.liveHeard(garden, LiveObject(author: ben, instance: instance, counter: counter, json: json)))
  }
}

@Test func anUnknownMemberOnlineIsListedWithItsHandDown() {
  var members = Members()
  members.benComes()
  #expect(members.list == "ana+ ben+")
  #expect(members.announced.count == 1)
}

@Test func aClaimIsNotShownBeforeAnEcho() {
  var members = Members()
  members.hear(presence(ben, "Ben", run: run(2), counter: 1))
  #expect(members.list == "ana+")
  let nonce = members.probes(to: ben)[0]
  members.handle(.echoed(garden, ben, nonce: nonce &+ 1))
  #expect(members.list == "ana+")
  members.handle(.echoed(garden, ben, nonce: nonce))
  #expect(members.list == "ana+ ben+")
}

@Test func aClaimWithoutAnswerIsForgottenAndMayBeMadeAgain() {
  var members = Members()
  members.hear(presence(ben, "Ben", run: run(2), counter: 1))
  let nonce = members.probes(to: ben)[0]
  for _ in 0..<5 { members.pass(400) }
  members.handle(.echoed(garden, ben, nonce: nonce))
  #expect(members.list == "ana+")
  members.hear(presence(ben, "Ben", run: run(2), counter: 2))
  members.handle(.echoed(garden, ben, nonce: members.probes(to: ben)[0]))
  #expect(members.list == "ana+ ben+")
}

@Test func anUnknownMemberOfflineIsIgnored() {
  var members = Members()
  members.goodbye(5)
  #expect(members.list == "ana+")
  #expect(members.announced == [])
}

@Test func theSameStatusAgainChangesNothing() {
  var members = Members()
  members.benComes()
  members.hear(presence(ben, "Ben", run: run(2), counter: 2))
  #expect(members.announced == [])
  members.goodbye(3)
  #expect(members.announced.map(\.isOnline) == [false])
  members.goodbye(4)
  #expect(members.announced == [])
}

@Test func aMemberMovesBetweenTheSections() {
  var members = Members(
    remembered: [MemberRecord(peer: ben, displayName: name("Ben"), isOnline: true, incarnation: 1)])
  #expect(members.list == "ana+ ben-")
  members.benComes()
  #expect(members.list == "ana+ ben+")
  members.goodbye(2)
  #expect(members.list == "ana+ ben-")
}

/// It revived whoever had left until its silence was noticed.
@Test func whatWasSaidBeforeAGoodbyeRevivesNobody() {
  var members = Members()
  members.hear(presence(ben, "Ben", run: run(2), counter: 1))
  let nonce = members.probes(to: ben)[0]
  members.handle(.echoed(garden, ben, nonce: nonce))
  members.goodbye(9)
  members.handle(.echoed(garden, ben, nonce: nonce))
  members.hear(presence(ben, "Ben", run: run(2), counter: 8))
  #expect(members.list == "ana+ ben-")
  #expect(members.probes(to: ben) == [])
}

/// Leaving and coming back at once: the goodbye may arrive last.
@Test func aGoodbyeOvertakenByTheReturnIsIgnored() {
  var members = Members()
  members.benComes()
  members.hear(presence(ben, "Ben", run: run(2), counter: 10))
  members.goodbye(9)
  #expect(members.list == "ana+ ben+")
}

/// Messaging never learnt of the new run, and the application was told of no change.
@Test func aMemberStartedAgainIsGoneAndPresentAnew() {
  var members = Members()
  members.benComes()
  members.hear(presence(ben, "Ben", run: run(3), counter: 1, incarnation: 2))
  #expect(members.list == "ana+ ben-")
  #expect(members.told.contains(.messaging(.memberGone(garden, ben))))
  members.handle(.echoed(garden, ben, nonce: members.probes(to: ben)[0]))
  #expect(members.list == "ana+ ben+")
  let isAnnounced = members.told.contains {
    if case .messaging(.memberPresent(garden, ben, run(3), _)) = $0 { true } else { false }
  }
  #expect(isAnnounced)
}

@Test func anEarlierRunIsIgnored() {
  var members = Members()
  members.benComes(incarnation: 4)
  members.hear(presence(ben, "Ben", run: run(9), counter: 1, incarnation: 3))
  #expect(members.list == "ana+ ben+")
  #expect(members.probes(to: ben) == [])
}

@Test func aLostSessionIsToldToAllWithEveryProbeButTheFirst() {
  var members = Members()
  members.benComes()
  members.pass(1_000)
  members.handle(.sessionLost(ben, run(2)))
  func suspicions() -> Int {
    members.told.filter {
      if case .links(.multicast(garden, [.plain(.suspect(ben, incarnation: 1))])) = $0 { true } else { false }
    }.count
  }
  #expect(suspicions() == 0)
  var count = 0
  for _ in 0..<3 {
    members.pass(400)
    count += suspicions()
  }
  #expect(count == 3)
  #expect(members.list == "ana+ ben+")
  members.pass(400)
  #expect(members.told.contains(.links(.check(ben))))
  members.handle(.dialFailed(ben))
  #expect(members.list == "ana+ ben-")
}

@Test func aSuspectThatSpeaksIsPresent() {
  var members = Members()
  members.benComes()
  members.pass(1_000)
  members.handle(.sessionLost(ben, run(2)))
  members.hear(presence(ben, "Ben", run: run(2), counter: 2))
  for _ in 0..<4 { members.pass(400) }
  #expect(members.told.contains(.links(.check(ben))) == false)
  members.handle(.dialFailed(ben))
  #expect(members.list == "ana+ ben+")
}

/// The peer lives, but left this channel: a session that does not have the channel keeps nobody in it.
@Test func aDialThatDoesNotShareTheChannelKeepsNobodyInIt() {
  var members = Members()
  members.benComes()
  members.pass(1_000)
  members.handle(.sessionLost(ben, run(2)))
  for _ in 0..<4 { members.pass(400) }
  members.handle(.sessionOpened(kitchen, ben, run(2), wasIntroduced: false))
  members.handle(.dialSucceeded(ben))
  #expect(members.list == "ana+ ben-")
}

@Test func aDialThatSharesItRefutes() {
  var members = Members()
  members.benComes()
  members.pass(1_000)
  members.handle(.sessionLost(ben, run(2)))
  for _ in 0..<4 { members.pass(400) }
  members.handle(.sessionOpened(garden, ben, run(2), wasIntroduced: false))
  members.handle(.dialSucceeded(ben))
  #expect(members.list == "ana+ ben+")
}

@Test func whoIsSuspectedSaysThatItIsThere() {
  var members = Members()
  members.handle(.suspected(garden, ana, incarnation: 1))
  let isSaid = members.told.contains {
    if case .links(.multicast(garden, let frames)) = $0, case .presence? = frames.first { true } else { false }
  }
  #expect(isSaid)
  members.handle(.suspected(garden, ana, incarnation: 2))
  #expect(members.told == [])
}

@Test func theLastOfSeveralHandsInOneEntryCounts() {
  var members = Members()
  members.benComes()
  let up = entry(ben, run: run(2), 1, bodies: [hand(ben, true)], isHidden: true)
  members.handle(.hiddenEntryStored(garden, up))
  #expect(members.list == "ana+ ben+^")
  let wavering = entry(ben, run: run(2), 2, bodies: [hand(ben, true), hand(ben, false)], isHidden: true)
  members.handle(.hiddenEntryStored(garden, wavering))
  #expect(members.list == "ana+ ben+")
}

@Test func raisedHandsComeInTheOrderOfRaising() {
  var members = Members()
  members.benComes()
  members.handle(
    .hiddenEntryStored(garden, entry(ben, run: run(2), 1, lamport: 9, bodies: [hand(ben, true)], isHidden: true)))
  members.handle(
    .hiddenEntryStored(garden, entry(ana, run: run(1), 1, lamport: 4, bodies: [hand(ana, true)], isHidden: true)))
  #expect(members.machine.members(of: garden).map(\.peer) == [ana, ben])
  members.handle(
    .hiddenEntryStored(garden, entry(ana, run: run(1), 2, lamport: 11, bodies: [hand(ana, true)], isHidden: true)))
  #expect(members.machine.members(of: garden).map(\.peer) == [ben, ana])
}

@Test func aHandBelongsToOneRun() {
  var members = Members()
  members.benComes()
  members.handle(
    .hiddenEntryStored(garden, entry(ben, run: run(99), 1, bodies: [hand(ben, true)], isHidden: true)))
  members.handle(
    .hiddenEntryStored(garden, entry(ana, run: run(98), 1, bodies: [hand(ana, true)], isHidden: true)))
  #expect(members.list == "ana+ ben+")
  members.handle(
    .hiddenEntryStored(garden, entry(ana, run: run(1), 1, bodies: [hand(ana, true)], isHidden: true)))
  #expect(members.list == "ana+^ ben+")
}

@Test func leavingSaysGoodbyeThriceAndThenClosesTheChannel() {
  var members = Members()
  members.benComes()
  members.handle(.left(garden))
  let goodbyes = members.told.filter {
    if case .links(.multicast(garden, let frames)) = $0, case .live? = frames.first { true } else { false }
  }
  #expect(goodbyes.count == 3)
  #expect(members.told.firstIndex(of: .links(.channelClosed(garden)))! > members.told.lastIndex(of: goodbyes[0])!)
}

/// In a crowd the one whose name fell may speak first; else a thousand would ask it at the same moment.
@Test func hearsayInACrowdIsLookedIntoAfterAWhile() {
  var members = Members()
  members.benComes()
  for number in 10..<20 as Range<UInt64> {
    members.hear(presence(person(number), "P\(number)", run: run(number), counter: 1))
  }
  members.pass(1_000)
  members.handle(.suspected(garden, ben, incarnation: 1))
  #expect(members.probes(to: ben) == [])
  members.pass(500)
  #expect(members.probes(to: ben).count == 1)
  members.hear(presence(ben, "Ben", run: run(2), counter: 2))
  for _ in 0..<6 { members.pass(400) }
  #expect(members.told.contains(.links(.check(ben))) == false)
  #expect(members.list.contains("ben+"))
}

/// Beacons may stay away for a while because the network is bad: who is silent is asked more often than who lost a
/// session.
@Test func silenceIsMetWithPatience() {
  var members = Members()
  members.benComes()
  members.pass(2 * 2_000 + 3_000)
  #expect(members.probes(to: ben).count == 1)
  var count = 1
  while members.told.contains(.links(.check(ben))) == false, count < 100 {
    members.pass(100)
    count += members.probes(to: ben).count
  }
  #expect(count == 8)
  members.handle(.dialFailed(ben))
  #expect(members.list == "ana+ ben-")
}

/// The turn of each is found without asking all, also when intervals shrink over and over.
@Test func silenceIsNoticedAtItsTimeHoweverOftenTheIntervalChanged() {
  var members = Members()
  members.benComes()
  for number in 10..<40 as Range<UInt64> {
    members.hear(presence(person(number), "P\(number)", run: run(number), counter: 1))
  }
  members.pass(3_000)
  for counter in 2..<400 as Range<UInt64> {
    var shorter = presence(ben, "Ben", run: run(2), counter: counter)
    shorter.intervalMilliseconds = 500_000 - counter * 1_000
    members.hear(shorter)
  }
  members.pass(2 * 101_000 + 3_000 - 1)
  #expect(members.probes(to: ben) == [])
  members.pass(1)
  #expect(members.probes(to: ben).count == 1)
}
