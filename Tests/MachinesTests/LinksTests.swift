import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

/// A links machine of `me` in the garden.
struct Links {
  var machine: LinksMachine
  var now = start
  var effects: [LinksEffect] = []

  init(_ me: PeerID = ana) {
    machine = LinksMachine(me: me, instance: run(1))
    handle(.channelOpened(garden))
  }

  mutating func handle(_ event: LinksEvent) { effects = machine.handle(event, at: now) }

  mutating func pass(_ milliseconds: Int) {
    now = now.plus(milliseconds)
    handle(.woke)
  }

  var told: [NodeEvent] { effects.compactMap { if case .tell(let event) = $0 { event } else { nil } } }
  var dials: [LinkID] { effects.compactMap { if case .dial(let link, _, _, _) = $0 { link } else { nil } } }
  var dialled: [Address] { effects.compactMap { if case .dial(_, let address, _, _) = $0 { address } else { nil } } }
  var sent: [SessionMessage] { effects.compactMap { if case .sendFrame(_, let message) = $0 { message } else { nil } } }

  /// A genuine presence, heard from an address.
  mutating func hear(_ presence: Presence, from address: Address?) {
    handle(.claimVerified(garden, .presence(presence, signed(presence.encoded)), from: address))
  }

  mutating func open(_ link: LinkID, _ peer: PeerID, run instance: Instance, isInitiator: Bool, _ channels: [ChannelID])
  {
    handle(
      .sessionOpened(
        link,
        SessionFacts(
          peer: peer, instance: instance, channels: channels, isInitiator: isInitiator, remote: address(2, port: 7_000))
      ))
  }

  /// A session with Ben that we dialled.
  mutating func reachBen() -> LinkID {
    hear(presence(ben, "Ben", run: run(2), counter: 1), from: address(2))
    handle(.keep(ben))
    let link = dials[0]
    open(link, ben, run: run(2), isInitiator: true, [garden])
    return link
  }
}

@Test func theReplayWindowKnowsTheLastSixtyFour() {
  var window = ReplayWindow()
  window.accept(100)
  #expect(window.isFresh(100) == false)
  #expect(window.isFresh(99))
  window.accept(99)
  #expect(window.isFresh(99) == false)
  #expect(window.isFresh(37))
  #expect(window.isFresh(36) == false)
  window.accept(1_000)
  #expect(window.isFresh(100) == false)
  #expect(window.isFresh(999))
}

@Test func aPresenceIsPassedOnOnce() {
  var links = Links()
  let said = presence(ben, "Ben", run: run(2), counter: 1)
  links.hear(said, from: address(2))
  #expect(links.told == [.membership(.presenceHeard(garden, said, overSession: false))])
  links.hear(said, from: address(9))
  #expect(links.told == [])
  links.handle(.datagramOpened(garden, run(2), from: address(9), [.presence(signed(said.encoded))]))
  #expect(links.effects == [])
}

@Test func aPresenceUnderAnothersInstanceIsIgnored() {
  var links = Links()
  let said = presence(ben, "Ben", run: run(2), counter: 1)
  links.handle(.datagramOpened(garden, run(3), from: address(2), [.presence(signed(said.encoded))]))
  #expect(links.effects == [])
}

/// Nobody wrote to the new address, so nothing sealed ever came from there, and the peer was lost.
@Test func aNewAddressIsAskedAndTakenOnceItAnswers() {
  var links = Links()
  links.hear(presence(ben, "Ben", run: run(2), counter: 1), from: address(2))
  links.handle(.directOpened(garden, ben, run(2), from: address(2), DirectMessage(counter: 2, parts: [])))
  links.hear(presence(ben, "Ben", run: run(2), counter: 3), from: address(8))
  let asked = links.effects.compactMap { effect -> Address? in
    if case .unicast(garden, let to, [], let direct?) = effect, case .probe = direct.message.parts[0] {
      to
    } else {
      nil
    }
  }
  #expect(asked == [address(8)])
  #expect(links.machine.address(of: ben) == address(2, port: 7_000))
  links.handle(
    .directOpened(garden, ben, run(2), from: address(8), DirectMessage(counter: 4, parts: [.echo(nonce: 1)])))
  #expect(links.machine.address(of: ben) == address(8, port: 7_000))
}

@Test func aReplayedDirectMessageMovesNothing() {
  var links = Links()
  links.hear(presence(ben, "Ben", run: run(2), counter: 1), from: address(2))
  let message = DirectMessage(counter: 2, parts: [.echo(nonce: 5)])
  links.handle(.directOpened(garden, ben, run(2), from: address(2), message))
  #expect(links.told == [.membership(.echoed(garden, ben, nonce: 5))])
  links.handle(.directOpened(garden, ben, run(2), from: address(8), message))
  #expect(links.effects == [])
  #expect(links.machine.address(of: ben) == address(2, port: 7_000))
}

@Test func ofTwoSessionsTheSmallersStaysOnBothSides() {
  for (me, other) in [(ana, ben), (ben, ana)] {
    for dialledFirst in [true, false] {
      var links = Links(me)
      links.hear(presence(other, "Other", run: run(2), counter: 1), from: address(2))
      links.handle(.send(other, .ping(1)))
      let dial = links.dials[0]
      let accepted = LinkID(1)
      for link in dialledFirst ? [dial, accepted] : [accepted, dial] {
        links.open(link, other, run: run(2), isInitiator: link == dial, [garden])
      }
      links.handle(.sendIfOpen(other, .ping(9)))
      let stays = me < other ? dial : accepted
      #expect(links.effects == [.sendFrame(stays, .ping(9))])
      // What was written into the other one before is heard all the same.
      let loser = stays == dial ? accepted : dial
      links.handle(.sessionMessage(loser, .peerStored(MessageID("m")!)))
      #expect(links.told == [.messaging(.sessionMessage(other, .peerStored(MessageID("m")!)))])
      links.handle(.sessionClosed(loser, reason: "closed"))
      #expect(links.told == [])
    }
  }
}

@Test func aChannelOpenedLaterIsProvenInWhatStands() {
  var links = Links()
  let link = links.reachBen()
  links.handle(.channelOpened(kitchen))
  #expect(links.effects == [.prove(link, [kitchen])])
  links.handle(.channelsProven(link, [kitchen]))
  #expect(links.told == [.membership(.sessionOpened(kitchen, ben, run(2), wasIntroduced: false))])
  #expect(links.effects.first == .prove(link, [kitchen]))
  links.handle(.channelsProven(link, [kitchen]))
  #expect(links.effects == [])
}

@Test func nothingOfAChannelThatIsNotProvenIsPassedOn() {
  var links = Links()
  let link = links.reachBen()
  links.handle(.channelOpened(kitchen))
  links.handle(.sessionMessage(link, .want(kitchen, request: 1, [])))
  #expect(links.told == [])
  links.handle(.sessionMessage(link, .want(garden, request: 1, [])))
  #expect(links.told.count == 1)
}

@Test func anIdleSessionIsClosedWithAWordUnlessItIsKept() {
  var links = Links()
  links.hear(presence(cho, "Cho", run: run(3), counter: 1), from: address(3))
  links.handle(.send(cho, .ping(1)))
  let idle = links.dials[0]
  links.open(idle, cho, run: run(3), isInitiator: true, [garden])
  let kept = links.reachBen()
  var closed: [LinkID] = []
  for _ in 0..<70 {
    links.pass(500)
    closed += links.effects.compactMap { if case .close(let link, _) = $0 { link } else { nil } }
    for link in [idle, kept] where closed.contains(link) == false { links.handle(.sessionMessage(link, .pong(1))) }
  }
  #expect(closed == [idle])
}

@Test func silenceAfterAPingEndsASession() {
  var links = Links()
  let link = links.reachBen()
  var isPinged = false
  for _ in 0..<13 {
    links.pass(500)
    if case .ping? = links.sent.first { isPinged = true }
  }
  #expect(isPinged)
  var effects: [LinksEffect] = []
  for _ in 0..<6 {
    links.pass(500)
    effects += links.effects
  }
  #expect(effects.contains(.close(link, afterWrites: false)))
  #expect(effects.contains(.tell(.membership(.sessionLost(ben, run(2))))))
}

/// The watch over the successor ended with its first broken connection.
@Test func aKeptSessionIsDialledAgain() {
  var links = Links()
  let link = links.reachBen()
  links.handle(.sessionClosed(link, reason: "reset"))
  #expect(links.told.contains(.membership(.sessionLost(ben, run(2)))))
  links.pass(500)
  #expect(links.dials == [])
  links.pass(600)
  #expect(links.dialled == [address(2, port: 7_000)])
}

@Test func aCheckIsANewDialAndTheOldSessionEndsWithAWord() {
  var links = Links()
  let link = links.reachBen()
  links.handle(.check(ben))
  #expect(links.sent == [.closing])
  #expect(links.effects.contains(.close(link, afterWrites: false)))
  let dial = links.dials[0]
  links.handle(.sessionClosed(dial, reason: "no answer"))
  #expect(links.told.contains(.membership(.dialFailed(ben))))
}

@Test func whoAnswersACheckIsAnnouncedByChannelFirst() {
  var links = Links()
  _ = links.reachBen()
  links.handle(.check(ben))
  links.open(links.dials[0], ben, run: run(2), isInitiator: true, [garden])
  #expect(
    links.told == [
      .membership(.sessionOpened(garden, ben, run(2), wasIntroduced: false)), .membership(.dialSucceeded(ben)),
    ])
}

@Test func theSessionOfAnEarlierRunIsDropped() {
  var links = Links()
  let link = links.reachBen()
  links.hear(presence(ben, "Ben", run: run(5), counter: 1, incarnation: 2), from: address(2))
  #expect(links.effects.contains(.close(link, afterWrites: false)))
  #expect(links.machine.sessionCount == 0)
}

/// A session says which run is there, before any presence of it came; what anybody recorded of the one before must
/// neither end that session nor be passed on once more.
@Test func aReplayOfAnEarlierRunNeitherEndsASessionNorIsHeardAgain() {
  var links = Links()
  let old = presence(ben, "Ben", run: run(2), counter: 1)
  links.hear(old, from: address(2))
  links.open(LinkID(9), ben, run: run(3), isInitiator: false, [garden])
  links.handle(.datagramOpened(garden, run(2), from: address(9), [.presence(signed(old.encoded))]))
  #expect(links.effects == [])
  links.hear(old, from: address(9))
  #expect(links.told == [] && links.machine.session(of: ben) == LinkID(9))
  // Runs by turns, as late words of an earlier one may come: each has its own window.
  let new = presence(ben, "Ben", run: run(3), counter: 1)
  links.hear(new, from: address(2))
  #expect(links.told == [.membership(.presenceHeard(garden, new, overSession: false))])
  links.hear(old, from: address(2))
  links.hear(new, from: address(2))
  #expect(links.told == [])
}

@Test func whatWaitsForASessionGoesOutInOrder() {
  var links = Links()
  links.hear(presence(ben, "Ben", run: run(2), counter: 1), from: address(2))
  links.handle(.send(ben, .ping(1)))
  let dial = links.dials[0]
  links.handle(.send(ben, .ping(2)))
  #expect(links.effects == [])
  links.open(dial, ben, run: run(2), isInitiator: true, [garden])
  #expect(links.sent == [.ping(1), .ping(2)])
}

@Test func ownPeerIDElsewhereIsToldToLoginOnceItAnswers() {
  var links = Links()
  links.hear(presence(ana, "Ana", run: run(9), counter: 1, incarnation: 5), from: address(7))
  #expect(links.told == [])
  links.handle(.metOurselves(run(9)))
  #expect(links.told == [.login(.seenElsewhere(incarnation: 5, isAfterUs: true))])
  // Whoever answers with our key as a run that was not heard of, or as this one, says nothing yet.
  for other in [run(1), run(8)] {
    links.handle(.metOurselves(other))
    #expect(links.told == [])
  }
}

@Test func aLongEntryGoesInFragmentsThatMakeItWhole() {
  var links = Links()
  let long = entry(ana, run: run(1), 1, bodies: [text(ana, String(repeating: "x", count: 5_000), id: "m")]).encoded
  links.handle(.multicast(garden, [.plain(.entry(long))]))
  let fragments = links.effects.compactMap { effect -> DatagramFrame? in
    if case .multicast(_, let frames) = effect, case .plain(let plain) = frames[0] { plain } else { nil }
  }
  #expect(fragments.count == 5)
  var other = Links(ben)
  var whole: [NodeEvent] = []
  for fragment in fragments.reversed() + fragments {
    other.handle(.datagramOpened(garden, run(7), from: address(1), [fragment]))
    whole += other.told
  }
  #expect(whole.first == .messaging(.entryHeard(garden, long, from: nil)))
}
