import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleySealing

@Suite struct SessionVectorTests {
  @Test func messages() throws {
    var file = VectorFile("session_messages")
    for (name, message) in Self.messages {
      #expect(try SessionMessage.decode(message.encoded) == message)
      #expect(message.encoded.count <= FrameSealer.payloadByteCountMax)
      file.add(name, [JSONMember("bytes", hex: message.encoded), JSONMember("value", message.value)])
    }
    try file.check()
  }

  static let messages: [(name: String, message: SessionMessage)] = {
    let channel = Facts.kitchen.id
    let own = LogKey(author: Facts.ana.peerID, log: Facts.instance)
    let other = LogKey(author: Facts.ben.peerID, log: Facts.otherInstance)
    let presence = Facts.sign(Presence.context, Facts.presence(status: Facts.online).encoded)
    let live = Facts.sign(LiveObject.context, Facts.live(Facts.offline, counter: 3).encoded)
    let proofs = [SessionRole.initiator, .responder].map {
      Bytes32(SessionProof.make(Facts.kitchen, role: $0, h: Facts.otherMedia.bytes))!
    }
    return [
      (
        "heads",
        .heads(
          channel, .all, [Head(key: own, number: 5), Head(key: other, number: 1 << 30, floor: 70)], isLast: true,
          answerWanted: true)
      ),
      ("heads, none, more to come", .heads(channel, .all, [], isLast: false, answerWanted: false)),
      (
        "heads of two buckets",
        .heads(
          channel, BucketSet([HeadsDigest.bucket(of: own), 255]), [Head(key: own, number: 5)], isLast: true,
          answerWanted: false)
      ),
      (
        "summary",
        .summary(
          channel,
          [HeadsDigest.bucket(of: own): Facts.digest, 255: HeadsDigest(ofBucket: [.init(key: other, head: 7)])])
      ), ("summary of nothing", .summary(channel, [:])),
      (
        "want",
        .want(
          channel, request: 300,
          [LogRange(key: own, from: 1, through: 1), LogRange(key: other, from: 64, through: 16_384)])
      ),
      (
        "entries",
        .entries(channel, request: 300, [Facts.plainEntry.encoded, Facts.handEntry.encoded], isLast: true)
      ), ("entries, none", .entries(channel, request: 0, [], isLast: false)),
      ("peer message", .peerMessage(MessageID("m-1")!, json: Facts.text)),
      ("live peer message", .livePeerMessage(MessageID("m-16")!, json: Facts.command)),
      ("peer stored", .peerStored(MessageID("m-1")!)), ("ping", .ping(0x4142_4344_4546_4748)), ("pong", .pong(.max)),
      ("prove", .prove(proofs)), ("presence", .presence(channel, presence)), ("live", .live(channel, live)),
      ("generation", .generation(channel, Facts.statement, secret: Bytes32(repeatElement(0x5A, count: 32))!)),
      ("refused, removed", .refused(channel, .removed)), ("refused, banned", .refused(channel, .banned)),
      ("refused, not admitted", .refused(channel, .notAdmitted)), ("closing", .closing),
      ("direct", .direct(channel, DatagramVectorTests.parts)),
    ]
  }()

  /// The whole conversation, with keys given: three channels offered, two of them shared.
  @Test(arguments: [NoiseSuite.chaChaPoly, .aesGCM].filter(\.isAvailable))
  func handshake(_ suite: NoiseSuite) throws {
    let names = ["kitchen", "cellar", "garden"]
    let keys = try names.map { ChannelKeys.open(name: try ChannelName($0)) }
    let seeds = (initiator: (0..<32).map { UInt8(0x60 + $0) }, responder: (0..<32).map { UInt8(0x90 + $0) })
    let purpose = suite == .chaChaPoly ? SessionPurpose.chat : .media
    var initiator = SessionHandshake(
      initiator: purpose, channels: keys, identity: Facts.ana, instance: Facts.instance, expecting: Facts.ben.peerID,
      suites: [suite])
    var responder = SessionHandshake(
      responder: [keys[2], keys[0]], identity: Facts.ben, instance: Facts.otherInstance, suites: [suite])
    initiator.ephemeralKey = SecretBytes(seeds.initiator)
    responder.ephemeralKey = SecretBytes(seeds.responder)
    let hello = initiator.start()
    let answer = try responder.receive(hello).send
    let offer = try initiator.receive(answer).send
    let acceptance = try responder.receive(offer).send
    let (introduction, established) = try initiator.receive(acceptance)
    let initiated = try #require(established)
    let answered = try #require(try responder.receive(introduction).established)
    #expect(initiated.channels == [keys[0].id, keys[2].id] && answered.channels == initiated.channels)
    #expect(initiated.handshakeHash == answered.handshakeHash)
    let payloads = SessionVectorTests.messages.prefix(2).map(\.message.encoded) + [[]]
    let there = try payloads.map { try initiated.sender.seal($0) }
    let back = try payloads.map { try answered.sender.seal($0) }
    var file = VectorFile(suite == .chaChaPoly ? "handshake_chachapoly" : "handshake_aesgcm")
    file.add(
      suite == .chaChaPoly ? "chat over ChaChaPoly" : "media over AESGCM",
      [
        JSONMember("purpose", Int(purpose.rawValue)), JSONMember("suite", Int(SessionPreface.bit(of: suite))),
        JSONMember("offered_channels", .array(names.map { .string($0) })),
        JSONMember("shared_channels", .array([.string("kitchen"), .string("garden")])),
        JSONMember("initiator_ephemeral_key", hex: seeds.initiator),
        JSONMember("responder_ephemeral_key", hex: seeds.responder),
        JSONMember("initiator_seed", hex: [UInt8](repeating: 1, count: 32)),
        JSONMember("responder_seed", hex: [UInt8](repeating: 2, count: 32)),
        JSONMember("initiator_instance", bits: Facts.instance.value),
        JSONMember("responder_instance", bits: Facts.otherInstance.value), JSONMember("hello", hex: hello),
        JSONMember("answer", hex: answer), JSONMember("offer", hex: offer),
        JSONMember("acceptance", hex: acceptance), JSONMember("introduction", hex: introduction),
        JSONMember("handshake_hash", hex: initiated.handshakeHash),
        JSONMember("payloads", .array(payloads.map { .string($0.hex) })),
        JSONMember("frames_from_initiator", .array(there.map { .string($0.hex) })),
        JSONMember("frames_from_responder", .array(back.map { .string($0.hex) })),
      ])
    try file.check()
  }

  @Test func proofs() throws {
    var file = VectorFile("proofs")
    let h = (0..<32).map { UInt8(255 - $0) }
    for (name, role) in [("initiator", SessionRole.initiator), ("responder", .responder)] {
      file.add(
        name,
        [
          JSONMember("channel", "kitchen"), JSONMember("seed", hex: [UInt8](repeating: 1, count: 32)),
          JSONMember("instance", bits: Facts.instance.value), JSONMember("role", Int(role.rawValue)),
          JSONMember("handshake_hash", hex: h),
          JSONMember("proof", hex: SessionProof.make(Facts.kitchen, role: role, h: h)),
          JSONMember(
            "identity", hex: SessionIdentity.make(Facts.ana, instance: Facts.instance, role: role, h: h)),
        ])
    }
    try file.check()
  }
}
