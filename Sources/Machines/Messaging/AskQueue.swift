import ParleyVocabulary
import ParleyWire

/// What others ask for: a few answers are read from the disk at once, one for each who asks; the rest wait in turn, so
/// that memory for answers stays bounded however many ask.
struct AskQueue: Sendable {
  struct Ask: Sendable {
    let peer: PeerID
    let channel: ChannelID
    let request: UInt64
    let ranges: [LogRange]
  }

  private var loading: [LoadID: Ask] = [:]
  private var waiting: [Ask] = []
  private var nextLoad: UInt64 = 1

  /// What is too much is let go: who asked asks again, or asks another.
  mutating func add(_ ask: Ask) {
    guard waiting.count < MessagingRule.asksMax,
      waiting.count(where: { $0.peer == ask.peer }) < MessagingRule.asksPerPeerMax
    else { return }
    waiting.append(ask)
  }

  /// The next that may be read now.
  mutating func start() -> (LoadID, Ask)? {
    guard loading.count < MessagingRule.loadsMax,
      let index = waiting.firstIndex(where: { ask in !loading.values.contains { $0.peer == ask.peer } })
    else { return nil }
    let ask = waiting.remove(at: index)
    // Whoever has just been served waits behind the others.
    waiting = waiting.filter { $0.peer != ask.peer } + waiting.filter { $0.peer == ask.peer }
    let id = LoadID(nextLoad)
    nextLoad += 1
    loading[id] = ask
    return (id, ask)
  }

  mutating func finish(_ id: LoadID) -> Ask? { loading.removeValue(forKey: id) }

  /// The peer's session is gone, and with it what it asked for.
  mutating func forget(_ peer: PeerID) { waiting.removeAll { $0.peer == peer } }
}
