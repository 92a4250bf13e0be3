import ParleyHashing
import ParleyVocabulary
import ParleyWire

@testable import ParleySealing

/// The people, channels and objects of the vectors. Nothing here is drawn at random.
enum Facts {
  static let ana = Identity(seed: [UInt8](repeating: 1, count: 32))
  static let ben = Identity(seed: [UInt8](repeating: 2, count: 32))
  static let kitchen = ChannelKeys.open(name: try! ChannelName("kitchen"))
  static let instance = Instance(0x0102_0304_0506_0708)
  static let otherInstance = Instance(0x1112_1314_1516_1718)
  static let nonce = (0..<24).map { UInt8(0x40 + $0) }
  static let media = MediaID(bytes: (0..<32).map { UInt8(0xA0 + $0 / 2) })!
  static let otherMedia = MediaID(bytes: (0..<32).map { UInt8($0) })!

  static let anaSender = Sender(peer: ana.peerID, displayName: try! DisplayName("Ana"))
  static let benSender = Sender(peer: ben.peerID, displayName: try! DisplayName("Ben \"B\" 😀"))

  static func message(
    _ content: any MessageKind, id: String? = nil, from sender: Sender = anaSender, options: MessageOptions = .none
  ) -> [UInt8] {
    SchemaMessage(
      sender: sender, messageID: id.map { MessageID($0)! }, timestamp: id == nil ? nil : "2021-03-12T09:05:16Z",
      content: content, options: options
    ).encoded
  }

  static let online = message(StatusKind(isOnline: true))
  static let offline = message(StatusKind(isOnline: false))
  static let text = message(TextKind(body: "Hello World"), id: "m-1")
  static let photo = message(
    PhotoKind(file: MediaMembers(id: media, fileName: "кот.jpg", byteCount: nil, mimeType: nil)), id: "m-2")
  static let file = message(
    FileKind(
      file: MediaMembers(id: otherMedia, fileName: "a b.pdf", byteCount: 1_048_577, mimeType: "application/pdf")),
    id: "m-3")
  static let command = message(CmdKind(action: "refresh"), id: "m-16")
  static let handUp = message(RaiseHandKind(isRaised: true))
  static let handDown = message(RaiseHandKind(isRaised: false))

  static let digest = HeadsDigest(of: [
    LogKey(author: ana.peerID, log: instance): 3, LogKey(author: ben.peerID, log: otherInstance): 70_000,
    LogKey(author: ben.peerID, log: instance): 0,
  ])

  static func presence(status: [UInt8], wantsAcknowledgement: Bool = false, counter: UInt64 = 1) -> Presence {
    Presence(
      author: ana.peerID, instance: instance, counter: counter, incarnation: 63, tcpPort: 45_801,
      intervalMilliseconds: 2_000, nonce: 0x2122_2324_2526_2728, head: 16_384, digest: digest,
      lamport: 1 << 30, wantsAcknowledgement: wantsAcknowledgement, status: status,
      statusHash: Presence.hash(ofStatus: online))
  }

  static func live(_ json: [UInt8], counter: UInt64) -> LiveObject {
    LiveObject(author: ana.peerID, instance: instance, counter: counter, json: json)
  }

  static func sign(_ context: String, _ object: [UInt8]) -> Signed {
    Signed(
      signature: ana.sign(context: context, channel: kitchen.id, log: instance, object: object), object: object)
  }

  static let statement: Signed = {
    let object = GenerationStatement(
      author: ana.peerID, id: GenerationID(number: 3, hash: Bytes32(repeatElement(0x77, count: 32))!)
    ).encoded
    let signature = ana.sign(
      context: GenerationStatement.context, channel: kitchen.id, log: GenerationStatement.instance, object: object)
    return Signed(signature: signature, object: object)
  }()

  static func entry(
    number: UInt64, lamport: UInt64, timestamp: UInt64 = 1_615_539_916_000, isHidden: Bool = false,
    _ items: [(UInt64, [UInt8])]
  ) -> Entry {
    var entry = Entry(
      key: LogKey(author: ana.peerID, log: instance), number: number, lamport: lamport, timestamp: timestamp,
      isHidden: isHidden, items: items.map { Entry.Item(kind: $0.0, body: $0.1) })
    entry.signature = ana.sign(
      context: Entry.context, channel: kitchen.id, log: instance, object: entry.signedPart)
    return entry
  }

  static let grant: Grant = {
    var grant = Grant(
      inviter: ana.peerID, inviteID: (0..<16).map { UInt8(0x60 + $0) }, role: .member, issued: 1_615_539_916_000,
      expires: 1_615_568_716_000, uses: 30)
    grant.signature = ana.sign(
      context: Grant.context, channel: kitchen.id, log: Grant.log, object: grant.signedPart)
    return grant
  }()
  static let adminGrant: Grant = {
    var grant = Grant(
      inviter: ana.peerID, inviteID: [UInt8](repeating: 0xFF, count: 16), role: .admin, issued: 0, expires: 0, uses: 0)
    grant.signature = ana.sign(
      context: Grant.context, channel: kitchen.id, log: Grant.log, object: grant.signedPart)
    return grant
  }()
  static let heads = ActHeads([instance: 12, otherInstance: Limit.counterMax])

  static let plainEntry = entry(number: 1, lamport: 64, [(TextKind.code, text)])
  static let threeEntry = entry(
    number: 16_384, lamport: Limit.counterMax,
    [(TextKind.code, text), (PhotoKind.code, photo), (FileKind.code, file)])
  static let handEntry = entry(number: 2, lamport: 65, isHidden: true, [(RaiseHandKind.code, handUp)])
  static let joinedEntry = entry(
    number: 1, lamport: 1, isHidden: true, [(JoinedKind.code, message(JoinedKind(grant: grant), id: "a-1"))])
  static let unknownEntry = entry(
    number: 3, lamport: 66,
    [
      (
        0,
        Array(#"{"type":"later","sender":{"display_name":"Ana","sender_id":""#.utf8)
          + Array(ana.peerID.text.utf8) + Array(#""},"message_id":"m-9","x":[1,2.5,null,true]}"#.utf8)
      )
    ])
  static let longEntry = entry(
    number: 4, lamport: 67, [(TextKind.code, message(TextKind(body: String(repeating: "я", count: 1_500)), id: "m-4"))])

  /// Entry 1 with its body gone, which the signature still covers.
  static var emptiedEntry: [UInt8] { plainEntry.signedPart + plainEntry.signature + [0] }

  /// Bytes of a file of any size: byte i is 131 i + 17 ⌊i / 256⌋ + 7 ⌊i / 65,536⌋, modulo 256.
  static func content(_ byteCount: Int) -> [UInt8] {
    (0..<byteCount).map { UInt8(truncatingIfNeeded: 131 &* $0 &+ 17 &* ($0 >> 8) &+ 7 &* ($0 >> 16)) }
  }
}
