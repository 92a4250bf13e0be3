import ParleyActors
import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

/// What of one channel is known beside its messages: acts that wait for theirs, and pins.
struct Talk: Sendable {
  /// Acts on messages that are not here. Beyond the bound they are found in the store when the history is read.
  private(set) var waiting: [MessageKey: [MessageAct]] = [:]
  private var waitingCount = 0
  private var pinActs: [MessageAct] = []
  private(set) var board = PinBoard.empty
  /// Acts on pins that change nothing.
  private(set) var voidPins: Set<Act.Place> = []

  private static let waitingCountMax = 16_384

  mutating func wait(_ act: MessageAct) {
    guard waitingCount < Self.waitingCountMax else { return }
    waitingCount += 1
    waiting[act.target, default: []].append(act)
  }

  /// The message has come.
  mutating func taken(_ key: MessageKey) -> [MessageAct]? {
    guard let acts = waiting.removeValue(forKey: key) else { return nil }
    waitingCount -= acts.count
    return acts
  }

  mutating func pin(_ acts: [MessageAct], _ governance: Governance?) -> [Act.Place: MessageActFault] {
    pinActs += acts.prefix(StoreActor.pinActCountMax - min(pinActs.count, StoreActor.pinActCountMax))
    return fold(governance)
  }

  mutating func govern(_ governance: Governance) { if !pinActs.isEmpty { _ = fold(governance) } }

  private mutating func fold(_ governance: Governance?) -> [Act.Place: MessageActFault] {
    var faults: [Act.Place: MessageActFault] = [:]
    board = PinBoard(pinActs, governance) { faults[$0.place] = $1 }
    voidPins = Set(faults.keys)
    return faults
  }
}

extension Hub {
  func waiting(_ channel: ChannelID, _ acts: [MessageAct], _ pins: [MessageAct]) {
    let governance = rulebook.governance(of: channel)
    state.withLock { state in
      state.talks[channel] = Talk()
      for act in acts { state.talks[channel]!.wait(act) }
      _ = state.talks[channel]!.pin(pins, governance)
    }
  }

  /// Messages that came, after what was done to them before they came.
  func awaited(_ messages: [Message], in channel: ChannelID) -> [Message] {
    let waited = state.withLock { state -> [MessageKey: [MessageAct]] in
      guard let talk = state.talks[channel], !talk.waiting.isEmpty else { return [:] }
      var found: [MessageKey: [MessageAct]] = [:]
      for message in messages { found[message.key] = state.talks[channel]!.taken(message.key) }
      return found
    }
    return waited.isEmpty ? messages : after(waited, messages, in: channel)
  }

  /// Messages after these acts and what is pinned.
  func after(_ acts: [MessageKey: [MessageAct]], _ messages: [Message], in channel: ChannelID) -> [Message] {
    let board = state.withLock { $0.talks[channel]?.board } ?? .empty
    if acts.isEmpty, board.pins.isEmpty { return messages }
    return messages.map { message in
      let pin = board.pin(of: message.key)
      guard pin != nil || acts[message.key] != nil else { return message }
      return after(acts[message.key] ?? [], message, pin, in: channel) { _, _ in }
    }
  }

  private func after(
    _ acts: [MessageAct], _ message: Message, _ pin: PinBoard.Pin?, in channel: ChannelID,
    fault: (MessageAct, MessageActFault) -> Void
  ) -> Message {
    let facts = MessageFacts(key: message.key, type: message.kindName, timestamp: message.signedAt)
    let governance = rulebook.governance(of: channel)
    let state = MessageState(
      of: facts, acts.filter { isShown($0, in: channel) }, rule(in: channel), governance, fault: fault)
    return message.after(state, pin: pin)
  }

  /// Whether what somebody does here is looked at: as for what they say. Who is blocked can still take back what all
  /// others see taken back.
  private func isShown(_ act: MessageAct, in channel: ChannelID) -> Bool {
    let order = act.place.order
    let log = LogKey(author: order.author, log: order.log)
    if state.withLock({ $0.suspicions[channel]?.isVoid(log, order.number) == true }) { return false }
    let moment = Timestamp(milliseconds: Int64(clamping: act.timestamp))
    if case .failure = tokens.word(for: act.author, in: channel, at: moment) { return false }
    switch act.content {
    case .react, .read: return !people.isBlocked(act.author)
    case .recall, .edit, .pin: return true
    }
  }

  /// An entry that does something to messages is stored.
  func heardActs(_ entry: Entry, _ cursor: UInt64, in channel: ChannelID, _ name: ChannelName) {
    guard MessageAct.mayBeIn(entry) else { return }
    let acted = state.withLock { $0.acted.removeValue(forKey: cursor)?.on } ?? []
    let acts = MessageAct.acts(of: entry)
    guard !acts.isEmpty else { return }
    var isBreach = false
    let pins = acts.filter { $0.isOfPins && isShown($0, in: channel) }
    let governance = rulebook.governance(of: channel)
    state.withLock { state in
      for on in acted where on.messages.isEmpty {
        for act in on.acts where act.place.order == entry.order && !act.isOfPins {
          state.talks[channel, default: Talk()].wait(act)
        }
      }
      guard !pins.isEmpty else { return }
      let faults = state.talks[channel, default: Talk()].pin(pins, governance)
      isBreach = pins.contains { faults[$0.place]?.isBreach == true }
    }
    let events = changes(entry, cursor, acted, channel, name) { isBreach = true }
    forgetRecalled(events, in: channel)
    emit(events)
    if isBreach, entry.key.author != me { overLimit(channel, entry.key.author, .forbiddenActs) }
  }

  /// What an entry changed of messages that are here, one event an act that counts.
  func changes(
    _ entry: Entry, _ cursor: UInt64, _ acted: [ActedOn], _ channel: ChannelID, _ name: ChannelName,
    breach: () -> Void = {}
  ) -> [NodeEvent] {
    let (board, voidPins) = state.withLock { ($0.talks[channel]?.board ?? .empty, $0.talks[channel]?.voidPins ?? []) }
    var events: [NodeEvent] = []
    let acts = MessageAct.acts(of: entry).filter { isShown($0, in: channel) && !voidPins.contains($0.place) }
    var index = acts.startIndex
    while index < acts.endIndex {
      let place = acts[index].place
      let end = acts[index...].firstIndex { $0.place != place } ?? acts.endIndex
      var messages: [Message] = []
      for act in acts[index..<end] {
        guard let on = acted.first(where: { $0.target == act.target }) else { continue }
        for stored in on.messages {
          if let message = changed(stored, by: act, on.acts, board, channel, name, breach) { messages.append(message) }
        }
      }
      if !messages.isEmpty {
        events.append(
          .messageChanged(
            MessageChange(
              channel: name, deed: MessageChange.Deed(acts[index].content), peer: entry.key.author,
              at: Timestamp(milliseconds: Int64(clamping: entry.timestamp)), messages: messages,
              cursor: cursor << 8 | UInt64(place.index))))
      }
      index = end
    }
    return events
  }

  /// Nil when the act does not count, or the message is not shown.
  private func changed(
    _ stored: StoredMessage, by act: MessageAct, _ acts: [MessageAct], _ board: PinBoard, _ channel: ChannelID,
    _ name: ChannelName, _ breach: () -> Void
  ) -> Message? {
    let all = messages(stored.entry, channel: channel, name: name, cursor: stored.cursor)
    guard let message = all.first(where: { $0.cursor == stored.cursor << 8 | UInt64(stored.place) }) else { return nil }
    var isVoid = false
    let changed = after(acts, message, board.pin(of: message.key), in: channel) { other, fault in
      guard other.place == act.place else { return }
      isVoid = true
      if fault.isBreach { breach() }
    }
    return isVoid ? nil : changed
  }

  /// What was taken back announces nothing any more.
  private func forgetRecalled(_ events: [NodeEvent], in channel: ChannelID) {
    for case .messageChanged(let change) in events where change.deed == .recalled {
      state.withLock { state in
        for message in change.messages {
          state.media[channel]?.forget(message.reference)
          state.bundled[channel]?.forget(message.reference)
        }
      }
      let media = change.messages.flatMap(\.recalledMedia)
      if !media.isEmpty { recalled.continuation.yield(media) }
    }
  }

  /// Nobody reports in rooms what they have read.
  func rule(in channel: ChannelID) -> ConversationRule {
    ConversationRule(hasReceipts: state.withLock { $0.channels[channel]?.type } != .room)
  }

  func pins(in channel: ChannelID) -> [MessageKey] {
    state.withLock { $0.talks[channel]?.board.pins.map(\.target) } ?? []
  }

  func board(of channel: ChannelID) -> PinBoard { state.withLock { $0.talks[channel]?.board } ?? .empty }
}

extension MessageChange.Deed {
  init(_ content: MessageAct.Content) {
    self =
      switch content {
      case .recall: .recalled
      case .edit: .edited
      case .react(let emoji, let isOn): .reacted(emoji: emoji, isOn: isOn)
      case .pin(let isOn): .pinned(isOn: isOn)
      case .read: .read
      }
  }
}
