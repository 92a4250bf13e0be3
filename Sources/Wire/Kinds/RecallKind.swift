/// `{…,"type":"recall","target":{…}}`: the message is taken back.
package struct RecallKind: MessageActKind {
  package static let type = "recall"
  package static let code: UInt64 = 18
  package let target: MessageKey

  package init(target: MessageKey) { self.target = target }
  package init(from members: [JSONMember]) throws(WireError) { target = try members.target() }
  package var members: [JSONMember] { [JSONMember("target", target.json)] }
}
