import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleySealing

/// Handshakes that end, and why. Everything but the altered step is as it should be.
@Suite struct MalformedHandshakeTests {
  /// Ana dials Ben; both are in the kitchen, Ana also in the garden.
  private static let kitchen = Facts.kitchen
  private static let garden = ChannelKeys.open(name: try! ChannelName("garden"))
  private static let initiatorKey = (0..<32).map { UInt8(0x60 + $0) }
  private static let responderKey = (0..<32).map { UInt8(0x90 + $0) }

  /// Both ends up to where the first frame is due, and what seals frames in either direction.
  private struct Ends {
    var initiator: SessionHandshake
    var responder: SessionHandshake
    let hello: [UInt8]
    let answer: [UInt8]
    let fromInitiator: FrameSealer
    let fromResponder: FrameSealer
    let h: [UInt8]

    init() throws {
      initiator = SessionHandshake(
        initiator: .chat, channels: [kitchen, garden], identity: Facts.ana, instance: Facts.instance,
        suites: [.chaChaPoly])
      responder = SessionHandshake(
        responder: [kitchen, garden], identity: Facts.ben, instance: Facts.otherInstance, suites: [.chaChaPoly])
      initiator.ephemeralKey = SecretBytes(initiatorKey)
      responder.ephemeralKey = SecretBytes(responderKey)
      hello = initiator.start()
      answer = try responder.receive(hello).send
      var noise = try NoiseHandshake(
        .nn, suite: .chaChaPoly, isInitiator: true, prologue: Array(hello[..<8] + answer[..<8]),
        ephemeralKey: SecretBytes(initiatorKey))
      _ = try noise.writeMessage([])
      _ = try noise.readMessage(Array(answer[8...]))
      let ciphers = noise.split()
      fromInitiator = FrameSealer(ciphers.sender)
      fromResponder = FrameSealer(ciphers.receiver)
      h = noise.handshakeHash
    }

    func proof(_ channel: ChannelKeys, _ role: SessionRole) -> [UInt8] { SessionProof.make(channel, role: role, h: h) }

    func identity(_ identity: Identity, _ role: SessionRole, h: [UInt8]? = nil) -> [UInt8] {
      SessionIdentity.make(identity, instance: Facts.otherInstance, role: role, h: h ?? self.h)
    }
  }

  private typealias Case = (name: String, step: String, bytes: [UInt8], reason: String)

  private static func prefaces() throws -> [Case] {
    let ends = try Ends()
    func hello(_ at: Int, _ byte: UInt8) -> [UInt8] { Malformed.replacing(ends.hello, at: at, with: byte) }
    func answer(_ at: Int, _ byte: UInt8) -> [UInt8] { Malformed.replacing(ends.answer, at: at, with: byte) }
    return [
      ("hello of another protocol", "hello", hello(0, 0x51), "not_parley"),
      ("hello of a responder", "hello", hello(3, 0x52), "not_parley"),
      ("hello of version 2", "hello", hello(4, 2), "version"),
      ("hello for an unknown purpose", "hello", hello(5, 2), "purpose"),
      ("hello with the last byte set", "hello", hello(7, 1), "malformed"),
      ("hello without a suite", "hello", hello(6, 0), "suite"),
      ("hello with AESGCM alone, to one without", "hello", hello(6, 1), "suite"),
      ("answer of an initiator", "answer", answer(3, 0x53), "not_parley"),
      ("answer of version 0", "answer", answer(4, 0), "version"),
      ("answer for another purpose", "answer", answer(5, 1), "purpose"),
      ("answer with a suite not offered", "answer", answer(6, 1), "suite"),
      ("answer with two suites", "answer", answer(6, 3), "suite"),
      ("answer with another key", "answer", answer(8, ~ends.answer[8]), "seal"),
      ("answer with another tag", "answer", answer(-1, ~ends.answer.last!), "seal"),
      (
        "answer with a key of small order", "answer",
        ends.answer[..<8] + [UInt8](repeating: 0, count: 32) + ends.answer[40...], "seal"
      ),
    ]
  }

  private static func offers() throws -> [Case] {
    func frame(_ payload: (Ends) -> [UInt8]) throws -> [UInt8] {
      let ends = try Ends()
      return try ends.fromInitiator.seal(payload(ends))
    }
    let good = try frame { [1] + $0.proof(kitchen, .initiator) }
    return [
      ("offer of nothing", "offer", try frame { _ in [] }, "malformed"),
      ("offer of no channel", "offer", try frame { _ in [0] }, "malformed"),
      ("offer cut short", "offer", try frame { [2] + $0.proof(kitchen, .initiator) }, "malformed"),
      ("offer with a byte more", "offer", try frame { [1] + $0.proof(kitchen, .initiator) + [0] }, "malformed"),
      ("offer of 65", "offer", try frame { _ in [65] + [UInt8](repeating: 0, count: 65 * 32) }, "malformed"),
      (
        "offer of 65, too short for them", "offer", try frame { _ in [65] + [UInt8](repeating: 0, count: 64 * 32) },
        "malformed"
      ),
      (
        "offer of one channel twice", "offer",
        try frame { [2] + $0.proof(kitchen, .initiator) + $0.proof(kitchen, .initiator) }, "proof"
      ), ("offer in the other role", "offer", try frame { [1] + $0.proof(kitchen, .responder) }, "no_channel"),
      ("offer of a strange channel", "offer", try frame { _ in [1] + [UInt8](repeating: 9, count: 32) }, "no_channel"),
      ("offer altered", "offer", Malformed.replacing(good, at: 2, with: ~good[2]), "frame"),
      ("offer with a length of 2,170", "offer", [0x08, 0x7A], "frame"),
      ("offer with a length of 15", "offer", [0, 15], "frame"),
    ]
  }

  private static func introductions() throws -> [Case] {
    func acceptance(_ payload: (Ends) -> [UInt8]) throws -> [UInt8] {
      let ends = try Ends()
      return try ends.fromResponder.seal(payload(ends))
    }
    func introduction(_ payload: (Ends) -> [UInt8]) throws -> [UInt8] {
      let ends = try Ends()
      // The offer takes the first nonce.
      _ = try ends.fromInitiator.seal([])
      return try ends.fromInitiator.seal(payload(ends))
    }
    func accepted(_ ends: Ends) -> [UInt8] { [1] + ends.proof(kitchen, .responder) }
    return [
      (
        "acceptance of no channel", "acceptance", try acceptance { [0] + $0.identity(Facts.ben, .responder) },
        "malformed"
      ),
      ("acceptance without identity", "acceptance", try acceptance(accepted), "malformed"),
      (
        "acceptance with a reflected proof", "acceptance",
        try acceptance { [1] + $0.proof(kitchen, .initiator) + $0.identity(Facts.ben, .responder) }, "proof"
      ),
      (
        "acceptance out of order", "acceptance",
        try acceptance {
          [2] + $0.proof(garden, .responder) + $0.proof(kitchen, .responder) + $0.identity(Facts.ben, .responder)
        }, "proof"
      ),
      (
        "acceptance signed in the other role", "acceptance",
        try acceptance { accepted($0) + $0.identity(Facts.ben, .initiator) }, "identity"
      ),
      (
        "acceptance by oneself", "acceptance",
        try acceptance { accepted($0) + $0.identity(Facts.ana, .responder) }, "ourself"
      ),
      (
        "introduction for another handshake", "introduction",
        try introduction { $0.identity(Facts.ana, .initiator, h: Facts.otherMedia.bytes) }, "identity"
      ),
      (
        "introduction under another's name", "introduction",
        try introduction { Facts.kitchen.id.bytes + $0.identity(Facts.ana, .initiator)[32...] }, "identity"
      ),
      (
        "introduction cut short", "introduction",
        try introduction { Array($0.identity(Facts.ana, .initiator).dropLast()) }, "malformed"
      ),
      (
        "introduction by oneself", "introduction", try introduction { $0.identity(Facts.ben, .initiator) }, "ourself"
      ),
    ]
  }

  @Test func everyOneEndsForItsReason() throws {
    var file = VectorFile("malformed_handshakes")
    let good = try Ends()
    for item in try Self.prefaces() + Self.offers() + Self.introductions() {
      #expect(try Self.reason(item) == item.reason, "\(item.name)")
      file.add(
        item.name,
        [
          JSONMember("step", item.step), JSONMember("initiator_ephemeral_key", hex: Self.initiatorKey),
          JSONMember("hello", hex: item.step == "hello" ? item.bytes : good.hello),
          JSONMember("answer", hex: item.step == "answer" ? item.bytes : good.answer),
          JSONMember("frame", hex: ["hello", "answer"].contains(item.step) ? [] : item.bytes),
          JSONMember("reason", item.reason),
        ])
    }
    try file.check()
  }

  /// Plays the handshake with one step altered; nil when nobody minds.
  private static func reason(_ item: Case) throws -> String? {
    var ends = try Ends()
    do throws(HandshakeError) {
      switch item.step {
      case "hello":
        var fresh = SessionHandshake(
          responder: [kitchen], identity: Facts.ben, instance: Facts.otherInstance, suites: [.chaChaPoly])
        _ = try fresh.receive(item.bytes)
      case "answer": _ = try ends.initiator.receive(item.bytes)
      case "offer": _ = try ends.responder.receive(item.bytes)
      case "acceptance":
        _ = try ends.initiator.receive(ends.answer)
        _ = try ends.initiator.receive(item.bytes)
      default:
        _ = try ends.responder.receive(try ends.initiator.receive(ends.answer).send)
        _ = try ends.responder.receive(item.bytes)
      }
      return nil
    } catch {
      return switch error {
      case .notParley: "not_parley"
      case .unsupportedVersion: "version"
      case .unknownPurpose, .purposeChanged: "purpose"
      case .noCommonSuite: "suite"
      case .noise: "seal"
      case .frame: "frame"
      case .malformed, .tooManyChannels: "malformed"
      case .noSharedChannel: "no_channel"
      case .falseProof: "proof"
      case .falseIdentity: "identity"
      case .ourself: "ourself"
      case .unexpectedPeer: "unexpected"
      case .failedBefore: "failed before"
      }
    }
  }
}
