import ParleyActors
import ParleyVocabulary

// Who has which of our messages.
extension Hub {
  func delivered(_ channel: ChannelID, _ log: Instance, after: UInt64, _ through: UInt64, _ peer: PeerID) {
    let (name, news) = state.withLock { state -> (ChannelName?, [MessageID]) in
      let before = max(state.deliveries[channel]?[log]?[peer] ?? 0, after)
      guard through > before else { return (nil, []) }
      state.deliveries[channel, default: [:]][log, default: [:]][peer] = through
      guard !state.subscribers.isEmpty, let own = state.own[channel] else { return (nil, []) }
      let from = max(before, through - min(through, Self.ownEntryCountMax)) + 1
      return (state.channels[channel]?.name, (from...through).flatMap { own[$0] ?? [] })
    }
    guard let name else { return }
    emit(news.map { .delivered(name, $0, to: peer) })
  }

  func restoreDeliveries(_ deliveries: [LogDelivery], in channel: ChannelID) {
    state.withLock { state in
      for delivery in deliveries {
        let known = state.deliveries[channel]?[delivery.log]?[delivery.peer] ?? 0
        state.deliveries[channel, default: [:]][delivery.log, default: [:]][delivery.peer] = max(
          known, delivery.number)
      }
    }
  }

  func deliveredTo(_ channel: ChannelID, _ key: LogKey, _ number: UInt64) -> [PeerID] {
    guard key.author == me else { return [] }
    return state.withLock { state in
      (state.deliveries[channel]?[key.log] ?? [:]).filter { $0.value >= number }.keys.sorted()
    }
  }

  func isDelivered(_ id: MessageID) -> Bool { state.withLock { $0.deliveredPeerMessages.contains(id) } }
}
