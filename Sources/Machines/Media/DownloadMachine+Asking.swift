import ParleyVocabulary
import ParleyWire

// What may be asked for, and what is asked for no more.
extension DownloadMachine {
  mutating func allowed(_ byteCount: Int) {
    allowance = (allowance ?? 0) + byteCount
    pumpAll()
  }

  mutating func cancelAll(_ peer: PeerID, listening: Bool = false) {
    if listening {
      for number in sources[peer]!.listening.keys.sorted() { effects.append(.cancel(peer, number)) }
      sources[peer]!.forgetListening()
    }
    for number in sources[peer]!.pending.keys.sorted() { effects.append(.cancel(peer, number)) }
    sources[peer]!.cancelledCount += sources[peer]!.pending.count
    sources[peer]!.pending = [:]
    blocksInFlight -= sources[peer]!.blocksInFlight
    sources[peer]!.blocksInFlight = 0
  }
}
