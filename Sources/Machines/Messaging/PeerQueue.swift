import ParleyVocabulary

/// Messages to one peer that it has not stored yet, oldest first.
struct PeerQueue: Sendable {
  static let inFlightMax = 32

  struct Item: Equatable, Sendable {
    let message: OutboxMessage
    let expiresAt: Instant
    /// Calls that wait for it to be stored.
    var requests: [RequestID]
    var isStored: Bool
    var isSent = false
  }

  /// Nil: gone, behind some that are still there.
  private var slots: [Item?] = []
  /// Where the first slot stands among all that were ever in this queue.
  private var base = 0
  private var positions: [MessageID: Int] = [:]
  /// When to say again what is sent and unanswered.
  private(set) var resendAt: Instant?

  var isEmpty: Bool { positions.isEmpty }
  var items: some Sequence<Item> { slots.lazy.compactMap { $0 } }
  /// When the oldest that is on the disk expires.
  var expiresAt: Instant? { slots.first??.isStored == true ? slots.first??.expiresAt : nil }
  var nextDue: Instant? { [resendAt, expiresAt].compactMap { $0 }.min() }

  func contains(_ id: MessageID) -> Bool { positions[id] != nil }

  private func slot(_ id: MessageID) -> Int? { positions[id].map { $0 - base } }

  /// Nil: from the disk, unless it is not stored yet and nobody waits. Said twice under one ID, it is sent once; true
  /// when it is new.
  mutating func add(
    _ message: OutboxMessage, _ request: RequestID?, expiresAt: Instant, isUnstored: Bool = false
  ) -> Bool {
    if let index = slot(message.id) {
      if let request { slots[index]!.requests.append(request) }
      return false
    }
    positions[message.id] = base + slots.count
    slots.append(
      Item(
        message: message, expiresAt: expiresAt, requests: request.map { [$0] } ?? [],
        isStored: request == nil && !isUnstored))
    return true
  }

  mutating func failRequests() -> [RequestID] {
    let failed = items.flatMap(\.requests)
    for index in slots.indices { slots[index]?.requests = [] }
    return failed
  }

  /// The calls that wait for it, once.
  mutating func stored(_ id: MessageID) -> [RequestID] {
    guard let index = slot(id) else { return [] }
    slots[index]!.isStored = true
    defer { slots[index]!.requests = [] }
    return slots[index]!.requests
  }

  mutating func remove(_ id: MessageID) -> Item? {
    guard let index = slot(id) else { return nil }
    positions[id] = nil
    let item = slots[index]
    slots[index] = nil
    let gone = slots.firstIndex { $0 != nil } ?? slots.count
    slots.removeFirst(gone)
    base += gone
    if slots.count > 64, positions.count * 2 < slots.count { compact() }
    return item
  }

  /// A peer that never answers one of them leaves gaps behind it.
  private mutating func compact() {
    slots = slots.filter { $0 != nil }
    for (index, item) in slots.enumerated() { positions[item!.message.id] = base + index }
  }

  mutating func takeExpired(_ now: Instant) -> [Item] {
    var expired: [Item] = []
    while let at = expiresAt, at <= now, let first = slots.first ?? nil, let item = remove(first.message.id) {
      expired.append(item)
    }
    return expired
  }

  mutating func takeUnsent(_ now: Instant) -> [OutboxMessage] {
    var taken: [OutboxMessage] = []
    var isAnySent = false
    var seen = 0
    for index in slots.indices {
      guard let item = slots[index] else { continue }
      if seen == Self.inFlightMax { break }
      seen += 1
      if item.isStored, !item.isSent {
        slots[index]!.isSent = true
        taken.append(item.message)
      }
      isAnySent = isAnySent || slots[index]!.isSent
    }
    resendAt = isAnySent ? now + MessagingRule.resendPeer : nil
    return taken
  }

  mutating func pause(resendAt instant: Instant? = nil) {
    for index in slots.indices where slots[index]?.isSent == true {
      slots[index]!.isSent = false
    }
    resendAt = isEmpty ? nil : instant
  }
}
