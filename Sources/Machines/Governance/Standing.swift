import ParleyVocabulary
import ParleyWire

/// What somebody is in an owned channel, now.
package enum Standing: Equatable, Sendable {
  case owner
  case admin
  case member
  /// A member whose messages do not count: until a moment (milliseconds since 1970), or until it is lifted (nil).
  case muted(until: UInt64?)
  case removed
  case banned
  case notAdmitted(JoinRefusal)

  /// Whether keys and history are for it.
  package var isGood: Bool {
    switch self {
    case .owner, .admin, .member, .muted: true
    case .removed, .banned, .notAdmitted: false
    }
  }

  package var isPrivileged: Bool { self == .owner || self == .admin }
}

/// Why an invitation did not let somebody in.
package enum JoinRefusal: String, Sendable, CaseIterable {
  case noInvitation, altered, expired, usedUp, inviterHadNoRight
}

/// Why an entry does not count.
package enum VoidReason: Equatable, Sendable {
  case notAdmitted(JoinRefusal)
  case muted(until: UInt64?)
  case removed
  case banned
  case closed
}

/// What one may wish to do.
package enum Deed: Equatable, Sendable {
  case role(RoleKind.Role)
  case lowerHand
  case announce
  case close
  case rotate
  case setOrganiser
  case invite(Grant.Role)
}

/// Why one may not.
package enum ActRefusal: Equatable, Sendable {
  /// Its author is nobody here.
  case excluded(VoidReason)
  case notAdmin
  case notOwner
  case targetIsOwner
  /// Only the owner acts on admins.
  case targetIsAdmin
  case targetIsSelf
  case closed
}

/// An act on somebody that counts.
struct StandingAct: Equatable, Sendable {
  enum Effect: Equatable, Sendable {
    case owner, admin, member, removed, banned
    case muted(until: UInt64?)
    var isRank: Bool { self == .owner || self == .admin }
  }

  let effect: Effect
  /// Where it takes effect among the others.
  let place: Act.Place
  let timestamp: UInt64
  /// What is beyond them is governed by this act; nil: what comes after it in the order.
  let heads: ActHeads?

  func governs(_ order: OrderKey) -> Bool {
    heads.map { $0.isBelow(order) } ?? (place.order < order)
  }

  /// Whether it gives its rank to an act: what is given begins with its place, what is taken ends with the heads. Who
  /// has handed over is an admin beyond the heads that he named.
  func governsRank(_ order: OrderKey) -> Bool {
    effect.isRank && !isHandover ? place.order < order : governs(order)
  }

  /// The former owner's.
  var isHandover = false
}

/// A valid `joined`.
struct Join: Equatable, Sendable {
  let place: Act.Place
  let grant: Grant

  func governs(_ order: OrderKey) -> Bool {
    let own = place.order
    return order.log == own.log ? order.number >= own.number : own < order
  }
}

/// All that counts about one person.
struct Verdict: Equatable, Sendable {
  var isFounder = false
  /// Owner, admin, member, removed, banned: in order.
  var ranks: [StandingAct] = []
  /// Mutes and what lifts them: in order.
  var mutes: [StandingAct] = []
  var joins: [Join] = []
  var refusal = JoinRefusal.noInvitation
  /// Hands up to there are down.
  var lowered: [ActHeads] = []

  /// A removal is answered by an invitation that was issued later.
  func answers(_ removal: StandingAct) -> [Join] { joins.filter { $0.grant.issued > removal.timestamp } }

  var joinedAsAdmin: Bool { joins.contains { $0.grant.role == .admin } }
}
