import CMicroHTTPD
import Glibc
import Parley
import Synchronization

/// Serves a node over HTTP on a Unix socket in its home. LocalAPI.docc lists the addresses.
///
/// libmicrohttpd's one thread reads and writes all connections; while the node works on a request the connection is
/// suspended, so nothing blocks and no thread is held. One more thread watches open streams for clients that went away.
package final class LocalServer: Sendable {
  package static let bodyByteCountMax = 1 << 20
  static let connectionCountMax: UInt32 = 512
  /// How long a connection may stand with a request unfinished or a response unread (streams have no such limit).
  static let timeoutSeconds: UInt32 = 60

  let node: any NodeServing
  package let socketPath: String
  private let keepAliveInterval: Duration
  private let registry = Registry()
  private let arrivals: AsyncStream<(Exchange, [UInt8])>
  private let arrival: AsyncStream<(Exchange, [UInt8])>.Continuation
  private let daemon = Mutex<DaemonHandle?>(nil)
  private let watcher: StreamWatcher

  /// Unchecked: a pointer that is used under the lock of `daemon` only.
  private struct DaemonHandle: @unchecked Sendable { let pointer: OpaquePointer }

  /// Listens from here on; requests are answered once `run` runs.
  package init(
    node: any NodeServing, home: String, keepAliveInterval: Duration = .seconds(15)
  ) throws(LocalAPIError) {
    self.node = node
    self.keepAliveInterval = keepAliveInterval
    // Not more than one for each connection can wait here.
    (arrivals, arrival) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    let (listener, path) = try SocketFile.listen(inHome: home)
    socketPath = path
    watcher = StreamWatcher(registry: registry, keepAliveInterval: keepAliveInterval)
    // The daemon's callbacks borrow `self`; `stop`, which `deinit` requires, ends them first.
    let started = parley_mhd_start(
      listener, Self.connectionCountMax, Self.timeoutSeconds,
      { context, connection, url, method, _, data, byteCount, slot in
        let server = Unmanaged<LocalServer>.fromOpaque(context!).takeUnretainedValue()
        return server.handle(connection!, url!, method!, data, byteCount!, slot!)
      },
      { context, _, slot, _ in
        guard let pointer = slot?.pointee else { return }
        let exchange = Unmanaged<Exchange>.fromOpaque(pointer).takeRetainedValue()
        slot!.pointee = nil
        Unmanaged<LocalServer>.fromOpaque(context!).takeUnretainedValue().end(exchange)
      }, Unmanaged.passUnretained(self).toOpaque())
    guard let started else {
      let reason = String(cString: strerror(errno))
      close(listener)
      unlink(socketPath)
      throw .cannotListen(path: socketPath, reason: reason)
    }
    let handle = DaemonHandle(pointer: started)
    daemon.withLock { $0 = handle }
    watcher.start()
  }

  deinit { precondition(daemon.withLock { $0 == nil }, "a server is stopped before it is let go") }

  /// Answers requests until `stop`. All the work on requests happens in tasks of this call.
  package func run() async {
    await withDiscardingTaskGroup { group in
      for await (exchange, body) in arrivals {
        group.addTask { await self.respond(to: exchange, body: body) }
      }
      group.cancelAll()
    }
  }

  /// Ends the service: open requests are answered that the node is stopping, streams end, and what is on its way to a
  /// client has up to a second to get there. Blocks that long; removes the socket.
  package func stop() {
    guard let handle = daemon.withLock({ $0 }) else { return }
    let listener = MHD_quiesce_daemon(handle.pointer)
    registry.stop()
    registry.waitUntilEmpty(milliseconds: 1_000)
    watcher.stop()
    MHD_stop_daemon(handle.pointer)
    if listener >= 0 { close(listener) }
    daemon.withLock { $0 = nil }
    unlink(socketPath)
    arrival.finish()
  }

  private func respond(to exchange: Exchange, body: [UInt8]) async {
    do {
      let request = try Request(
        method: exchange.method, path: exchange.path, query: exchange.query, body: body,
        lastEventID: exchange.lastEventID, range: exchange.range)
      try await Router(node: node).respond(to: request, on: exchange)
    } catch {
      exchange.complete(.problem(Problem(any: error)))
    }
  }

  // MARK: On libmicrohttpd's thread

  private func handle(
    _ connection: OpaquePointer, _ url: UnsafePointer<CChar>, _ method: UnsafePointer<CChar>,
    _ data: UnsafePointer<CChar>?, _ byteCount: UnsafeMutablePointer<Int>,
    _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>
  ) -> MHD_Result {
    guard let pointer = slot.pointee else {
      let exchange = Exchange(
        method: String(cString: method), path: String(cString: url), query: query(of: connection),
        lastEventID: MHD_lookup_connection_value(connection, .HEADER_KIND, "Last-Event-ID").map { String(cString: $0) },
        range: MHD_lookup_connection_value(connection, .HEADER_KIND, "Range").map { String(cString: $0) })
      slot.pointee = Unmanaged.passRetained(exchange).toOpaque()
      registry.add(exchange, socket: parley_mhd_socket(connection))
      if let problem = refusal(of: connection) { return queue(.problem(problem), connection) }
      return .YES
    }
    let exchange = Unmanaged<Exchange>.fromOpaque(pointer).takeUnretainedValue()
    if byteCount.pointee > 0 {
      let isTaken = exchange.receive(UnsafeRawBufferPointer(start: data, count: byteCount.pointee))
      byteCount.pointee = 0
      return isTaken ? .YES : .NO
    }
    switch exchange.proceed(ConnectionReference(pointer: connection)) {
    case .work(let body):
      arrival.yield((exchange, body))
      // Between the registry's `stop` and here a request may have slipped in.
      if registry.isStopping { exchange.stop() }
      return .YES
    case .answer(let answer): return queue(answer, connection)
    case .none: return .YES
    }
  }

  private func end(_ exchange: Exchange) {
    registry.remove(exchange)
    exchange.end()
    if exchange.outlet != nil { watcher.lookAgain() }
  }

  /// What can be refused before the body is read.
  private func refusal(of connection: OpaquePointer) -> Problem? {
    guard parley_peer_user(parley_mhd_socket(connection)) == Int(getuid()) else { return .otherUser }
    if let text = MHD_lookup_connection_value(connection, .HEADER_KIND, "Content-Length"),
      let byteCount = UInt64(String(cString: text)), byteCount > UInt64(Self.bodyByteCountMax)
    {
      return .bodyTooLarge
    }
    return nil
  }

  private func query(of connection: OpaquePointer) -> [(name: String, value: String)] {
    var query: [(name: String, value: String)] = []
    withUnsafeMutablePointer(to: &query) { pointer in
      _ = MHD_get_connection_values(
        connection, .GET_ARGUMENT_KIND,
        { context, _, name, value in
          let query = context!.assumingMemoryBound(to: [(name: String, value: String)].self)
          query.pointee.append((String(cString: name!), value.map { String(cString: $0) } ?? ""))
          return .YES
        }, pointer)
    }
    return query
  }

  private func queue(_ answer: Answer, _ connection: OpaquePointer) -> MHD_Result {
    switch answer {
    case .json(let json, let status):
      return queue(json.bytes, status: status, type: "application/json", connection: connection)
    case .problem(let problem):
      return queue(
        problem.json.bytes, status: problem.status, type: "application/problem+json", allow: problem.allowedMethods,
        connection: connection)
    case .stream(let outlet):
      parley_mhd_never_times_out(connection)
      watcher.lookAgain()
      let reader = StreamReader(outlet: outlet, connection: ConnectionReference(pointer: connection))
      let response = MHD_create_response_from_callback(
        outlet.head?.byteCount ?? parley_mhd_size_unknown(), outlet.head == nil ? 16_384 : 131_072,
        { context, _, target, byteCount in
          let reader = Unmanaged<StreamReader>.fromOpaque(context!).takeUnretainedValue()
          return reader.outlet.read(into: .init(start: target, count: byteCount), for: reader.connection)
        }, Unmanaged.passRetained(reader).toOpaque(),
        { Unmanaged<StreamReader>.fromOpaque($0!).release() })
      guard let response else { return .NO }
      defer { MHD_destroy_response(response) }
      if let head = outlet.head {
        for header in head.headers { MHD_add_response_header(response, header.name, header.value) }
        return MHD_queue_response(connection, head.status, response)
      }
      MHD_add_response_header(response, "Content-Type", "text/event-stream")
      MHD_add_response_header(response, "Cache-Control", "no-store")
      return MHD_queue_response(connection, 200, response)
    }
  }

  private func queue(
    _ body: [UInt8], status: UInt32, type: String, allow: [String] = [], connection: OpaquePointer
  ) -> MHD_Result {
    let line = body + [UInt8(ascii: "\n")]
    let response = line.withUnsafeBytes {
      MHD_create_response_from_buffer($0.count, UnsafeMutableRawPointer(mutating: $0.baseAddress!), .RESPMEM_MUST_COPY)
    }
    guard let response else { return .NO }
    defer { MHD_destroy_response(response) }
    MHD_add_response_header(response, "Content-Type", type)
    MHD_add_response_header(response, "Cache-Control", "no-store")
    if !allow.isEmpty { MHD_add_response_header(response, "Allow", allow.joined(separator: ", ")) }
    return MHD_queue_response(connection, status, response)
  }
}

/// What libmicrohttpd's content reader is given.
private final class StreamReader: Sendable {
  let outlet: EventOutlet
  let connection: ConnectionReference
  init(outlet: EventOutlet, connection: ConnectionReference) {
    self.outlet = outlet
    self.connection = connection
  }
}
