import ParleyVocabulary

/// What a login token says of somebody: the payload of a PASETO v4.public, in the words of its organiser.
package struct TokenClaims: Equatable, Sendable {
  /// `sub`: whose token it is; nobody else's.
  package let subject: PeerID
  /// `name`: how the organiser calls them.
  package let name: DisplayName
  /// `channel`: the only one it is for; nil: any.
  package let channel: ChannelName?
  /// `role`: what the organiser says they are, such as `teacher`; shown, it gives no rights.
  package let role: String?
  /// `iat`, or `nbf` where that is later: not valid before.
  package let validFrom: Timestamp
  /// `exp`: not valid from then on.
  package let expires: Timestamp

  package static let roleByteCountMax = 64

  package init(
    subject: PeerID, name: DisplayName, channel: ChannelName?, role: String?, validFrom: Timestamp, expires: Timestamp
  ) {
    self.subject = subject
    self.name = name
    self.channel = channel
    self.role = role
    self.validFrom = validFrom
    self.expires = expires
  }

  /// Claims with other names are passed over, as PASETO wants it.
  package init(decoding payload: [UInt8]) throws(WireError) {
    guard payload.count <= Limit.tokenByteCountMax else {
      throw .tooLong(
        field: "claims", byteCount: UInt64(payload.count), byteCountMax: Limit.tokenByteCountMax)
    }
    guard case .object(let members) = try JSONValue(decoding: payload) else {
      throw .malformed(field: "claims", reason: "not a JSON object")
    }
    guard let subject = PeerID(text: try members.string("sub")) else {
      throw .malformed(field: "sub", reason: "not a PeerID")
    }
    self.subject = subject
    name = try Self.checked("name", try members.string("name")) { (text) throws(NameError) in try DisplayName(text) }
    channel = try members.optionalString("channel").map { (text) throws(WireError) in
      try Self.checked("channel", text) { (text) throws(NameError) in try ChannelName(text) }
    }
    role = try members.optionalString("role")
    if let role { try Self.check(role: role) }
    let issued = try Self.moment("iat", members)
    let start = members["nbf"] == nil ? issued : try Self.moment("nbf", members)
    validFrom = max(issued, start)
    expires = try Self.moment("exp", members)
    guard validFrom < expires else { throw .malformed(field: "exp", reason: "not later than iat and nbf") }
  }

  package static func check(role: String) throws(WireError) {
    guard (1...roleByteCountMax).contains(role.utf8.count) else {
      throw .malformed(field: "role", reason: "not 1 to \(roleByteCountMax) bytes")
    }
    guard role.unicodeScalars.allSatisfy({ !$0.isControl }) else {
      throw .malformed(field: "role", reason: "holds a control character")
    }
  }

  private static func checked<Name>(
    _ field: String, _ text: String, _ make: (String) throws(NameError) -> Name
  ) throws(WireError) -> Name {
    do throws(NameError) { return try make(text) } catch {
      throw .malformed(field: field, reason: error.description)
    }
  }

  private static func moment(_ field: String, _ members: [JSONMember]) throws(WireError) -> Timestamp {
    guard let moment = Timestamp(rfc3339: try members.string(field)) else {
      throw .malformed(field: field, reason: "not a date and time as RFC 3339 has it")
    }
    return moment
  }

  package var encoded: [UInt8] {
    var members = [JSONMember("sub", .string(subject.text)), JSONMember("name", .string(name.text))]
    if let channel { members.append(JSONMember("channel", .string(channel.text))) }
    if let role { members.append(JSONMember("role", .string(role))) }
    members += [JSONMember("iat", .string(validFrom.text)), JSONMember("exp", .string(expires.text))]
    return JSONValue.object(members).encoded
  }

  /// The footer that names the key; nil when there is none of that form. At most 512 bytes are looked at.
  package static func keyID(inFooter footer: [UInt8]) -> String? {
    guard footer.count <= 512, case .object(let members)? = try? JSONValue(decoding: footer) else { return nil }
    return try? members.optionalString("kid")
  }

  package static func footer(keyID: String) -> [UInt8] {
    JSONValue.object([JSONMember("kid", .string(keyID))]).encoded
  }
}
