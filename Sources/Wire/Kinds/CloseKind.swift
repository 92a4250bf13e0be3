/// `{…,"type":"close"}`: nobody but the owner says anything in the channel any more.
package struct CloseKind: ActKind {
  package static let type = "close"
  package static let code: UInt64 = 12
  package init() {}
  package init(from members: [JSONMember]) throws(WireError) {}
  package var members: [JSONMember] { [] }
}
