import ParleyVocabulary

/// How often others may connect. Nothing is known of who dials but the address; of who shook hands, the identity.
package struct ConnectionMeters: Sendable {
  private var connections: Allowances<[UInt8]>
  private var handshakes: Allowances<PeerID>

  package init(_ limits: MemberLimits) {
    connections = Allowances(limits.connections)
    handshakes = Allowances(limits.handshakes)
  }

  package mutating func mayDial(_ from: Address, at now: Instant) -> Bool { connections.take(from.host, at: now) }
  package mutating func mayShakeHands(_ peer: PeerID, at now: Instant) -> Bool { handshakes.take(peer, at: now) }
}
