import ParleyVocabulary
import Synchronization

/// What waits for one reader of events: so many events and bytes at most. Filled from any thread, read by one task.
///
/// One that is paged never loses a message: when its queue is full, messages are left to the store, where they are
/// already, and read from there once the queue is empty. So each message comes once, in the order of cursors: a page
/// that is read has everything told before the reading began; what is told from then on waits in the queue, and what
/// is in both is passed over here.
final class Subscriber: Sendable {
  /// Reads what was stored above a cursor; nil when that is not possible any more.
  typealias Pager = @Sendable (_ cursor: UInt64, ChannelName?) async -> Page?

  struct Page: Sendable {
    /// What has a cursor, by cursor.
    let events: [NodeEvent]
    /// The store's cursor to read on after, and whether there is nothing more.
    let through: UInt64
    let isLast: Bool
  }

  /// A kibibyte for each event that may wait, within these.
  static let byteCounts = 1 << 20...64 << 20

  private struct State {
    var queue = EventQueue()
    /// Of what did not fit, since the reader was last told.
    var droppedCount = 0
    /// Of the last message put into the queue or read from the store.
    var cursor: UInt64
    /// Messages are in the store that were put nowhere else.
    var isBehind: Bool
    var page: [NodeEvent] = []
    var pageIndex = 0
    /// Of the last message handed out.
    var position: UInt64
    var scanned: UInt64 = 0
    var isFinished = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state: Mutex<State>
  private let countMax: Int
  private let byteCountMax: Int
  private let channel: ChannelName?
  private let pager: Pager?

  /// Without a pager messages that do not fit are dropped like all else. `cursor`: of the last message before the first
  /// to come; with a pager, whatever was stored after it comes first.
  init(after cursor: UInt64, in channel: ChannelName?, countMax: Int, pager: Pager?) {
    state = Mutex(State(cursor: cursor, isBehind: pager != nil, position: cursor))
    self.countMax = max(1, min(countMax, 1 << 20))
    byteCountMax = max(Self.byteCounts.lowerBound, min(self.countMax << 10, Self.byteCounts.upperBound))
    self.channel = channel
    self.pager = pager
  }

  /// Told everything once, by cursor.
  var isPaged: Bool { pager != nil }

  // MARK: Filling

  func offer(_ event: NodeEvent) {
    guard event.concerns(channel) else { return }
    let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard !state.isFinished else { return nil }
      put(event, &state)
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }

  private func put(_ event: NodeEvent, _ state: inout State) {
    if event.cursor != nil, pager != nil {
      if state.isBehind { return }
      guard append(event, &state) else { return state.isBehind = true }
      return
    }
    guard state.droppedCount > 0 else {
      if !append(event, &state) { state.droppedCount = 1 }
      return
    }
    // The notice of a gap stands where the gap is, and only before what fits again.
    let notice = NodeEvent.dropped(state.droppedCount, since: state.cursor)
    guard hasRoom(2, notice.byteCount + event.byteCount, state) else { return state.droppedCount += 1 }
    state.droppedCount = 0
    state.queue.append(notice, notice.byteCount)
    state.queue.append(event, event.byteCount)
    if let cursor = event.cursor { state.cursor = cursor }
  }

  /// There always is for whatever comes first.
  private func hasRoom(_ count: Int, _ byteCount: Int, _ state: State) -> Bool {
    state.queue.isEmpty
      || state.queue.count + count <= countMax && state.queue.byteCount + byteCount <= byteCountMax
  }

  private func append(_ event: NodeEvent, _ state: inout State) -> Bool {
    let byteCount = event.byteCount
    guard hasRoom(1, byteCount, state) else { return false }
    state.queue.append(event, byteCount)
    if let cursor = event.cursor { state.cursor = cursor }
    return true
  }

  /// What waits is still read; then the reader learns of the end.
  func finish() {
    let waiter = state.withLock { state in
      state.isFinished = true
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }

  // MARK: Reading

  private enum Step {
    case event(NodeEvent)
    case readPage(after: UInt64)
    case wait
    case end
  }

  /// Nil at the end, and in a cancelled task.
  func next() async -> NodeEvent? {
    while !Task.isCancelled {
      switch state.withLock({ step(&$0) }) {
      case .event(let event): return event
      case .readPage(let cursor):
        guard let page = await pager?(cursor, channel) else {
          finish()
          return nil
        }
        state.withLock { Self.take(page, &$0) }
      case .wait: await wait()
      case .end: return nil
      }
    }
    return nil
  }

  private func step(_ state: inout State) -> Step {
    while true {
      if state.pageIndex < state.page.count {
        let event = state.page[state.pageIndex]
        state.pageIndex += 1
        state.position = event.cursor ?? state.position
        return .event(event)
      }
      state.page = []
      state.pageIndex = 0
      if state.isBehind, state.queue.messageCount == 0 {
        if state.isFinished { return .end }
        // From here on the queue takes messages again: what is told while the page is read.
        state.isBehind = false
        return .readPage(after: max(state.scanned, max(state.position >> 8, 1) - 1))
      }
      guard let event = state.queue.popFirst() else { break }
      if pager != nil, let cursor = event.cursor {
        guard cursor > state.position else { continue }
        state.position = cursor
      }
      return .event(event)
    }
    if state.droppedCount > 0 {
      defer { state.droppedCount = 0 }
      return .event(.dropped(state.droppedCount, since: state.cursor))
    }
    return state.isFinished ? .end : .wait
  }

  private static func take(_ page: Page, _ state: inout State) {
    state.page = page.events.filter { $0.cursor ?? 0 > state.position }
    state.scanned = page.through
    if let last = state.page.last?.cursor { state.cursor = max(state.cursor, last) }
    guard !page.isLast else { return }
    // What the queue took meanwhile comes after what is still to be read.
    state.isBehind = true
    state.queue.removeMessages()
  }

  private func wait() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isReady = state.withLock { state in
          let isIdle = state.queue.isEmpty && !state.isBehind && state.droppedCount == 0 && !state.isFinished
          guard isIdle, !Task.isCancelled else { return true }
          precondition(state.waiter == nil, "one task reads a stream of events")
          state.waiter = continuation
          return false
        }
        if isReady { continuation.resume() }
      }
    } onCancel: {
      let waiter = state.withLock { state in
        defer { state.waiter = nil }
        return state.waiter
      }
      waiter?.resume()
    }
  }
}

/// Events with their bytes; the oldest leaves first.
private struct EventQueue {
  private var events: [(event: NodeEvent, byteCount: Int)?] = []
  private var start = 0
  private(set) var byteCount = 0
  private(set) var messageCount = 0

  var count: Int { events.count - start }
  var isEmpty: Bool { count == 0 }

  mutating func append(_ event: NodeEvent, _ byteCount: Int) {
    events.append((event, byteCount))
    self.byteCount += byteCount
    if event.cursor != nil { messageCount += 1 }
  }

  mutating func popFirst() -> NodeEvent? {
    guard start < events.count, let first = events[start] else { return nil }
    events[start] = nil
    start += 1
    if start == events.count {
      events.removeAll(keepingCapacity: start <= 64)
      start = 0
    } else if start >= 1_024 {
      events.removeFirst(start)
      start = 0
    }
    byteCount -= first.byteCount
    if first.event.cursor != nil { messageCount -= 1 }
    return first.event
  }

  mutating func removeMessages() {
    let others = events[start...].compactMap { $0 }.filter { $0.event.cursor == nil }
    self = EventQueue()
    for (event, byteCount) in others { append(event, byteCount) }
  }
}

extension NodeEvent {
  /// Of what is stored and can be told again: where it stands in this node's sequence of arrivals.
  public var cursor: UInt64? {
    switch self {
    case .message(let message): message.cursor
    case .messageChanged(let change): change.cursor
    default: nil
    }
  }

  /// About what it takes while it waits.
  fileprivate var byteCount: Int {
    switch self {
    case .messageChanged(let change): change.byteCount
    // A text stands in the JSON and in the body.
    case .message(let message): 512 + 2 * message.json.utf8.count + 40 * message.deliveredTo.count
    case .hookFailed(let failure): 256 + failure.reason.utf8.count
    case .command(let command): 512 + 2 * command.json.utf8.count
    case .tokenExpiring: 8_192
    case .tokenAccepted, .tokenRefused: 1_024
    case .announced(_, let announcement): 256 + (announcement?.text.utf8.count ?? 0)
    case .voided(_, let ids): 256 + 80 * ids.count
    case .counted(_, let messages): messages.reduce(256) { $0 + 512 + 2 * $1.json.utf8.count }
    case .attributeChanged(_, let change):
      512 + (change.old?.value.utf8.count ?? 0) + (change.new?.value.utf8.count ?? 0)
    case .equivocated(_, _, let proof): 256 + proof.entries.reduce(0) { $0 + $1.count }
    case .stateChanged, .joined, .left, .memberChanged, .impostor, .fetched, .delivered, .expired, .dropped,
      .roleChanged, .closed, .keysChanged, .refused, .memberOverLimit, .typing, .messageDropped:
      256
    }
  }

  /// Whether a subscriber to one channel wants it: that channel's events, and what concerns every channel.
  package func concerns(_ channel: ChannelName?) -> Bool {
    guard let channel else { return true }
    return switch self {
    case .stateChanged, .tokenExpiring, .hookFailed, .dropped: true
    case .joined(let name), .left(let name), .memberChanged(let name, _), .impostor(let name, _, _): name == channel
    case .tokenAccepted(let name, _, _), .tokenRefused(let name, _, _, _): name == channel
    case .roleChanged(let name, _), .voided(let name, _), .counted(let name, _), .announced(let name, _),
      .closed(let name):
      name == channel
    case .message(let message): message.channel == channel
    case .fetched(let name, _): name == channel
    case .messageChanged(let change): change.channel == channel
    case .command(let command): command.channel == channel
    case .delivered(let name, _, _): name == channel
    case .keysChanged(let name, _), .refused(let name, _, _): name == channel
    case .attributeChanged(let name, _), .typing(let name, _, _), .messageDropped(let name, _, _): name == channel
    case .memberOverLimit(let name, _, _), .equivocated(let name, _, _): name == channel
    case .expired: false
    }
  }
}

/// Held by the stream of a subscriber: when that is let go, the subscriber is.
final class Subscription: Sendable {
  let subscriber: Subscriber
  private let end: @Sendable () -> Void

  init(_ subscriber: Subscriber, end: @escaping @Sendable () -> Void) {
    self.subscriber = subscriber
    self.end = end
  }

  deinit { end() }

  var stream: AsyncStream<NodeEvent> { AsyncStream(unfolding: { await self.subscriber.next() }) }
}
