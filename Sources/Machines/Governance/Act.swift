import ParleyVocabulary
import ParleyWire

/// One thing that a member said about its owned channel, as the fold needs it. Nothing here is decided yet.
package struct Act: Equatable, Sendable {
  /// Where it stands: the entries' order, then the place in the entry.
  package struct Place: Hashable, Comparable, Sendable {
    package let order: OrderKey
    package let index: Int
    package init(_ order: OrderKey, _ index: Int = 0) {
      self.order = order
      self.index = index
    }
    package static func < (a: Self, b: Self) -> Bool { a.order == b.order ? a.index < b.index : a.order < b.order }
  }

  package enum Content: Equatable, Sendable {
    /// Whether the grant's signature is the inviter's, for this channel: checked by who has keys.
    case joined(Grant, isGenuine: Bool)
    case role(RoleKind)
    case lowerHand(LowerHandKind)
    case announcement(String)
    case close
    case generation(number: UInt64, hash: Hash32)
    case organiser(PeerID?)
  }

  package let place: Place
  /// The entry's, milliseconds since 1970.
  package let timestamp: UInt64
  package let content: Content

  package init(place: Place, timestamp: UInt64, content: Content) {
    self.place = place
    self.timestamp = timestamp
    self.content = content
  }

  package var author: PeerID { place.order.author }

  /// Kinds of which an entry may hold acts.
  package static let kinds: Set<UInt64> = [
    JoinedKind.code, RoleKind.code, LowerHandKind.code, AnnouncementKind.code, CloseKind.code, GenerationKind.code,
    OrganiserKind.code,
  ]

  package static func mayHoldActs(_ entry: Entry) -> Bool {
    entry.isHidden && entry.items.contains { kinds.contains($0.kind) }
  }

  /// Those of an entry that are well-formed and stand under their own kind, in a hidden entry.
  package static func acts(of entry: Entry, isGenuine: (Grant) -> Bool) -> [Act] {
    guard mayHoldActs(entry) else { return [] }
    var acts: [Act] = []
    for (index, item) in entry.items.enumerated() where kinds.contains(item.kind) {
      guard let body = item.body, let message = try? SchemaMessage(decoding: body, author: entry.key.author),
        KindRegistry.code(of: message.content.type) == item.kind,
        let content = content(message.content, isGenuine)
      else { continue }
      acts.append(Act(place: Place(entry.order, index), timestamp: entry.timestamp, content: content))
    }
    return acts
  }

  private static func content(_ kind: any MessageKind, _ isGenuine: (Grant) -> Bool) -> Content? {
    switch kind {
    case let joined as JoinedKind: .joined(joined.grant, isGenuine: isGenuine(joined.grant))
    case let role as RoleKind: .role(role)
    case let hand as LowerHandKind: .lowerHand(hand)
    case let announcement as AnnouncementKind: .announcement(announcement.body)
    case is CloseKind: .close
    case let generation as GenerationKind: .generation(number: generation.number, hash: generation.hash)
    case let organiser as OrganiserKind: .organiser(organiser.key)
    default: nil
    }
  }
}

/// What of an entry decides whether it counts.
package struct EntryFacts: Equatable, Sendable {
  package let order: OrderKey
  /// Milliseconds since 1970, as its author signed.
  package let timestamp: UInt64
  /// Hidden ones (hands, tokens, acts) count also of the muted.
  package let isHidden: Bool

  package init(order: OrderKey, timestamp: UInt64, isHidden: Bool) {
    self.order = order
    self.timestamp = timestamp
    self.isHidden = isHidden
  }

  package init(_ entry: Entry) {
    self.init(order: entry.order, timestamp: entry.timestamp, isHidden: entry.isHidden)
  }
}

extension ActHeads {
  /// Whether the entry is beyond what counts.
  func isBelow(_ order: OrderKey) -> Bool { order.number > number(of: order.log) }
}
