import ParleyVocabulary

/// A command to the application of whoever is there: an event of its own, never kept.
package struct CmdKind: MessageKind {
  package static let type = "cmd"
  package static let code: UInt64 = 23
  package static let isLive = true
  package static let takesOptions = true
  package let action: String
  /// In the order written; no name twice.
  package let params: [(name: String, value: String)]

  /// Bytes of UTF-8.
  package static let actionByteCountMax = 128
  /// What no action may begin with.
  package static let reserved = ["em_", "easemob::", "parley."]

  package init(action: String, params: [(name: String, value: String)] = []) {
    precondition(Self.isAllowed(action), "made here, within what readers take")
    self.action = action
    self.params = params
  }

  package init(from members: [JSONMember]) throws(WireError) {
    action = try members.string("action", byteCounts: 1...Self.actionByteCountMax)
    guard Self.isAllowed(action) else { throw .malformed(field: "action", reason: "begins with what is reserved") }
    params = try members.texts("params")
  }

  package static func isAllowed(_ action: String) -> Bool {
    (1...actionByteCountMax).contains(action.utf8.count)
      && !reserved.contains { action.utf8.starts(with: $0.utf8) }
  }

  package var members: [JSONMember] {
    var members = [JSONMember("action", .string(action))]
    if !params.isEmpty {
      members.append(JSONMember("params", .object(params.map { JSONMember($0.name, .string($0.value)) })))
    }
    return members
  }

  package static func == (a: CmdKind, b: CmdKind) -> Bool {
    a.action == b.action && a.params.elementsEqual(b.params) { $0 == $1 }
  }
}

extension [JSONMember] {
  /// Texts by name; none when missing.
  func texts(_ name: String) throws(WireError) -> [(name: String, value: String)] {
    if self[name] == nil { return [] }
    var texts: [(name: String, value: String)] = []
    for member in try object(name) {
      guard case .string(let value) = member.value else { throw .malformed(field: name, reason: "not texts by name") }
      texts.append((member.name, value))
    }
    return texts
  }
}
