/// `{"type":"raise_hand","sender":{…},"body":"true"}`: an entry hidden from history, so that the queue is ordered alike
/// everywhere and a joiner has it.
package struct RaiseHandKind: MessageKind {
  package static let type = "raise_hand"
  package static let code: UInt64 = 2
  package static let isHidden = true
  package static let needsMessageID = false
  package static let typePlace = TypePlace.first
  package let isRaised: Bool

  package init(isRaised: Bool) { self.isRaised = isRaised }
  package init(from members: [JSONMember]) throws(WireError) { isRaised = try members.booleanText("body") }
  package var members: [JSONMember] { [JSONMember("body", .string(isRaised ? "true" : "false"))] }
}
