import ParleyVocabulary

/// `{…,"type":"attribute","key":"seat 1","value":"…","until_leave":true,"overwrite":false,"replaces":"…"}`: a text that
/// stands in the channel under a name, until there is another; without a value it is taken away.
package struct AttributeKind: ActKind {
  package static let type = "attribute"
  package static let code: UInt64 = 25
  package static let keyByteCounts = 1...128
  package static let valueByteCountMax = 4_096

  /// 1 to 128 bytes of UTF-8; two are the same when their bytes are. Hostile until escaped.
  package let key: String
  /// At most 4,096 bytes of UTF-8; hostile until escaped. Nil: there is none any more.
  package let value: String?
  /// Goes when its author does.
  package let isUntilLeave: Bool
  /// False: what another has set stays.
  package let isOverwriting: Bool
  /// Without overwriting: what stands may be replaced all the same when it was set in this log and was to go with its
  /// author, who is gone.
  package let replaces: Instance?

  package init(
    key: String, value: String?, isUntilLeave: Bool = false, isOverwriting: Bool = true, replaces: Instance? = nil
  ) {
    precondition(Self.keyByteCounts.contains(key.utf8.count), "its size was checked where it was said")
    precondition(value.map { $0.utf8.count <= Self.valueByteCountMax } ?? true, "checked where it was said")
    precondition(!isUntilLeave || value != nil, "what is taken away goes at once")
    precondition(replaces == nil || !isOverwriting, "what overwrites replaces everything")
    self.key = key
    self.value = value
    self.isUntilLeave = isUntilLeave
    self.isOverwriting = isOverwriting
    self.replaces = replaces
  }

  package init(from members: [JSONMember]) throws(WireError) {
    key = try members.string("key", byteCounts: Self.keyByteCounts)
    value = try members.optionalString("value", byteCountMax: Self.valueByteCountMax)
    isUntilLeave = try Self.flag("until_leave", members) ?? false
    if isUntilLeave, value == nil { throw .malformed(field: "until_leave", reason: "there is no value") }
    isOverwriting = try Self.flag("overwrite", members) ?? true
    guard let text = try members.optionalString("replaces") else {
      replaces = nil
      return
    }
    guard let log = Instance(hexadecimal: text) else { throw .malformed(field: "replaces", reason: "not a log") }
    if isOverwriting { throw .malformed(field: "replaces", reason: "what overwrites replaces everything") }
    replaces = log
  }

  private static func flag(_ name: String, _ members: [JSONMember]) throws(WireError) -> Bool? {
    switch members[name] {
    case nil: nil
    case .bool(let isSet): isSet
    default: throw .malformed(field: name, reason: "neither true nor false")
    }
  }

  package var members: [JSONMember] {
    var members = [JSONMember("key", .string(key))]
    if let value { members.append(JSONMember("value", .string(value))) }
    if isUntilLeave { members.append(JSONMember("until_leave", .bool(true))) }
    if !isOverwriting { members.append(JSONMember("overwrite", .bool(false))) }
    if let replaces { members.append(JSONMember("replaces", .string(replaces.description))) }
    return members
  }
}
