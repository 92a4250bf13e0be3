import ParleyVocabulary
import ParleyWire

/// Names a session within a node. Dials are numbered by the machine (even), accepted ones by whoever accepts (odd).
package struct LinkID: Hashable, Sendable {
  package let value: UInt64
  package init(_ value: UInt64) { self.value = value }
}

/// A frame to be sent; presence and live objects are signed on their way out.
package enum OutboundFrame: Equatable, Sendable {
  case presence(Presence)
  case live(LiveObject)
  case plain(DatagramFrame)
}

/// A signed live thing whose signature is to be checked.
package enum LiveClaim: Equatable, Sendable {
  case presence(Presence, Signed)
  case live(LiveObject, Signed)
}

package enum LinksEvent: Equatable, Sendable {
  case channelOpened(ChannelID)
  case channelClosed(ChannelID)
  /// Opened under the channel's datagram key.
  /// Of an owned channel, under which of its generations.
  case datagramOpened(ChannelID, Instance, from: Address, [DatagramFrame], under: GenerationID? = nil)
  case claimVerified(ChannelID, LiveClaim, from: Address?, under: GenerationID? = nil)
  case directOpened(ChannelID, PeerID, Instance, from: Address, DirectMessage)

  case sessionOpened(LinkID, SessionFacts)
  /// Somebody answered, or dialled, with our own key, in this run or another.
  case metOurselves(Instance)
  case sessionClosed(LinkID, reason: String)
  case sessionMessage(LinkID, SessionMessage)
  /// A `prove` was checked: these channels are now shared in that session.
  case channelsProven(LinkID, [ChannelID], generations: [ChannelID: GenerationID] = [:])

  // Owned channels.
  /// What is known of this channel's secrets, before `channelOpened`; the first is the one to send under, so old.
  case generationsRestored(ChannelID, founder: PeerID, [KnownGeneration], age: Span = .seconds(0))
  /// A generation's signature and secret were checked, or it was drawn here (`from` nil); it can be received under.
  case generationAdded(ChannelID, KnownGeneration, from: PeerID?)
  /// Who may do what, by the channel's acts.
  case trustChanged(ChannelID, ChannelTrust)
  /// Make a new generation. Those named get it not, and nothing else: they are being removed, and the acts that say so
  /// may not have been folded yet.
  case rotate(ChannelID, refusing: [PeerID: ChannelRefusal] = [:])

  // From the other machines.
  case multicast(ChannelID, [OutboundFrame])
  case unicast(ChannelID, PeerID, [OutboundFrame], direct: [DirectMessage.Part])
  /// Sent in the session with that peer, which is dialled when there is none.
  case send(PeerID, SessionMessage)
  /// Sent only where a session stands already.
  case sendIfOpen(PeerID, SessionMessage)
  /// Keep a session to this peer (our successor), instead of the one named before.
  case keep(PeerID?)
  /// Is it there? Answered to membership by `dialSucceeded` or `dialFailed`.
  case check(PeerID)
  /// A host and port given by a person: a node there is dialled and told of our presence.
  case introduce(Address)
  case peerIsGone(PeerID)
  /// Our addresses are others than before, or we slept: what stands may be dead.
  case networkChanged
  case woke
}

/// What a handshake established.
package struct SessionFacts: Equatable, Sendable {
  package let peer: PeerID
  package let instance: Instance
  package let channels: [ChannelID]
  package let isInitiator: Bool
  /// Where the peer is, as TCP sees it.
  package let remote: Address
  /// By which generations owned channels were proved.
  package let generations: [ChannelID: GenerationID]
  package init(
    peer: PeerID, instance: Instance, channels: [ChannelID], isInitiator: Bool, remote: Address,
    generations: [ChannelID: GenerationID] = [:]
  ) {
    self.generations = generations
    self.peer = peer
    self.instance = instance
    self.channels = channels
    self.isInitiator = isInitiator
    self.remote = remote
  }
}

package enum LinksEffect: Equatable, Sendable {
  case multicast(ChannelID, [OutboundFrame])
  case unicast(ChannelID, to: Address, [OutboundFrame], direct: DirectFor?)
  case verify(ChannelID, LiveClaim, from: Address?, under: GenerationID? = nil)
  case openDirect(ChannelID, [UInt8], from: Address, author: PeerID, Instance)
  case dial(LinkID, Address, expecting: PeerID?, channels: [ChannelID])
  case sendFrame(LinkID, SessionMessage)
  /// Presence or a live object, signed on its way, in a session.
  case sendSigned(LinkID, ChannelID, OutboundFrame)
  /// Prove these channels in a session that stands.
  case prove(LinkID, [ChannelID])
  case close(LinkID, afterWrites: Bool)
  /// For people: this member does more than a member may.
  case report(ChannelID, PeerID, MemberExcess)
  case wake(at: Instant)
  case tell(NodeEvent)

  // Owned channels.
  /// Draw a secret and state it with this number; comes back as `generationAdded`.
  case drawGeneration(ChannelID, number: UInt64, excluding: [PeerID] = [])
  /// Check signature and secret; comes back as `generationAdded`.
  case checkGeneration(ChannelID, Signed, secret: Bytes32, from: PeerID)
  /// Send, and prove the channel, under this one from now on, and keep them all on the disk.
  case sendUnder(ChannelID, GenerationID)
  /// Give this generation's secret to the member at the other end.
  case handOver(LinkID, ChannelID, GenerationID)
  /// A member refuses us, for people.
  case refusalHeard(ChannelID, PeerID, ChannelRefusal)
}

/// A direct message and the one who can open it.
package struct DirectFor: Equatable, Sendable {
  package let peer: PeerID
  package let message: DirectMessage
  package init(peer: PeerID, message: DirectMessage) {
    self.peer = peer
    self.message = message
  }
}
