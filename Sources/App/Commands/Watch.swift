import ParleyLocalAPI

/// Follows what happens at a node, over its restarts when there is patience for them.
struct Watch {
  private static let retryMilliseconds: Int32 = 100

  let client: NodeClient
  let query: [(String, String)]
  /// How long a node may be away.
  let patience: Duration
  /// Of the last message that was shown, or where to begin; nil: now.
  private(set) var cursor: String?
  /// Set while the node is away: when patience ends.
  private var end: ContinuousClock.Instant?

  init(client: NodeClient, query: [(String, String)], cursor: String?, patience: Duration) {
    self.client = client
    self.query = query
    self.cursor = cursor
    self.patience = patience
  }

  /// Ends only by throwing; `.interrupted` is the proper end.
  mutating func run(show: (StreamEvent) -> Void) throws(Failure) {
    while true {
      do throws(Failure) {
        try follow(show)
        throw Failure(.unavailable, "the node has ended: start it again with parley up")
      } catch {
        guard error.status == .unavailable, patience > .zero else { throw error }
        try wait(after: error)
      }
    }
  }

  private mutating func follow(_ show: (StreamEvent) -> Void) throws(Failure) {
    let transfer = client.start("GET", ["events"], query: query + (cursor.map { [("since", $0)] } ?? []))
    defer { client.end(transfer) }
    while true {
      client.advance()
      if transfer.isListening, end != nil {
        end = nil
        Terminal.note("parley: the node is back; nothing was missed")
      }
      for event in transfer.takeEvents() { show(event) }
      cursor = transfer.lastEventID ?? cursor
      if transfer.outcome != nil { return try client.check(transfer) }
      if Interruption.count > 0 { throw .interrupted }
      _ = client.wait(for: [Interruption.descriptor])
    }
  }

  private mutating func wait(after failure: Failure) throws(Failure) {
    if end == nil {
      end = .now + patience
      Terminal.note("parley: \(failure.message) (waiting up to \(patience.components.seconds) s for it)")
    }
    guard let end, ContinuousClock.now < end else { throw failure }
    _ = client.wait(for: [Interruption.descriptor], milliseconds: Self.retryMilliseconds)
    if Interruption.count > 0 { throw .interrupted }
  }
}
