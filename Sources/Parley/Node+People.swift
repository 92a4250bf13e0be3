import ParleyActors
import ParleySealing
import ParleyStore
import ParleyVocabulary

/// Who is who: comparing codes, and looking away.
extension Node {
  /// What to compare with somebody, named as in `tell`: over the phone, face to face, or by a QR code; not through the
  /// channel. Throws `.noSuchPeer`, `.ambiguousPeer`.
  public func verification(of peer: String) async throws(ParleyError) -> Verification {
    let engine = try await running()
    let found = try await find(peer, engine, isBlockedToo: true)
    return verification(found)
  }

  private func verification(_ found: PeerSummary) -> Verification {
    Verification(
      peer: found.peer, displayName: hub.people.name(of: found.peer) ?? found.displayName,
      code: SafetyCode.groups(peerID, found.peer).joined(separator: " "),
      qrText: Self.qrHeader + peerID.text + "/" + found.peer.text,
      isVerified: hub.people.contact(found.peer).verifiedName != nil)
  }

  private static let qrHeader = "parley://verify/"

  /// Remembers that the user compared the code of `verification(of:)` with this person and it was the same there: from
  /// now on, whoever appears under a name like theirs with another key is announced (`NodeEvent.impostor`) and marked.
  /// `scanned`: the text of the QR code on their screen, which is compared here. Throws `.noSuchPeer`,
  /// `.ambiguousPeer`, `.notVerified` when the scanned text is of other keys, and `.profileDamaged`; nothing is
  /// remembered then.
  public func verify(_ peer: String, scanned: String? = nil) async throws(ParleyError) -> Verification {
    let engine = try await running()
    let found = try await find(peer, engine, isBlockedToo: true)
    if let scanned { try check(scanned, found) }
    var contact = hub.people.contact(found.peer)
    contact.verifiedName = hub.people.name(of: found.peer) ?? found.displayName
    contact.verifiedAt = Int64(clamping: SystemClock.wallMilliseconds())
    try await keep(contact, engine)
    await announceImpostors(of: found.peer, engine)
    return verification(found)
  }

  private func check(_ scanned: String, _ found: PeerSummary) throws(ParleyError) {
    let parts = scanned.hasPrefix(Self.qrHeader) ? scanned.dropFirst(Self.qrHeader.count).split(separator: "/") : []
    guard parts.count == 2, let theirs = PeerID(text: String(parts[0])), let seen = PeerID(text: String(parts[1]))
    else { throw .notVerified("the scanned text is not that of a Parley verification: scan the code on their screen") }
    guard theirs == found.peer else {
      throw .notVerified(
        "the scanned code is \(theirs.fingerprint)'s, not \(found.peer.fingerprint)'s: the one you see in the channel "
          + "is not the one whose screen you scanned")
    }
    guard seen == peerID else {
      throw .notVerified(
        "they see \(seen.fingerprint) in your place, and you are \(peerID.fingerprint): somebody else poses as you, "
          + "or they chose another person")
    }
  }

  /// Forgets that somebody was verified. Throws as `verification(of:)`, and `.profileDamaged`.
  public func unverify(_ peer: String) async throws(ParleyError) -> Verification {
    let engine = try await running()
    let found = try await find(peer, engine, isBlockedToo: true)
    var contact = hub.people.contact(found.peer)
    contact.verifiedName = nil
    contact.verifiedAt = 0
    try await keep(contact, engine)
    return verification(found)
  }

  /// From now on nothing of this person is shown here: no messages, hands, files or messages from peer to peer; and
  /// nothing is downloaded from them. On this node only; they are not told. What they said stays on the disk, and is
  /// shown again after `unblock`. Throws as `verification(of:)`, and `.profileDamaged`.
  public func block(_ peer: String) async throws(ParleyError) -> Contact { try await setBlocked(peer, true) }

  /// Ends `block`.
  public func unblock(_ peer: String) async throws(ParleyError) -> Contact { try await setBlocked(peer, false) }

  private func setBlocked(_ peer: String, _ isBlocked: Bool) async throws(ParleyError) -> Contact {
    let engine = try await running()
    let found = try await find(peer, engine, isBlockedToo: true)
    var contact = hub.people.contact(found.peer)
    contact.isBlocked = isBlocked
    try await keep(contact, engine)
    await engine.media.block(hub.people.blocked)
    // Their hand comes or goes.
    for joined in hub.channels {
      for view in await engine.membership.members(of: joined.id) where view.peer == found.peer {
        hub.emit(.memberChanged(joined.name, hub.value(view, in: joined.id)))
      }
    }
    return value(contact, found.displayName)
  }

  /// Whom the user verified or blocked, by PeerID. Throws `.stopped`.
  public func contacts() async throws(ParleyError) -> [Contact] {
    _ = try await running()
    return hub.people.contacts.map { value($0, hub.people.name(of: $0.peer) ?? "") }
  }

  private func value(_ contact: StoredContact, _ name: String) -> Contact {
    Contact(
      peer: contact.peer, displayName: contact.verifiedName ?? name,
      verifiedAt: contact.verifiedName == nil ? nil : Timestamp(milliseconds: contact.verifiedAt),
      isBlocked: contact.isBlocked)
  }

  /// On the disk first.
  private func keep(_ contact: StoredContact, _ engine: Engine) async throws(ParleyError) {
    do { try await engine.store.apply([.contact(contact)]) } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
    hub.people.set(contact)
  }

  /// Those who are there already under the name of somebody who was just verified.
  private func announceImpostors(of peer: PeerID, _ engine: Engine) async {
    for joined in hub.channels {
      for view in await engine.membership.members(of: joined.id) {
        let member = hub.value(view, in: joined.id)
        guard member.recognition.likeness == .verified(peer) else { continue }
        hub.emit(.impostor(joined.name, member, of: peer))
      }
    }
  }
}
