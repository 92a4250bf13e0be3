import ParleyVocabulary
import ParleyWire

/// One thing that somebody did to one message, as the fold needs it. Nothing here is decided yet.
package struct MessageAct: Equatable, Sendable {
  package enum Content: Equatable, Sendable {
    case recall
    case edit(EditKind.Content?, ext: [JSONMember]?)
    case react(emoji: String, isOn: Bool)
    case pin(isOn: Bool)
    case read
  }

  /// Where it stands: the entries' order, then the place in the entry.
  package let place: Act.Place
  /// The entry's, milliseconds since 1970.
  package let timestamp: UInt64
  package let target: MessageKey
  package let content: Content
  /// An earlier entry of its log has a later time: whoever reads the log says so. Only of recalls it matters.
  package var isBackdated = false

  package init(place: Act.Place, timestamp: UInt64, target: MessageKey, content: Content) {
    self.place = place
    self.timestamp = timestamp
    self.target = target
    self.content = content
  }

  package var author: PeerID { place.order.author }

  /// Kinds of which an entry may hold such acts.
  package static let kinds: Set<UInt64> = [
    RecallKind.code, EditKind.code, ReactKind.code, PinKind.code, ReadKind.code,
  ]

  package static func mayBeIn(_ entry: Entry) -> Bool {
    entry.isHidden && entry.items.contains { kinds.contains($0.kind) }
  }

  /// Whether an entry holds nothing else.
  package static func isAll(of entry: Entry) -> Bool {
    entry.isHidden && entry.items.allSatisfy { kinds.contains($0.kind) }
  }

  /// Those of an entry that are well-formed and stand under their own kind, in a hidden entry: one for each message
  /// that they are on.
  package static func acts(of entry: Entry) -> [MessageAct] {
    guard mayBeIn(entry) else { return [] }
    var acts: [MessageAct] = []
    for (index, item) in entry.items.enumerated() where kinds.contains(item.kind) {
      guard let body = item.body, let message = try? SchemaMessage(decoding: body, author: entry.key.author),
        KindRegistry.code(of: message.content.type) == item.kind
      else { continue }
      acts += Self.acts(message.content, at: Act.Place(entry.order, index), timestamp: entry.timestamp)
    }
    return acts
  }

  /// What a message does to others.
  package static func acts(_ kind: any MessageKind, at place: Act.Place, timestamp: UInt64) -> [MessageAct] {
    func act(_ target: MessageKey, _ content: Content) -> MessageAct {
      MessageAct(place: place, timestamp: timestamp, target: target, content: content)
    }
    return switch kind {
    case let recall as RecallKind: [act(recall.target, .recall)]
    case let edit as EditKind: [act(edit.target, .edit(edit.content, ext: edit.ext))]
    case let react as ReactKind: [act(react.target, .react(emoji: react.emoji, isOn: react.isOn))]
    case let pin as PinKind: [act(pin.target, .pin(isOn: pin.isOn))]
    case let read as ReadKind: read.targets.map { act($0, .read) }
    default: []
    }
  }
}

/// Why an act changes nothing.
package enum MessageActFault: Equatable, Sendable {
  /// Its author is nobody here, or muted and says something with it.
  case excluded(VoidReason)
  /// Edits are their author's alone.
  case notAuthor
  /// Somebody else's message is taken back, or one is pinned in a channel with an owner, by neither owner nor admin.
  case notModerator
  /// Beyond the time for taking back, milliseconds.
  case tooLate(after: UInt64, limit: UInt64)
  case backdated
  /// Of a kind with which that is not done.
  case wrongKind
  case tooManyEdits
  case tooManyEmoji
  case tooManyPins
  /// What was taken back is not changed any more.
  case recalled

  /// Whether only a program that keeps no rule says such a thing. The others may cross on their way.
  package var isBreach: Bool {
    switch self {
    case .notAuthor, .notModerator, .tooLate, .backdated, .wrongKind, .tooManyEdits: true
    case .excluded, .tooManyEmoji, .tooManyPins, .recalled: false
    }
  }
}
