import ParleyStore
import ParleyVocabulary
import Synchronization

/// What the user wishes of channels and people, by what the store keeps. Asked from any thread.
final class Wishes: Sendable {
  private struct State {
    var channels: [ChannelID: ChannelSettings] = [:]
    var peers: [PeerID: PeerSettings] = [:]
  }

  private let state = Mutex(State())

  func restore(_ settings: [StoredSetting]) {
    state.withLock { state in
      for setting in settings {
        guard let value = setting.value else { continue }
        switch setting.subject {
        case .channel(let channel): state.channels[channel, default: ChannelSettings()].take(setting.name, value)
        case .peer(let peer): state.peers[peer, default: PeerSettings()].take(setting.name, value)
        }
      }
    }
  }

  func settings(of channel: ChannelID) -> ChannelSettings {
    state.withLock { $0.channels[channel] ?? ChannelSettings() }
  }

  func settings(of peer: PeerID) -> PeerSettings { state.withLock { $0.peers[peer] ?? PeerSettings() } }

  func set(_ settings: ChannelSettings, of channel: ChannelID) { state.withLock { $0.channels[channel] = settings } }
  func set(_ settings: PeerSettings, of peer: PeerID) { state.withLock { $0.peers[peer] = settings } }

  /// Nobody is to be notified of what this person says there (nil: to this node alone).
  func isMuted(_ sender: PeerID, in channel: ChannelID?) -> Bool {
    state.withLock { state in
      state.peers[sender]?.isMuted == true || channel.flatMap { state.channels[$0]?.isMuted } == true
    }
  }

  /// Whether subscribers get what this node itself says in a channel, or to one person.
  func includesOwn(in channel: ChannelID?, to peer: PeerID?) -> Bool {
    state.withLock { state in
      if let channel { return state.channels[channel]?.includesOwnMessages ?? true }
      return peer.flatMap { state.peers[$0]?.includesOwnMessages } ?? true
    }
  }
}

extension Hub {
  /// Whether subscribers get it: all that others say, and what this node says itself if the user wants that.
  func isEchoed(_ message: Message, _ state: State) -> Bool {
    guard message.sender == me else { return true }
    let channel = message.channel.flatMap { name in state.channels.values.first { $0.name == name }?.id }
    return wishes.includesOwn(in: channel, to: message.peer)
  }

  func echoed(_ events: [NodeEvent]) -> [NodeEvent] {
    state.withLock { state in
      events.filter { event in if case .message(let message) = event { isEchoed(message, state) } else { true } }
    }
  }
}
