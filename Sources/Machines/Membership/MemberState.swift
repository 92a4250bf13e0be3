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
    var cause = Cause.silence
  }

  /// Why somebody is suspected.
  enum Cause: Equatable, Sendable {
    /// A session ended: the others are told when the first probe was in vain, and again with each that follows, for one
    /// datagram may be lost.
    case lostSession
    /// Somebody else said so.
    case hearsay
    /// Beacons stayed away, which may be the network's fault for so long: more patience.
    case silence

    var probeDistances: [Span] {
      switch self {
      case .lostSession, .hearsay: MembershipRule.suspectDistances
      case .silence: MembershipRule.silentDistances
      }
    }
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
  var answers = RateAllowance(perSecond: MembershipRule.answersPerSecond, burst: MembershipRule.answersBurst)
  var reportAt: Instant?
  var isHandRaised = false
  /// The moment of its entry in the queue that counts.
  var queuedAt: Instant?

  /// When something is to be done about it.
  var dueAt: Instant? {
    switch phase {
    case .claimed(let probing), .suspect(let probing): probing.isDialling ? nil : probing.nextAt
    case .present: silentAt
    case .gone: nil
    }
  }

  var isPresent: Bool {
    switch phase {
    case .present, .suspect: true
    case .claimed, .gone: false
    }
  }

  func view(_ peer: PeerID) -> MemberView? {
    guard isListed, let displayName else { return nil }
    return MemberView(
      peer: peer, displayName: displayName, isOnline: isPresent, isHandRaised: isPresent && isHandRaised,
      run: isPresent ? instance : nil)
  }
}

/// Bounds and times of membership.
package enum MembershipRule {
  /// After joining or a change, beacons follow at these distances, then at `lively`, slowing to `quiet`.
  static let burst: [Span] = [.milliseconds(60), .milliseconds(150), .milliseconds(300), .milliseconds(600)]
  static let lively = Span.seconds(2)
  /// Who is known under a later incarnation than it says is told so at most so often.
  static let reportAgain = Span.seconds(1)
  static let refuteAgain = Span.milliseconds(500)
  /// How far others may raise our incarnation at once.
  static let raiseMax: UInt64 = 1 << 20
  /// Suspicions of others that we take up from hearsay; beyond it each finds out for itself.
  static let hearsayPerSecond: UInt64 = 8
  static let hearsayBurst: UInt64 = 32
  /// Probes of one member that we answer, and beacons we answer because they name a status we have not seen.
  static let answersPerSecond: UInt64 = 10
  static let answersBurst: UInt64 = 20
  package static let quiet = Span.seconds(30)
  /// In large channels a beacon at most every half second a member.
  package static let perMember = Span.milliseconds(500)
  /// Up to so many members all are answered, and asked, at once; beyond that after a jitter.
  static let crowd = 8
  static let probeDistances: [Span] = [.milliseconds(150), .milliseconds(300), .milliseconds(400)]
  /// While somebody is lost, the smallest present PeerID calls so often, and after a long loss a two-hundredth of it.
  static let calling = Span.seconds(3)
  static let callingShare = 200
  /// Who hears a lost member again says so within this much a member.
  static let returnPerMember = Span.milliseconds(50)
  /// After a change of keys each member speaks within this much a member, and at most…
  static let keysPerMember = Span.milliseconds(5)
  static let keysMax = Span.seconds(5)
  /// A wake that is later than this means that we did not run.
  static let sleep = Span.seconds(5)
  /// After the last one the dial decides.
  static let suspectDistances: [Span] = [
    .milliseconds(150), .milliseconds(300), .milliseconds(200), .milliseconds(200),
  ]
  static let silentDistances: [Span] =
    suspectDistances + [.milliseconds(500), .milliseconds(500), .seconds(1), .seconds(1)]
  /// In a crowd the one whose name fell has so long to speak for itself before all ask it.
  static let hearsayJitter = (Span.milliseconds(100), Span.milliseconds(500))
  /// A member that said nothing for twice its own interval and this much is suspected.
  static let grace = Span.seconds(3)
}
