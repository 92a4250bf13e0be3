import ParleyVocabulary
import ParleyWire

/// What waits for peers: bounded in number and bytes, and each for a time.
struct Outbox: Sendable {
  let limits: OutboxLimits
  private var queues: [PeerID: PeerQueue] = [:]
  private(set) var count = 0
  private(set) var byteCount = 0

  init(_ limits: OutboxLimits) { self.limits = limits }

  func has(_ message: OutboxMessage) -> Bool {
    queues[message.peer]?.contains(message.id) ?? false
  }

  /// Whether another one of this size may wait.
  func failure(adding message: OutboxMessage) -> MessagingFailure? {
    let bytes = byteCount + message.json.count
    guard count >= limits.countMax || bytes > limits.byteCountMax else { return nil }
    return .outboxFull(
      count: count, countMax: limits.countMax, byteCount: bytes, byteCountMax: limits.byteCountMax)
  }

  /// Whether all of these may wait.
  func failure(adding messages: [OutboxMessage]) -> MessagingFailure? {
    let (count, bytes) = (messages.count, byteCount + messages.reduce(0) { $0 + $1.json.count })
    guard self.count + count > limits.countMax || bytes > limits.byteCountMax else { return nil }
    return .outboxFull(
      count: self.count, countMax: limits.countMax, byteCount: bytes, byteCountMax: limits.byteCountMax)
  }

  mutating func add(_ message: OutboxMessage, _ request: RequestID?, expiresAt: Instant) {
    guard queues[message.peer, default: PeerQueue()].add(message, request, expiresAt: expiresAt) else { return }
    count += 1
    byteCount += message.json.count
  }

  /// It is not on the disk yet, and no call waits for it.
  mutating func addForLater(_ message: OutboxMessage, expiresAt: Instant) {
    guard queues[message.peer, default: PeerQueue()].add(message, nil, expiresAt: expiresAt, isUnstored: true) else {
      return
    }
    count += 1
    byteCount += message.json.count
  }

  mutating func stored(_ message: OutboxMessage) -> [RequestID] { queues[message.peer]?.stored(message.id) ?? [] }

  mutating func remove(_ peer: PeerID, _ id: MessageID) -> PeerQueue.Item? {
    guard let item = queues[peer]?.remove(id) else { return nil }
    forget(item)
    return item
  }

  private mutating func forget(_ item: PeerQueue.Item) {
    count -= 1
    byteCount -= item.message.json.count
    if queues[item.message.peer]?.isEmpty == true { queues[item.message.peer] = nil }
  }

  mutating func takeExpired(_ now: Instant) -> [PeerQueue.Item] {
    var expired: [PeerQueue.Item] = []
    for peer in queues.keys.sorted() { expired += queues[peer]!.takeExpired(now) }
    for item in expired { forget(item) }
    return expired
  }

  mutating func takeUnsent(_ peer: PeerID, _ now: Instant) -> [OutboxMessage] { queues[peer]?.takeUnsent(now) ?? [] }

  mutating func failRequests() -> [RequestID] { queues.keys.sorted().flatMap { queues[$0]!.failRequests() } }

  mutating func pause(_ peer: PeerID) { queues[peer]?.pause() }

  mutating func sessionFailed(_ peer: PeerID, _ now: Instant) {
    queues[peer]?.pause(resendAt: now + .milliseconds(500))
  }

  var nextDue: Instant? { queues.values.compactMap(\.nextDue).min() }

  func resendsDue(_ now: Instant) -> [PeerID] {
    queues.filter { $0.value.resendAt.map { $0 <= now } ?? false }.keys.sorted()
  }
}

extension MessagingMachine {
  mutating func told(
    _ request: RequestID, _ message: OutboxMessage, _ queuedAt: UInt64, _ now: Instant
  ) -> [MessagingEffect] {
    guard recordsByteCount <= MessagingRule.recordsByteCountMax else {
      return [
        .notify(
          .failed(
            request, .queueFull(byteCount: recordsByteCount, byteCountMax: MessagingRule.recordsByteCountMax)))
      ]
    }
    if !outbox.has(message), let failure = outbox.failure(adding: message) {
      return [.notify(.failed(request, failure))]
    }
    outbox.add(message, request, expiresAt: now + outbox.limits.lifetime)
    enqueue(.outboxAdd(message, queuedAt: queuedAt))
    enqueue(.peerMessage(message.peer, message.id, json: message.json, isOwn: true))
    return []
  }

  /// What waited in an earlier run goes on waiting for the rest of its time.
  mutating func outboxRestored(_ messages: [RestoredOutboxMessage], _ now: Instant) -> [MessagingEffect] {
    var peers: Set<PeerID> = []
    for restored in messages {
      let left = max(0, outbox.limits.lifetime.microseconds - max(0, restored.age.microseconds))
      outbox.add(restored.message, nil, expiresAt: now + Span(microseconds: left))
      peers.insert(restored.message.peer)
    }
    return peers.sorted().flatMap { sendOutbox(to: $0, now) }
  }

  mutating func outboxStored(_ message: OutboxMessage, _ now: Instant) -> [MessagingEffect] {
    let effects = outbox.stored(message).map { MessagingEffect.notify(.queued($0)) }
    return effects + sendOutbox(to: message.peer, now)
  }

  mutating func sendOutbox(to peer: PeerID, _ now: Instant) -> [MessagingEffect] {
    guard isPresent(peer) else { return [] }
    return outbox.takeUnsent(peer, now).map { .tell(.links(.send(peer, .peerMessage($0.id, json: $0.json)))) }
  }

  mutating func outboxDue(_ now: Instant) -> [MessagingEffect] {
    var effects: [MessagingEffect] = []
    for item in outbox.takeExpired(now) {
      enqueue(.outboxRemove(item.message.peer, item.message.id))
      effects.append(.notify(.peerExpired(item.message.peer, item.message.id)))
    }
    for peer in outbox.resendsDue(now) {
      outbox.pause(peer)
      effects += sendOutbox(to: peer, now)
    }
    return effects
  }

  /// From the session's authenticated peer. What is malformed or names another sender is refused and not acknowledged.
  mutating func heardPeerMessage(_ id: MessageID, _ json: [UInt8], _ peer: PeerID) -> [MessagingEffect] {
    guard recordsByteCount < MessagingRule.recordsByteCountMax else { return [] }
    guard let message = try? SchemaMessage(decoding: json, author: peer), message.messageID == id, !message.isLive,
      let place = place(of: message, from: peer)
    else {
      refuse()
      return []
    }
    return keepPeerMessage(message, id, json, from: peer, place)
  }

  mutating func peerStored(_ id: MessageID, _ peer: PeerID, _ now: Instant) -> [MessagingEffect] {
    guard let item = outbox.remove(peer, id) else {
      return liveAnswers.take(peer, id) ? [.notify(.peerDelivered(peer, id))] : []
    }
    enqueue(.outboxRemove(peer, id))
    // The next one takes its place among those in flight.
    return item.requests.map { .notify(.queued($0)) } + [.notify(.peerDelivered(peer, id))] + sendOutbox(to: peer, now)
  }
}
