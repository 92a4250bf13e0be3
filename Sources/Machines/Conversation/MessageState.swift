import ParleyVocabulary
import ParleyWire

/// What of a message decides what may be done to it.
package struct MessageFacts: Equatable, Sendable {
  package let key: MessageKey
  /// The schema's `type`.
  package let type: String
  /// Milliseconds since 1970, as its author signed.
  package let timestamp: UInt64

  package init(key: MessageKey, type: String, timestamp: UInt64) {
    self.key = key
    self.type = type
    self.timestamp = timestamp
  }
}

/// Who did something, and when by their clock.
package struct Doing: Equatable, Sendable {
  package let author: PeerID
  /// Milliseconds since 1970, as signed.
  package let timestamp: UInt64

  package init(author: PeerID, timestamp: UInt64) {
    self.author = author
    self.timestamp = timestamp
  }

  init(_ act: MessageAct) { self.init(author: act.author, timestamp: act.timestamp) }
}

/// What became of a message: a function of what it is, of the acts on it and of who may what, whatever order they came
/// in. Pins are the channel's (`PinBoard`).
package struct MessageState: Equatable, Sendable {
  package struct Reaction: Equatable, Sendable {
    /// Hostile until escaped.
    package let emoji: String
    /// In the order in which they gave it, none twice.
    package var peers: [PeerID]
  }

  package private(set) var recall: Doing?
  /// What it says since the last edits that named these; nil: what it said first.
  package private(set) var content: EditKind.Content?
  package private(set) var ext: [JSONMember]?
  package private(set) var editCount = 0
  package private(set) var lastEdit: Doing?
  /// In the order of the first sign of each that stands.
  package private(set) var reactions: [Reaction] = []
  /// Who says to have read it, in order, its author not among them.
  package private(set) var readers: [Doing] = []

  package static let untouched = MessageState()
  private init() {}

  /// `acts`: all that are on this message. `fault` is told of those that change nothing, and why.
  package init(
    of facts: MessageFacts, _ acts: [MessageAct], _ rule: ConversationRule = ConversationRule(),
    _ governance: Governance?, fault: (MessageAct, MessageActFault) -> Void = { _, _ in }
  ) {
    var isRead: Set<PeerID> = []
    for act in acts.sorted(by: { $0.place < $1.place }) where act.target == facts.key {
      if let reason = governance?.voidReason(of: act) {
        fault(act, .excluded(reason))
        continue
      }
      switch act.content {
      case .recall:
        if let reason = Self.reason(againstRecall: act, facts, rule, governance) {
          fault(act, reason)
        } else {
          recall = recall ?? Doing(act)
        }
      case .edit(let content, let ext):
        if let reason = self.reason(against: act, content, facts) {
          fault(act, reason)
        } else {
          edit(act, content, ext)
        }
      case .react(let emoji, let isOn):
        if facts.type == MessageActRule.command {
          fault(act, .wrongKind)
        } else if !react(emoji, isOn, act.author) {
          fault(act, .tooManyEmoji)
        }
      case .read:
        guard rule.hasReceipts, act.author != facts.key.sender, isRead.insert(act.author).inserted else { break }
        readers.append(Doing(act))
      case .pin: break
      }
    }
    if recall != nil { forgetWhatWasSaid() }
  }

  /// A recall beats whatever else there is, before it or after it in order.
  private mutating func forgetWhatWasSaid() {
    content = nil
    ext = nil
    editCount = 0
    lastEdit = nil
    reactions = []
  }

  private static func reason(
    againstRecall act: MessageAct, _ facts: MessageFacts, _ rule: ConversationRule, _ governance: Governance?
  ) -> MessageActFault? {
    if facts.type == MessageActRule.command { return .wrongKind }
    if governance?.isModerators(act.place.order) == true { return nil }
    guard act.author == facts.key.sender else { return .notModerator }
    if act.isBackdated { return .backdated }
    guard act.timestamp > facts.timestamp, act.timestamp - facts.timestamp > rule.recallWithin else { return nil }
    return .tooLate(after: act.timestamp - facts.timestamp, limit: rule.recallWithin)
  }

  private func reason(against act: MessageAct, _ content: EditKind.Content?, _ facts: MessageFacts) -> MessageActFault?
  {
    guard act.author == facts.key.sender else { return .notAuthor }
    guard MessageActRule.canEdit(facts.type, content) else { return .wrongKind }
    return editCount < ConversationRule.editCountMax ? nil : .tooManyEdits
  }

  private mutating func edit(_ act: MessageAct, _ content: EditKind.Content?, _ ext: [JSONMember]?) {
    editCount += 1
    lastEdit = Doing(act)
    if let content { self.content = content }
    if let ext { self.ext = ext }
  }

  /// False when it is one sign too many. Emoji are the same when their bytes are.
  private mutating func react(_ emoji: String, _ isOn: Bool, _ peer: PeerID) -> Bool {
    let index = reactions.firstIndex { $0.emoji.utf8.elementsEqual(emoji.utf8) }
    guard isOn else {
      guard let index else { return true }
      reactions[index].peers.removeAll { $0 == peer }
      if reactions[index].peers.isEmpty { reactions.remove(at: index) }
      return true
    }
    if let index {
      if !reactions[index].peers.contains(peer) { reactions[index].peers.append(peer) }
      return true
    }
    guard reactions.count < ConversationRule.emojiCountMax else { return false }
    reactions.append(Reaction(emoji: emoji, peers: [peer]))
    return true
  }
}

/// What can be done with which kinds.
package enum MessageActRule {
  /// Seen by programs alone, once: nothing is done to it.
  package static let command = "cmd"

  /// Words change of texts and custom messages; beside them, and of all others, only `ext`.
  package static func canEdit(_ type: String, _ content: EditKind.Content?) -> Bool {
    switch content {
    case nil: type != command
    case .body: type == TextKind.type
    case .custom: type == CustomKind.type
    }
  }
}

extension Governance {
  /// Why an act does not count, whoever's message it is on. To change what one said, or to put a sign on something, is
  /// to say something: the muted do neither.
  func voidReason(of act: MessageAct) -> VoidReason? {
    let isSaying =
      switch act.content {
      case .edit, .react: true
      case .recall, .pin, .read: false
      }
    return voidReason(EntryFacts(order: act.place.order, timestamp: act.timestamp, isHidden: !isSaying))
  }
}
