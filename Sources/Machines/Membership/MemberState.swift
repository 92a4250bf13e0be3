import ParleyVocabulary
import ParleyWire

/// What is known of one member of one channel.
struct MemberState: Equatable, Sendable {
  enum Phase: Equatable, Sendable {
    /// An authenticated presence was heard, which may be yesterday's. → `present`: it echoes our nonce, or a session
    /// opens. → `gone`: the last probe goes unanswered.
    case claimed(Probing)
    /// → `suspect`: silence, a lost session, or somebody's suspicion. → `gone`: its goodbye.
    case present
    /// → `present`: anything fresh and authenticated. → `gone`: probes go unanswered and the dial fails.
    case suspect(Probing)
    /// → `claimed`: a presence with a higher counter or incarnation. → `present`: a session opens.
    case gone
  }

  struct Probing: Equatable, Sendable {
    var nonce: UInt64
    var sentCount: Int
    var nextAt: Instant
    /// The dial that has the last word is on its way.
    var isDialling = false
    /// Ours, not somebody else's: the others are told with every probe, for one datagram may be lost.
    var isFirstHand = false
  }

  var instance: Instance
  var incarnation: UInt64
  var displayName: DisplayName?
  var phase: Phase
  var lastHeard: Instant
  /// How long until its next beacon at the latest.
  var interval: Span
  var statusHash: UInt64 = 0
  /// Of the newest presence.
  var counter: UInt64 = 0
  /// Of its goodbye: what it said before that says nothing any more.
  var goodbye: UInt64 = 0
  /// What it wants echoed.
  var theirNonce: UInt64 = 0
  var digest: HeadsDigest
  var head: UInt64 = 0
  var lamport: UInt64 = 0
  /// Whether the member was listed before (an online status was seen once).
  var isListed = false
  var isHandRaised = false

  var isPresent: Bool {
    switch phase {
    case .present, .suspect: true
    case .claimed, .gone: false
    }
  }

  func view(_ peer: PeerID) -> MemberView? {
    guard isListed, let displayName else { return nil }
    return MemberView(
      peer: peer, displayName: displayName, isOnline: isPresent, isHandRaised: isPresent && isHandRaised)
  }
}

/// Bounds and times of membership.
enum MembershipRule {
  /// After joining or a change, beacons follow at these distances, then at `lively`, slowing to `quiet`.
  static let burst: [Span] = [.milliseconds(60), .milliseconds(150), .milliseconds(300), .milliseconds(600)]
  static let lively = Span.seconds(2)
  static let quiet = Span.seconds(30)
  /// In large channels a beacon at most every half second a member.
  static let perMember = Span.milliseconds(500)
  static let probeDistances: [Span] = [.milliseconds(150), .milliseconds(300), .milliseconds(400)]
  /// While somebody is lost, the smallest present PeerID calls so often, and after a long loss a two-hundredth of it.
  static let calling = Span.seconds(3)
  static let callingShare = 200
  /// Who hears a lost member again says so within this much a member.
  static let returnPerMember = Span.milliseconds(50)
  /// A wake that is later than this means that we did not run.
  static let sleep = Span.seconds(5)
  /// A member that said nothing for twice its own interval and this much is suspected.
  static let grace = Span.seconds(3)
}
