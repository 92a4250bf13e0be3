import ParleyVocabulary

/// Who says that an instance is its own. Any member can sign a presence under any instance, so that one claims it
/// proves nothing of the others: what is sealed in it is tried for each, and who was right stands first.
struct Claims: Equatable, Sendable {
  /// Of one instance. Beyond it the one goes that was right least recently.
  static let countMax = 8

  private var claimants: [Instance: [PeerID]] = [:]

  /// Whoever was right last, or was first to claim it.
  subscript(_ instance: Instance) -> PeerID? { claimants[instance]?.first }

  /// Instances that anybody claims.
  var count: Int { claimants.count }

  func all(_ instance: Instance) -> [PeerID] { claimants[instance] ?? [] }

  mutating func add(_ peer: PeerID, _ instance: Instance) {
    var known = claimants[instance] ?? []
    guard !known.contains(peer) else { return }
    if known.count == Self.countMax { known.removeLast() }
    known.append(peer)
    claimants[instance] = known
  }

  /// Something under this instance that only this peer could seal, or its own session.
  mutating func prove(_ peer: PeerID, _ instance: Instance) {
    guard claimants[instance]?.first != peer else { return }
    claimants[instance] = [peer] + (claimants[instance] ?? []).filter { $0 != peer }.prefix(Self.countMax - 1)
  }

  mutating func remove(_ peer: PeerID, _ instance: Instance) {
    claimants[instance]?.removeAll { $0 == peer }
    if claimants[instance]?.isEmpty == true { claimants[instance] = nil }
  }
}
