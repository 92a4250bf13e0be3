/// `{…,"type":"edit","target":{…},"body":"…","ext":{…}}`: the message says something else. What is not named stays.
package struct EditKind: MessageActKind {
  package static let type = "edit"
  package static let code: UInt64 = 19

  /// What a message says, of the kinds whose words can change.
  package enum Content: Equatable, Sendable {
    /// Of a text: not empty.
    case body(String)
    case custom(CustomKind)
  }

  package let target: MessageKey
  package let content: Content?
  package let ext: [JSONMember]?

  package init(target: MessageKey, content: Content?, ext: [JSONMember]?) {
    precondition(content != nil || ext != nil, "an edit that changes nothing is refused where it is asked for")
    self.target = target
    self.content = content
    self.ext = ext
  }

  package init(from members: [JSONMember]) throws(WireError) {
    target = try members.target()
    switch (try members.optionalString("body"), members["event"]) {
    case (nil, nil): content = nil
    case (nil, _): content = .custom(try CustomKind(from: members))
    case (let body?, nil):
      guard !body.isEmpty else { throw .malformed(field: "body", reason: "empty") }
      content = .body(body)
    default: throw .malformed(field: "body", reason: "beside an event")
    }
    ext = members["ext"] == nil ? nil : try members.object("ext")
    if content == nil, ext == nil { throw .malformed(field: "body", reason: "missing, and no ext either") }
  }

  package var members: [JSONMember] {
    var members = [JSONMember("target", target.json)]
    switch content {
    case nil: break
    case .body(let body): members.append(JSONMember("body", .string(body)))
    case .custom(let custom): members += custom.members
    }
    if let ext { members.append(JSONMember("ext", .object(ext))) }
    return members
  }
}
