import Parley

/// What each address does with the node.
extension Router {
  /// Events of a subscriber that wait in memory while its client does not read; further messages wait in the store.
  private static let bufferedEventCountMax = 256
  private static let historyCountDefault = 50
  static let historyCountMax = 10_000
  private static let searchCountMax = 1_000
  static let waitSecondsMax = 3_600.0

  func identity() async -> Reply {
    let status = await node.status()
    return .json([
      "peer_id": .string(status.peer.text), "display_name": .string(status.displayName),
      "fingerprint": .string(status.peer.fingerprint),
    ])
  }

  /// Answered first: the end of the node ends what is not answered.
  func down() -> Reply {
    let node = node
    return .jsonThen(["state": "disconnected"], status: 200) { await node.stop() }
  }

  // MARK: Channels

  func join(_ request: Request) async throws -> Reply {
    let fields = try Fields(request, known: ["name", "type", "open", "passphrase", "organiser", "wait"])
    let name = try ChannelName(try fields.required("name"))
    let type = try fields.channelType()
    let isOpen = try fields.bool("open") ?? false
    let passphrase = try fields.string("passphrase")
    let organiser = try fields.organiser("organiser")
    let wait = try fields.seconds("wait", max: Self.waitSecondsMax) ?? 0
    let secret: ChannelSecret
    switch (isOpen, passphrase) {
    case (true, nil): secret = .open
    case (false, let passphrase?):
      guard (1...1_024).contains(passphrase.utf8.count) else {
        throw Problem.badRequest("the passphrase is \(passphrase.utf8.count) bytes of UTF-8; 1 to 1024 are possible")
      }
      secret = .passphrase(Array(passphrase.utf8))
    case (true, _?): throw Problem.badRequest("give either \"open\": true or \"passphrase\", not both")
    case (false, nil): throw Problem.badRequest("give \"open\": true (anyone may join) or a \"passphrase\"")
    }
    let events = await node.events(bufferingCount: 64)
    try await node.join(name, as: type, secret: secret, organiser: organiser)
    if wait > 0 { await waitForCompany(in: name, seconds: wait, events: events) }
    return await joined(name, isOpen: isOpen)
  }

  func joined(_ name: ChannelName, isOpen: Bool) async -> Reply {
    let members = await membersIfAny(of: name)
    return .json(
      [
        "name": .string(name.text), "open": .bool(isOpen), "online": .count(members.count { $0.status == .online }),
        "members": .count(members.count), "nodes_heard_elsewhere": .count(await node.nodesHeardElsewhere()),
      ], status: 201)
  }

  func membersIfAny(of name: ChannelName) async -> [Member] { (try? await node.members(of: name)) ?? [] }

  func waitForCompany(in name: ChannelName, seconds: Double, events: AsyncStream<NodeEvent>) async {
    await withDiscardingTaskGroup { group in
      let waiting = AsyncStream<Void>.makeStream()
      group.addTask {
        if await hasCompany(in: name) { return waiting.continuation.finish() }
        for await event in events where event.concerns(name) {
          if await hasCompany(in: name) { break }
        }
        waiting.continuation.finish()
      }
      group.addTask {
        try? await Task.sleep(for: .seconds(seconds))
        waiting.continuation.finish()
      }
      for await _ in waiting.stream {}
      group.cancelAll()
    }
  }

  private func hasCompany(in name: ChannelName) async -> Bool {
    await membersIfAny(of: name).contains { $0.status == .online && !$0.isSelf }
  }

  func leave(_ name: String) async throws -> Reply {
    let name = try ChannelName(name)
    try await node.leave(name)
    return .json(["channel": .string(name.text)])
  }

  func members(_ name: String) async throws -> Reply {
    return .json(.array(try await node.members(of: try ChannelName(name)).map { JSON($0) }))
  }

  // MARK: Messages

  func history(_ name: String, _ request: Request) async throws -> Reply {
    let limit = try Self.limit(request, max: Self.historyCountMax)
    let before = try Self.before(request)
    return .json(
      .array(try await node.history(of: try ChannelName(name), before: before, limit: limit).map { JSON($0) }))
  }

  func search(_ request: Request) async throws -> Reply {
    func value(_ name: String) -> String? { request.query.first { $0.name == name }?.value }
    guard let text = value("text") else {
      throw Problem.badRequest("say what to look for: /v1/search?text=WORDS")
    }
    let name = try value("channel").map { try ChannelName($0) }
    let limit = try Self.limit(request, max: Self.searchCountMax)
    return .json(.array(try await node.search(text, in: name, limit: limit).map { JSON($0) }))
  }

  static func limit(_ request: Request, max: Int) throws -> Int {
    guard let text = request.query.first(where: { $0.name == "limit" })?.value else { return historyCountDefault }
    guard let number = Int(text), (1...max).contains(number) else {
      throw Problem.badRequest("limit must be a number from 1 to \(max)")
    }
    return number
  }

  func send(_ name: String, _ request: Request) async throws -> Reply {
    let fields = try Fields(request, known: Fields.draftNames + ["to", "wait"])
    var draft = try fields.draft()
    if let people = try fields.strings("to") { draft = try draft.directed(to: people) }
    let wait = try fields.seconds("wait", max: Self.waitSecondsMax)
    return .json(JSON(try await node.send(draft, to: try ChannelName(name), waiting: wait)), status: 201)
  }

  func hand(_ name: String, _ request: Request) async throws -> Reply {
    let name = try ChannelName(name)
    guard let isRaised = try Fields(request, known: ["raised"]).bool("raised") else {
      throw Problem.badRequest("the body lacks \"raised\": true or false")
    }
    try await node.setHand(raised: isRaised, in: name)
    return .json(["channel": .string(name.text), "raise_hand": .bool(isRaised)])
  }

  func tell(_ peer: String, _ request: Request) async throws -> Reply {
    let draft = try Fields(request, known: Fields.draftNames).draft()
    let outcome = try await node.tell(draft, peer: peer)
    switch outcome {
    case .delivered(let id): return .json(["message_id": .string(id.text), "outcome": "delivered"], status: 201)
    case .queued(let id): return .json(["message_id": .string(id.text), "outcome": "queued"], status: 202)
    }
  }

  // MARK: Media

  func media(_ name: String) async throws -> Reply {
    return .json(.array(try await node.media(of: try ChannelName(name)).map { JSON($0) }))
  }

  func share(_ name: String, _ request: Request) async throws -> Reply {
    let fields = try Fields(
      request, known: ["path", "as", "original", "duration", "thumbnail", "ext", "reply_to", "progress"])
    guard let path = try fields.path("path") else { throw Problem.badRequest("the body lacks \"path\"") }
    let options = try fields.shareOptions()
    let channel = try ChannelName(name)
    guard try fields.bool("progress") ?? false else {
      return .json(JSON(try await node.share(path: path, options, in: channel) { _ in }), status: 201)
    }
    let node = node
    return .stream { outlet in
      let (events, continuation) = AsyncStream.makeStream(of: [UInt8].self, bufferingPolicy: .bufferingNewest(16))
      let sharing = Task {
        do throws(ParleyError) {
          let shared = try await node.share(path: path, options, in: channel) { progress in
            continuation.yield(
              RenderedEvent.bytes(
                type: "progress",
                data: [
                  "hashed": .count(progress.hashedByteCount), "size": .count(progress.byteCount),
                  "files": .count(progress.fileCount),
                ]))
          }
          continuation.yield(RenderedEvent.bytes(type: "shared", data: JSON(shared)))
        } catch {
          continuation.yield(RenderedEvent.bytes(type: "failed", data: Problem(error).json))
        }
        continuation.finish()
      }
      for await event in events {
        guard await outlet.write(event) else { break }
      }
      // Without a reader nobody learns the media ID.
      sharing.cancel()
    }
  }

  func unshare(_ text: String) async throws -> Reply {
    let id = try mediaID(text)
    try await node.unshare(id)
    Upload.remove(id, home: home)
    return .json(["media_id": .string(id.text)])
  }

  func contents(_ text: String) async throws -> Reply {
    return .json(JSON(try await node.contents(of: try mediaID(text))))
  }

  func download(_ request: Request) async throws -> Reply {
    let fields = try Fields(
      request, known: ["media_id", "folder", "path", "replace", "only", "executable", "detached"])
    let id = try mediaID(try fields.required("media_id"))
    let isReplacing = try fields.bool("replace") ?? false
    let target: DownloadTarget
    let isDetached = try fields.bool("detached") ?? false
    switch (try fields.path("folder"), try fields.path("path")) {
    case (nil, nil) where isDetached && downloadsFolder != nil: target = .folder(Self.made(folder: downloadsFolder!))
    case _ where isPage: throw Problem.notFromPage
    case (let folder?, nil): target = .folder(folder)
    case (nil, let path?): target = .file(path, replacing: isReplacing)
    default: throw Problem.badRequest("give either \"folder\" or \"path\"")
    }
    let choice = DownloadChoice(
      paths: try fields.strings("only") ?? [], isApplyingExecutable: try fields.bool("executable") ?? false)
    if isDetached { return try await downloadDetached(id, to: target, choice) }
    let (download, events) = try await node.download(id, to: target, choice)
    let node = node
    return .stream { outlet in
      let start = RenderedEvent.bytes(
        type: "started", data: ["media_id": .string(id.text), "download_id": .count(download.value)])
      var isOpen = await outlet.write(start)
      if isOpen {
        for await event in events {
          isOpen = await outlet.write(Self.rendered(event, of: id))
          if !isOpen { break }
        }
      }
      // Nobody is left to be told of the end. It is listed, and can be gone on with.
      if !isOpen || Task.isCancelled { try? await node.pause(download) }
    }
  }

  private static func rendered(_ event: DownloadEvent, of id: MediaID) -> [UInt8] {
    switch event {
    case .progress(let received, let total, let sourceCount, let rate):
      RenderedEvent.bytes(
        type: "progress",
        data: [
          "received": .count(received), "size": .count(total), "sources": .count(sourceCount), "rate": .count(rate),
        ])
    case .paused: RenderedEvent.bytes(type: "paused", data: ["media_id": .string(id.text)])
    case .finished(let path):
      RenderedEvent.bytes(type: "finished", data: ["media_id": .string(id.text), "path": .string(path)])
    case .failed(let error): RenderedEvent.bytes(type: "failed", data: Problem(error).json)
    }
  }

  // MARK: Events

  func events(_ request: Request) async throws -> Reply {
    var filter: ChannelName?
    if let text = request.query.first(where: { $0.name == "channel" })?.value { filter = try ChannelName(text) }
    let (cursor, events) = try await node.events(
      since: try cursor(request), in: filter, bufferingCount: Self.bufferedEventCountMax)
    return .stream { outlet in
      // Says that from here on nothing is missed; an event without data gives its ID alone (HTML standard, 9.2.6).
      guard await outlet.write(Array(":listening\nid: \(cursor)\n\n".utf8)) else { return }
      for await event in events {
        guard await outlet.write(RenderedEvent(event).bytes) else { return }
      }
    }
  }

  /// Of the header that a client sends which connects again, else of the query, which stays as it was.
  private func cursor(_ request: Request) throws(Problem) -> UInt64? {
    if let text = request.lastEventID, !text.isEmpty {
      guard let cursor = UInt64(text) else { throw .badRequest("Last-Event-ID must be a cursor, a number") }
      return cursor
    }
    guard let text = request.query.first(where: { $0.name == "since" })?.value else { return nil }
    guard let cursor = UInt64(text) else { throw .badRequest("since must be a cursor, a number") }
    return cursor
  }

  // MARK: Names

  func mediaID(_ text: String) throws(Problem) -> MediaID {
    guard let id = MediaID(text: text) else {
      throw Problem(
        status: 400, code: "bad_media_id", title: "Not a media ID",
        detail: "a media ID is 52 characters of a–z and 2–7: see parley media CHANNEL")
    }
    return id
  }
}
