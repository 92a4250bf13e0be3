import CUV
import Glibc
import ParleyVocabulary

enum MulticastGroup {
  static let ipv4: [UInt8] = [239, 255, 80, 76]
  /// ff12::8050:4c4e: transient (RFC 4291, 2.7), link-local scope.
  static let ipv6: [UInt8] = [0xff, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x50, 0x4c, 0x4e]

  static func address(for local: LocalAddress, port: UInt16) -> Address {
    Address(host: local.isIPv6 ? ipv6 : ipv4, port: port, scope: local.scope)
  }
}

/// One UDP socket on the loop.
final class DatagramSocket: LoopHandle {
  /// Asked for; the system gives at most net.core.rmem_max. A burst of a whole channel must fit.
  private static let receiveBufferByteCount: CInt = 4 << 20
  private static let sendBufferByteCount: CInt = 1 << 20

  private let transport: UVTransport
  private let interface: String
  /// What it is bound to.
  let address: Address
  private(set) var sendFailureCount: UInt64 = 0
  /// Of the newest that the system did not take.
  private(set) var sendFailure: String?

  private var udp: UnsafeMutablePointer<uv_udp_t> { memory.assumingMemoryBound(to: uv_udp_t.self) }

  private init(_ descriptor: consuming Descriptor, _ local: LocalAddress, _ transport: UVTransport) throws(SocketError)
  {
    guard let address = Address(ofSocket: descriptor.number) else {
      throw SocketError(action: "read a socket's address", code: -errno)
    }
    self.address = address
    self.transport = transport
    interface = local.interface
    super.init(UV_UDP)
    try SocketError.check(
      uv_udp_init_ex(transport.loop.loop, udp, CUnsignedInt(AF_UNSPEC) | UV_UDP_RECVMMSG.rawValue), "open a socket")
    opened()
    do throws(SocketError) {
      try SocketError.check(uv_udp_open(udp, descriptor.number), "open a socket")
      _ = descriptor.give()
      try receive()
    } catch {
      close()
      throw error
    }
  }

  /// Sends, and hears unicast: bound to the interface's own address and a port of its own, so that answers reach this
  /// node and no other on the same host.
  static func unicast(_ local: LocalAddress, _ transport: UVTransport) throws(SocketError) -> DatagramSocket {
    let descriptor = try Descriptor(local.isIPv6 ? AF_INET6 : AF_INET, SOCK_DGRAM)
    try sizeBuffers(descriptor)
    if local.isIPv6 {
      try descriptor.set(Level.ipv6, IPV6_V6ONLY, 1, "IPV6_V6ONLY")
      try descriptor.set(Level.ipv6, IPV6_MULTICAST_IF, CInt(bitPattern: local.index), "IPV6_MULTICAST_IF")
      try descriptor.set(Level.ipv6, IPV6_MULTICAST_HOPS, 1, "IPV6_MULTICAST_HOPS")
      try descriptor.set(Level.ipv6, IPV6_MULTICAST_LOOP, 1, "IPV6_MULTICAST_LOOP")
    } else {
      try descriptor.set(Level.ipv4, IP_MULTICAST_IF, raw: request(local), "IP_MULTICAST_IF")
      try descriptor.set(Level.ipv4, IP_MULTICAST_TTL, 1, "IP_MULTICAST_TTL")
      try descriptor.set(Level.ipv4, IP_MULTICAST_LOOP, 1, "IP_MULTICAST_LOOP")
    }
    try descriptor.bind(local.address(port: 0))
    let number = descriptor.number
    let socket = try DatagramSocket(descriptor, local, transport)
    // uv_udp_open allows reuse; another program could then take this port away from us.
    var off: CInt = 0
    _ = setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &off, socklen_t(MemoryLayout<CInt>.size))
    return socket
  }

  /// Hears the group on one interface, and nothing else: Linux delivers to a socket bound to a group only what was sent
  /// to the group, and with …_MULTICAST_ALL off only what came in where this socket joined. Every such socket on a host
  /// gets its own copy: SO_REUSEADDR is enough for that, also between users. SO_REUSEPORT must stay off: with it Linux
  /// (seen with 6.18) hands a multicast for which only one socket has joined to any socket of the port by hash, so that
  /// of two interfaces one stays deaf and the other hears what did not come in there.
  static func hearing(_ local: LocalAddress, port: UInt16, _ transport: UVTransport) throws(SocketError)
    -> DatagramSocket
  {
    let group = MulticastGroup.address(for: local, port: port)
    let descriptor = try Descriptor(group.family, SOCK_DGRAM)
    try sizeBuffers(descriptor)
    try descriptor.set(SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR")
    if local.isIPv6 {
      try descriptor.set(Level.ipv6, IPV6_V6ONLY, 1, "IPV6_V6ONLY")
      try descriptor.set(Level.ipv6, IPV6_MULTICAST_ALL, 0, "IPV6_MULTICAST_ALL")
      try descriptor.bind(group)
      var membership = ipv6_mreq()
      withUnsafeMutableBytes(of: &membership.ipv6mr_multiaddr) { $0.copyBytes(from: group.host) }
      membership.ipv6mr_interface = local.index
      try descriptor.set(Level.ipv6, IPV6_JOIN_GROUP, raw: membership, "IPV6_JOIN_GROUP")
    } else {
      try descriptor.set(Level.ipv4, IP_MULTICAST_ALL, 0, "IP_MULTICAST_ALL")
      try descriptor.bind(group)
      var membership = request(local)
      withUnsafeMutableBytes(of: &membership.imr_multiaddr) { $0.copyBytes(from: group.host) }
      try descriptor.set(Level.ipv4, IP_ADD_MEMBERSHIP, raw: membership, "IP_ADD_MEMBERSHIP")
    }
    return try DatagramSocket(descriptor, local, transport)
  }

  private static func request(_ local: LocalAddress) -> ip_mreqn {
    var request = ip_mreqn()
    request.imr_ifindex = CInt(bitPattern: local.index)
    return request
  }

  private static func sizeBuffers(_ descriptor: borrowing Descriptor) throws(SocketError) {
    try descriptor.set(SOL_SOCKET, SO_RCVBUF, receiveBufferByteCount, "SO_RCVBUF")
    try descriptor.set(SOL_SOCKET, SO_SNDBUF, sendBufferByteCount, "SO_SNDBUF")
  }

  private func receive() throws(SocketError) {
    let result = uv_udp_recv_start(
      udp,
      { handle, _, buffer in
        let owner = LoopHandle.owner(of: handle, as: DatagramSocket.self)
        buffer!.pointee = owner.transport.readBuffer.forDatagrams
      },
      { handle, count, buffer, sender, _ in
        // Without a sender: nothing more to read, the buffer is free again, or an error such as a link that went down.
        // Reception goes on in every case.
        guard count >= 0, let sender, let from = Address(sender) else { return }
        let owner = LoopHandle.owner(of: handle, as: DatagramSocket.self)
        let bytes = UnsafeRawBufferPointer(start: buffer!.pointee.base, count: count)
        owner.transport.deliver(.datagram([UInt8](bytes), from: from, interface: owner.interface))
      })
    try SocketError.check(result, "receive datagrams")
  }

  /// Best effort: what the system cannot take now is lost, as it may be on the way.
  func send(_ datagram: [UInt8], to address: Address) {
    guard !isClosing else { return }
    datagram.withUnsafeBytes { bytes in
      // uv_buf_t has no const; sending does not write to it.
      let base = UnsafeMutableRawPointer(mutating: bytes.baseAddress)?.assumingMemoryBound(to: CChar.self)
      var buffer = uv_buf_t(base: base, len: bytes.count)
      let result = address.withSocketAddress { pointer, _ in uv_udp_try_send(udp, &buffer, 1, pointer) }
      guard result < 0 else { return }
      sendFailureCount += 1
      sendFailure = SocketError(action: "send", code: result).reason
    }
  }

  override func willClose() {
    // So that the rest of a recvmmsg batch is not delivered.
    _ = uv_udp_recv_stop(udp)
  }
}
