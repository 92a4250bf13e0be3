import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

/// What a member can do to others with its signature alone.

@Test func whoClaimsAnothersInstanceDoesNotTakeItsDirectMessages() {
  var links = Links()
  links.hear(presence(ben, "Ben", run: run(2), counter: 1), from: address(2))
  links.hear(presence(cho, "Cho", run: run(2), counter: 1), from: address(3))
  links.handle(.datagramOpened(garden, run(2), from: address(2), [.direct([1, 2, 3])]))
  let tried = links.effects.compactMap { effect -> PeerID? in
    if case .openDirect(_, _, _, let author, _) = effect { author } else { nil }
  }
  #expect(tried == [ben, cho])
  // Whoever could seal it stands first, and stays tried whatever else is claimed.
  links.handle(.directOpened(garden, ben, run(2), from: address(2), DirectMessage(counter: 2, parts: [])))
  for number in 10..<40 {
    links.hear(presence(person(UInt64(number)), "Dee", run: run(2), counter: 1), from: address(3))
  }
  links.handle(.datagramOpened(garden, run(2), from: address(2), [.direct([1, 2, 3])]))
  let again = links.effects.compactMap { effect -> PeerID? in
    if case .openDirect(_, _, _, let author, _) = effect { author } else { nil }
  }
  #expect(again.first == ben && again.count == 8)
  #expect(links.machine.peer(of: run(2)) == ben)
}

@Test func aPresenceOfAnotherDoesNotEndAnInstance() {
  var links = Links()
  links.hear(presence(ben, "Ben", run: run(2), counter: 1), from: address(2))
  links.hear(presence(cho, "Cho", run: run(2), counter: 1), from: address(3))
  links.hear(presence(cho, "Cho", run: run(4), counter: 1, incarnation: 2), from: address(3))
  #expect(links.machine.peer(of: run(2)) == ben)
}

@Test func manyQuestionsInOneMessageAreOne() {
  var links = Links()
  links.hear(presence(ben, "Ben", run: run(2), counter: 1), from: address(2))
  let parts = (1...100).map { DirectMessage.Part.probe(nonce: $0) } + [.echo(nonce: 3)]
  links.handle(.directOpened(garden, ben, run(2), from: address(2), DirectMessage(counter: 2, parts: parts)))
  #expect(
    links.told == [.membership(.probed(garden, ben, nonce: 1)), .membership(.echoed(garden, ben, nonce: 3))])
}

@Test func beaconsFromEverNewAddressesMakeNobodyWriteToStrangers() {
  var links = Links()
  links.hear(presence(ben, "Ben", run: run(2), counter: 1), from: address(2))
  links.handle(.directOpened(garden, ben, run(2), from: address(2), DirectMessage(counter: 2, parts: [])))
  var writtenCount = 0
  for number in 3...102 {
    links.now = links.now.plus(10)
    links.hear(presence(ben, "Ben", run: run(2), counter: UInt64(number)), from: address(UInt8(number)))
    writtenCount += links.effects.count { if case .unicast = $0 { true } else { false } }
  }
  // Of 100 in a second.
  #expect(writtenCount == 1)
}

@Test func probesOfOneMemberAreAnsweredAtABoundedRate() {
  var members = Members()
  members.benComes()
  var answerCount = 0
  for nonce in 1...1_000 {
    members.handle(.probed(garden, ben, nonce: UInt64(nonce)))
    answerCount += members.told.count
  }
  #expect(answerCount == 20)
  members.now = members.now.plus(1_000)
  for nonce in 1...1_000 {
    members.handle(.probed(garden, ben, nonce: UInt64(nonce)))
    answerCount += members.told.count
  }
  #expect(answerCount == 30)
}

@Test func beaconsThatNameAnUnknownStatusAreAnsweredAtABoundedRate() {
  var members = Members()
  members.benComes()
  var answerCount = 0
  for counter in 2...1_001 {
    var said = presence(ben, "Ben", run: run(2), counter: UInt64(counter), isFull: false)
    said.statusHash = UInt64(counter)
    members.hear(said)
    answerCount += members.told.count { if case .links(.unicast) = $0 { true } else { false } }
  }
  #expect(answerCount <= 20)
}

/// Forty names fit one datagram; each would be asked by all.
@Test func rumoursOfAllMembersCostABoundedNumberOfProbes() {
  var members = Members()
  let people = (10..<210).map { person($0) }
  for (index, peer) in people.enumerated() {
    members.hear(presence(peer, "M", run: run(UInt64(100 + index)), counter: 1))
    members.handle(.sessionOpened(garden, peer, run(UInt64(100 + index)), wasIntroduced: false))
  }
  members.now = members.now.plus(500)
  for peer in people { members.handle(.suspected(garden, peer, incarnation: 1)) }
  var askedCount = 0
  for _ in 0..<20 {
    members.pass(50)
    askedCount += members.told.count {
      if case .links(.unicast(_, _, _, let parts)) = $0 { !parts.isEmpty } else { false }
    }
  }
  // 32 at once, each asked at most four times in this second.
  #expect(askedCount <= 32 * 4)
}

@Test func suspicionOfOurselvesCostsABeaconNowAndThen() {
  var members = Members()
  var beaconCount = 0
  for _ in 0..<100 {
    members.handle(.suspected(garden, ana, incarnation: 1))
    beaconCount += members.told.count
  }
  #expect(beaconCount == 1)
  members.now = members.now.plus(500)
  members.handle(.suspected(garden, ana, incarnation: 1))
  #expect(members.told.count == 1)
}

// MARK: Copies of a profile

@Test func aRestoredProfileIsToldHowFarItHadCome() throws {
  var links = Links(ben)
  links.hear(presence(ana, "Ana", run: run(7), counter: 1, incarnation: 9), from: address(1))
  links.hear(presence(ana, "Ana", run: run(8), counter: 1, incarnation: 4), from: address(1))
  let report = DatagramFrame.suspect(ana, incarnation: 9)
  #expect(links.effects == [.unicast(garden, to: address(1), [.plain(report)], direct: nil)])
  // Not once more within the second: a replay must not make us talk.
  links.hear(presence(ana, "Ana", run: run(8), counter: 2, incarnation: 4), from: address(1))
  #expect(links.effects == [])
  var members = Members()
  members.handle(.suspected(garden, ana, incarnation: 9))
  #expect(members.told.first == .login(.incarnationRaised(10)))
  let beacons = members.told.compactMap { event -> UInt64? in
    guard case .links(.multicast(_, let frames)) = event, case .presence(let presence)? = frames.first else {
      return nil
    }
    return presence.incarnation
  }
  #expect(beacons == [10])
  // So it is heard again.
  links.now = links.now.plus(1_000)
  links.hear(presence(ana, "Ana", run: run(8), counter: 3, incarnation: 10), from: address(1))
  #expect(links.told.count == 1)
}

@Test func whatIsRememberedFromTheDiskIsReportedToo() {
  var members = Members(
    remembered: [MemberRecord(peer: ben, displayName: name("Ben"), isOnline: false, incarnation: 5)])
  members.hear(presence(ben, "Ben", run: run(2), counter: 1, incarnation: 2))
  let report = OutboundFrame.plain(.suspect(ben, incarnation: 5))
  #expect(members.told == [.links(.unicast(garden, ben, [report], direct: []))])
  members.hear(presence(ben, "Ben", run: run(2), counter: 2, incarnation: 2))
  #expect(members.told == [])
}

@Test func nobodyRaisesAnIncarnationToItsEnd() {
  var members = Members()
  members.handle(.suspected(garden, ana, incarnation: 1 << 61))
  #expect(members.told == [])
  members.handle(.suspected(garden, ana, incarnation: 0))
  #expect(members.told == [])
}

/// Yesterday's presence of ours, heard again, says nothing; who answers there with our key does.
@Test func aRecordingOfOurselvesIsDialledAndEndsNothing() {
  var links = Links()
  links.hear(presence(ana, "Ana", run: run(9), counter: 1, incarnation: 5), from: address(7))
  #expect(links.told == [])
  #expect(links.dialled == [address(7, port: 7_000)])
  let dial = links.dials[0]
  // Recordings do not make us dial without end.
  links.hear(presence(ana, "Ana", run: run(9), counter: 2, incarnation: 5), from: address(8))
  #expect(links.effects == [])
  links.handle(.sessionClosed(dial, reason: "nobody there"))
  #expect(links.effects == [])
}

@Test func ofTwoCopiesThatRunExactlyOneGivesUp() {
  for (mine, theirs, whoGivesUp) in [(5, 5, [true, false]), (5, 6, [true, false]), (6, 5, [false, true])] {
    var gaveUp: [Bool] = []
    for (own, other, isGreater) in [(mine, theirs, true), (theirs, mine, false)] {
      // The first runs as 1, the second as 9.
      var links = Links()
      links.machine = LinksMachine(me: ana, instance: run(isGreater ? 1 : 9))
      links.handle(.channelOpened(garden))
      let instance = run(isGreater ? 9 : 1)
      links.hear(
        presence(ana, "Ana", run: instance, counter: 1, incarnation: UInt64(other)), from: address(7))
      #expect(links.dialled == [address(7, port: 7_000)])
      links.handle(.metOurselves(instance))
      var login = LoginMachine()
      _ = login.handle(.loggedIn(name("Ana"), incarnation: UInt64(own)), at: start)
      _ = login.handle(.interfacesChanged(workingCount: 1), at: start)
      for case .login(let event) in links.told { _ = login.handle(event, at: start) }
      gaveUp.append(login.state == .aborted)
    }
    #expect(gaveUp == whoGivesUp, "\(mine) and \(theirs)")
  }
}

// MARK: Fragments

@Test func whoBeginsManyEntriesPushesOutOnlyItsOwn() {
  var links = Links()
  let long = entry(ben, run: run(2), 1, bodies: [text(ben, String(repeating: "x", count: 3_000), id: "m")]).encoded
  var split = Links(ben)
  split.handle(.multicast(garden, [.plain(.entry(long))]))
  let fragments = split.effects.compactMap { effect -> DatagramFrame? in
    if case .multicast(_, let frames) = effect, case .plain(let plain) = frames[0] { plain } else { nil }
  }
  #expect(fragments.count == 3)
  links.handle(.datagramOpened(garden, run(2), from: address(2), [fragments[0]]))
  // A flood of beginnings from one host, by many sockets and under many instances, among them ours.
  for number in 0..<10_000 {
    let fragment = EntryFragment(group: UInt64(number), index: 0, count: 40, bytes: [1])
    links.handle(
      .datagramOpened(
        garden, run(UInt64(number % 50) + 2), from: address(66, port: UInt16(4_000 + number % 500)),
        [.fragment(fragment)]))
  }
  // Parts under its name and group from elsewhere spoil nothing either.
  if case .fragment(let real) = fragments[1] {
    let forged = EntryFragment(group: real.group, index: 1, count: 3, bytes: [9])
    links.handle(.datagramOpened(garden, run(2), from: address(66), [.fragment(forged)]))
  }
  links.handle(.datagramOpened(garden, run(2), from: address(2), Array(fragments[1...])))
  #expect(links.told == [.messaging(.entryHeard(garden, long, from: nil))])
}

/// Each of many thousand costs the same, and none of them more memory than there are places.
@Test func twentyThousandIdentitiesTakeBoundedRoom() {
  var links = Links()
  var members = Members()
  for number in 10..<20_010 {
    let said = presence(person(UInt64(number)), "M", run: run(UInt64(number)), counter: 1, isFull: false)
    let host = [10, UInt8(number >> 16), UInt8(number >> 8 & 255), UInt8(number & 255)]
    links.hear(said, from: Address(host: host, port: 4_000))
    members.hear(said)
    // None of them answers.
    if number % 500 == 0 { for _ in 0..<5 { members.pass(1_000) } }
  }
  links.hear(presence(ben, "Ben", run: run(2), counter: 1), from: address(2))
  #expect(links.told.count == 1)
  members.hear(presence(ben, "Ben", run: run(2), counter: 1))
  var asked = members.probes(to: ben)
  // Among so many who were here newcomers are answered after a jitter.
  for _ in 0..<10 where asked.isEmpty {
    members.pass(100)
    asked = members.probes(to: ben)
  }
  members.handle(.echoed(garden, ben, nonce: asked.first ?? 0))
  #expect(members.list == "ana+ ben+")
}
