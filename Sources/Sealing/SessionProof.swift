import CSodium
import ParleyHashing
import ParleyVocabulary

/// The two ends of a session.
package enum SessionRole: UInt8, Sendable {
  case initiator = 0
  case responder = 1

  package var other: SessionRole { self == .initiator ? .responder : .initiator }
}

/// What a session is for; media has connections of its own so that chat never waits behind it.
package enum SessionPurpose: UInt8, Sendable {
  case chat = 0
  case media = 1
}

/// Shows in a session that one end knows a channel's secret:
/// BLAKE2b-256 under the proof key of `parley/1/proof` ‖ role (1: 0 initiator, 1 responder) ‖ ChannelID (32) ‖ h (32),
/// where h is the session's handshake hash and the role is of who proves. Channels joined later are proved alike.
package enum SessionProof {
  package static let byteCount = 32

  /// By the newest generation.
  package static func make(_ keys: ChannelKeys, role: SessionRole, h: [UInt8]) -> [UInt8] {
    make(keys.newest, of: keys.id, role: role, h: h)
  }

  package static func make(
    _ generation: ChannelGeneration, of channel: ChannelID, role: SessionRole, h: [UInt8]
  ) -> [UInt8] {
    generation.withProofKey { key in
      var stream = BLAKE2b.Stream(byteCount: byteCount, keyBytes: key)
      stream.update(Array("parley/1/proof".utf8))
      stream.update([role.rawValue])
      stream.update(channel.bytes)
      stream.update(h)
      return stream.finish()
    }
  }

  /// By the newest generation.
  package static func verify(_ proof: [UInt8], _ keys: ChannelKeys, role: SessionRole, h: [UInt8]) -> Bool {
    isEqual(proof, make(keys, role: role, h: h))
  }

  /// Takes the same time wherever the two differ.
  static func isEqual(_ a: some Collection<UInt8>, _ b: [UInt8]) -> Bool {
    guard a.count == b.count else { return false }
    return sodium_memcmp(Array(a), b, b.count) == 0
  }
}

/// Who speaks in a session: PeerID (32) ‖ instance (8) ‖ Ed25519 signature (64) over
/// `parley/1/id` ‖ role (1) ‖ h (32). The instance needs no signature: only who made h can have sealed it.
struct SessionIdentity {
  static let byteCount = 32 + 8 + Signature.byteCount

  let peer: PeerID
  let instance: Instance

  static func make(_ identity: Identity, instance: Instance, role: SessionRole, h: [UInt8]) -> [UInt8] {
    identity.peerID.bytes + instance.bytes + identity.sign(statement(role: role, h: h))
  }

  /// Nil when the signature is not that of the PeerID.
  init?(_ bytes: ArraySlice<UInt8>, role: SessionRole, h: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    guard let peer = PeerID(bytes: bytes.prefix(32)), let instance = Instance(bytes: bytes.dropFirst(32).prefix(8)),
      Signature.verify(Array(bytes.suffix(Signature.byteCount)), by: peer, message: Self.statement(role: role, h: h))
    else { return nil }
    self.peer = peer
    self.instance = instance
  }

  private static func statement(role: SessionRole, h: [UInt8]) -> [UInt8] {
    Array("parley/1/id".utf8) + [role.rawValue] + h
  }
}
