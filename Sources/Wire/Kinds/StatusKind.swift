/// `{"sender":{…},"body":"online","type":"status"}`: a live object, never kept.
package struct StatusKind: MessageKind {
  package static let type = "status"
  package static let code: UInt64 = 1
  package static let needsMessageID = false
  package static let isLive = true
  package static let typePlace = TypePlace.last
  package let isOnline: Bool

  package init(isOnline: Bool) { self.isOnline = isOnline }

  package init(from members: [JSONMember]) throws(WireError) {
    switch try members.string("body") {
    case "online": isOnline = true
    case "offline": isOnline = false
    default: throw .malformed(field: "body", reason: "neither \"online\" nor \"offline\"")
    }
  }

  package var members: [JSONMember] { [JSONMember("body", .string(isOnline ? "online" : "offline"))] }
}
