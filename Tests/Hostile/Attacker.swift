import Glibc
import ParleySealing
import ParleyVocabulary
import ParleyWire

/// A member gone bad: it knows an open channel and has a key, seals and signs as the protocol says, and obeys none of
/// its rules. No machine of the node runs here.
final class Attacker {
  let keys: ChannelKeys
  let identity: Identity
  let instance: Instance
  private let local: in_addr
  private let sending: Int32
  private var counter: UInt64 = 0
  private var number: UInt64 = 0

  static let group = "239.255.80.76"
  static let port: UInt16 = 45_800

  init(channel: String, local text: String, identity: Identity = .random()) throws {
    keys = ChannelKeys.open(name: try ChannelName(channel))
    self.identity = identity
    instance = Sealing.randomInstance()
    local = try Self.host(text)
    sending = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    var own = Self.address(local, 0)
    try check(withSocketAddress(&own) { bind(sending, $0, $1) }, "bind")
    var interface = local
    try check(setsockopt(sending, 0, IP_MULTICAST_IF, &interface, 4), "IP_MULTICAST_IF")
    var buffer: Int32 = 4 << 20
    _ = setsockopt(sending, SOL_SOCKET, SO_SNDBUF, &buffer, 4)
  }

  // MARK: Sending

  func multicast(_ frames: [DatagramFrame], as instance: Instance? = nil, in keys: ChannelKeys? = nil) throws {
    try send(frames, to: Self.address(try Self.host(Self.group), Self.port), as: instance, in: keys)
  }

  /// `place`: HOST:PORT.
  func send(_ frames: [DatagramFrame], toPlace place: String) throws {
    let parts = place.split(separator: ":")
    guard parts.count == 2, let port = UInt16(parts[1]) else { throw Refused("\(place) is no HOST:PORT") }
    try send(frames, to: Self.address(try Self.host(String(parts[0])), port), as: nil, in: nil)
  }

  private func send(_ frames: [DatagramFrame], to: sockaddr_in, as other: Instance?, in keys: ChannelKeys?) throws {
    var body = ByteWriter(reserving: 1_024)
    for frame in frames { frame.write(to: &body) }
    let bytes = try DatagramSealer.seal(
      frames: body.bytes, direct: nil, identity: identity, channel: keys ?? self.keys, instance: other ?? instance)
    var to = to
    while withSocketAddress(&to, { sendto(sending, bytes, bytes.count, 0, $0, $1) }) < 0 {
      guard errno == EAGAIN || errno == ENOBUFS || errno == EINTR else { throw Refused("sendto: errno \(errno)") }
    }
  }

  // MARK: Saying

  func presence(
    of author: PeerID? = nil, signedBy signer: Identity? = nil, as other: Instance? = nil, incarnation: UInt64 = 1
  ) -> DatagramFrame {
    counter += 1
    let author = author ?? identity.peerID
    let status = json(author, StatusKind(isOnline: true), id: nil)
    let presence = Presence(
      author: author, instance: other ?? instance, counter: counter, incarnation: incarnation, tcpPort: 9,
      intervalMilliseconds: 600_000, nonce: 1, head: number, digest: HeadsDigest(of: [:]), lamport: 0,
      wantsAcknowledgement: false, status: status, statusHash: Presence.hash(ofStatus: status))
    let object = presence.encoded
    let signature = (signer ?? identity).sign(
      context: Presence.context, channel: keys.id, log: presence.instance, object: object)
    return .presence(Signed(signature: signature, object: object))
  }

  func json(_ author: PeerID, _ content: any MessageKind, id: String?) -> [UInt8] {
    SchemaMessage(
      sender: Sender(peer: author, displayName: try! DisplayName("Mallory")), messageID: id.flatMap { MessageID($0) },
      timestamp: id == nil ? nil : Timestamp(milliseconds: Int64(clamping: SystemTime.milliseconds)).text,
      content: content
    ).encoded
  }

  func nextNumber() -> UInt64 {
    number += 1
    return number
  }

  func entry(
    _ content: any MessageKind, id: String, number: UInt64, lamport: UInt64? = nil, author: PeerID? = nil
  ) -> [UInt8] {
    let author = author ?? identity.peerID
    let body = json(author, content, id: id)
    var entry = Entry(
      key: LogKey(author: author, log: instance), number: number, lamport: lamport ?? number,
      timestamp: SystemTime.milliseconds, isHidden: false,
      items: [Entry.Item(kind: KindRegistry.code(of: content.type), body: body)])
    entry.signature = identity.sign(
      context: Entry.context, channel: keys.id, log: instance, object: entry.signedPart)
    return entry.encoded
  }

  // MARK: Hearing

  /// The first entry of somebody else that is said in the channel, and the instance it came under.
  func overhear(seconds: Int) throws -> (bytes: [UInt8], instance: Instance) {
    let hearing = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    defer { close(hearing) }
    var on: Int32 = 1
    try check(setsockopt(hearing, SOL_SOCKET, SO_REUSEADDR, &on, 4), "SO_REUSEADDR")
    var place = Self.address(try Self.host(Self.group), Self.port)
    try check(withSocketAddress(&place) { bind(hearing, $0, $1) }, "bind the group")
    var membership = ip_mreq(imr_multiaddr: try Self.host(Self.group), imr_interface: local)
    let size = socklen_t(MemoryLayout<ip_mreq>.size)
    try check(setsockopt(hearing, 0, IP_ADD_MEMBERSHIP, &membership, size), "IP_ADD_MEMBERSHIP")
    var patience = timeval(tv_sec: seconds, tv_usec: 0)
    try check(
      setsockopt(hearing, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size)), "SO_RCVTIMEO")
    say(#"{"listening":true}"#)
    var buffer = [UInt8](repeating: 0, count: 2_048)
    // At most so many datagrams of others.
    for _ in 0..<100_000 {
      let count = recv(hearing, &buffer, buffer.count, 0)
      guard count > 0 else { throw Refused("nothing was heard: errno \(errno)") }
      let datagram = Array(buffer[..<count])
      guard let header = DatagramHeader.parse(datagram), header.instance != instance,
        let body = DatagramSealer.open(datagram, channel: keys), let frames = try? DatagramFrame.decodeAll(body)
      else { continue }
      for case .entry(let bytes) in frames { return (bytes, header.instance) }
    }
    throw Refused("no entry was heard")
  }

  // MARK: The system

  static func host(_ text: String) throws -> in_addr {
    var host = in_addr()
    guard inet_pton(AF_INET, text, &host) == 1 else { throw Refused("\(text) is no IPv4 address") }
    return host
  }

  static func address(_ host: in_addr, _ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr = host
    address.sin_port = port.bigEndian
    return address
  }
}

struct Refused: Error, CustomStringConvertible {
  let description: String
  init(_ text: String) { description = text }
}

func check(_ result: Int32, _ what: String) throws { if result < 0 { throw Refused("\(what): errno \(errno)") } }

func withSocketAddress<Result>(
  _ address: inout sockaddr_in, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
) -> Result {
  withUnsafePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
}

/// One JSON object a line, for the test that started this.
func say(_ line: String) {
  let bytes = Array((line + "\n").utf8)
  _ = write(1, bytes, bytes.count)
}

enum SystemTime {
  static var milliseconds: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(time.tv_sec) * 1_000 + UInt64(time.tv_nsec) / 1_000_000
  }
}
