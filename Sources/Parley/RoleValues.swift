import ParleyVocabulary

/// What somebody is in a channel that has an owner.
public struct MemberRole: Sendable, Equatable {
  public enum Rank: String, Sendable {
    /// May do everything, admins and the end of the channel included.
    case owner
    /// May mute, remove, ban and invite members, lower hands and announce.
    case admin
    case member
    /// Out, until an owner, an admin or a new invitation lets them in.
    case removed
    /// Out, until an owner or an admin lets them in.
    case banned
    /// There, without an invitation that counts.
    case notAdmitted = "not_admitted"
  }

  public let rank: Rank
  /// Whether a mute stands, which may have run out by the clock (`mutedUntil`).
  public let isMuted: Bool
  /// Nil: until somebody lifts it.
  public let mutedUntil: Timestamp?

  public init(rank: Rank, isMuted: Bool = false, mutedUntil: Timestamp? = nil) {
    self.rank = rank
    self.isMuted = isMuted
    self.mutedUntil = mutedUntil
  }
}

/// Somebody's role in a channel is another now.
public struct RoleChange: Sendable, Equatable {
  public let peer: PeerID
  public let role: MemberRole
  /// Whether it is this node's.
  public let isSelf: Bool

  public init(peer: PeerID, role: MemberRole, isSelf: Bool) {
    self.peer = peer
    self.role = role
    self.isSelf = isSelf
  }
}

/// What to make somebody in a channel.
public enum RoleAssignment: Sendable, Equatable {
  /// Hands the ownership over; who did it is an admin from then on.
  case owner
  case admin
  /// Takes an admin's rank, lifts a mute, lets somebody removed or banned in again.
  case member
  /// Until a moment, or until it is lifted (nil).
  case muted(until: Timestamp?)
  /// For so long from now on, by this node's clock: 1 to 31,536,000 seconds, a year.
  case mutedFor(seconds: Int)
  case removed
  case banned
}

/// What the owner or an admin put over a channel.
public struct Announcement: Sendable, Equatable {
  /// 1 to 2,048 bytes; hostile until shown escaped (`escapedText`).
  public let text: String
  public let author: PeerID
  /// By the author's clock.
  public let timestamp: Timestamp

  public init(text: String, author: PeerID, timestamp: Timestamp) {
    self.text = text
    self.author = author
    self.timestamp = timestamp
  }
}

/// Why what one says in a channel counts for nobody.
public enum Exclusion: Sendable, Equatable {
  /// No invitation that counts; why the one used does not, in a word: no_invitation, altered, expired, used_up,
  /// inviter_had_no_right.
  case notAdmitted(String)
  /// Until a moment, or until it is lifted (nil).
  case muted(until: Timestamp?)
  case removed
  case banned
  /// The channel is closed.
  case closed
}

/// Why one may not do something to a channel or a member.
public enum RoleRefusal: String, Sendable {
  /// The channel is an open one or one with a passphrase.
  case noOwner = "no_owner"
  case notAdmin = "not_admin"
  case notOwner = "not_owner"
  case targetIsOwner = "target_is_owner"
  /// Only the owner acts on admins.
  case targetIsAdmin = "target_is_admin"
  case targetIsSelf = "target_is_self"
  case closed
  /// There is nothing to lift.
  case notMuted = "not_muted"
  case notBanned = "not_banned"
}
