import ParleyStore
import ParleyVocabulary
import Synchronization

/// Whom the user verified and blocked, and whose names look alike. Called from any thread; never blocks for long.
final class People: Sendable {
  private struct Named {
    let name: String
    let skeleton: Skeleton
  }

  private struct Names {
    var byPeer: [PeerID: Named] = [:]
    var byKey: [String: Set<PeerID>] = [:]

    mutating func set(_ peer: PeerID, _ named: Named) {
      if let old = byPeer.updateValue(named, forKey: peer) {
        for key in old.skeleton.keys {
          byKey[key]?.remove(peer)
          if byKey[key]?.isEmpty == true { byKey[key] = nil }
        }
      }
      for key in named.skeleton.keys { byKey[key, default: []].insert(peer) }
    }
  }

  private struct State {
    var contacts: [PeerID: StoredContact] = [:]
    /// Who was verified under a name with this key.
    var verified: [String: Set<PeerID>] = [:]
    var names: [ChannelID: Names] = [:]
    /// Of names that were in use before, or in other channels.
    var skeletons: [String: Skeleton] = [:]
  }

  private static let likeCountMax = 8
  private static let skeletonCountMax = 2_048

  private let state = Mutex(State())

  // MARK: What the user decided

  func restore(_ contacts: [StoredContact]) { for contact in contacts { set(contact) } }

  func set(_ contact: StoredContact) {
    state.withLock { state in
      if let name = state.contacts[contact.peer]?.verifiedName {
        for key in Skeleton(name).keys { state.verified[key]?.remove(contact.peer) }
      }
      let isKept = contact.verifiedName != nil || contact.isBlocked
      state.contacts[contact.peer] = isKept ? contact : nil
      guard let name = contact.verifiedName, !name.isEmpty else { return }
      for key in Skeleton(name).keys { state.verified[key, default: []].insert(contact.peer) }
    }
  }

  func contact(_ peer: PeerID) -> StoredContact { state.withLock { $0.contacts[peer] } ?? StoredContact(peer: peer) }
  var contacts: [StoredContact] { state.withLock { $0.contacts.values.sorted { $0.peer < $1.peer } } }
  func isBlocked(_ peer: PeerID) -> Bool { state.withLock { $0.contacts[peer]?.isBlocked } ?? false }
  var blocked: Set<PeerID> { state.withLock { Set($0.contacts.values.filter(\.isBlocked).map(\.peer)) } }

  // MARK: Names

  /// A member's name now. True when it is another than before.
  @discardableResult func note(_ peer: PeerID, named name: String, in channel: ChannelID) -> Bool {
    state.withLock { state in
      guard state.names[channel]?.byPeer[peer]?.name != name else { return false }
      state.names[channel, default: Names()].set(peer, Named(name: name, skeleton: Skeleton(name)))
      return true
    }
  }

  func forget(_ channel: ChannelID) { state.withLock { $0.names[channel] = nil } }

  /// The name by which somebody is known here: that of their verification, else one they have in a channel now.
  func name(of peer: PeerID) -> String? {
    state.withLock { state in
      state.contacts[peer]?.verifiedName ?? state.names.values.lazy.compactMap { $0.byPeer[peer]?.name }.first
    }
  }

  /// `channel`: nil for what is said from peer to peer.
  func recognition(of peer: PeerID, named name: String, in channel: ChannelID?) -> Recognition {
    state.withLock { state in
      var recognition = Recognition()
      if let contact = state.contacts[peer] {
        recognition.isVerified = contact.verifiedName != nil
        recognition.isBlocked = contact.isBlocked
      }
      let names = channel.flatMap { state.names[$0] }
      let known = names?.byPeer[peer]
      let skeleton = known?.name == name ? known!.skeleton : Self.skeleton(of: name, &state)
      var alike: Set<PeerID> = []
      for key in skeleton.keys {
        if let others = state.verified[key] { alike.formUnion(others) }
        if let others = names?.byKey[key] { alike.formUnion(others) }
      }
      alike.remove(peer)
      guard !alike.isEmpty else { return recognition }
      let verified = alike.filter { state.contacts[$0]?.verifiedName != nil }.min()
      recognition.likeness =
        if let verified, !recognition.isVerified { .verified(verified) } else {
          .others(Array(alike.sorted().prefix(Self.likeCountMax)))
        }
      return recognition
    }
  }

  private static func skeleton(of name: String, _ state: inout State) -> Skeleton {
    if let known = state.skeletons[name] { return known }
    if state.skeletons.count >= skeletonCountMax { state.skeletons.removeAll(keepingCapacity: true) }
    let skeleton = Skeleton(name)
    state.skeletons[name] = skeleton
    return skeleton
  }
}
