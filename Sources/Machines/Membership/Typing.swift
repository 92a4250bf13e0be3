import ParleyVocabulary
import ParleyWire

/// Who is writing just now: told by live objects, kept by nobody.
struct TypingState: Equatable, Sendable {
  /// Until when somebody is taken to be writing, and by which of their live objects that is known.
  var until: [PeerID: Instant] = [:]
  private var counters: [PeerID: UInt64] = [:]
  /// When we last said that we are writing; nil: we have not, or said that we are not any more.
  var saidAt: Instant?

  /// False for what was overtaken on its way by a later one.
  mutating func isNew(_ counter: UInt64, of peer: PeerID) -> Bool {
    guard counter > counters[peer] ?? 0 else { return false }
    counters[peer] = counter
    return true
  }

  mutating func forget(_ peer: PeerID) -> Bool {
    counters[peer] = nil
    return until.removeValue(forKey: peer) != nil
  }
}

extension MembershipRule {
  /// Whoever is writing says so at most so often…
  package static let typingAgain = Span.seconds(3)
  /// …and is taken to be writing for so long after the last time: one that is lost ends nothing.
  package static let typingLasts = Span.seconds(8)
}

extension MembershipMachine {
  /// The user writes, or has stopped. Said often, it is sent seldom.
  mutating func typed(_ channel: ChannelID, _ isTyping: Bool, _ now: Instant) -> [MembershipEffect] {
    guard let state = channels[channel] else { return [] }
    if isTyping {
      if let saidAt = state.typing.saidAt, now < saidAt + MembershipRule.typingAgain { return [] }
    } else if state.typing.saidAt == nil {
      return []
    }
    channels[channel]!.typing.saidAt = isTyping ? now : nil
    let json = SchemaMessage(
      sender: Sender(peer: me, displayName: state.displayName), messageID: nil, timestamp: nil,
      content: TypingKind(isTyping: isTyping)
    ).encoded
    return [
      .tell(.links(.multicast(channel, [.live(LiveObject(author: me, instance: instance, counter: 0, json: json))])))
    ]
  }

  /// Only who is present is listened to: there are no more of them than members.
  mutating func heard(
    _ typing: TypingKind, _ live: LiveObject, _ channel: ChannelID, _ now: Instant
  ) -> [MembershipEffect] {
    let peer = live.author
    guard channels[channel]!.present.contains(peer), channels[channel]!.typing.isNew(live.counter, of: peer)
    else { return [] }
    if typing.isTyping {
      let wasTyping = channels[channel]!.typing.until.updateValue(now + MembershipRule.typingLasts, forKey: peer) != nil
      return wasTyping ? [] : [.typing(channel, peer, true)]
    }
    let wasTyping = channels[channel]!.typing.until.removeValue(forKey: peer) != nil
    return wasTyping ? [.typing(channel, peer, false)] : []
  }

  mutating func typingDue(_ channel: ChannelID, _ now: Instant) -> [MembershipEffect] {
    let over = channels[channel]!.typing.until.filter { $0.value <= now }.keys.sorted()
    for peer in over { channels[channel]!.typing.until[peer] = nil }
    return over.map { .typing(channel, $0, false) }
  }
}
