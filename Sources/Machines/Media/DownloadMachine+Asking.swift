import ParleyVocabulary
import ParleyWire

// What may be asked for, and what is asked for no more.
extension DownloadMachine {
  /// Nothing is on the way, and nobody who is asked has anything of what is missing.
  package var lacksSource: Bool {
    guard layout != nil, missing.count > 0, blocksInFlight == 0, inHand.isEmpty else { return false }
    return sources.values.allSatisfy { source in
      guard source.isHoldingKnown, !source.holdsAll else { return false }
      var hasSome = false
      missing.visit(offered: source.part) { _ in
        hasSome = true
        return false
      }
      return !hasSome
    }
  }

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
