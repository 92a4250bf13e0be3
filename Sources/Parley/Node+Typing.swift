import ParleyMachines
import ParleyVocabulary

extension Node {
  /// Says that the user is writing in a channel, or has stopped. May be called with every key: it is sent at most once
  /// in 3 s, and counts with others for 8 s or until a message comes. Kept by nobody; who is not there learns nothing.
  /// Throws `.notInChannel`.
  public func setTyping(_ isTyping: Bool, in name: ChannelName) async throws(ParleyError) {
    _ = try await running()
    let joined = try channel(name)
    // Nobody would be shown it.
    let now = UInt64(clamping: Timestamp.now.milliseconds)
    if hub.rulebook.governance(of: joined.id)?.troubleSaying(peerID, isHidden: false, at: now) != nil { return }
    switchboard.membership.post(.typed(joined.id, isTyping: isTyping))
  }
}

extension Hub {
  /// Not of whoever is blocked or has no right to speak.
  func typing(_ channel: ChannelID, _ peer: PeerID, _ isTyping: Bool) {
    let now = UInt64(clamping: Timestamp.now.milliseconds)
    let isHeard =
      !people.isBlocked(peer)
      && rulebook.governance(of: channel)?.troubleSaying(peer, isHidden: false, at: now) == nil
    let name = state.withLock { state -> ChannelName? in
      guard let name = state.channels[channel]?.name else { return nil }
      let isNews =
        isTyping
        ? isHeard && state.typing[channel, default: []].insert(peer).inserted
        : state.typing[channel]?.remove(peer) != nil
      return isNews ? name : nil
    }
    if let name { emit(.typing(name, peer, isTyping: isTyping)) }
  }
}
