import ParleyMachines
import ParleyVocabulary

/// What was noticed of members in one run: who did too much of what, and who signed two things under one number.
struct Suspicions: Sendable {
  private static let peersMax = 10_000
  private var excesses: [PeerID: Set<MemberExcess>] = [:]
  /// From which number on a log says nothing any more.
  private var voidFrom: [LogKey: UInt64] = [:]

  /// False when it was known.
  mutating func note(_ excess: MemberExcess, of peer: PeerID) -> Bool {
    guard excesses[peer] != nil || excesses.count < Self.peersMax else { return true }
    return excesses[peer, default: []].insert(excess).inserted
  }

  mutating func note(_ proof: EquivocationProof) {
    guard voidFrom[proof.key] != nil || voidFrom.count < Self.peersMax else { return }
    voidFrom[proof.key] = min(proof.number, voidFrom[proof.key] ?? proof.number)
  }

  func excesses(of peer: PeerID) -> [MemberExcess] {
    MemberExcess.allCases.filter { excesses[peer]?.contains($0) == true }
  }

  func isVoid(_ key: LogKey, _ number: UInt64) -> Bool { voidFrom[key].map { number >= $0 } ?? false }
}

extension Hub {
  /// Told each time it is reported (once a minute), kept for the list of members.
  func overLimit(_ channel: ChannelID, _ peer: PeerID, _ excess: MemberExcess) {
    guard let name = noted(excess, of: peer, in: channel) else { return }
    emit(.memberOverLimit(name, peer, excess))
  }
}
