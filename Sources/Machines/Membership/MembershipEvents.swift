import ParleyVocabulary
import ParleyWire

/// A member as the application sees it.
package struct MemberView: Equatable, Sendable {
  package let peer: PeerID
  package let displayName: DisplayName
  package let isOnline: Bool
  package let isHandRaised: Bool
  /// Of who is online: which run of it.
  package let run: Instance?
  package init(
    peer: PeerID, displayName: DisplayName, isOnline: Bool, isHandRaised: Bool, run: Instance? = nil
  ) {
    self.peer = peer
    self.displayName = displayName
    self.isOnline = isOnline
    self.isHandRaised = isHandRaised
    self.run = run
  }
}

/// A member as the disk remembers it.
package struct MemberRecord: Equatable, Sendable {
  package let peer: PeerID
  package let displayName: DisplayName
  package let isOnline: Bool
  package let incarnation: UInt64
  package init(peer: PeerID, displayName: DisplayName, isOnline: Bool, incarnation: UInt64) {
    self.peer = peer
    self.displayName = displayName
    self.isOnline = isOnline
    self.incarnation = incarnation
  }
}

package enum MembershipEvent: Equatable, Sendable {
  case joined(ChannelID, displayName: DisplayName, incarnation: UInt64, remembered: [MemberRecord])
  case left(ChannelID)
  /// Signature and freshness are checked.
  case presenceHeard(ChannelID, Presence, overSession: Bool)
  case liveHeard(ChannelID, LiveObject)
  /// Our user writes, or has stopped.
  case typed(ChannelID, isTyping: Bool)
  case probed(ChannelID, PeerID, nonce: UInt64)
  case echoed(ChannelID, PeerID, nonce: UInt64)
  case suspected(ChannelID, PeerID, incarnation: UInt64)
  case sessionOpened(ChannelID, PeerID, Instance, wasIntroduced: Bool)
  case sessionLost(PeerID, Instance)
  case dialSucceeded(PeerID)
  case dialFailed(PeerID)
  /// What we hold changed: repeated in our presence. `isUnacknowledged`: somebody present lacks our head.
  case headsChanged(ChannelID, HeadsDigest, head: UInt64, lamport: UInt64)
  case announceHead(ChannelID)
  /// A hidden entry is stored; the newest raise_hand of a member's running log counts.
  case hiddenEntryStored(ChannelID, Entry)
  /// Hands that do not count, or were lowered by somebody who may, are down.
  case governed(ChannelID, Governance)
  /// Our addresses are others than before, or we slept: say that we are there.
  case networkChanged
  /// Nobody here any more, by the channel's acts.
  case excluded(ChannelID, PeerID)
  /// The channel's keys are others than before: who hears us only now shall know us soon.
  case keysChanged(ChannelID)
  case woke
}

package enum MembershipEffect: Equatable, Sendable {
  case announce(ChannelID, MemberView)
  /// Somebody else is writing, or not any more.
  case typing(ChannelID, PeerID, Bool)
  case persist(ChannelID, MemberRecord)
  case wake(at: Instant)
  case tell(NodeEvent)
}
