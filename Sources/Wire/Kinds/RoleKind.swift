import ParleyVocabulary

/// `{…,"type":"role","target":"…","role":"muted","until":…,"heads":[["…",12]]}`: what somebody is from here on.
package struct RoleKind: ActKind {
  package static let type = "role"
  package static let code: UInt64 = 9

  package enum Role: String, Sendable, CaseIterable {
    /// The ownership goes over to the target.
    case owner
    case admin
    /// Also lifts all that the target was before.
    case member
    case muted, removed, banned
  }

  package let target: PeerID
  package let role: Role
  /// Of the muted only: milliseconds since 1970; nil: until it is lifted.
  package let until: UInt64?
  /// The target's logs; for `owner` those of whoever says it.
  package let heads: ActHeads

  package init(target: PeerID, role: Role, until: UInt64? = nil, heads: ActHeads) {
    precondition(until == nil || role == .muted, "only a mute ends by itself")
    self.target = target
    self.role = role
    self.until = until
    self.heads = heads
  }

  package init(from members: [JSONMember]) throws(WireError) {
    target = try members.peer("target")
    guard let role = Role(rawValue: try members.string("role")) else {
      throw .malformed(field: "role", reason: "not a role")
    }
    self.role = role
    until = try members.optionalCounter("until")
    if until != nil, role != .muted { throw .malformed(field: "until", reason: "only a mute ends by itself") }
    heads = try ActHeads(from: members)
  }

  package var members: [JSONMember] {
    var members = [JSONMember("target", .string(target.text)), JSONMember("role", .string(role.rawValue))]
    if let until { members.append(JSONMember("until", .integer(Int64(until)))) }
    members.append(heads.member)
    return members
  }
}
