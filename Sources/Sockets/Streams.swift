import CUV
import Glibc
import ParleyTransport
import ParleyVocabulary

enum StreamLimit {
  static let acceptedConnectionCountMax = 512
  /// Descriptors that the store, files that are served, dials and sockets for datagrams may need.
  static let descriptorReserve = 64
  /// Beyond the limit so many more are taken while those that make room for them are being closed.
  static let acceptedWhileClosingMax = 16

  /// How many connections of others are held where a process may have so many descriptors: half of what is left, for
  /// what they ask needs descriptors, too.
  static func acceptedCountMax(descriptorCountMax: Int) -> Int {
    min(acceptedConnectionCountMax, max(8, (descriptorCountMax - descriptorReserve) / 2))
  }
  static let backlogCountMax: CInt = 128
  static let dialTimeMax = Span.seconds(3)
  /// How long a closing connection may go without the other side taking a byte.
  static let drainTimeMax = Span.seconds(10)
  /// How long a closing connection waits for the other side's end once everything has gone out.
  static let lingerTimeMax = Span.seconds(3)
  static let lowWaterByteCount = 256 << 10
  /// What a write that waits takes beside its bytes: libuv's request and the allocator's own.
  static let requestByteCount = 256
  /// A silent link is known after 5 + 3 × 2 seconds.
  static let keepAliveIdleSeconds: CInt = 5
  static let keepAliveIntervalSeconds: CInt = 2
  static let keepAliveProbeCount: CInt = 3
}

/// A TCP handle.
class StreamHandle: LoopHandle {
  /// The handle keeps the transport alive: callbacks look into it.
  let transport: UVTransport
  final var tcp: UnsafeMutablePointer<uv_tcp_t> { memory.assumingMemoryBound(to: uv_tcp_t.self) }
  final var stream: UnsafeMutablePointer<uv_stream_t> { memory.assumingMemoryBound(to: uv_stream_t.self) }

  init(_ transport: UVTransport) {
    self.transport = transport
    super.init(UV_TCP)
    _ = uv_tcp_init(transport.loop.loop, tcp)
    opened()
  }

  final func adopt(_ descriptor: consuming Descriptor) throws(SocketError) {
    try SocketError.check(uv_tcp_open(tcp, descriptor.number), "open a connection")
    _ = descriptor.give()
  }
}

/// Listens on one address.
final class Listener: StreamHandle {
  private(set) var port: UInt16 = 0

  /// Throws EADDRINUSE when somebody else has the port; 0 lets the system choose.
  init(_ local: LocalAddress, port: UInt16, _ transport: UVTransport) throws(SocketError) {
    super.init(transport)
    do throws(SocketError) {
      let descriptor = try Descriptor(local.isIPv6 ? AF_INET6 : AF_INET, SOCK_STREAM)
      // Else a port in TIME_WAIT from our last run could not be used again for a minute.
      try descriptor.set(SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR")
      if local.isIPv6 { try descriptor.set(Level.ipv6, IPV6_V6ONLY, 1, "IPV6_V6ONLY") }
      try descriptor.bind(local.address(port: port))
      guard let bound = Address(ofSocket: descriptor.number) else {
        throw SocketError(action: "read a socket's address", code: -errno)
      }
      self.port = bound.port
      try adopt(descriptor)
      // An error here, such as no free descriptor, concerns one caller; libuv goes on listening.
      let result = uv_listen(stream, StreamLimit.backlogCountMax) { server, status in
        let owner = LoopHandle.owner(of: server, as: Listener.self)
        if status == 0 { return owner.accept() }
        if status == UV_EMFILE.rawValue || status == UV_ENFILE.rawValue { owner.transport.deliver(.starved) }
      }
      try SocketError.check(result, "listen on \(bound)")
    } catch {
      close()
      throw error
    }
  }

  private func accept() {
    let connection = Connection(transport.nextAcceptedID(), transport, isAccepted: true)
    if transport.acceptedCount >= transport.acceptedCountMax { transport.deliver(.starved) }
    guard uv_accept(stream, connection.stream) == 0, let from = connection.peerAddress,
      transport.acceptedCount < transport.acceptedCountMax + StreamLimit.acceptedWhileClosingMax
    else {
      connection.close()
      return
    }
    transport.admit(connection, from: from)
  }
}

/// One TCP connection. Events come from the loop only, never from within a call.
final class Connection: StreamHandle {
  private enum Phase {
    /// → `open`: connected. → `closed`: refused, or too late.
    case dialling
    /// → `draining`: `finish(afterWrites: true)`, or the other side's end. → `closed`: an error, or at once.
    case open
    /// What is queued goes out, what comes in is thrown away. → `lingering`: all has gone out.
    case draining
    /// Closing a socket with unread bytes resets the connection (RFC 2525, 2.17), and the other side may lose what it
    /// has not read yet; so we read on until its end. → `closed`: its end, or too late.
    case lingering
    case closed
  }

  let id: ConnectionID
  let isAccepted: Bool
  private var phase: Phase
  private var reason = "closed"
  private var isReadingWanted = true
  private var hasEnded = false
  private var wasQueued = false
  private var requestCount = 0
  private var drainsOnceConnected = false
  /// When patience ends, in the phases that have a limit.
  private(set) var deadline: Instant?
  private let connectRequest = UnsafeMutablePointer<uv_connect_t>.allocate(capacity: 1)
  private let shutdownRequest = UnsafeMutablePointer<uv_shutdown_t>.allocate(capacity: 1)

  init(_ id: ConnectionID, _ transport: UVTransport, isAccepted: Bool) {
    self.id = id
    self.isAccepted = isAccepted
    phase = isAccepted ? .open : .dialling
    super.init(transport)
  }

  deinit {
    connectRequest.deallocate()
    shutdownRequest.deallocate()
  }

  var peerAddress: Address? {
    var storage = sockaddr_storage()
    var length = CInt(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutableBytes(of: &storage) { bytes in
      let pointer = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
      return uv_tcp_getpeername(tcp, pointer, &length) == 0 ? Address(pointer) : nil
    }
  }

  // MARK: beginning

  /// Binds our own address first: the other side sees the one our datagrams come from, and a node restricted to some
  /// interfaces dials through no other.
  func dial(_ address: Address, from local: LocalAddress) {
    do throws(SocketError) {
      let descriptor = try Descriptor(address.family, SOCK_STREAM)
      // The port is chosen when connecting, so that many dials to different nodes can share one.
      try descriptor.set(Level.ipv4, IP_BIND_ADDRESS_NO_PORT, 1, "IP_BIND_ADDRESS_NO_PORT")
      try descriptor.bind(local.address(port: 0))
      try adopt(descriptor)
      let result = address.withSocketAddress { pointer, _ in
        uv_tcp_connect(connectRequest, tcp, pointer) { request, status in
          LoopHandle.owner(of: request!.pointee.handle, as: Connection.self).dialled(status)
        }
      }
      try SocketError.check(result, "connect to \(address)")
      setDeadline(StreamLimit.dialTimeMax)
    } catch {
      fail(error.description)
    }
  }

  private func dialled(_ status: CInt) {
    guard case .dialling = phase else { return }
    if status < 0 { return fail("cannot connect: \(String(cString: uv_strerror(status)))") }
    // Dialling a free port of our own host can connect a socket with itself (simultaneous open, RFC 9293, 3.5).
    var descriptor: CInt = -1
    if uv_fileno(handle, &descriptor) == 0, Address(ofSocket: descriptor) == peerAddress {
      return fail("cannot connect: nobody listens there")
    }
    deadline = nil
    phase = .open
    begin()
    if drainsOnceConnected { return drain() }
    transport.deliver(.connected(id))
  }

  /// Sets the options and reads.
  func begin() {
    _ = uv_tcp_nodelay(tcp, 1)
    var descriptor: CInt = -1
    if uv_fileno(handle, &descriptor) == 0 {
      for (level, option, value) in [
        (SOL_SOCKET, SO_KEEPALIVE, 1), (Level.tcp, TCP_KEEPIDLE, StreamLimit.keepAliveIdleSeconds),
        (Level.tcp, TCP_KEEPINTVL, StreamLimit.keepAliveIntervalSeconds),
        (Level.tcp, TCP_KEEPCNT, StreamLimit.keepAliveProbeCount),
      ] {
        var value: CInt = value
        _ = setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<CInt>.size))
      }
    }
    updateReading()
  }

  // MARK: reading

  func setReading(_ reading: Bool) {
    isReadingWanted = reading
    updateReading()
  }

  private func updateReading() {
    let reads: Bool
    switch phase {
    case .open: reads = isReadingWanted && !hasEnded
    case .draining, .lingering: reads = !hasEnded
    case .dialling, .closed: return
    }
    guard reads else {
      _ = uv_read_stop(stream)
      return
    }
    let result = uv_read_start(
      stream,
      { handle, _, buffer in
        buffer!.pointee = LoopHandle.owner(of: handle, as: Connection.self).transport.readBuffer.forStreams
      },
      { stream, count, buffer in
        let bytes = UnsafeRawBufferPointer(start: buffer!.pointee.base, count: max(0, count))
        LoopHandle.owner(of: stream, as: Connection.self).read(bytes, result: count)
      })
    // Already reading is as good.
    if result < 0, result != UV_EALREADY.rawValue { fail(String(cString: uv_strerror(result))) }
  }

  private func read(_ bytes: UnsafeRawBufferPointer, result: Int) {
    if result > 0 {
      if case .open = phase { transport.deliver(.received(id, ReceivedBytes(borrowing: bytes))) }
    } else if result == Int(UV_EOF.rawValue) {
      hasEnded = true
      updateReading()
      switch phase {
      case .open:
        reason = "the other side closed the connection"
        drain()
      case .lingering: finish()
      case .dialling, .draining, .closed: break
      }
    } else if result < 0 {
      fail(String(cString: uv_strerror(CInt(result))))
    }
  }

  // MARK: writing

  var queuedByteCount: Int {
    if case .closed = phase { return 0 }
    return uv_stream_get_write_queue_size(stream) + requestCount * StreamLimit.requestByteCount
  }

  func write(_ bytes: [UInt8]) {
    var sentCount = 0
    switch phase {
    case .draining, .lingering, .closed: return
    case .dialling: break
    case .open:
      if queuedByteCount == 0 {
        let result = bytes.withUnsafeBytes { bytes in
          // uv_buf_t has no const; writing does not change it.
          let base = UnsafeMutableRawPointer(mutating: bytes.baseAddress)?.assumingMemoryBound(to: CChar.self)
          var buffer = uv_buf_t(base: base, len: bytes.count)
          return uv_try_write(stream, &buffer, 1)
        }
        if result < 0, result != UV_EAGAIN.rawValue { return fail(String(cString: uv_strerror(result))) }
        sentCount = Int(max(0, result))
      }
    }
    if sentCount < bytes.count { queue(bytes[sentCount...]) }
  }

  /// The request and a copy of the bytes share one block of memory, freed when libuv is done with both.
  private func queue(_ bytes: ArraySlice<UInt8>) {
    let headByteCount = MemoryLayout<uv_write_t>.stride
    let block = UnsafeMutableRawPointer.allocate(byteCount: headByteCount + bytes.count, alignment: 16)
    bytes.withUnsafeBytes { (block + headByteCount).copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
    let request = block.bindMemory(to: uv_write_t.self, capacity: 1)
    var buffer = uv_buf_t(base: (block + headByteCount).assumingMemoryBound(to: CChar.self), len: bytes.count)
    let result = uv_write(request, stream, &buffer, 1) { request, status in
      let owner = LoopHandle.owner(of: request!.pointee.handle, as: Connection.self)
      UnsafeMutableRawPointer(request!).deallocate()
      owner.written(status)
    }
    if result < 0 {
      block.deallocate()
      return fail(String(cString: uv_strerror(result)))
    }
    wasQueued = true
    requestCount += 1
  }

  private func written(_ status: CInt) {
    requestCount -= 1
    switch phase {
    case .dialling, .closed: return
    case .open, .draining, .lingering: break
    }
    if status < 0 { return fail(String(cString: uv_strerror(status))) }
    switch phase {
    case .open:
      if wasQueued, queuedByteCount < StreamLimit.lowWaterByteCount {
        wasQueued = false
        transport.deliver(.writable(id))
      }
    case .draining: setDeadline(StreamLimit.drainTimeMax)
    case .dialling, .lingering, .closed: break
    }
  }

  // MARK: ending

  /// `.closed` follows from the loop.
  func finish(afterWrites: Bool) {
    switch phase {
    case .dialling:
      if afterWrites, queuedByteCount > 0 { drainsOnceConnected = true } else { finish() }
    case .open:
      if afterWrites { drain() } else { finish() }
    case .draining, .lingering:
      if !afterWrites { finish() }
    case .closed: break
    }
  }

  func fail(_ reason: String) {
    self.reason = reason
    finish()
  }

  /// Patience has ended.
  func expire() {
    switch phase {
    case .dialling: fail("cannot connect: no answer within \(StreamLimit.dialTimeMax.microseconds / 1_000_000) s")
    case .draining: fail("the other side did not read what was sent")
    case .lingering: finish()
    case .open, .closed: break
    }
  }

  private func finish() {
    phase = .closed
    deadline = nil
    close()
  }

  private func drain() {
    phase = .draining
    setDeadline(StreamLimit.drainTimeMax)
    updateReading()
    guard case .draining = phase else { return }
    let result = uv_shutdown(shutdownRequest, stream) { request, status in
      LoopHandle.owner(of: request!.pointee.handle, as: Connection.self).drained(status)
    }
    if result < 0 { fail(String(cString: uv_strerror(result))) }
  }

  private func drained(_ status: CInt) {
    guard case .draining = phase else { return }
    if status < 0 { return fail(String(cString: uv_strerror(status))) }
    phase = .lingering
    if hasEnded { return finish() }
    setDeadline(StreamLimit.lingerTimeMax)
  }

  private func setDeadline(_ span: Span) {
    deadline = transport.now() + span
    transport.watchDeadlines()
  }

  override func didClose() { transport.ended(self, reason: reason) }
}
