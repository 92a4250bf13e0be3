import ParleyVocabulary

/// Who a message says it is from. `sender_id` must equal the authenticated author; the display name is decoration.
package struct Sender: Equatable, Sendable {
  package let peer: PeerID
  package let displayName: DisplayName

  package init(peer: PeerID, displayName: DisplayName) {
    self.peer = peer
    self.displayName = displayName
  }

  fileprivate init(from members: [JSONMember]) throws(WireError) {
    let id = try members.string("sender_id")
    guard let peer = PeerID(text: id) else { throw .malformed(field: "sender_id", reason: "not a PeerID") }
    self.peer = peer
    do { displayName = try DisplayName(try members.string("display_name")) } catch let error as NameError {
      throw .malformed(field: "display_name", reason: error.description)
    } catch { throw error as! WireError }
  }

  fileprivate var json: JSONValue {
    .object([
      JSONMember("display_name", .string(displayName.text)), JSONMember("sender_id", .string(peer.text)),
    ])
  }
}

/// One message of the RTM tutorial's JSON schema, checked.
package struct SchemaMessage: Sendable {
  package let sender: Sender
  /// Nil only for kinds that need none (status, raise_hand).
  package let messageID: MessageID?
  /// RFC 3339 text as the sender wrote it; nil only for kinds that need none.
  package let timestamp: String?
  package let content: any MessageKind
  /// Only kinds that people see have any.
  package let options: MessageOptions
  /// What was decoded, where that is just what would be written.
  private let plain: [UInt8]?

  package init(
    sender: Sender, messageID: MessageID?, timestamp: String?, content: any MessageKind,
    options: MessageOptions = .none
  ) {
    self.sender = sender
    self.messageID = messageID
    self.timestamp = timestamp
    self.content = content
    self.options = options
    plain = nil
  }

  /// Checks size, syntax, types, required members and, where given, that the sender is the authenticated author.
  package init(decoding bytes: some Collection<UInt8>, author: PeerID?) throws(WireError) {
    guard bytes.count <= Limit.messageByteCountMax else {
      throw .tooLong(
        field: "message", byteCount: UInt64(bytes.count), byteCountMax: Limit.messageByteCountMax)
    }
    let json = Array(bytes)
    if let text = PlainText(json), let message = Self(text, json) {
      try Self.check(message.sender, author)
      self = message
      return
    }
    plain = nil
    guard case .object(let members) = try JSONValue(decoding: json) else {
      throw .malformed(field: "message", reason: "not a JSON object")
    }
    sender = try Sender(from: members.object("sender"))
    try Self.check(sender, author)
    let type = try members.string("type")
    guard type.utf8.count <= 64, !type.isEmpty else { throw .malformed(field: "type", reason: "not 1 to 64 bytes") }
    let kind = KindRegistry.kind(named: type, members)
    messageID = try Self.messageID(in: members, required: kind?.needsMessageID ?? false)
    timestamp = try Self.timestamp(in: members, required: kind?.needsMessageID ?? false)
    if let kind { content = try kind.init(from: members) } else { content = UnknownKind(type: type, members: members) }
    options =
      kind?.takesOptions == true ? try MessageOptions(from: members, isTranslated: kind is TextKind.Type) : .none
  }

  /// Of a kind that travels live only.
  package var isLive: Bool { Swift.type(of: content).isLive }
  /// Of a kind that people see, or that is for their applications.
  package var isForReaders: Bool { Swift.type(of: content).takesOptions }

  private static func check(_ sender: Sender, _ author: PeerID?) throws(WireError) {
    if let author, author != sender.peer {
      throw .malformed(field: "sender_id", reason: "not the author that signed")
    }
  }

  /// Nil when a member breaks a rule, or would be written otherwise: that is then found and said in full.
  private init?(_ text: PlainText, _ json: [UInt8]) {
    guard let peer = PeerID(text: text.senderID), let id = MessageID(text.messageID),
      Self.isTimestamp(Array(text.timestamp.utf8)), let name = try? DisplayName(text.displayName),
      name.text.utf8.elementsEqual(text.displayName.utf8)
    else { return nil }
    sender = Sender(peer: peer, displayName: name)
    messageID = id
    timestamp = text.timestamp
    content = TextKind(body: text.body)
    options = .none
    plain = json
  }

  private static func messageID(in members: [JSONMember], required: Bool) throws(WireError) -> MessageID? {
    guard let text = try members.optionalString("message_id") else {
      if required { throw .malformed(field: "message_id", reason: "missing") }
      return nil
    }
    guard let id = MessageID(text) else { throw .malformed(field: "message_id", reason: "not 1 to 64 bytes") }
    return id
  }

  private static func timestamp(in members: [JSONMember], required: Bool) throws(WireError) -> String? {
    guard let text = try members.optionalString("timestamp") else {
      if required { throw .malformed(field: "timestamp", reason: "missing") }
      return nil
    }
    guard isTimestamp(Array(text.utf8)) else { throw .malformed(field: "timestamp", reason: "not RFC 3339 text") }
    return text
  }

  /// The form of RFC 3339 section 5.6, at most 40 bytes. Whether there is such a day is not looked at: the text is only
  /// shown.
  private static func isTimestamp(_ text: [UInt8]) -> Bool {
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    func matches(_ part: ArraySlice<UInt8>, _ form: StaticString) -> Bool {
      guard part.count == form.utf8CodeUnitCount else { return false }
      return form.withUTF8Buffer { form in
        zip(part, form).allSatisfy { $1 == UInt8(ascii: "d") ? digits.contains($0) : $0 == $1 }
      }
    }
    guard (20...40).contains(text.count), matches(text[..<19], "dddd-dd-ddTdd:dd:dd") else { return false }
    var rest = text[19...]
    if rest.first == UInt8(ascii: ".") {
      let fraction = rest.dropFirst().prefix { digits.contains($0) }
      guard !fraction.isEmpty else { return false }
      rest = rest[fraction.endIndex...]
    }
    return matches(rest, "Z") || matches(rest, "+dd:dd") || matches(rest, "-dd:dd")
  }

  /// The members in the order the schema shows them for this kind.
  package var encoded: [UInt8] {
    if let plain { return plain }
    var members: [JSONMember] = []
    let type = JSONMember("type", .string(content.type))
    let sender = JSONMember("sender", sender.json)
    if content.typeComesFirst { members.append(type) }
    members.append(sender)
    if let messageID { members.append(JSONMember("message_id", .string(messageID.text))) }
    if let timestamp { members.append(JSONMember("timestamp", .string(timestamp))) }
    if content.typeComesFirst || content.typeComesLast {
      members += content.members
      if content.typeComesLast { members.append(type) }
    } else {
      members.append(type)
      members += content.members + options.members
    }
    return JSONValue.object(members).encoded
  }
}
