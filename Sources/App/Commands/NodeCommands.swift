import Glibc
import Parley
import ParleyLocalAPI

enum NodeCommands {
  static func up(_ invocation: Invocation) async throws {
    let home = try Home.path(invocation)
    var settings = NodeSettings(
      home: home, interfaces: invocation.values("--interface"), peers: invocation.values("--peer"),
      port: try invocation.number("--port", in: UInt16(0)...UInt16.max) ?? 0)
    if let days = try invocation.number("--history-days", in: 1...36_500) { settings.historyDays = days }
    if let seconds = try invocation.number("--outbox-seconds", in: 1...31_536_000) { settings.outboxSeconds = seconds }
    if let count = try invocation.number("--history-entries", in: 100...10_000_000) {
      settings.historyEntryCountMax = count
    }
    if let quality = try invocation.number("--preview-quality", in: 1...100) {
      settings.pictures.quality = Double(quality) / 100
    }
    if let side = try invocation.number("--thumbnail-side", in: 16...8_192) {
      settings.pictures.thumbnailSideMax = side
    }
    if let side = try invocation.number("--big-side", in: 16...8_192) { settings.pictures.bigSideMax = side }
    if let megabytes = try invocation.number("--pictures-kept", in: 2...1_000_000) {
      settings.pictures.keptByteCountMax = megabytes * 1_000_000
    }
    settings.downloadsThumbnails = !invocation.has("--no-thumbnails")
    settings.downloadsVoice = !invocation.has("--no-voice")
    settings.uploadByteRateMax = try invocation.byteCount("--upload-limit", in: 65_536...1 << 40)
    settings.downloadByteRateMax = try invocation.byteCount("--download-limit", in: 65_536...1 << 40)
    settings.partByteCountMax = try invocation.byteCount("--parts-limit", in: 0...1 << 50)
    settings.messageRateMax = try invocation.number("--message-rate", in: 1...100_000)
    if let path = invocation.value("--hooks") { settings.hooks = try HookFile.read(path) }
    settings.tokenFile = invocation.value("--token-file").map { Home.absolute($0) }
    settings.rotateEverySeconds = try invocation.value("--rotate-every").map { Int(try ChannelCommands.seconds($0)) }
    if let name = invocation.value("--name") {
      do { settings.displayName = try DisplayName(name).text } catch { throw Failure(.usage, "--name: \(error)") }
    }
    for peer in settings.peers { try checkPeer(peer) }
    // A reader of standard output that goes away must not end the node.
    signal(SIGPIPE, SIG_IGN)
    do {
      settings.passphrase = try Secrets.homePassphrase(home, invocation)
      let made = try NodeFactory.make(settings) { trouble in
        Terminal.note("parley: \(trouble)")
      }
      // Before the socket, whose answers tell the page's address, but only where no node runs already.
      let page = try PageCommands.server(of: made.node, home: home, invocation)
      defer { page?.stop() }
      let server = try LocalServer(
        node: made.node, home: home, pageAddress: page?.pageAddress, times: page?.times ?? RequestTimes())
      defer { server.stop() }
      try await serve(made, [server] + (page.map { [$0] } ?? []), isJSON: invocation.isJSON)
    } catch let error as ParleyError {
      throw Failure(error)
    } catch let error as LocalAPIError {
      if case .inUse = error { throw Failure(.tryAgain, error.description) }
      throw Failure(.cannotCreate, error.description)
    }
  }

  /// Until the node ends by itself, by `parley down` or by a signal.
  private static func serve(_ made: NodeFactory.Made, _ servers: [LocalServer], isJSON: Bool) async throws {
    let (signals, signal) = AsyncStream<Void>.makeStream()
    let waiter = SignalWaiter { signal.yield() }
    let outcome = await withTaskGroup(of: Result<Void, any Error>?.self) { group in
      for server in servers { group.addTask { await Self.answer(server) } }
      group.addTask { await Self.stop(made.node, at: signals) }
      group.addTask { await Self.run(made) }
      group.addTask { await Self.announceReady(made, servers[0], isJSON: isJSON) }
      var outcome = Result<Void, any Error>.success(())
      while let ended = await group.next() {
        guard let ended else { continue }
        outcome = ended
        // The answer to `parley down` goes out here, and the other two end.
        for server in servers { server.stop() }
        signal.finish()
      }
      return outcome
    }
    waiter.end()
    try outcome.get()
  }

  /// Once the node has logged in and is in the channels of last time. A node that cannot start says why elsewhere.
  private static func announceReady(
    _ made: NodeFactory.Made, _ server: LocalServer, isJSON: Bool
  ) async -> Result<Void, any Error>? {
    guard (try? await made.ready()) != nil else { return nil }
    let peer = await made.node.peerID
    if isJSON {
      Terminal.line(
        (["event": "ready", "peer_id": .string(peer.text), "api": .string(server.socketPath)] as JSON).text)
    } else {
      let name = await made.node.status().displayName
      Terminal.line(
        "Ready: \(name.escapedLine) \(peer.fingerprint). Talk with parley chat CHANNEL; Ctrl-C ends this.")
      if let address = server.pageAddress {
        // Not into a file or journal: it lets in who reads it.
        Terminal.line("In a browser: " + (Terminal.isOutputTerminal ? address : "see parley page"))
      }
    }
    return nil
  }

  private static func answer(_ server: LocalServer) async -> Result<Void, any Error>? {
    await server.run()
    return nil
  }

  private static func stop(_ node: any NodeServing, at signals: AsyncStream<Void>) async -> Result<Void, any Error>? {
    for await _ in signals {
      await node.stop()
      break
    }
    return nil
  }

  private static func run(_ made: NodeFactory.Made) async -> Result<Void, any Error>? {
    do {
      try await made.run()
      return .success(())
    } catch { return .failure(error) }
  }

  /// `HOST:PORT` or `[IPv6]:PORT`.
  static func checkPeer(_ text: String) throws(Failure) {
    let host = text.prefix(upTo: text.lastIndex(of: ":") ?? text.startIndex)
    let port = text.dropFirst(host.count + 1)
    let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
    guard !host.isEmpty, UInt16(port) ?? 0 > 0, isBracketed || !host.contains(":") else {
      throw .usage("--peer needs HOST:PORT, such as 192.0.2.7:4000 or [fe80::1]:4000, not \(text.escapedLine)")
    }
  }

  static func down(_ invocation: Invocation) throws {
    _ = try NodeClient(home: Home.path(invocation)).call("POST", ["down"])
    Terminal.line(invocation.isJSON ? (["event": "stopped"] as JSON).text : "The node has ended.")
  }

  static func id(_ invocation: Invocation) throws {
    let answer = try NodeClient(home: Home.path(invocation)).call("GET", ["id"])
    Terminal.line(invocation.isJSON ? answer.text : answer["peer_id"]?.string?.escapedLine ?? "")
  }

  static func status(_ invocation: Invocation) throws {
    let client = try NodeClient(home: Home.path(invocation))
    let status = try client.call("GET", ["status"])
    if invocation.isJSON { return Terminal.line(status.text) }
    for line in Self.lines(ofStatus: status, home: client.home) { Terminal.line(line) }
  }

  static func lines(ofStatus status: JSON, home: String) -> [String] {
    func text(_ name: String) -> String { status[name]?.string?.escapedLine ?? "?" }
    func count(_ name: String) -> Int64 { status[name]?.integer ?? 0 }
    var lines = [
      "You         \(text("display_name")) \(text("fingerprint"))",
      "ID          \(text("peer_id"))",
      "State       \(text("state"))",
      "Network     port \(count("tcp_port")); \(Presenter.number(count("sessions"), "connection", "connections")); "
        + "\(Presenter.number(count("nodes_heard"), "node", "nodes")) heard in the last minute",
    ]
    for interface in status["interfaces"]?.array ?? [] {
      lines.append("            \(interface.string?.escapedLine ?? "")")
    }
    lines.append("Home        \(home.escapedLine)")
    let channels = status["channels"]?.array ?? []
    if channels.isEmpty { lines.append("Channels    none yet: parley join CHANNEL") }
    for (index, channel) in channels.enumerated() {
      lines.append((index == 0 ? "Channels    " : "            ") + ChannelCommands.line(ofChannel: channel))
    }
    for trouble in status["troubles"]?.array ?? [] {
      lines.append("Trouble     \(trouble.string?.escapedLine ?? "")")
    }
    return lines
  }
}

/// A thread that waits for SIGINT or SIGTERM, so that no thread of the pool does.
private final class SignalWaiter: Sendable {
  private let ending = Signal()
  private let onSignal: @Sendable () -> Void
  private let thread: pthread_t

  init(_ onSignal: @escaping @Sendable () -> Void) {
    self.onSignal = onSignal
    let context = SignalContext(ending: ending, onSignal: onSignal)
    var thread = pthread_t()
    let failure = pthread_create(
      &thread, nil,
      { pointer in
        let context = Unmanaged<SignalContext>.fromOpaque(pointer!).takeRetainedValue()
        var entries = [Interruption.descriptor, context.ending.descriptor].map {
          pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
        }
        while poll(&entries, 2, -1) < 0, errno == EINTR {}
        if entries[0].revents != 0 { context.onSignal() }
        return nil
      }, Unmanaged.passRetained(context).toOpaque())
    precondition(failure == 0, "a process that starts can make a thread")
    self.thread = thread
  }

  func end() {
    ending.raise()
    pthread_join(thread, nil)
  }
}

private final class SignalContext: Sendable {
  let ending: Signal
  let onSignal: @Sendable () -> Void
  init(ending: Signal, onSignal: @escaping @Sendable () -> Void) {
    self.ending = ending
    self.onSignal = onSignal
  }
}
