import ParleyVocabulary

/// Who came first among those of whom nothing is known but that somebody signed with their key. Finding the one that
/// makes room costs the same however many there are: looking at all, for each of a hundred thousand, takes minutes.
struct StrangerQueue: Equatable, Sendable {
  private var peers: [PeerID] = []
  private var start = 0
  /// Calls that are spared after all were looked at in vain.
  private var pauseCount = 0
  private static let pause = 1_000

  mutating func add(_ peer: PeerID) { peers.append(peer) }

  /// The first that is a stranger still. `all`: where to look when none that was added is.
  mutating func next(isStranger: (PeerID) -> Bool, all: () -> [PeerID]) -> PeerID? {
    if let found = take(isStranger) { return found }
    if pauseCount > 0 {
      pauseCount -= 1
      return nil
    }
    peers = all()
    start = 0
    let found = take(isStranger)
    if found == nil { pauseCount = Self.pause }
    return found
  }

  private mutating func take(_ isStranger: (PeerID) -> Bool) -> PeerID? {
    defer {
      if start * 2 > peers.count {
        peers.removeFirst(start)
        start = 0
      }
    }
    while start < peers.count {
      let peer = peers[start]
      start += 1
      if isStranger(peer) { return peer }
    }
    return nil
  }
}
