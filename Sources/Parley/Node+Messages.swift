import ParleyActors
import ParleyMachines
import ParleySealing
import ParleyVocabulary
import ParleyWire

extension Node {
  /// Says a text in a channel: `send(_:to:waiting:)` of a `MessageDraft`. Throws `.emptyMessage` as well.
  public func send(
    _ text: String, to name: ChannelName, waiting seconds: Double? = nil
  ) async throws(ParleyError) -> SendReceipt {
    try await send(.text(text), to: name, waiting: seconds)
  }

  /// Says something in a channel. Returns once it is on this node's disk and on the wire; with `waiting`, once
  /// everybody present has it on disk, or so many seconds have passed. Throws `.messageTooLong` (30,000 bytes as JSON),
  /// `.queueFull`, `.notInChannel`, `.badToken` where a login token is asked for.
  public func send(
    _ draft: MessageDraft, to name: ChannelName, waiting seconds: Double? = nil
  ) async throws(ParleyError) -> SendReceipt {
    try takeRate()
    if !draft.receivers.isEmpty { return try await direct(draft, in: name, waiting: seconds) }
    if draft.isLive { return try await sayLive(draft, in: name) }
    return try await say(draft.content, draft.options, in: name, waiting: seconds)
  }

  func say(
    _ content: any MessageKind, _ options: MessageOptions = .none, in name: ChannelName, waiting seconds: Double?
  ) async throws(ParleyError) -> SendReceipt {
    let engine = try await running()
    let joined = try channel(name)
    try checkToken(in: joined)
    let id = Sealing.randomMessageID()
    let said = try await hooks.before(message(content, id, options), .channel(name))
    let json = try checked(said)
    try admit(said.options, in: joined)
    let events = seconds == nil ? nil : hub.events(bufferingCount: 256)
    let answer = await engine.messaging.submit(
      joined.id, kind: KindRegistry.code(of: content.type), isHidden: false, json: json)
    let (key, number) = try Self.stored(answer, name)
    hooks.after(said, .channel(name))
    if let seconds, let events { await wait(seconds, events, joined.id, key, number, engine) }
    let delivered = hub.deliveredTo(joined.id, key, number)
    return SendReceipt(id: id, deliveredTo: delivered, presentCount: hub.presentCount(in: joined.id))
  }

  /// What nobody would be shown is not said.
  func checkToken(in joined: Hub.Joined) throws(ParleyError) {
    if case .failure(let refusal) = hub.tokens.word(for: peerID, in: joined.id, at: .now) { throw .badToken(refusal) }
  }

  func message(_ content: any MessageKind, _ id: MessageID?, _ options: MessageOptions = .none) -> SchemaMessage {
    let now = Timestamp(milliseconds: Int64(clamping: SystemClock.wallMilliseconds()))
    return SchemaMessage(
      sender: Sender(peer: peerID, displayName: displayName), messageID: id, timestamp: id == nil ? nil : now.text,
      content: content, options: options)
  }

  func checked(_ message: SchemaMessage) throws(ParleyError) -> [UInt8] {
    let json = message.encoded
    guard json.count <= Limit.messageByteCountMax else {
      throw .messageTooLong(byteCount: json.count, byteCountMax: Limit.messageByteCountMax)
    }
    return json
  }

  static func stored(
    _ answer: MessagingActor.Answer, _ name: ChannelName
  ) throws(ParleyError) -> (LogKey, UInt64) {
    switch answer {
    case .stored(let key, let number): return (key, number)
    case .failed(let failure): throw ParleyError(failure, name)
    case .sent, .queued, .stopped: throw .stopped
    }
  }

  /// Until everybody present has the entry, or the time is over.
  private func wait(
    _ seconds: Double, _ events: AsyncStream<NodeEvent>, _ channel: ChannelID, _ key: LogKey, _ number: UInt64,
    _ engine: Engine
  ) async {
    @Sendable func everybodyHasIt() async -> Bool {
      let present = await engine.membership.presentPeers(in: channel)
      return Set(present).isSubset(of: self.hub.deliveredTo(channel, key, number))
    }
    if await everybodyHasIt() { return }
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        for await event in events {
          switch event {
          case .delivered, .memberChanged, .dropped: if await everybodyHasIt() { return }
          default: continue
          }
        }
      }
      group.addTask { try? await Task.sleep(nanoseconds: UInt64(max(0, min(seconds, 86_400)) * 1e9)) }
      await group.next()
      group.cancelAll()
    }
  }

  /// Raises or lowers our hand. The same again changes nothing. Throws `.notInChannel`, `.queueFull`.
  public func setHand(raised: Bool, in name: ChannelName) async throws(ParleyError) {
    let engine = try await running()
    let joined = try channel(name)
    if raised { try checkToken(in: joined) }
    let own = await engine.membership.members(of: joined.id).first { $0.peer == peerID }
    if own?.isHandRaised == raised { return }
    let content = RaiseHandKind(isRaised: raised)
    let answer = await engine.messaging.submit(
      joined.id, kind: RaiseHandKind.code, isHidden: true, json: message(content, nil).encoded)
    _ = try Self.stored(answer, name)
  }

  /// Returns once it is stored and on the wire.
  func say(_ content: any MessageKind, hiddenIn name: ChannelName) async throws(ParleyError) {
    let engine = try await running()
    let joined = try channel(name)
    let answer = await engine.messaging.submit(
      joined.id, kind: KindRegistry.code(of: content.type), isHidden: true, json: message(content, nil).encoded)
    _ = try Self.stored(answer, name)
  }

  /// The last `limit` (1 to 10,000) messages in the order that every member shares, oldest first. With `cursor`, those
  /// before the message with this cursor: pages backwards; nothing when that one is not kept any more. Throws
  /// `.notInChannel`, and `.profileDamaged` when the store cannot be read.
  public func history(
    of name: ChannelName, before cursor: UInt64? = nil, limit: Int
  ) async throws(ParleyError) -> [Message] {
    let engine = try await running()
    let joined = try channel(name)
    let count = max(1, min(limit, 10_000))
    do {
      // Some may not count: then more is read.
      let size = max(count, 64)
      var page =
        if let cursor {
          try await engine.store.history(of: joined.id, through: cursor >> 8, limit: size)
        } else {
          try await engine.store.history(of: joined.id, before: nil, limit: size)
        }
      var messages: [Message] = []
      while true {
        for (entry, stored) in page.entries where messages.count < count {
          let all = hub.messages(entry, channel: joined.id, name: name, cursor: stored).reversed()
          // Of the entry that holds the message itself only those before it.
          messages += all.filter { message in
            cursor.map { message.cursor >> 8 != $0 >> 8 || message.cursor < $0 } ?? true
          }
        }
        guard messages.count < count, let next = page.next else { break }
        page = try await engine.store.history(of: joined.id, before: next, limit: size)
      }
      // The notice of a message comes after its commit: what was read can be downloaded at once.
      let shown = Array(messages.prefix(count).reversed())
      return try await withDeliveries(try await after(shown, in: joined, engine), engine)
    } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
  }

  /// The last `limit` (1 to 10,000) messages between this node and one person, oldest first; with `cursor`, those
  /// before it. `deliveredTo` of own ones is empty while they wait for that person. `peer` as for `tell`. Throws
  /// `.noSuchPeer`, `.ambiguousPeer`, and `.profileDamaged` when the store cannot be read.
  public func messages(
    with peer: String, before cursor: UInt64? = nil, limit: Int
  ) async throws(ParleyError) -> [Message] {
    let engine = try await running()
    let peer = try await find(peer, engine).peer
    do {
      let (stored, waiting) = try await engine.store.peerMessages(
        with: peer, before: cursor.map { $0 >> 8 }, limit: max(1, min(limit, 10_000)))
      let messages = stored.reversed().compactMap {
        hub.peerMessage($0.json, with: peer, $0.cursor, isDelivered: $0.isOwn && !waiting.contains($0.id))
      }
      for message in messages { hub.notePeerMedia(message) }
      return messages
    } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
  }

  /// Writes to one person, named by full ID, by a prefix of it that is unique (4 characters or more), or by a display
  /// name that only one person has. Throws `.noSuchPeer`, `.ambiguousPeer`, `.messageTooLong`, `.emptyMessage`,
  /// `.queueFull`. Returns `.delivered` once their disk has it, `.queued` when they are away (it waits on disk
  /// and goes out when they appear) or do not answer within three seconds.
  public func tell(_ text: String, peer: String) async throws(ParleyError) -> TellOutcome {
    try await tell(.text(text), peer: peer)
  }

  /// The same for any message.
  public func tell(_ draft: MessageDraft, peer: String) async throws(ParleyError) -> TellOutcome {
    try takeRate()
    let engine = try await running()
    let target = try await find(peer, engine)
    guard draft.receivers.isEmpty else {
      throw .badField("receivers", value: draft.receivers[0], allowed: "in a channel only")
    }
    if draft.isLive { return try await tellLive(draft, to: target.peer, engine) }
    let id = Sealing.randomMessageID()
    let said = try await hooks.before(message(draft.content, id, draft.options), .peer(target.peer))
    let json = try checked(said)
    let events = hub.events(bufferingCount: 256)
    switch await engine.messaging.tell(OutboxMessage(peer: target.peer, id: id, json: json)) {
    case .queued: break
    case .failed(let failure): throw ParleyError(failure, nil)
    case .stored, .sent, .stopped: throw .stopped
    }
    hooks.after(said, .peer(target.peer))
    guard target.isOnline else { return .queued(id) }
    return await isAnswered(id, by: target.peer, events) ? .delivered(id) : .queued(id)
  }

  /// Within three seconds.
  func isAnswered(_ id: MessageID, by peer: PeerID, _ events: AsyncStream<NodeEvent>) async -> Bool {
    let isDelivered = await withTaskGroup(of: Bool.self) { group in
      group.addTask { [hub] in
        if hub.isDelivered(id) { return true }
        for await event in events where event == .delivered(nil, id, to: peer) { return true }
        return false
      }
      group.addTask {
        try? await Task.sleep(nanoseconds: 3_000_000_000)
        return false
      }
      defer { group.cancelAll() }
      return await group.next() ?? false
    }
    return isDelivered || hub.isDelivered(id)
  }

  /// By full ID, by a prefix of it, or by a name that one person has. One who is blocked is found by ID only, unless
  /// `isBlockedToo`: nobody meant is in the way of somebody of the same name.
  func find(_ text: String, _ engine: Engine, isBlockedToo: Bool = false) async throws(ParleyError) -> PeerSummary {
    let peers = await peers(engine)
    let plain = text.hasPrefix("@") ? String(text.dropFirst()) : text
    let prefix = plain.filter { $0 != "-" }.lowercased()
    if let exact = peers.first(where: { $0.peer.text == prefix }) { return exact }
    if let id = PeerID(text: prefix), id != peerID {
      return PeerSummary(peer: id, displayName: "", isOnline: false)
    }
    var matches = peers.filter {
      $0.displayName == plain.nfc && (isBlockedToo || !hub.people.isBlocked($0.peer))
    }
    if matches.isEmpty, prefix.utf8.count >= 4 { matches = peers.filter { $0.peer.text.hasPrefix(prefix) } }
    guard let first = matches.first else { throw .noSuchPeer(text) }
    guard matches.count == 1 else { throw .ambiguousPeer(text, candidates: matches) }
    return first
  }
}
