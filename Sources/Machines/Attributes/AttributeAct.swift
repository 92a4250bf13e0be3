import ParleyVocabulary
import ParleyWire

/// One thing that a member said about a channel's attributes. Nothing here is decided yet.
package struct AttributeAct: Equatable, Sendable {
  package let place: Act.Place
  /// The entry's, milliseconds since 1970.
  package let timestamp: UInt64
  package let content: AttributeKind

  package init(place: Act.Place, timestamp: UInt64, content: AttributeKind) {
    self.place = place
    self.timestamp = timestamp
    self.content = content
  }

  package var author: PeerID { place.order.author }
  package var log: LogKey { LogKey(author: place.order.author, log: place.order.log) }
  /// For whoever decides what counts in an owned channel.
  package var facts: EntryFacts { EntryFacts(order: place.order, timestamp: timestamp, isHidden: true) }

  package static func mayHold(_ entry: Entry) -> Bool {
    entry.isHidden && entry.items.contains { $0.kind == AttributeKind.code }
  }

  /// Those of an entry that are well-formed and stand under their own kind, in a hidden entry.
  package static func acts(of entry: Entry) -> [AttributeAct] {
    guard mayHold(entry) else { return [] }
    return entry.items.indices.compactMap { index in
      let item = entry.items[index]
      guard item.kind == AttributeKind.code, let body = item.body,
        let message = try? SchemaMessage(decoding: body, author: entry.key.author),
        let content = message.content as? AttributeKind
      else { return nil }
      return AttributeAct(place: Act.Place(entry.order, index), timestamp: entry.timestamp, content: content)
    }
  }

  /// Whether this may take the place of what stands.
  func mayReplace(_ standing: AttributeAct) -> Bool {
    if content.isOverwriting || author == standing.author { return true }
    return standing.content.isUntilLeave && content.replaces == standing.log.log
  }
}

extension Act {
  /// Whether the disk keeps it however old it is, for what counts depends on it.
  package static func isNeeded(_ entry: Entry) -> Bool { mayHoldActs(entry) || AttributeAct.mayHold(entry) }
}
