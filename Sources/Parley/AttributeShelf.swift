import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Synchronization

/// The attributes of the channels this node is in, and what was told of them. Asked from any thread; what is asked of
/// the closures must not come back here.
final class AttributeShelf: Sendable {
  private struct Channel {
    var book = AttributeBook()
    var shown = AttributeState()
    /// Of those who are there: which of their runs.
    var runs: [PeerID: Instance] = [:]
    /// False while the store's are still being read: what stood already is no news.
    var isLoaded = false
  }

  private let channels = Mutex<[ChannelID: Channel]>([:])

  /// Before anything is heard of the channel.
  func begin(_ channel: ChannelID, _ me: PeerID, _ instance: Instance) {
    channels.withLock { channels in
      if channels[channel] == nil { channels[channel] = Channel() }
      channels[channel]!.runs[me] = instance
    }
  }

  func forget(_ channel: ChannelID) { channels.withLock { $0[channel] = nil } }

  /// Returns the entries that are needed no more.
  func take(_ acts: [AttributeAct], in channel: ChannelID, counts: (EntryFacts) -> Bool) -> Set<OrderKey> {
    channels.withLock { $0[channel]?.book.take(acts, counts: counts) ?? [] }
  }

  /// Somebody came with this run, or is gone (nil). False when that was known.
  func note(_ run: Instance?, of peer: PeerID, in channel: ChannelID) -> Bool {
    channels.withLock { channels in
      guard channels[channel] != nil, channels[channel]!.runs[peer] != run else { return false }
      channels[channel]!.runs[peer] = run
      return true
    }
  }

  /// What is another since the last time.
  func refresh(
    _ channel: ChannelID, isLoaded: Bool = false, counts: (EntryFacts) -> Bool
  ) -> [AttributeState.Change] {
    channels.withLock { channels in
      guard let state = channels[channel].map({ Self.state($0, counts) }) else { return [] }
      if isLoaded, !channels[channel]!.isLoaded {
        channels[channel]!.isLoaded = true
        channels[channel]!.shown = state
        return []
      }
      guard channels[channel]!.isLoaded else { return [] }
      defer { channels[channel]!.shown = state }
      return state.changes(since: channels[channel]!.shown)
    }
  }

  func state(of channel: ChannelID, counts: (EntryFacts) -> Bool) -> AttributeState {
    channels.withLock { $0[channel].map { Self.state($0, counts) } ?? AttributeState() }
  }

  private static func state(_ channel: Channel, _ counts: (EntryFacts) -> Bool) -> AttributeState {
    channel.book.state(counts: counts) { channel.runs[$0] }
  }
}

extension Hub {
  /// What a member says in an owned channel without the right, without the token that is asked for, or after having
  /// signed two things under one number, counts for nothing.
  func doesCount(_ facts: EntryFacts, in channel: ChannelID) -> Bool {
    let order = facts.order
    if rulebook.isVoid(facts, in: channel) { return false }
    let key = LogKey(author: order.author, log: order.log)
    if state.withLock({ $0.suspicions[channel]?.isVoid(key, order.number) == true }) { return false }
    let moment = Timestamp(milliseconds: Int64(clamping: facts.timestamp))
    if case .failure = tokens.word(for: order.author, in: channel, at: moment) { return false }
    return true
  }

  func heardAttributes(_ entry: Entry, in channel: ChannelID) {
    let acts = AttributeAct.acts(of: entry)
    guard !acts.isEmpty else { return }
    let released = attributes.take(acts, in: channel) { self.doesCount($0, in: channel) }
    release(released, in: channel)
    attributesMayHaveChanged(in: channel)
  }

  /// The store need not keep them beyond their time any more.
  func release(_ orders: Set<OrderKey>, in channel: ChannelID) {
    for order in orders {
      keep(.release(channel, LogKey(author: order.author, log: order.log), order.number))
    }
  }

  func attributesMayHaveChanged(in channel: ChannelID) {
    let changes = attributes.refresh(channel) { self.doesCount($0, in: channel) }
    guard !changes.isEmpty, let name = state.withLock({ $0.channels[channel]?.name }) else { return }
    emit(changes.map { .attributeChanged(name, AttributeChange($0)) })
  }
}
