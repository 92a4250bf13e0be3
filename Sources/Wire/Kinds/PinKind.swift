/// `{…,"type":"pin","target":{…},"on":true}`: the message stands over the channel, or no longer.
package struct PinKind: MessageActKind {
  package static let type = "pin"
  package static let code: UInt64 = 21
  package let target: MessageKey
  package let isOn: Bool

  package init(target: MessageKey, isOn: Bool) {
    self.target = target
    self.isOn = isOn
  }
  package init(from members: [JSONMember]) throws(WireError) {
    target = try members.target()
    isOn = try members.bool("on")
  }
  package var members: [JSONMember] { [JSONMember("target", target.json), JSONMember("on", .bool(isOn))] }
}
