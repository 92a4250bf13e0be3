import ParleyVocabulary
import Testing

@testable import ParleySealing

/// Two ends with a wire between them that a test can cut and alter.
struct SessionPair {
  static let ana = Identity(seed: [UInt8](repeating: 1, count: 32))
  static let ben = Identity(seed: [UInt8](repeating: 2, count: 32))
  static let kitchen = ChannelKeys.open(name: try! ChannelName("kitchen"))
  static let garden = ChannelKeys.open(name: try! ChannelName("garden"))
  static let cellar = ChannelKeys.open(name: try! ChannelName("cellar"))

  var initiator: SessionHandshake
  var responder: SessionHandshake
  var initiatorSession: EstablishedSession?
  var responderSession: EstablishedSession?
  /// Everything that was sent, in order, as it was sent.
  var sent: [(fromInitiator: Bool, bytes: [UInt8])] = []

  init(
    _ purpose: SessionPurpose = .chat, offering: [ChannelKeys] = [kitchen], having: [ChannelKeys] = [kitchen],
    expecting: PeerID? = nil, responderIdentity: Identity = ben,
    initiatorSuites: [NoiseSuite] = SessionHandshake.availableSuites,
    responderSuites: [NoiseSuite] = SessionHandshake.availableSuites
  ) {
    initiator = SessionHandshake(
      initiator: purpose, channels: offering, identity: Self.ana, instance: Instance(11), expecting: expecting,
      suites: initiatorSuites)
    responder = SessionHandshake(
      responder: having, identity: responderIdentity, instance: Instance(22), suites: responderSuites)
  }

  /// Carries messages until there are none; `alter` sees each with its number, from 0.
  mutating func run(
    pieceByteCount: Int = .max, alter: (Int, [UInt8]) -> [UInt8] = { $1 }
  ) throws(HandshakeError) {
    var toResponder = true
    var message = initiator.start()
    var number = 0
    while !message.isEmpty {
      sent.append((toResponder, message))
      let arriving = alter(number, message)
      number += 1
      message = []
      var start = 0
      while start < arriving.count {
        let end = pieceByteCount < arriving.count - start ? start + pieceByteCount : arriving.count
        message += try deliver(Array(arriving[start..<end]), toResponder: toResponder)
        start = end
      }
      toResponder.toggle()
    }
  }

  private mutating func deliver(_ piece: [UInt8], toResponder: Bool) throws(HandshakeError) -> [UInt8] {
    if toResponder {
      let (send, established) = try responder.receive(piece)
      responderSession = established ?? responderSession
      return send
    }
    let (send, established) = try initiator.receive(piece)
    initiatorSession = established ?? initiatorSession
    return send
  }
}

@Suite struct SessionTests {
  private static let suites = [[NoiseSuite.aesGCM], [.chaChaPoly], [.aesGCM, .chaChaPoly]].filter {
    $0.allSatisfy(\.isAvailable)
  }

  @Test(arguments: [1, 2, 7, 39, 40, 41, 64, .max], suites)
  func bothEndsAgreeHoweverTheBytesArrive(_ pieceByteCount: Int, _ suites: [NoiseSuite]) throws {
    var pair = SessionPair(
      .media, offering: [SessionPair.cellar, SessionPair.kitchen, SessionPair.garden],
      having: [SessionPair.garden, SessionPair.kitchen], expecting: SessionPair.ben.peerID, initiatorSuites: suites)
    try pair.run(pieceByteCount: pieceByteCount)
    var ana = try #require(pair.initiatorSession)
    var ben = try #require(pair.responderSession)
    #expect(ana.peer == SessionPair.ben.peerID && ben.peer == SessionPair.ana.peerID)
    #expect(ana.instance == Instance(22) && ben.instance == Instance(11))
    #expect(ana.channels == [SessionPair.kitchen.id, SessionPair.garden.id] && ben.channels == ana.channels)
    #expect(ana.purpose == .media && ben.purpose == .media)
    #expect(ana.isInitiator && !ben.isInitiator)
    #expect(ana.suite == suites[0] && ben.suite == suites[0])
    #expect(ana.handshakeHash == ben.handshakeHash && ana.handshakeHash.count == 32)
    ben.receiver.append(try ana.sender.seal([1]))
    #expect(try ben.receiver.next() == [1])
    ana.receiver.append(try ben.sender.seal([2]))
    #expect(try ana.receiver.next() == [2])
    #expect(throws: HandshakeError.failedBefore) { try pair.initiator.receive([1]) }
  }

  @Test func theFirstBytesAreAsSpecified() throws {
    var pair = SessionPair(.media)
    try pair.run()
    let suites: UInt8 = NoiseSuite.aesGCM.isAvailable ? 3 : 2
    #expect(Array(pair.sent[0].bytes[..<8]) == Array("PLYS".utf8) + [1, 1, suites, 0])
    #expect(Array(pair.sent[1].bytes[..<8]) == Array("PLYR".utf8) + [1, 1, suites == 3 ? 1 : 2, 0])
    #expect(pair.sent.map(\.bytes.count) == [40, 56, 2 + 33 + 16, 2 + 33 + 104 + 16, 2 + 104 + 16])
  }

  /// What the initiator sends at once behind its last message belongs to the session.
  @Test func whatFollowsTheHandshakeIsKept() throws {
    var pair = SessionPair()
    let hello = pair.initiator.start()
    let offer = try pair.initiator.receive(try pair.responder.receive(hello).send).send
    let acceptance = try pair.responder.receive(offer).send
    let (introduction, established) = try pair.initiator.receive(acceptance)
    let ana = try #require(established)
    let long = [UInt8](repeating: 4, count: 31_984)
    let behind = try ana.sender.seal(long) + ana.sender.seal([5])
    var ben = try #require(try pair.responder.receive(introduction + behind).established)
    #expect(try ben.receiver.next() == long)
    #expect(try ben.receiver.next() == [5])
    #expect(try ben.receiver.next() == nil)
  }

  /// A channel and what its members know who were away for none, one or two of its rotations.
  static func generations() throws -> [ChannelKeys] {
    var known = [ChannelKeys.founded(name: try ChannelName("class"), by: SessionPair.ana.peerID)]
    for number in 1...2 {
      let keys = known.last!
      let next = keys.makeGeneration(
        number: UInt64(number), secret: SecretBytes(randomByteCount: 32), statement: [UInt8(number)])
      known.append(keys.adding(next, sendingUnder: next.id, now: UInt64(number)))
    }
    return known
  }

  @Test(arguments: [(0, 2), (2, 0), (1, 2), (2, 1), (2, 2)])
  func bothEndsProveTheNewestGenerationThatBothKnow(_ initiators: Int, _ responders: Int) throws {
    let known = try Self.generations()
    var pair = SessionPair(
      offering: [known[initiators], SessionPair.kitchen], having: [SessionPair.kitchen, known[responders]])
    try pair.run()
    let ana = try #require(pair.initiatorSession)
    let ben = try #require(pair.responderSession)
    let shared = known[min(initiators, responders)].newest.id
    #expect(Set(ana.channels) == [known[0].id, SessionPair.kitchen.id] && ben.channels == ana.channels)
    #expect(ana.generations[known[0].id] == shared && ben.generations == ana.generations)
  }

  @Test func whoKnowsOnlyAnotherGenerationIsAnOutsider() throws {
    let known = try Self.generations()
    let origin = try #require(known[0].ownership)
    let newcomer = ChannelKeys.owned(
      name: known[0].name, ownership: origin, number: 3, secret: SecretBytes(randomByteCount: 32))
    #expect(newcomer.id == known[0].id)
    var pair = SessionPair(offering: [newcomer], having: [known[2]])
    #expect(throws: HandshakeError.noSharedChannel) { try pair.run() }
    let datagram = try DatagramSealer.seal(
      frames: [1], identity: SessionPair.ana, channel: newcomer, instance: Instance(1))
    #expect(DatagramSealer.open(datagram, channel: known[2]) == nil)
  }

  @Test func datagramsAreSealedUnderTheNewestGenerationAndOpenedUnderAll() throws {
    let known = try Self.generations()
    for (age, keys) in known.enumerated() {
      let datagram = try DatagramSealer.seal(
        frames: [7], identity: SessionPair.ana, channel: keys, instance: Instance(1))
      for (other, receiver) in known.enumerated() {
        #expect(DatagramSealer.open(datagram, channel: receiver) == (other >= age ? [7] : nil))
      }
    }
  }

  @Test func generationsAreKeptForThirtyDaysAndSixtyFourOfThem() throws {
    var keys = try Self.generations()[2]
    let old = keys.adding(nil, sendingUnder: keys.newest.id, now: 1 + ChannelKeys.generationAgeMax)
    #expect(old.generations.map(\.id.number) == [2, 1, 0])
    let older = keys.adding(nil, sendingUnder: keys.newest.id, now: 2 + ChannelKeys.generationAgeMax)
    #expect(older.generations.map(\.id.number) == [2, 1])
    for number in 3..<100 {
      let next = keys.makeGeneration(
        number: UInt64(number), secret: SecretBytes(randomByteCount: 32), statement: [])
      keys = keys.adding(next, sendingUnder: next.id, now: 3)
    }
    #expect(keys.generations.map(\.id.number) == (36..<100).reversed().map { UInt64($0) })
  }

  @Test func anOutsiderLearnsNoPeerID() {
    var pair = SessionPair(offering: [SessionPair.cellar], having: [SessionPair.kitchen])
    #expect(throws: HandshakeError.noSharedChannel) { try pair.run() }
    // Hello, answer, offer; and nothing from the responder after the offer.
    #expect(pair.sent.map(\.fromInitiator) == [true, false, true])
    #expect(pair.sent[1].bytes.count == 56)
    #expect(pair.initiatorSession == nil && pair.responderSession == nil)
    #expect(throws: HandshakeError.failedBefore) { try pair.responder.receive([]) }
  }

  /// Whoever answers without the secret can only send the offer's own proofs back.
  @Test func aReflectedProofFails() throws {
    var pair = SessionPair()
    let hello = pair.initiator.start()
    let answer = Array("PLYR".utf8) + [1, 0, 2, 0]
    var noise = try NoiseHandshake(
      .nn, suite: .chaChaPoly, isInitiator: false, prologue: Array(hello[..<8]) + answer)
    _ = try noise.readMessage(Array(hello[8...]))
    let second = try noise.writeMessage([])
    let (sender, receiver) = noise.split()
    var opener = FrameOpener(receiver)
    opener.append(try pair.initiator.receive(answer + second).send)
    let offer = try #require(try opener.next())
    let mallory = Identity(seed: [UInt8](repeating: 9, count: 32))
    let identity = SessionIdentity.make(mallory, instance: Instance(1), role: .responder, h: noise.handshakeHash)
    let reflected = try FrameSealer(sender).seal(offer + identity)
    #expect(throws: HandshakeError.falseProof) { try pair.initiator.receive(reflected) }
  }

  @Test func onlyTheExpectedPeerIsTaken() {
    var pair = SessionPair(expecting: SessionPair.ana.peerID)
    #expect(
      throws: HandshakeError.unexpectedPeer(expected: SessionPair.ana.peerID, found: SessionPair.ben.peerID)
    ) { try pair.run() }
    #expect(pair.sent.count == 4)
    #expect(pair.initiatorSession == nil && pair.responderSession == nil)
    var own = SessionPair(responderIdentity: SessionPair.ana)
    #expect(throws: HandshakeError.ourself(Instance(22))) { try own.run() }
    #expect(own.sent.count == 4)
  }

  @Test(.enabled(if: NoiseSuite.aesGCM.isAvailable)) func aDowngradeIsNoticed() {
    var pair = SessionPair()
    #expect(throws: HandshakeError.noise(.notAuthentic)) {
      try pair.run { number, message in
        // The initiator's offer of AESGCM is taken away, so that the responder chooses the other.
        number == 0 ? message.flipping(bit: 6 * 8) : message
      }
    }
    #expect(pair.sent.count == 2)
    var mixed = SessionPair(initiatorSuites: [.aesGCM], responderSuites: [.chaChaPoly])
    #expect(throws: HandshakeError.noCommonSuite(offered: 1, supported: 2)) { try mixed.run() }
  }

  @Test(
    arguments: [
      (0, 0x51, HandshakeError.notParley), (3, 0x52, .notParley), (4, 2, .unsupportedVersion(2, supported: 1)),
      (5, 2, .unknownPurpose(2)), (6, 0, .noCommonSuite(offered: 0, supported: 2)),
      (7, 1, .malformed(field: "preface's last byte")),
    ] as [(Int, UInt8, HandshakeError)])
  func otherPrefacesAreRefused(_ index: Int, _ value: UInt8, _ error: HandshakeError) {
    var pair = SessionPair(responderSuites: [.chaChaPoly])
    #expect(throws: error) {
      try pair.run { number, message in
        var altered = message
        if number == 0 { altered[index] = value }
        return altered
      }
    }
  }

  @Test func anAnswerForAnotherPurposeOrSuiteIsRefused() {
    var purpose = SessionPair()
    #expect(throws: HandshakeError.purposeChanged) {
      try purpose.run { number, message in number == 1 ? message.flipping(bit: 5 * 8) : message }
    }
    var suite = SessionPair(initiatorSuites: [.chaChaPoly], responderSuites: [.chaChaPoly])
    #expect(throws: HandshakeError.noCommonSuite(offered: 3, supported: 2)) {
      try suite.run { number, message in number == 1 ? message.flipping(bit: 6 * 8) : message }
    }
  }

  /// However one bit of one message turns, the two ends never both take the session for established.
  @Test(arguments: 0..<5) func everyTurnedBitIsNoticed(_ target: Int) {
    let byteCounts = [40, 56, 51, 155, 122]
    for bit in 0..<byteCounts[target] * 8 {
      var pair = SessionPair()
      var error: HandshakeError?
      do throws(HandshakeError) {
        try pair.run { number, message in number == target ? message.flipping(bit: bit) : message }
      } catch let thrown { error = thrown }
      #expect(pair.initiatorSession == nil || pair.responderSession == nil, "message \(target), bit \(bit)")
      // Either a check failed, or a length grew and its frame never became whole.
      #expect(error != nil || (target >= 2 && bit < 16), "message \(target), bit \(bit)")
    }
  }

  @Test(
    arguments: [
      ([], "count of proofs is missing"), ([0], "no proof"),
      ([1] + [UInt8](repeating: 0, count: 31), "proofs are cut short"),
      ([1] + [UInt8](repeating: 0, count: 33), "bytes behind the proofs"),
    ] as [([UInt8], String)])
  func malformedOffersAreRefused(_ offer: [UInt8], _ field: String) throws {
    var (responder, sender, _) = try Self.strangerAtTheDoor()
    #expect(throws: HandshakeError.malformed(field: field)) { try responder.receive(try sender.seal(offer)) }
  }

  @Test func tooManyAndTooLongOffersAreRefused() throws {
    var (first, firstSender, _) = try Self.strangerAtTheDoor()
    #expect(throws: HandshakeError.tooManyChannels(count: 65, countMax: 64)) {
      try first.receive(try firstSender.seal([65] + [UInt8](repeating: 0, count: 64 * 32)))
    }
    var (second, _, _) = try Self.strangerAtTheDoor()
    #expect(throws: HandshakeError.frame(.tooLong(byteCount: 2_170, byteCountMax: 2_169))) {
      try second.receive([UInt8(2_170 >> 8), UInt8(2_170 & 0xFF)])
    }
    var (third, _, _) = try Self.strangerAtTheDoor()
    #expect(throws: HandshakeError.frame(.tooShort(byteCount: 15, byteCountMin: 16))) { try third.receive([0, 15]) }
  }

  @Test func aRepeatedProofIsRefused() throws {
    var (responder, sender, h) = try Self.strangerAtTheDoor()
    let proof = SessionProof.make(SessionPair.kitchen, role: .initiator, h: h)
    #expect(throws: HandshakeError.falseProof) { try responder.receive(try sender.seal([2] + proof + proof)) }
  }

  /// Statements for the other role, for another handshake, under another's name, and by the responder itself.
  @Test(arguments: 0..<4) func falseIntroductionsAreRefused(_ lie: Int) throws {
    var (responder, sender, h) = try Self.strangerAtTheDoor()
    let proof = SessionProof.make(SessionPair.kitchen, role: .initiator, h: h)
    let acceptance = try responder.receive(try sender.seal([1] + proof))
    #expect(acceptance.established == nil && !acceptance.send.isEmpty)
    let ana = SessionPair.ana
    let introduction =
      switch lie {
      case 0: SessionIdentity.make(ana, instance: Instance(1), role: .responder, h: h)
      case 1: SessionIdentity.make(ana, instance: Instance(1), role: .initiator, h: h.flipping(bit: 0))
      case 2:
        Identity.random().peerID.bytes + SessionIdentity.make(ana, instance: Instance(1), role: .initiator, h: h)[32...]
      default: SessionIdentity.make(SessionPair.ben, instance: Instance(1), role: .initiator, h: h)
      }
    #expect(throws: lie < 3 ? HandshakeError.falseIdentity : .ourself(Instance(1))) {
      try responder.receive(try sender.seal(introduction))
    }
  }

  @Test func sixtyFourChannelsFit() throws {
    let channels = try (0..<64).map { ChannelKeys.open(name: try ChannelName("room \($0)")) }
    var pair = SessionPair(offering: channels, having: channels.reversed())
    try pair.run()
    #expect(pair.initiatorSession?.channels == channels.map(\.id))
    #expect(pair.responderSession?.channels == channels.map(\.id))
  }

  /// A responder that has sent its answer to a stranger, who seals with the returned sealer; and h.
  private static func strangerAtTheDoor() throws -> (SessionHandshake, FrameSealer, h: [UInt8]) {
    var responder = SessionHandshake(
      responder: [SessionPair.kitchen], identity: SessionPair.ben, instance: Instance(22), suites: [.chaChaPoly])
    let ephemeral = SecretBytes(randomByteCount: 32)
    let preface = Array("PLYS".utf8) + [1, 0, 2, 0]
    let answer = try responder.receive(preface + NoiseHandshake.publicKey(of: ephemeral)).send
    var noise = try NoiseHandshake(
      .nn, suite: .chaChaPoly, isInitiator: true, prologue: preface + Array(answer[..<8]), ephemeralKey: ephemeral)
    _ = try noise.writeMessage([])
    _ = try noise.readMessage(Array(answer[8...]))
    return (responder, FrameSealer(noise.split().sender), noise.handshakeHash)
  }
}
