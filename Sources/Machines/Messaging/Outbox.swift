import ParleyVocabulary
import ParleyWire

/// Messages to one peer that it has not stored yet, oldest first.
struct PeerQueue: Equatable, Sendable {
  static let inFlightMax = 32

  struct Item: Equatable, Sendable {
    let message: OutboxMessage
    /// Calls that wait for it to be stored.
    var requests: [RequestID]
    var isStored: Bool
    var isSent = false
  }

  private(set) var items: [Item] = []
  /// When to say again what is sent and unanswered.
  private(set) var nextDue: Instant?

  /// Nil: from the disk. Said twice under one ID, it is sent once.
  mutating func add(_ message: OutboxMessage, _ request: RequestID?) {
    if let index = items.firstIndex(where: { $0.message.id == message.id }) {
      if let request { items[index].requests.append(request) }
    } else {
      items.append(Item(message: message, requests: request.map { [$0] } ?? [], isStored: request == nil))
    }
  }

  mutating func failRequests() -> [RequestID] {
    let failed = items.flatMap(\.requests)
    for index in items.indices { items[index].requests = [] }
    return failed
  }

  /// The calls that wait for it, once.
  mutating func stored(_ id: MessageID) -> [RequestID] {
    guard let index = items.firstIndex(where: { $0.message.id == id }) else { return [] }
    items[index].isStored = true
    defer { items[index].requests = [] }
    return items[index].requests
  }

  /// Nil when it was not there; else the calls that still wait for a second record of it.
  mutating func remove(_ id: MessageID) -> [RequestID]? {
    items.firstIndex(where: { $0.message.id == id }).map { items.remove(at: $0).requests }
  }

  mutating func takeUnsent(_ now: Instant) -> [OutboxMessage] {
    var taken: [OutboxMessage] = []
    for index in items.indices.prefix(Self.inFlightMax) where items[index].isStored && !items[index].isSent {
      items[index].isSent = true
      taken.append(items[index].message)
    }
    nextDue = items.contains(where: \.isSent) ? now + MessagingRule.resendPeer : nil
    return taken
  }

  mutating func pause() {
    for index in items.indices { items[index].isSent = false }
    nextDue = nil
  }

  mutating func sessionFailed(_ now: Instant) {
    for index in items.indices { items[index].isSent = false }
    nextDue = items.isEmpty ? nil : now + .milliseconds(500)
  }
}

extension MessagingMachine {
  mutating func told(_ request: RequestID, _ message: OutboxMessage, _ queuedAt: UInt64) -> [MessagingEffect] {
    guard recordsByteCount <= MessagingRule.recordsByteCountMax else {
      return [
        .notify(
          .failed(
            request, .queueFull(byteCount: recordsByteCount, byteCountMax: MessagingRule.recordsByteCountMax)))
      ]
    }
    outbox[message.peer, default: PeerQueue()].add(message, request)
    enqueue(.outboxAdd(message, queuedAt: queuedAt))
    enqueue(.peerMessage(message.peer, message.id, json: message.json, isOwn: true))
    return []
  }

  mutating func outboxStored(_ message: OutboxMessage, _ now: Instant) -> [MessagingEffect] {
    let effects = (outbox[message.peer]?.stored(message.id) ?? []).map { MessagingEffect.notify(.queued($0)) }
    return effects + sendOutbox(to: message.peer, now)
  }

  mutating func sendOutbox(to peer: PeerID, _ now: Instant) -> [MessagingEffect] {
    guard outbox[peer] != nil, isPresent(peer) else { return [] }
    return outbox[peer]!.takeUnsent(now).map {
      .tell(.links(.send(peer, .peerMessage($0.id, json: $0.json))))
    }
  }

  mutating func resendDue(_ peer: PeerID, _ now: Instant) -> [MessagingEffect] {
    guard let due = outbox[peer]?.nextDue, due <= now else { return [] }
    outbox[peer]!.pause()
    return sendOutbox(to: peer, now)
  }

  /// From the session's authenticated peer. What is malformed or names another sender is refused and not acknowledged.
  mutating func heardPeerMessage(_ id: MessageID, _ json: [UInt8], _ peer: PeerID) -> [MessagingEffect] {
    guard recordsByteCount < MessagingRule.recordsByteCountMax else { return [] }
    guard let message = try? SchemaMessage(decoding: json, author: peer), message.messageID == id else {
      refuse()
      return []
    }
    enqueue(.peerMessage(peer, id, json: json, isOwn: false))
    return []
  }

  mutating func peerStored(_ id: MessageID, _ peer: PeerID, _ now: Instant) -> [MessagingEffect] {
    guard let requests = outbox[peer]?.remove(id) else { return [] }
    if outbox[peer]!.items.isEmpty { outbox[peer] = nil }
    enqueue(.outboxRemove(peer, id))
    // The next one takes its place among those in flight.
    return requests.map { .notify(.queued($0)) } + [.notify(.peerDelivered(peer, id))] + sendOutbox(to: peer, now)
  }
}
