import ParleyHashing
import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// People, places and moments that the tests speak of.
let ana = person(1)
let ben = person(2)
let cho = person(3)
let garden = ChannelID(BLAKE2b.hash256(Array("garden".utf8)))
let kitchen = ChannelID(BLAKE2b.hash256(Array("kitchen".utf8)))
let start = Instant(microseconds: 1_000_000_000)

/// Persons of higher numbers come later in PeerID order.
func person(_ number: UInt64) -> PeerID { PeerID(Bytes32(words: (number, 0, 0, number))) }
func run(_ number: UInt64) -> Instance { Instance(number) }
func name(_ text: String) -> DisplayName { try! DisplayName(text) }
func address(_ last: UInt8, port: UInt16 = 4_000) -> Address { Address(host: [10, 0, 0, last], port: port) }

func status(_ peer: PeerID, _ text: String, isOnline: Bool = true) -> [UInt8] {
  SchemaMessage(
    sender: Sender(peer: peer, displayName: name(text)), messageID: nil, timestamp: nil,
    content: StatusKind(isOnline: isOnline)
  ).encoded
}

func presence(
  _ peer: PeerID, _ text: String, run instance: Instance, counter: UInt64, incarnation: UInt64 = 1,
  digest: HeadsDigest = HeadsDigest(of: [:]), head: UInt64 = 0, isFull: Bool = true, wantsAcknowledgement: Bool = false
) -> Presence {
  let json = status(peer, text)
  return Presence(
    author: peer, instance: instance, counter: counter, incarnation: incarnation, tcpPort: 7_000,
    intervalMilliseconds: 2_000, nonce: 77, head: head, digest: digest, lamport: 0,
    wantsAcknowledgement: wantsAcknowledgement, status: isFull ? json : [],
    statusHash: Presence.hash(ofStatus: json))
}

func signed(_ object: [UInt8]) -> Signed {
  Signed(signature: [UInt8](repeating: 0, count: Signed.signatureByteCount), object: object)
}

func text(_ author: PeerID, _ body: String, id: String) -> [UInt8] {
  SchemaMessage(
    sender: Sender(peer: author, displayName: name("X")), messageID: MessageID(id)!,
    timestamp: "2021-03-12T09:05:16Z", content: TextKind(body: body)
  ).encoded
}

func hand(_ author: PeerID, _ isRaised: Bool) -> [UInt8] {
  SchemaMessage(
    sender: Sender(peer: author, displayName: name("X")), messageID: nil, timestamp: nil,
    content: RaiseHandKind(isRaised: isRaised)
  ).encoded
}

func entry(
  _ author: PeerID, run instance: Instance, _ number: UInt64, lamport: UInt64? = nil, bodies: [[UInt8]]? = nil,
  isHidden: Bool = false
) -> Entry {
  Entry(
    key: LogKey(author: author, log: instance), number: number, lamport: lamport ?? number, timestamp: number,
    isHidden: isHidden,
    items: (bodies ?? [text(author, "number \(number)", id: "\(number)")]).map {
      Entry.Item(kind: isHidden ? RaiseHandKind.code : TextKind.code, body: $0)
    }, signature: [UInt8](repeating: 1, count: 64))
}

extension Instant {
  func plus(_ milliseconds: Int) -> Instant { self + .milliseconds(milliseconds) }
}
