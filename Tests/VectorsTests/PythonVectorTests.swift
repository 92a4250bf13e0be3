import Foundation
import ParleyHashing
import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleySealing

/// The vectors that the Python peer makes (`Peers/Python/make_vectors.py`): Swift derives, opens, reads and writes the
/// same bytes.
@Suite struct PythonVectorTests {
  @Test func channels() throws {
    for vector in try GivenVector.all("channels") {
      let name = try ChannelName(vector.text("given_name"))
      let type: ChannelType = vector["type"] == .string("room") ? .room : .group
      let keys =
        try vector.text("kind") == "open"
        ? ChannelKeys.open(name: name, type: type)
        : ChannelKeys.passphrase(name: name, vector.bytes("passphrase"), type: type)
      #expect(Array(name.text.utf8) == (try vector.bytes("name_bytes")), "\(vector.name)")
      #expect(keys.withSecret { Array($0) } == (try vector.bytes("secret")), "\(vector.name)")
      #expect(keys.id.bytes == (try vector.bytes("channel_id")), "\(vector.name)")
      #expect(keys.newest.withDatagramKey { Array($0) } == (try vector.bytes("datagram_key")), "\(vector.name)")
      #expect(keys.newest.withProofKey { Array($0) } == (try vector.bytes("proof_key")), "\(vector.name)")
      for pair in try vector.list("tags") {
        #expect(keys.tag(of: Instance(try pair.bits("instance"))) == (try pair.bits("tag")), "\(vector.name)")
      }
    }
  }

  @Test func identitiesAndPairwiseKeys() throws {
    for vector in try GivenVector.all("identities") {
      let peer = Identity(seed: try vector.bytes("seed")).peerID
      #expect(peer.bytes == (try vector.bytes("peer_id")), "\(vector.name)")
      #expect(peer.text == (try vector.text("text")), "\(vector.name)")
      #expect(peer.fingerprint == (try vector.text("fingerprint")), "\(vector.name)")
    }
    for vector in try GivenVector.all("pairwise_keys") {
      let sender = Identity(seed: try vector.bytes("sender_seed"))
      let receiver = try #require(PeerID(bytes: try vector.bytes("receiver")))
      let channel = try #require(ChannelID(bytes: try vector.bytes("channel_id")))
      let key = sender.withPairwiseKey(with: receiver, in: channel, sending: true) { Array($0) }
      #expect(key == (try vector.bytes("key")), "\(vector.name)")
    }
  }

  @Test func signaturesProofsAndDigests() throws {
    for vector in try GivenVector.all("signatures") {
      let identity = Identity(seed: try vector.bytes("seed"))
      let channel = try #require(ChannelID(bytes: try vector.bytes("channel_id")))
      let (context, log) = (try vector.text("context"), Instance(try vector.bits("instance")))
      let (object, signature) = (try vector.bytes("object"), try vector.bytes("signature"))
      #expect(identity.sign(context: context, channel: channel, log: log, object: object) == signature)
      #expect(
        Signature.verify(
          signature, by: identity.peerID, context: context, channel: channel, log: log, object: object))
    }
    for vector in try GivenVector.all("proofs") {
      let keys = ChannelKeys.open(name: try ChannelName(vector.text("channel")))
      let role = try #require(SessionRole(rawValue: UInt8(try vector.number("role"))))
      let h = try vector.bytes("handshake_hash")
      #expect(SessionProof.make(keys, role: role, h: h) == (try vector.bytes("proof")), "\(vector.name)")
      let identity = SessionIdentity.make(
        Identity(seed: try vector.bytes("seed")), instance: Instance(try vector.bits("instance")), role: role, h: h)
      #expect(identity == (try vector.bytes("identity")), "\(vector.name)")
    }
    for vector in try GivenVector.all("heads_digests") {
      let holdings = try vector.list("heads").map { head in
        let runs = try head.list("beyond").map { try $0.number("from")..<$0.number("through") + 1 }
        return HeadsDigest.Holding(
          key: LogKey(
            author: try #require(PeerID(bytes: try head.bytes("author"))), log: Instance(try head.bits("log"))),
          head: try head.number("number"), beyond: RangeSet(runs))
      }
      #expect(HeadsDigest(of: holdings).bytes == (try vector.bytes("digest")), "\(vector.name)")
    }
  }

  @Test(arguments: ["objects", "frames", "session_messages", "media_messages", "manifests", "messages"])
  func layouts(_ file: String) throws {
    for vector in try GivenVector.all(file) {
      let (layout, bytes) = try vector.encoding(in: file)
      let read = try #require(Layouts.read(layout, bytes), "\(file): \(vector.name) is refused")
      #expect(read.value.sorted == vector["value"].sorted, "\(file): \(vector.name) says something else")
      #expect(read.again == bytes, "\(file): \(vector.name) is written in another way")
    }
  }

  /// Whatever byte of these encodings turns, the reader refuses it or gives another value.
  @Test(arguments: ["objects", "frames", "session_messages", "media_messages", "manifests", "messages"])
  func everyTurnedByteIsNoticed(_ file: String) throws {
    for vector in try GivenVector.all(file) {
      let (layout, bytes) = try vector.encoding(in: file)
      let golden = vector["value"].sorted
      for index in bytes.indices {
        for mask in [UInt8(0x01), 0x80, 0xFF] {
          let turned = Malformed.replacing(bytes, at: index, with: bytes[index] ^ mask)
          let isAnother = Layouts.read(layout, turned).map { $0.value.sorted != golden } ?? true
          if !isAnother { Issue.record("\(file): \(vector.name), byte \(index) with \(mask) goes unnoticed") }
        }
      }
    }
  }

  @Test func bundles() throws {
    for vector in try GivenVector.all("bundles") {
      let levels = Int(try vector.number("levels"))
      let bundle = try MessageBundle(decoding: vector.text("bundle").utf8, levels: levels)
      #expect(bundle.levels == levels, "\(vector.name)")
      #expect(
        JSONValue.array(bundle.messages.map { SchemaVectorTests.meaning($0)[0].value.sorted }) == vector["value"].sorted
      )
      #expect(String(decoding: bundle.encoded, as: UTF8.self) == (try vector.text("bundle")), "\(vector.name)")
      #expect(throws: WireError.self) { try MessageBundle(decoding: vector.text("bundle").utf8, levels: levels - 1) }
    }
  }

  @Test func fragments() throws {
    for vector in try GivenVector.all("fragments") {
      let whole = try vector.bytes("entry")
      let group = BLAKE2b.hash256(whole).bytes.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      var joined: [UInt8] = []
      for (index, part) in try vector.list("value").enumerated() {
        let fragment = EntryFragment(
          group: group, index: index, count: Int(try part.number("count")), bytes: try part.bytes("bytes"))
        #expect(try part.bits("group") == group, "\(vector.name)")
        #expect(try part.number("index") == UInt64(index), "\(vector.name)")
        guard case .array(let encoded) = vector["fragments"], case .string(let text) = encoded[index] else {
          Issue.record("\(vector.name) has no fragment \(index)")
          return
        }
        #expect(fragment.encoded.hex == text, "\(vector.name), fragment \(index)")
        joined += fragment.bytes
      }
      #expect(joined == whole, "\(vector.name)")
      _ = try Entry(decoding: whole[...])
    }
  }

  @Test func datagrams() throws {
    for vector in try GivenVector.all("datagrams") {
      let channel = ChannelKeys.open(name: try ChannelName(vector.text("channel")))
      let sender = Identity(seed: try vector.bytes("sender_seed"))
      let receiver = Identity(seed: try vector.bytes("receiver_seed"))
      let datagram = try vector.bytes("datagram")
      let body = try #require(DatagramSealer.open(datagram, channel: channel), "\(vector.name)")
      #expect(body == (try vector.bytes("body")), "\(vector.name)")
      let frames = try DatagramFrame.decodeAll(body)
      #expect(JSONValue.array(frames.map(\.value)).sorted == vector["frames"].sorted, "\(vector.name)")
      let plain = vector["direct"] == .null ? nil : try vector.bytes("direct")
      if let plain {
        guard case .direct(let sealed) = frames.last else {
          Issue.record("\(vector.name) ends without a direct frame")
          return
        }
        let opened = DatagramSealer.openDirect(
          sealed, header: datagram[..<44], from: sender.peerID, identity: receiver, channel: channel)
        #expect(opened == plain, "\(vector.name)")
      }
      let others = plain == nil ? frames : Array(frames.dropLast())
      let again = try DatagramSealer.seal(
        frames: DatagramVectorTests.encoded(others), direct: plain.map { (receiver.peerID, $0) }, identity: sender,
        channel: channel, instance: Instance(try vector.bits("instance")), nonce: try vector.bytes("nonce"))
      #expect(again == datagram, "\(vector.name)")
      for index in datagram.indices {
        let turned = Malformed.replacing(datagram, at: index, with: ~datagram[index])
        #expect(DatagramSealer.open(turned, channel: channel) == nil, "\(vector.name), byte \(index)")
      }
    }
  }

  @Test(.timeLimit(.minutes(1))) func trees() throws {
    let mebibyte = 1 << 20
    for vector in try GivenVector.all("trees") {
      let size = Int(try vector.number("size"))
      let content = Facts.content(size)
      let hashes = stride(from: 0, to: size, by: mebibyte).map { start in
        content[start..<min(start + mebibyte, size)].withUnsafeBytes {
          MediaTree.pieceHash(of: $0, isOnlyPiece: size <= mebibyte)
        }
      }
      #expect(JSONValue.array(hashes.map(\.value.json)) == vector["piece_hashes"], "\(vector.name)")
      let root = MediaTree.root(pieceHashes: hashes, byteCount: UInt64(size))
      #expect(root.bytes == (try vector.bytes("root")), "\(vector.name)")
      let file = MediaManifest.File(path: ["f"], byteCount: UInt64(size), root: root)
      #expect(try MediaManifest(files: [file]).id.bytes == vector.bytes("media_id"), "\(vector.name)")
    }
  }

  /// Swift plays either end against what noiseprotocol said, with the same keys, and says the same bytes.
  @Test(arguments: ["handshake_chachapoly", "handshake_aesgcm"])
  func handshakes(_ file: String) throws {
    for vector in try GivenVector.all(file) {
      let suite: NoiseSuite = try vector.number("suite") == 1 ? .aesGCM : .chaChaPoly
      guard suite.isAvailable else { continue }
      let offered = try vector.texts("offered_channels").map { ChannelKeys.open(name: try ChannelName($0)) }
      let shared = try vector.texts("shared_channels").map { ChannelKeys.open(name: try ChannelName($0)) }
      let purpose = try #require(SessionPurpose(rawValue: UInt8(try vector.number("purpose"))))
      let people = try ["initiator_seed", "responder_seed"].map { Identity(seed: try vector.bytes($0)) }
      var initiator = SessionHandshake(
        initiator: purpose, channels: offered, identity: people[0],
        instance: Instance(try vector.bits("initiator_instance")), expecting: people[1].peerID, suites: [suite])
      var responder = SessionHandshake(
        responder: shared, identity: people[1], instance: Instance(try vector.bits("responder_instance")),
        suites: [suite])
      initiator.ephemeralKey = SecretBytes(try vector.bytes("initiator_ephemeral_key"))
      responder.ephemeralKey = SecretBytes(try vector.bytes("responder_ephemeral_key"))
      let hello = initiator.start()
      let answer = try responder.receive(vector.bytes("hello")).send
      let offer = try initiator.receive(vector.bytes("answer")).send
      let acceptance = try responder.receive(vector.bytes("offer")).send
      let (introduction, established) = try initiator.receive(vector.bytes("acceptance"))
      let last = try responder.receive(vector.bytes("introduction")).established
      var initiated = try #require(established)
      var answered = try #require(last)
      for (name, bytes) in [
        ("hello", hello), ("answer", answer), ("offer", offer), ("acceptance", acceptance),
        ("introduction", introduction),
      ] {
        #expect(bytes == (try vector.bytes(name)), "\(file): \(name)")
      }
      #expect(initiated.handshakeHash == (try vector.bytes("handshake_hash")))
      #expect(initiated.channels == shared.map(\.id) && answered.channels == shared.map(\.id))
      let payloads = try vector.texts("payloads")
      let (there, back) = (try vector.texts("frames_from_initiator"), try vector.texts("frames_from_responder"))
      for (index, payload) in payloads.enumerated() {
        let sealed = try [initiated.sender.seal(unhex(payload)), answered.sender.seal(unhex(payload))]
        #expect(sealed.map(\.hex) == [there[index], back[index]])
        answered.receiver.append(try unhex(there[index]))
        initiated.receiver.append(try unhex(back[index]))
        let opened = try [answered.receiver.next(), initiated.receiver.next()]
        #expect(opened.map { $0?.hex } == [payload, payload])
      }
    }
  }

  @Test func malformed() throws {
    let vectors = try GivenVector.all("malformed")
    for vector in vectors {
      let refusal = Malformed(vector.name, try vector.text("layout"), try vector.bytes("bytes"), "", "").refusal
      let (reason, field) = (try vector.text("reason"), try vector.text("field"))
      #expect(
        refusal?.reason == reason && refusal?.field == field,
        "\(vector.name): \(reason) \(field), not \(String(describing: refusal))")
    }
    #expect(vectors.count > 200)
  }

  /// A file that a newer Python side makes must not go unread.
  @Test func everyFileIsRead() throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: GivenVector.folder.path).sorted()
    let source = try String(contentsOf: URL(fileURLWithPath: #filePath), encoding: .utf8)
    #expect(!names.isEmpty && names.allSatisfy { source.contains("\"\($0.dropLast(5))\"") }, "\(names)")
  }
}

/// What a layout's bytes say, and what is written for that.
private enum Layouts {
  /// Nil when it is refused, or of a type to be skipped.
  static func read(_ layout: String, _ bytes: [UInt8]) -> (value: JSONValue, again: [UInt8])? {
    switch layout {
    case "presence": (try? Presence(decoding: bytes[...])).map { ($0.value, $0.encoded) }
    case "live": (try? LiveObject(decoding: bytes[...])).map { ($0.value, $0.encoded) }
    case "entry": (try? Entry(decoding: bytes[...])).map { ($0.value, $0.encoded) }
    case "direct": (try? DirectMessage(decoding: bytes)).map { ($0.value, $0.encoded) }
    case "frames":
      (try? DatagramFrame.decodeAll(bytes)).map { (.array($0.map(\.value)), DatagramVectorTests.encoded($0)) }
    case "session": (try? SessionMessage.decode(bytes)).map { ($0.value, $0.encoded) }
    case "media": (try? MediaMessage(decoding: bytes)).map { ($0.value, $0.encoded) }
    case "manifest": (try? MediaManifest(decoding: bytes)).map { ($0.value, $0.encoded) }
    default:
      (try? SchemaMessage(decoding: bytes, author: nil)).map { (SchemaVectorTests.meaning($0)[0].value, $0.encoded) }
    }
  }
}

/// One vector of a file of the Python side.
struct GivenVector {
  static let folder = VectorFile.folder.appendingPathComponent("python")

  let value: JSONValue

  static func all(_ file: String) throws -> [GivenVector] {
    let data = try Data(contentsOf: folder.appendingPathComponent(file + ".json"))
    guard case .array(let values) = try JSONValue(decoding: data), !values.isEmpty else {
      throw GivenVectorError(text: "\(file).json is no array of vectors")
    }
    return values.map { GivenVector(value: $0) }
  }

  subscript(_ name: String) -> JSONValue {
    guard case .object(let members) = value else { return .null }
    return members.first { $0.name == name }?.value ?? .null
  }

  var name: String { (try? text("name")) ?? "" }

  func text(_ name: String) throws -> String {
    guard case .string(let text) = self[name] else { throw GivenVectorError(text: "\(name) is no text") }
    return text
  }

  func bytes(_ name: String) throws -> [UInt8] { try unhex(text(name)) }

  func bits(_ name: String) throws -> UInt64 { try bytes(name).reduce(0) { $0 << 8 | UInt64($1) } }

  func number(_ name: String) throws -> UInt64 {
    guard case .integer(let number) = self[name] else { throw GivenVectorError(text: "\(name) is no number") }
    return UInt64(number)
  }

  func list(_ name: String) throws -> [GivenVector] {
    guard case .array(let values) = self[name] else { throw GivenVectorError(text: "\(name) is no array") }
    return values.map { GivenVector(value: $0) }
  }

  func texts(_ name: String) throws -> [String] {
    try list(name).map { item in
      guard case .string(let text) = item.value else { throw GivenVectorError(text: "\(name) holds no texts") }
      return text
    }
  }

  /// The layout and the bytes of a vector that gives an encoding.
  func encoding(in file: String) throws -> (layout: String, bytes: [UInt8]) {
    switch file {
    case "objects": (try text("layout"), try bytes("bytes"))
    case "messages": ("message", Array(try text("json").utf8))
    case "frames": ("frames", try bytes("bytes"))
    default: (String(file.prefix { $0 != "_" }).replacing("manifests", with: "manifest"), try bytes("bytes"))
    }
  }
}

struct GivenVectorError: Error { let text: String }

private func unhex(_ text: String) throws -> [UInt8] {
  let digits = Array(text.utf8)
  guard digits.count % 2 == 0 else { throw GivenVectorError(text: "an odd number of digits") }
  return try stride(from: 0, to: digits.count, by: 2).map { at in
    guard let byte = UInt8(String(decoding: digits[at..<at + 2], as: UTF8.self), radix: 16) else {
      throw GivenVectorError(text: "no hexadecimal digits")
    }
    return byte
  }
}

extension JSONValue {
  /// Members in the order of their names: the order says nothing.
  fileprivate var sorted: JSONValue {
    switch self {
    case .object(let members):
      .object(members.map { JSONMember($0.name, $0.value.sorted) }.sorted { $0.name < $1.name })
    case .array(let values): .array(values.map(\.sorted))
    default: self
    }
  }
}
