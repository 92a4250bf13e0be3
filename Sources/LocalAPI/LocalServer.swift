import CMicroHTTPD
import Glibc
import Parley
import Synchronization

/// Serves a node over HTTP on a Unix socket in its home, or to browsers on a TCP port of loopback. LocalAPI.docc lists
/// the addresses.
///
/// libmicrohttpd's one thread reads and writes all connections; while the node works on a request the connection is
/// suspended, so nothing blocks and no thread is held. One more thread watches open streams for clients that went away.
package final class LocalServer: Sendable {
  package static let bodyByteCountMax = 1 << 20
  static let connectionCountMax: UInt32 = 512
  /// How long a connection may stand with a request unfinished or a response unread (streams have no such limit).
  static let timeoutSeconds: UInt32 = 60

  let node: any NodeServing
  /// Empty when browsers are served.
  package let socketPath: String
  /// What to open in a browser: of this server, or of the one beside it. Holds a secret.
  package let pageAddress: String?
  private let door: PageDoor?
  private let home: String
  private let downloadsFolder: String?
  private let keepAliveInterval: Duration
  private let registry = Registry()
  /// Of this server and the one beside it.
  package let times: RequestTimes
  private let arrivals: AsyncStream<(Exchange, [UInt8])>
  private let arrival: AsyncStream<(Exchange, [UInt8])>.Continuation
  private let daemon = Mutex<DaemonHandle?>(nil)
  private let watcher: StreamWatcher

  /// Unchecked: a pointer that is used under the lock of `daemon` only.
  private struct DaemonHandle: @unchecked Sendable { let pointer: OpaquePointer }

  /// Listens at the socket from here on; requests are answered once `run` runs.
  package convenience init(
    node: any NodeServing, home: String, pageAddress: String? = nil, keepAliveInterval: Duration = .seconds(15),
    times: RequestTimes = RequestTimes()
  ) throws(LocalAPIError) {
    let (listener, path) = try SocketFile.listen(inHome: home)
    Upload.removeParts(inHome: home)
    try self.init(
      node, home, listener, path: path, pageAddress: pageAddress, keepAliveInterval: keepAliveInterval, times: times)
  }

  /// Listens at a port of loopback, for browsers: nil is the port of last time, or else a free one. `downloadsFolder`:
  /// where files go that are downloaded from the page.
  package convenience init(
    pageOf node: any NodeServing, home: String, port: UInt16?, downloadsFolder: String,
    keepAliveInterval: Duration = .seconds(15)
  ) throws(LocalAPIError) {
    let (door, listener) = try PageDoor.open(home: home, port: port)
    try self.init(
      node, home, listener, path: "", pageAddress: door.address, door: door, downloadsFolder: downloadsFolder,
      keepAliveInterval: keepAliveInterval, times: RequestTimes())
  }

  private init(
    _ node: any NodeServing, _ home: String, _ listener: Int32, path: String, pageAddress: String?,
    door: PageDoor? = nil, downloadsFolder: String? = nil, keepAliveInterval: Duration, times: RequestTimes
  ) throws(LocalAPIError) {
    self.node = node
    self.times = times
    self.home = home
    self.door = door
    self.pageAddress = pageAddress
    self.downloadsFolder = downloadsFolder
    self.keepAliveInterval = keepAliveInterval
    // Not more than one for each connection can wait here.
    (arrivals, arrival) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
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
      if door == nil { unlink(socketPath) }
      throw .cannotListen(path: door == nil ? socketPath : "127.0.0.1", reason: reason)
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
    if door == nil { unlink(socketPath) }
    arrival.finish()
  }

  private func respond(to exchange: Exchange, body: [UInt8]) async {
    if exchange.isSession, let door {
      exchange.complete(door.session(body))
      return
    }
    do {
      let request = try Request(
        method: exchange.method, path: exchange.path, query: exchange.query, body: body,
        lastEventID: exchange.lastEventID, range: exchange.range, upload: exchange.upload)
      let router = Router(
        node: node, downloadsFolder: downloadsFolder, pageAddress: pageAddress, isPage: door != nil, home: home,
        times: times, streamCount: { [registry] in registry.streamCount })
      try await router.respond(to: request, on: exchange)
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
      return begin(connection, path: String(cString: url), method: String(cString: method), slot)
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

  /// A request's head has come.
  private func begin(
    _ connection: OpaquePointer, path: String, method: String, _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>
  ) -> MHD_Result {
    var path = path
    var answer: Answer?
    var isSession = false
    if let door {
      switch door.admit(head(of: connection, path: path, method: method, door)) {
      case .file(let file): answer = .file(file)
      case .session: isSession = true
      case .api(let rest): path = rest
      case .refused(let problem): answer = .problem(problem)
      }
    } else if parley_peer_user(parley_mhd_socket(connection)) != Int(getuid()) {
      answer = .problem(.otherUser)
    }
    let query = query(of: connection)
    var upload: Upload?
    if answer == nil, method == "POST", path.hasSuffix("/uploads") {
      let name = query.first { $0.name == "name" }.flatMap { try? PercentEncoding.decoded($0.value) }
      do throws(Problem) { upload = try Upload(home: home, fileName: name ?? "") } catch { answer = .problem(error) }
    } else if answer == nil, let text = header("Content-Length", of: connection), let byteCount = UInt64(text),
      byteCount > UInt64(Self.bodyByteCountMax)
    {
      answer = .problem(.bodyTooLarge)
    }
    let exchange = Exchange(
      method: method, path: path, query: query, lastEventID: header("Last-Event-ID", of: connection),
      range: header("Range", of: connection), upload: upload, isSession: isSession)
    slot.pointee = Unmanaged.passRetained(exchange).toOpaque()
    registry.add(exchange, socket: parley_mhd_socket(connection))
    return answer.map { queue($0, connection) } ?? .YES
  }

  private func header(_ name: String, of connection: OpaquePointer) -> String? {
    MHD_lookup_connection_value(connection, .HEADER_KIND, name).map { String(cString: $0) }
  }

  private func head(
    of connection: OpaquePointer, path: String, method: String, _ door: PageDoor
  ) -> PageDoor.Head {
    PageDoor.Head(
      method: method, path: path, host: header("Host", of: connection), origin: header("Origin", of: connection),
      site: header("Sec-Fetch-Site", of: connection),
      cookie: MHD_lookup_connection_value(connection, .COOKIE_KIND, door.cookieName).map { String(cString: $0) })
  }

  private func end(_ exchange: Exchange) {
    registry.remove(exchange)
    exchange.end()
    if exchange.outlet != nil { watcher.lookAgain() }
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
    case .json(let json, let status, let headers):
      return queue(json.bytes, status: status, type: "application/json", headers: headers, connection: connection)
    case .text(let text, let type):
      return queue(Array(text.utf8), status: 200, type: type, headers: [], connection: connection)
    case .file(let file):
      let response = MHD_create_response_from_buffer(
        file.bytes.count, UnsafeMutableRawPointer(mutating: file.bytes.baseAddress!), .RESPMEM_PERSISTENT)
      guard let response else { return .NO }
      defer { MHD_destroy_response(response) }
      MHD_add_response_header(response, "Content-Type", file.type)
      // The next version of the node brings another one.
      MHD_add_response_header(response, "Cache-Control", "no-cache")
      addPageHeaders(to: response)
      return MHD_queue_response(connection, 200, response)
    case .problem(let problem):
      return queue(
        problem.json.bytes, status: problem.status, type: "application/problem+json",
        headers: problem.allowedMethods.isEmpty
          ? [] : [(name: "Allow", value: problem.allowedMethods.joined(separator: ", "))], connection: connection)
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
        addPageHeaders(to: response)
        return MHD_queue_response(connection, head.status, response)
      }
      MHD_add_response_header(response, "Content-Type", "text/event-stream")
      MHD_add_response_header(response, "Cache-Control", "no-store")
      addPageHeaders(to: response)
      return MHD_queue_response(connection, 200, response)
    }
  }

  private func queue(
    _ body: [UInt8], status: UInt32, type: String, headers: [(name: String, value: String)], connection: OpaquePointer
  ) -> MHD_Result {
    let line = body.last == UInt8(ascii: "\n") ? body : body + [UInt8(ascii: "\n")]
    let response = line.withUnsafeBytes {
      MHD_create_response_from_buffer($0.count, UnsafeMutableRawPointer(mutating: $0.baseAddress!), .RESPMEM_MUST_COPY)
    }
    guard let response else { return .NO }
    defer { MHD_destroy_response(response) }
    MHD_add_response_header(response, "Content-Type", type)
    MHD_add_response_header(response, "Cache-Control", "no-store")
    for header in headers { MHD_add_response_header(response, header.name, header.value) }
    addPageHeaders(to: response)
    return MHD_queue_response(connection, status, response)
  }

  /// Those that the answer does not have of itself.
  private func addPageHeaders(to response: OpaquePointer) {
    guard door != nil else { return }
    for header in PageDoor.headers where MHD_get_response_header(response, header.name) == nil {
      MHD_add_response_header(response, header.name, header.value)
    }
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
