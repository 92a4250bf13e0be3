import ParleyVocabulary

/// What an application makes of its own: a name, and texts by name.
package struct CustomKind: MessageKind {
  package static let type = "custom"
  package static let code: UInt64 = 17
  package let event: String
  /// In the order written; no name twice.
  package let fields: [(name: String, value: String)]

  /// Bytes of UTF-8.
  package static let eventByteCountMax = 128

  package init(event: String, fields: [(name: String, value: String)] = []) {
    precondition((1...Self.eventByteCountMax).contains(event.utf8.count), "made here, within what readers take")
    self.event = event
    self.fields = fields
  }

  package init(from members: [JSONMember]) throws(WireError) {
    event = try members.string("event", byteCounts: 1...Self.eventByteCountMax)
    fields = try members.texts("custom_ext")
  }

  package var members: [JSONMember] {
    var members = [JSONMember("event", .string(event))]
    if !fields.isEmpty {
      members.append(JSONMember("custom_ext", .object(fields.map { JSONMember($0.name, .string($0.value)) })))
    }
    return members
  }

  package static func == (a: CustomKind, b: CustomKind) -> Bool {
    a.event == b.event && a.fields.elementsEqual(b.fields) { $0 == $1 }
  }
}
