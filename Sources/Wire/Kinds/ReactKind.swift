/// `{…,"type":"react","target":{…},"emoji":"👍","on":true}`: its author's sign on the message, or that sign gone.
package struct ReactKind: MessageActKind {
  package static let type = "react"
  package static let code: UInt64 = 20
  /// Bytes of UTF-8: a family of four with skin tones has 41.
  package static let emojiByteCountMax = 64
  package let target: MessageKey
  /// 1 to 64 bytes; hostile until escaped. Two are the same when their bytes are.
  package let emoji: String
  package let isOn: Bool

  package init(target: MessageKey, emoji: String, isOn: Bool) {
    precondition((1...Self.emojiByteCountMax).contains(emoji.utf8.count), "its size was checked where it was said")
    self.target = target
    self.emoji = emoji
    self.isOn = isOn
  }
  package init(from members: [JSONMember]) throws(WireError) {
    target = try members.target()
    emoji = try members.string("emoji", byteCounts: 1...Self.emojiByteCountMax)
    isOn = try members.bool("on")
  }
  package var members: [JSONMember] {
    [JSONMember("target", target.json), JSONMember("emoji", .string(emoji)), JSONMember("on", .bool(isOn))]
  }
}
