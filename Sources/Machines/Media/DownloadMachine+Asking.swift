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
    for number in sources[peer]!.pending.keys.sorted() {
      let pending = sources[peer]!.pending[number]!
      if case .blocks(let run) = pending {
        effects.append(.cancel(peer, number, count: run.count))
      } else {
        effects.append(.cancel(peer, number))
      }
      sources[peer]!.cancelledCount += pending.answerCount
    }
    sources[peer]!.pending = [:]
    blocksInFlight -= sources[peer]!.blocksInFlight
    sources[peer]!.blocksInFlight = 0
  }
}
