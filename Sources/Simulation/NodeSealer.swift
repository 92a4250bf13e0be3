import ParleySealing
import ParleyVocabulary
import ParleyWire

/// Who seals in a simulated network.
public enum SimulatedSealing: Sendable {
  /// Short hashes: for thousands of seeds.
  case fake
  /// Sealing itself: Ed25519, XChaCha20-Poly1305, and Noise in every session. Three times
  /// slower, and other PeerIDs, so a seed does not tell the same story.
  case real
}

/// What Sealing does for one node: signs, seals, and holds what it is known by.
struct NodeSealer {
  let peer: PeerID
  /// Nil in a network that only pretends.
  let identity: Identity?

  init(_ sealing: SimulatedSealing, seed: UInt64, index: Int) {
    let fake = FakeSealer.peer(seed: seed, index: index)
    switch sealing {
    case .fake:
      identity = nil
      peer = fake
    case .real:
      let real = Identity(seed: fake.bytes)
      identity = real
      peer = real.peerID
    }
  }

  func sign(_ object: [UInt8], context: String, _ channel: ChannelID, _ instance: Instance) -> [UInt8] {
    identity?.sign(context: context, channel: channel, log: instance, object: object)
      ?? FakeSealer.sign(object, context: context, channel, instance, by: peer)
  }

  func verify(
    _ signature: [UInt8], _ object: [UInt8], context: String, _ channel: ChannelID, _ instance: Instance,
    by author: PeerID
  ) -> Bool {
    identity == nil
      ? FakeSealer.verify(signature, object, context: context, channel, instance, by: author)
      : Signature.verify(
        signature, by: author, context: context, channel: channel, log: instance, object: object)
  }
}

/// What two nodes have agreed on in a session; in a network that only pretends, its number.
struct SessionKeys {
  let number: UInt64
  /// By side: the dialler's, the accepter's.
  var established: [EstablishedSession] = []

  func proof(_ channel: ChannelID, _ keys: ChannelKeys?, isInitiator: Bool) -> Bytes32 {
    guard let keys, let h = established.first?.handshakeHash else {
      return FakeSealer.proof(channel, session: number, isInitiator: isInitiator)
    }
    return Bytes32(SessionProof.make(keys, role: isInitiator ? .initiator : .responder, h: h))!
  }

  /// Both sides of a real handshake, one message after the other.
  static func agree(
    _ number: UInt64, _ dialler: Identity, _ accepter: Identity, _ instances: (Instance, Instance),
    offered: [ChannelKeys], open: [ChannelKeys]
  ) throws -> SessionKeys {
    var sides = [
      SessionHandshake(initiator: .chat, channels: offered, identity: dialler, instance: instances.0),
      SessionHandshake(responder: open, identity: accepter, instance: instances.1),
    ]
    var established: [EstablishedSession?] = [nil, nil]
    var bytes = sides[0].start()
    var side = 1
    while established.contains(where: { $0 == nil }) {
      let answer = try sides[side].receive(bytes)
      established[side] = answer.established ?? established[side]
      bytes = answer.send
      side = 1 - side
    }
    return SessionKeys(number: number, established: established.map { $0! })
  }
}
