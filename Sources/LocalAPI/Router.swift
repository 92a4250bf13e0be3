import Parley

/// Which address does what.
struct Router: Sendable {
  let node: any NodeServing
  /// Where downloads go for which no place is named.
  var downloadsFolder: String?
  /// What lets a browser in.
  var pageAddress: String?
  /// Whether a browser asks: it may not name places of the disk.
  var isPage = false
  /// Where uploads lie.
  var home = ""
  var times = RequestTimes()
  /// How many event streams are open.
  var streamCount: @Sendable () -> Int = { 0 }

  struct Route: Sendable {
    let method: String
    let pattern: String
    let action: @Sendable (Router, Request, [String]) async throws -> Reply
    init(
      _ method: String, _ pattern: String,
      _ action: @escaping @Sendable (Router, Request, [String]) async throws -> Reply
    ) {
      self.method = method
      self.pattern = pattern
      self.action = action
    }

    /// The parts of `segments` that stand where the pattern has `*`; nil when it does not match.
    func match(_ segments: [String]) -> [String]? {
      let parts = pattern.split(separator: "/")
      guard parts.count == segments.count else { return nil }
      var values: [String] = []
      for (part, segment) in zip(parts, segments) {
        if part == "*" { values.append(segment) } else if part != segment { return nil }
      }
      return values
    }
  }

  enum Reply {
    case json(JSON, status: UInt32 = 200)
    /// `pump` writes to the outlet until it returns or the client is gone; it is cancelled then.
    /// `work` goes on after the answer, until it is done or the node stops.
    case jsonThen(JSON, status: UInt32, work: @Sendable () async -> Void)
    case text(String, type: String)
    case stream(pump: @Sendable (EventOutlet) async -> Void)
    case bytes(EventOutlet.Head, pump: @Sendable (EventOutlet) async -> Void)
  }

  private static let routes: [Route] = [
    Route("GET", "metrics") { router, _, _ in await router.metrics() },
    Route("GET", "v1/doctor") { router, _, _ in await router.doctor() },
    Route("GET", "v1/openapi.json") { _, _, _ in .text(PageFile.openAPI, type: "application/json") },
    Route("GET", "v1/status") { router, _, _ in .json(JSON(await router.node.status())) },
    Route("GET", "v1/id") { router, _, _ in await router.identity() },
    Route("POST", "v1/down") { router, _, _ in router.down() },
    Route("GET", "v1/channels") { router, _, _ in .json(.array(await router.node.channels().map { JSON($0) })) },
    Route("POST", "v1/channels") { router, request, _ in try await router.join(request) },
    Route("POST", "v1/owned-channels") { router, request, _ in try await router.create(request) },
    Route("POST", "v1/invitations") { router, request, _ in try await router.joinByInvitation(request) },
    Route("POST", "v1/channels/*/invitations") { router, request, parts in
      try await router.invite(parts[0], request)
    },
    Route("POST", "v1/channels/*/keys") { router, _, parts in try await router.rotate(parts[0]) },
    Route("DELETE", "v1/channels/*") { router, _, parts in try await router.leave(parts[0]) },
    Route("GET", "v1/channels/*/members") { router, _, parts in try await router.members(parts[0]) },
    Route("PUT", "v1/channels/*/members/*/role") { router, request, parts in try await router.role(parts, request) },
    Route("DELETE", "v1/channels/*/members/*/mute") { router, _, parts in try await router.unmute(parts) },
    Route("DELETE", "v1/channels/*/members/*/ban") { router, _, parts in try await router.unban(parts) },
    Route("DELETE", "v1/channels/*/members/*/hand") { router, _, parts in try await router.lowerHand(parts) },
    Route("GET", "v1/channels/*/announcement") { router, _, parts in try await router.announcement(parts[0]) },
    Route("PUT", "v1/channels/*/announcement") { router, request, parts in
      try await router.announce(parts[0], request)
    },
    Route("GET", "v1/channels/*/settings") { router, _, parts in try await router.settings(parts[0]) },
    Route("PUT", "v1/channels/*/settings") { router, request, parts in try await router.set(parts[0], request) },
    Route("GET", "v1/peers/*/settings") { router, _, parts in try await router.peerSettings(parts[0]) },
    Route("PUT", "v1/peers/*/settings") { router, request, parts in try await router.setPeer(parts[0], request) },
    Route("GET", "v1/channels/*/attributes") { router, _, parts in try await router.attributes(parts[0]) },
    Route("PUT", "v1/channels/*/attributes") { router, request, parts in
      try await router.setAttribute(parts[0], request)
    },
    Route("DELETE", "v1/channels/*/attributes") { router, request, parts in
      try await router.removeAttribute(parts[0], request)
    },
    Route("POST", "v1/channels/*/close") { router, _, parts in try await router.close(parts[0]) },
    Route("GET", "v1/channels/*/messages") { router, request, parts in try await router.history(parts[0], request) },
    Route("POST", "v1/channels/*/messages") { router, request, parts in try await router.send(parts[0], request) },
    Route("POST", "v1/broadcast") { router, request, _ in try await router.broadcast(request) },
    Route("PUT", "v1/channels/*/hand") { router, request, parts in try await router.hand(parts[0], request) },
    Route("PUT", "v1/channels/*/typing") { router, request, parts in try await router.typing(parts[0], request) },
    Route("GET", "v1/channels/*/media") { router, _, parts in try await router.media(parts[0]) },
    Route("POST", "v1/channels/*/media") { router, request, parts in try await router.share(parts[0], request) },
    Route("POST", "v1/channels/*/forwards") { router, request, parts in try await router.forward(parts[0], request) },
    Route("POST", "v1/channels/*/combined") { router, request, parts in try await router.combine(parts[0], request) },
    Route("GET", "v1/media/*/messages") { router, _, parts in try await router.unpack(parts[0]) },
    Route("GET", "v1/media/*") { router, _, parts in try await router.contents(parts[0]) },
    Route("DELETE", "v1/media/*") { router, _, parts in try await router.unshare(parts[0]) },
    Route("GET", "v1/media/*/bytes") { router, request, parts in try await router.bytes(parts[0], request) },
    Route("GET", "v1/downloads") { router, _, _ in try await router.downloads() },
    Route("DELETE", "v1/downloads/*") { router, request, parts in try await router.cancelDownload(parts[0], request) },
    Route("POST", "v1/downloads/*/pause") { router, _, parts in try await router.pause(parts[0]) },
    Route("POST", "v1/downloads/*/resume") { router, _, parts in try await router.resume(parts[0]) },
    Route("POST", "v1/downloads/*/open") { router, _, parts in
      try await router.openDownload(parts[0], isRevealing: false)
    },
    Route("POST", "v1/downloads/*/reveal") { router, _, parts in
      try await router.openDownload(parts[0], isRevealing: true)
    },
    Route("POST", "v1/downloads") { router, request, _ in try await router.download(request) },
    Route("GET", "v1/page") { router, _, _ in router.page() },
    Route("POST", "v1/channels/*/uploads") { router, request, parts in try await router.upload(parts[0], request) },
    Route("GET", "v1/peers/*/messages") { router, request, parts in
      try await router.peerMessages(parts[0], request)
    },
    Route("POST", "v1/peers/*/messages") { router, request, parts in try await router.tell(parts[0], request) },
    Route("GET", "v1/channels/*/organiser") { router, _, parts in try await router.organiser(parts[0]) },
    Route("PUT", "v1/channels/*/organiser") { router, request, parts in
      try await router.setOrganiser(parts[0], request)
    },
    Route("GET", "v1/token") { router, _, _ in await router.token() },
    Route("PUT", "v1/token") { router, request, _ in try await router.useToken(request) },
    Route("GET", "v1/peers/*/verification") { router, _, parts in try await router.verification(parts[0]) },
    Route("POST", "v1/peers/*/verification") { router, request, parts in try await router.verify(parts[0], request) },
    Route("DELETE", "v1/peers/*/verification") { router, _, parts in try await router.unverify(parts[0]) },
    Route("PUT", "v1/peers/*/block") { router, request, parts in try await router.block(parts[0], request) },
    Route("GET", "v1/contacts") { router, _, _ in try await router.contacts() },
    Route("GET", "v1/search") { router, request, _ in try await router.search(request) },
    Route("GET", "v1/events") { router, request, _ in try await router.events(request) },
  ]

  /// All of them: method and pattern, with `*` for what is named.
  static var addresses: [String] { (routes + conversationRoutes).map { "\($0.method) \($0.pattern)" } }

  private static let notForPages: Set = ["POST v1/down", "POST v1/channels/*/media", "GET v1/page"]

  func respond(to request: Request, on exchange: Exchange) async throws {
    var allowed: [String] = []
    for route in Self.routes + Self.conversationRoutes {
      guard let parts = route.match(request.segments) else { continue }
      guard route.method == request.method else {
        allowed.append(route.method)
        continue
      }
      if isPage, Self.notForPages.contains("\(route.method) \(route.pattern)") { throw Problem.notFromPage }
      let start = ContinuousClock.now
      let reply = try await route.action(self, request, parts)
      times.note("\(route.method) /\(route.pattern)", .now - start)
      switch reply {
      case .json(let json, let status): exchange.complete(.json(json, status: status))
      case .text(let text, let type): exchange.complete(.text(text, type: type))
      case .jsonThen(let json, let status, let work):
        exchange.complete(.json(json, status: status))
        await work()
      case .stream(let pump): await Self.stream(EventOutlet(), pump, on: exchange)
      case .bytes(let head, let pump): await Self.stream(EventOutlet(head: head), pump, on: exchange)
      }
      return
    }
    throw allowed.isEmpty ? Problem.noRoute : Problem.wrongMethod(allowed: allowed)
  }

  private static func stream(
    _ outlet: EventOutlet, _ pump: @escaping @Sendable (EventOutlet) async -> Void, on exchange: Exchange
  ) async {
    guard exchange.complete(.stream(outlet)) else { return }
    await withDiscardingTaskGroup { group in
      group.addTask {
        await pump(outlet)
        outlet.finish()
      }
      // Ends with the client, or once the outlet is finished and read: libmicrohttpd closes it then.
      await outlet.closed()
      group.cancelAll()
    }
  }
}
