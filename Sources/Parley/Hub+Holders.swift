import ParleyVocabulary

/// Who said to have which media.
extension Hub {
  /// Media whose holders are remembered; asking again finds those of others.
  private static let holdersMax = 4_096

  func noteHolder(_ media: MediaID, _ peer: PeerID) {
    state.withLock { state in
      if state.holders[media] == nil, state.holders.count >= Self.holdersMax, let other = state.holders.keys.first {
        state.holders[other] = nil
      }
      state.holders[media, default: []].insert(peer)
    }
  }

  func holders(of media: MediaID) -> Set<PeerID> { state.withLock { $0.holders[media] ?? [] } }
  func forgetHolders(of media: [MediaID]) { state.withLock { for id in media { $0.holders[id] = nil } } }
}
