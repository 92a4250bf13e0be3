import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

private func id(_ number: UInt64, _ hash: UInt64 = 5) -> GenerationID {
  GenerationID(number: number, hash: Bytes32(words: (hash, 0, 0, number)))
}

private let secret = Bytes32(words: (1, 2, 3, 4))

private func stated(_ id: GenerationID, by author: PeerID) -> Signed {
  signed(GenerationStatement(author: author, id: id).encoded)
}

/// Ana's machine in a garden that she founded, at generation 1, which replaced 0.
private func owned(_ trust: ChannelTrust? = ChannelTrust(rotators: [ana], members: [ben, cho])) -> Links {
  var links = Links()
  links.handle(
    .generationsRestored(
      garden, founder: ana, [KnownGeneration(id: id(1), author: ana), KnownGeneration(id: id(0), author: ana)]))
  if let trust { links.handle(.trustChanged(garden, trust)) }
  return links
}

extension Links {
  /// A session with Ben, in which the garden was proved by this generation.
  fileprivate mutating func meetBen(provedBy generation: GenerationID) {
    handle(
      .sessionOpened(
        LinkID(1),
        SessionFacts(
          peer: ben, instance: run(2), channels: [garden], isInitiator: false, remote: address(2, port: 7_000),
          generations: [garden: generation])))
  }

  fileprivate mutating func hear(_ presence: Presence, under generation: GenerationID) {
    handle(
      .claimVerified(
        garden, .presence(presence, signed(presence.encoded)), from: address(2), under: generation))
  }

  fileprivate var handedOver: [GenerationID] {
    effects.compactMap { if case .handOver(_, garden, let id) = $0 { id } else { nil } }
  }

  fileprivate var refusals: [ChannelRefusal] {
    sent.compactMap { if case .refused(garden, let reason) = $0 { reason } else { nil } }
  }
}

@Test func whoProvesByAnOlderGenerationGetsTheNewest() {
  var links = owned()
  links.meetBen(provedBy: id(0))
  #expect(links.handedOver == [id(1)])
  var up = owned()
  up.meetBen(provedBy: id(1))
  #expect(up.handedOver == [])
}

@Test func aNewcomerGetsNothingBeforeItIsAMember() {
  var links = owned(ChannelTrust(rotators: [ana], members: [cho]))
  links.meetBen(provedBy: id(0))
  #expect(links.handedOver == [] && links.refusals == [])
  links.handle(.trustChanged(garden, ChannelTrust(rotators: [ana], members: [ben, cho])))
  #expect(links.handedOver == [id(1)])
}

@Test func aRotationGoesToAllSessionsAndNotToTheRemoved() {
  var links = owned()
  links.meetBen(provedBy: id(1))
  links.handle(
    .sessionOpened(
      LinkID(3),
      SessionFacts(
        peer: cho, instance: run(3), channels: [garden], isInitiator: false, remote: address(3, port: 7_000),
        generations: [garden: id(1)])))
  links.handle(.trustChanged(garden, ChannelTrust(rotators: [ana], members: [cho], refused: [ben: .removed])))
  #expect(links.refusals == [.removed])
  #expect(links.effects.contains(.close(LinkID(1), afterWrites: true)))
  links.handle(.rotate(garden))
  #expect(links.effects == [.drawGeneration(garden, number: 2)])
  links.handle(.generationAdded(garden, KnownGeneration(id: id(2), author: ana), from: nil))
  #expect(links.effects.contains(.sendUnder(garden, id(2))))
  #expect(
    links.effects.filter { if case .handOver = $0 { true } else { false } } == [.handOver(LinkID(3), garden, id(2))])
  // He comes again, with what he knows.
  links.meetBen(provedBy: id(1))
  #expect(links.handedOver == [] && links.refusals == [.removed])
  #expect(links.effects.contains(.close(LinkID(1), afterWrites: true)))
  #expect(links.told == [])
  // His presence, under any key he has.
  links.hear(presence(ben, "Ben", run: run(2), counter: 9), under: id(1))
  #expect(links.effects == [])
  links.handle(.datagramOpened(garden, run(2), from: address(2), [.entry([1])], under: id(1)))
  #expect(links.effects == [])
}

/// What lets him in again can only come from himself: he has the secret that was made to be without him, so somebody
/// gave it to him since.
@Test func whoWasRemovedIsHeardWithASecretThatWasMadeToBeWithoutThem() {
  let removed = ChannelTrust(rotators: [ana], members: [cho], refused: [ben: .removed])
  var links = owned()
  links.meetBen(provedBy: id(1))
  links.handle(.generationAdded(garden, KnownGeneration(id: id(2), author: ana, excluded: [ben]), from: nil))
  links.handle(.trustChanged(garden, removed))
  // Under the one before nothing but silence.
  links.handle(.datagramOpened(garden, run(2), from: address(2), [.entry([1])], under: id(1)))
  #expect(links.effects == [])
  links.meetBen(provedBy: id(1))
  #expect(links.refusals == [.removed])
  // Entries, and nothing else.
  links.handle(.datagramOpened(garden, run(2), from: address(2), [.entry([1]), .whoHas([])], under: id(2)))
  #expect(links.effects == [.tell(.messaging(.entryHeard(garden, [1], from: ben)))])
  links.meetBen(provedBy: id(2))
  #expect(links.refusals == [] && links.handedOver == [])
  #expect(links.machine.trusts(ben, in: garden) == false)
  // Nor is it handed on to him what comes next.
  links.handle(.generationAdded(garden, KnownGeneration(id: id(3), author: ana), from: nil))
  #expect(links.handedOver == [])
}

@Test func aBanIsNotLiftedByASecret() {
  var links = owned()
  links.meetBen(provedBy: id(1))
  links.handle(.generationAdded(garden, KnownGeneration(id: id(2), author: ana, excluded: [ben]), from: nil))
  links.handle(.trustChanged(garden, ChannelTrust(rotators: [ana], members: [cho], refused: [ben: .banned])))
  links.handle(.datagramOpened(garden, run(2), from: address(2), [.entry([1])], under: id(2)))
  #expect(links.effects == [])
  links.meetBen(provedBy: id(2))
  #expect(links.refusals == [.banned])
}

@Test func whoWasRemovedIsHeardAfterARestartToo() {
  var links = Links()
  links.handle(
    .generationsRestored(
      garden, founder: ana,
      [KnownGeneration(id: id(2), author: ana, excluded: [ben]), KnownGeneration(id: id(1), author: ana)]))
  links.handle(.trustChanged(garden, ChannelTrust(rotators: [ana], members: [cho], refused: [ben: .removed])))
  links.meetBen(provedBy: id(1))
  #expect(links.refusals == [.removed])
  links.meetBen(provedBy: id(2))
  #expect(links.refusals == [])
}

/// The acts that remove him are folded elsewhere, and may come here later than the wish for a new secret, and after
/// older news.
@Test func whoIsBeingRemovedGetsNothingBeforeItsActIsFolded() {
  let before = ChannelTrust(rotators: [ana], members: [ben, cho])
  var links = owned(before)
  links.meetBen(provedBy: id(1))
  links.handle(.rotate(garden, refusing: [ben: .banned]))
  #expect(links.refusals == [.banned])
  #expect(links.effects.contains(.drawGeneration(garden, number: 2, excluding: [ben])))
  links.handle(.generationAdded(garden, KnownGeneration(id: id(2), author: ana), from: nil))
  #expect(links.handedOver == [])
  links.handle(.trustChanged(garden, before))
  #expect(links.handedOver == [])
  links.meetBen(provedBy: id(1))
  #expect(links.handedOver == [] && links.refusals == [.banned])
  // Once the acts have said so, they can say otherwise.
  links.handle(.trustChanged(garden, ChannelTrust(rotators: [ana], members: [cho], refused: [ben: .banned])))
  links.handle(.trustChanged(garden, before))
  links.meetBen(provedBy: id(1))
  #expect(links.handedOver == [id(2)])
}

/// The secret is faster than the act: whoever passes it on must know already whom it is not for.
@Test func aSecretIsNotPassedOnToWhomItRemoves() {
  var links = owned(ChannelTrust(rotators: [ana, cho], members: [ben]))
  links.meetBen(provedBy: id(1))
  links.handle(
    .generationAdded(garden, KnownGeneration(id: id(2), author: cho, excluded: [ben, ana]), from: cho))
  #expect(links.handedOver == [] && links.refusals == [.removed])
  #expect(links.effects.contains(.sendUnder(garden, id(2))))
  // Nobody without the right is believed, and no admin about another.
  var other = owned(ChannelTrust(rotators: [ana, ben], members: [cho], confirmed: [id(2)]))
  other.meetBen(provedBy: id(1))
  other.handle(.generationAdded(garden, KnownGeneration(id: id(2), author: cho, excluded: [ben]), from: cho))
  #expect(other.handedOver == [id(2)] && other.refusals == [])
}

@Test func onlyTheOwnerAndAdminsRotate() {
  var links = owned(ChannelTrust(rotators: [ben], members: [ana]))
  links.handle(.rotate(garden))
  #expect(links.effects == [])
  var early = owned(nil)
  early.handle(.rotate(garden))
  #expect(early.effects == [.drawGeneration(garden, number: 2)], "the founder, before anything is known")
}

@Test func aGenerationOfWhoMayNotMakeOneWaitsUntilTheyMay() {
  var links = owned()
  links.meetBen(provedBy: id(1))
  let message = SessionMessage.generation(garden, stated(id(2), by: cho), secret: secret)
  links.handle(.sessionMessage(LinkID(1), message))
  #expect(links.effects == [])
  links.handle(.trustChanged(garden, ChannelTrust(rotators: [ana, cho], members: [ben])))
  #expect(
    links.effects == [.checkGeneration(garden, stated(id(2), by: cho), secret: secret, from: ben)])
}

@Test func numbersFarAheadAreRefused() {
  var links = owned()
  links.meetBen(provedBy: id(1))
  let far = stated(id(2 + GenerationID.stepMax), by: ana)
  links.handle(.sessionMessage(LinkID(1), .generation(garden, far, secret: secret)))
  #expect(links.effects == [])
  let near = stated(id(1 + GenerationID.stepMax), by: ana)
  links.handle(.sessionMessage(LinkID(1), .generation(garden, near, secret: secret)))
  #expect(links.effects == [.checkGeneration(garden, near, secret: secret, from: ben)])
}

@Test func ofTwoWithOneNumberTheLowerHashIsSentUnderAndBothAreReceived() {
  var links = owned(ChannelTrust(rotators: [ana, ben], members: []))
  links.meetBen(provedBy: id(1))
  links.handle(.generationAdded(garden, KnownGeneration(id: id(2, 7), author: ana), from: nil))
  #expect(links.handedOver == [id(2, 7)])
  links.handle(.generationAdded(garden, KnownGeneration(id: id(2, 9), author: ben), from: ben))
  #expect(links.effects.contains(.sendUnder(garden, id(2, 9))) == false)
  links.handle(.generationAdded(garden, KnownGeneration(id: id(2, 6), author: ben), from: ben))
  #expect(links.effects.contains(.sendUnder(garden, id(2, 6))))
  #expect(links.handedOver == [], "who gave it has it")
}

/// An admin who was removed makes a generation and states it to those who have not heard of that.
@Test func aGenerationOfTheRemovedCountsNoMoreOnceThatIsKnown() {
  var links = owned(ChannelTrust(rotators: [ana, ben], members: [cho]))
  links.handle(.generationAdded(garden, KnownGeneration(id: id(900), author: ben), from: ben))
  #expect(links.effects.contains(.sendUnder(garden, id(900))))
  links.handle(.trustChanged(garden, ChannelTrust(rotators: [ana], members: [cho], refused: [ben: .removed])))
  #expect(links.effects.contains(.sendUnder(garden, id(1))))
  links.handle(.generationAdded(garden, KnownGeneration(id: id(2), author: ana), from: cho))
  #expect(links.effects.contains(.sendUnder(garden, id(2))))
}

@Test func aGenerationThatAnActNamesOutlivesItsAuthorsRank() {
  var links = owned(ChannelTrust(rotators: [ana, ben], members: [cho]))
  links.handle(.generationAdded(garden, KnownGeneration(id: id(2), author: ben), from: ben))
  links.handle(.trustChanged(garden, ChannelTrust(rotators: [ana], members: [ben, cho], confirmed: [id(2)])))
  #expect(links.effects.contains { if case .sendUnder = $0 { true } else { false } } == false)
}

@Test func whoIsHeardUnderAnOldGenerationIsCalledAfterAWhile() {
  var links = owned()
  links.hear(presence(ben, "Ben", run: run(2), counter: 1), under: id(0))
  #expect(links.dials == [])
  #expect(links.told == [], "it could not read what it would be asked")
  links.pass(5_000)
  #expect(links.dials.count == 1)
  // Unless somebody else was first.
  var other = owned()
  other.hear(presence(ben, "Ben", run: run(2), counter: 1), under: id(0))
  other.hear(presence(ben, "Ben", run: run(2), counter: 2), under: id(1))
  #expect(other.told.count == 1)
  other.pass(5_000)
  #expect(other.dials == [])
}

@Test func secretsAreChangedOnSchedule() {
  var links = Links()
  links.machine.rotateEvery = .seconds(3_600)
  let known = [KnownGeneration(id: id(1), author: ana)]
  links.handle(.generationsRestored(garden, founder: ana, known, age: .seconds(600)))
  #expect(links.effects == [.wake(at: links.now.plus(3_000_000))])
  links.pass(2_999_999)
  #expect(links.effects.contains(.drawGeneration(garden, number: 2)) == false)
  links.pass(1)
  #expect(links.effects.contains(.drawGeneration(garden, number: 2)))
  links.handle(.generationAdded(garden, KnownGeneration(id: id(2), author: ana), from: nil))
  #expect(links.effects.contains(.wake(at: links.now.plus(3_600_000))))
  links.pass(3_600_000)
  #expect(links.effects.contains(.drawGeneration(garden, number: 3)))
}

@Test func whatWasOnItsWayIsReadForTwoMinutes() {
  var links = owned()
  links.handle(.generationAdded(garden, KnownGeneration(id: id(2), author: ana), from: nil))
  links.hear(presence(ben, "Ben", run: run(2), counter: 1), under: id(2))
  let frames: [DatagramFrame] = [.entry([1]), .suspect(cho, incarnation: 1), .whoHas([])]
  links.now = links.now.plus(119_000)
  links.handle(.datagramOpened(garden, run(2), from: address(2), frames, under: id(1)))
  #expect(links.told == [.messaging(.entryHeard(garden, [1], from: ben))], "nobody signs the others")
  links.now = links.now.plus(1_000)
  links.handle(.datagramOpened(garden, run(2), from: address(2), frames, under: id(1)))
  #expect(links.told == [])
  links.handle(.datagramOpened(garden, run(2), from: address(2), frames, under: id(2)))
  #expect(links.told.count == 3)
}
