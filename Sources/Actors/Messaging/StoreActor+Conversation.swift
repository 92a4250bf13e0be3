import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

/// A message where it is stored.
package struct StoredMessage: Sendable, Equatable {
  package let entry: Entry
  package let cursor: UInt64
  /// Among the messages of the entry.
  package let place: Int
}

/// A message that something was done to, and all that was.
package struct ActedOn: Sendable, Equatable {
  package let target: MessageKey
  /// None while it is not here. Several when its author used an ID twice: what is done to one is done to all.
  package let messages: [StoredMessage]
  /// All that are on it, in whatever order.
  package let acts: [MessageAct]
}

/// What is done to messages: which acts are on which. What counts of them is not the store's to say.
extension StoreActor {
  /// Acts on messages that are not here, kept in memory: those stored first.
  private static let waitingEntryCountMax = 4_096
  /// What is not named yet and must be looked through for one act.
  private static let unnamedCountMax: UInt64 = 1_024
  package static let pinActCountMax = 65_536
  /// How far back in its log it is looked for what a recall is dated before.
  private static let backdatedWithin = 1_024

  static func stored(_ entry: Entry, in channel: ChannelID, isKept: Bool, _ bytes: [UInt8]) -> StoredEntry {
    var stored = StoredEntry(
      channel: channel, key: entry.key, number: entry.number, lamport: entry.lamport, isHidden: entry.isHidden,
      isKept: isKept, bytes: bytes, acts: storedActs(of: entry))
    stored.isStanding = !MessageAct.isAll(of: entry)
    return stored
  }

  /// What the store writes down beside an entry.
  static func storedActs(of entry: Entry) -> [StoredAct] {
    guard MessageAct.mayBeIn(entry) else { return [] }
    return MessageAct.acts(of: entry).map {
      StoredAct(target: $0.target.digest, kind: $0.content.kind, timestamp: $0.timestamp)
    }
  }

  /// Told before the entries themselves, which go through messaging.
  func tellActs(_ writes: ArraySlice<StoreWrite>, _ cursors: [UInt64]) {
    for (write, cursor) in zip(writes, cursors) where cursor != 0 {
      guard case .entry(let stored) = write, !stored.acts.isEmpty else { continue }
      guard let entry = try? Entry(decoding: stored.bytes[...]) else { continue }
      do throws(StoreError) {
        switchboard.notices(.acted(stored.channel, cursor: cursor, try acted(by: entry, in: stored.channel)))
      } catch {
        switchboard.notices(.trouble(error.description))
      }
    }
  }

  /// Before a channel is opened: what is done to messages that have not come, and all about pins.
  func tellWaitingActs(_ channel: ChannelID) throws(StoreError) {
    guard try store.hasActs(in: channel) else { return }
    try nameAll(but: 0)
    let entries = try store.entriesActingOnUnnamed(in: channel, limit: Self.waitingEntryCountMax)
    var acts: [MessageAct] = []
    var known: [MessageKey: Bool] = [:]
    for act in entries.compactMap({ try? Entry(decoding: $0.bytes[...]) }).flatMap({ MessageAct.acts(of: $0) }) {
      if known[act.target] == nil { known[act.target] = try !messages(under: act.target, in: channel).isEmpty }
      if known[act.target] == false { acts.append(act) }
    }
    switchboard.notices(.waiting(channel, acts, pins: try pinActs(in: channel)))
  }

  /// Until so little is not named that it can be looked through. A store that is only read is looked through as it is.
  private func nameAll(but count: UInt64) throws(StoreError) {
    let store = try store
    while store.readOnlyReason == nil, store.lastCursor > store.keyedCursor,
      store.lastCursor - store.keyedCursor > count
    {
      try store.name(EntryReader().names)
    }
  }

  /// The messages here under this key, by cursor.
  package func messages(under key: MessageKey, in channel: ChannelID) throws(StoreError) -> [StoredMessage] {
    try nameAll(but: Self.unnamedCountMax)
    var found: [StoredMessage] = []
    for (stored, place) in try store.entries(named: key.digest, in: channel) {
      // Two keys may have one hash, if somebody takes the trouble.
      found += Self.messages(under: key, in: stored).filter { $0.place == place }
    }
    for stored in try store.unnamedEntries(of: key.sender, in: channel) {
      found += Self.messages(under: key, in: stored)
    }
    return found
  }

  private static func messages(under key: MessageKey, in stored: StoredEntry) -> [StoredMessage] {
    guard stored.key.author == key.sender, let entry = try? Entry(decoding: stored.bytes[...]) else { return [] }
    return EntryReader.messages(of: entry).filter { $0.message.messageID == key.id }
      .map { StoredMessage(entry: entry, cursor: stored.cursor, place: $0.place) }
  }

  /// All acts on a message but pins, which are the channel's.
  private func acts(on target: MessageKey, in channel: ChannelID) throws(StoreError) -> [MessageAct] {
    let store = try store
    var acts: [MessageAct] = []
    for stored in try store.actEntries(on: target.digest, in: channel, butOf: ReadKind.code) {
      guard let entry = try? Entry(decoding: stored.bytes[...]) else { continue }
      for var act in MessageAct.acts(of: entry) where act.target == target && act.content != .read {
        if act.content == .recall { act.isBackdated = try isBackdated(entry, in: channel) }
        acts.append(act)
      }
    }
    for place in try store.acts(of: ReadKind.code, on: target.digest, in: channel) {
      acts.append(
        MessageAct(place: Act.Place(place.order), timestamp: place.timestamp, target: target, content: .read))
    }
    return acts
  }

  /// Whether an entry before it in its log has a later time, which no program that keeps the rules signs.
  private func isBackdated(_ entry: Entry, in channel: ChannelID) throws(StoreError) -> Bool {
    try store.entries(in: channel, of: entry.key, before: entry.number, limit: Self.backdatedWithin).contains {
      ((try? Entry(decoding: $0.bytes[...]))?.timestamp ?? 0) > entry.timestamp
    }
  }

  /// The acts on each of these messages. Nothing is looked up where there are none.
  package func acts(on keys: [MessageKey], in channel: ChannelID) throws(StoreError) -> [MessageKey: [MessageAct]] {
    guard !keys.isEmpty, try store.hasActs(in: channel) else { return [:] }
    var found: [MessageKey: [MessageAct]] = [:]
    for key in keys where found[key] == nil {
      let acts = try acts(on: key, in: channel)
      if !acts.isEmpty { found[key] = acts }
    }
    return found
  }

  /// What an entry does, as it is told when it is stored.
  package func acted(by entry: Entry, in channel: ChannelID) throws(StoreError) -> [ActedOn] {
    var seen: Set<MessageKey> = []
    var acted: [ActedOn] = []
    for act in MessageAct.acts(of: entry) where seen.insert(act.target).inserted {
      acted.append(
        ActedOn(
          target: act.target, messages: try messages(under: act.target, in: channel),
          acts: try acts(on: act.target, in: channel)))
    }
    return acted
  }

  private func pinActs(in channel: ChannelID) throws(StoreError) -> [MessageAct] {
    var acts: [MessageAct] = []
    for stored in try store.actEntries(of: PinKind.code, in: channel) where acts.count < Self.pinActCountMax {
      guard let entry = try? Entry(decoding: stored.bytes[...]) else { continue }
      acts += MessageAct.acts(of: entry).filter(\.isOfPins)
    }
    return acts
  }
}

extension MessageAct {
  package var isOfPins: Bool { if case .pin = content { true } else { false } }
}

extension MessageAct.Content {
  var kind: UInt64 {
    switch self {
    case .recall: RecallKind.code
    case .edit: EditKind.code
    case .react: ReactKind.code
    case .pin: PinKind.code
    case .read: ReadKind.code
    }
  }
}
