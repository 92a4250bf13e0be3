import ParleyVocabulary
import ParleyWire

extension Governance {
  /// What links need to know. Only who is removed or banned is refused: others may be members by acts that are still on
  /// their way.
  package var trust: ChannelTrust {
    var trust = ChannelTrust(rotators: [])
    for peer in peers.union([owner]) {
      switch standing(of: peer) {
      case .owner, .admin: trust.rotators.insert(peer)
      case .member, .muted: break
      case .removed: trust.refused[peer] = .removed
      case .banned: trust.refused[peer] = .banned
      case .notAdmitted: continue
      }
      if trust.refused[peer] == nil { trust.members.insert(peer) }
    }
    for (number, hashes) in statedGenerations {
      for hash in hashes { trust.confirmed.insert(GenerationID(number: number, hash: hash.value)) }
    }
    return trust
  }
}
