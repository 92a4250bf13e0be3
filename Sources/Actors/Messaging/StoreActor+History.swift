import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

extension StoreActor {
  /// So many visible entries, and what is no entry, before a place in the shared order (nil: the last ones), newest
  /// first, and the place before which the next ones are; nil when there are no more.
  package func history(
    of channel: ChannelID, before place: OrderKey?, limit: Int
  ) throws(StoreError) -> (entries: [(entry: Entry, cursor: UInt64)], next: OrderKey?) {
    let page = try store.historyBefore(place, in: channel, limit: limit)
    return (page.compactMap(Self.read), page.count < limit ? nil : page.last?.order)
  }

  /// What has this cursor and so many before it in the shared order, newest first; none when it is gone.
  package func history(
    of channel: ChannelID, through cursor: UInt64, limit: Int
  ) throws(StoreError) -> (entries: [(entry: Entry, cursor: UInt64)], next: OrderKey?) {
    guard let last = try store.historyItem(at: cursor, in: channel) else { return ([], nil) }
    let page = try store.historyBefore(last.order, in: channel, limit: limit)
    return (([last] + page).compactMap(Self.read), page.count < limit ? nil : page.last?.order)
  }

  private static func read(_ item: HistoryItem) -> (entry: Entry, cursor: UInt64)? {
    switch item {
    case .entry(let stored): (try? Entry(decoding: stored.bytes[...])).map { ($0, stored.cursor) }
    case .localMessage(let stored): (LocalMessage(stored).entry(cursor: stored.cursor), stored.cursor)
    }
  }

  /// For which of its receivers a message still waits.
  package func waiting(_ id: MessageID) throws(StoreError) -> Set<PeerID> { try store.waitingPeers(of: id) }
}

extension LocalMessage {
  package init(_ stored: StoredLocalMessage) {
    self.init(
      channel: stored.channel, author: stored.author, id: stored.id, lamport: stored.lamport, kind: stored.kind,
      json: stored.json)
  }
}
