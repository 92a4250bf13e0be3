/// `{…,"type":"read","targets":[{…}]}`: its author has read these messages.
package struct ReadKind: MessageActKind {
  package static let type = "read"
  package static let code: UInt64 = 22
  package static let targetCountMax = 64
  /// 1 to 64, none twice.
  package let targets: [MessageKey]

  package init(targets: [MessageKey]) {
    precondition((1...Self.targetCountMax).contains(targets.count), "their count was checked where it was said")
    self.targets = targets
  }
  package init(from members: [JSONMember]) throws(WireError) {
    guard case .array(let values) = members["targets"] else {
      throw .malformed(field: "targets", reason: members["targets"] == nil ? "missing" : "not an array")
    }
    guard values.count <= Self.targetCountMax else {
      throw .tooMany(field: "targets", count: UInt64(values.count), countMax: Self.targetCountMax)
    }
    guard !values.isEmpty else { throw .malformed(field: "targets", reason: "empty") }
    var targets: [MessageKey] = []
    for value in values {
      guard case .object(let members) = value else { throw .malformed(field: "targets", reason: "not objects") }
      targets.append(try MessageKey(from: members, in: "targets"))
    }
    guard Set(targets).count == targets.count else { throw .malformed(field: "targets", reason: "one named twice") }
    self.targets = targets
  }
  package var members: [JSONMember] { [JSONMember("targets", .array(targets.map(\.json)))] }
}
