import ParleyHashing
import ParleyVocabulary

/// What a message of any kind that people see may carry beside its own members.
package struct MessageOptions: Equatable, Sendable {
  /// Of the application; nobody else looks at it. An object, in the order written.
  package var ext: [JSONMember]?
  /// The message that this one answers.
  package var replyTo: MessageKey?
  /// The sender asks every reader to say that it was read.
  package var needsReceipt = false
  package var priority = MessagePriority.normal
  /// Which of the sender's hooks are called; of nobody else's concern.
  package var webhookEnvironment: String?
  /// Said by an organiser in every room.
  package var isBroadcast = false
  /// Into which languages the sender had it translated, and what came of it.
  package var translation = Translation()
  /// Not kept for anybody who is absent.
  package var isOnlineOnly = false
  /// Said in a channel to some of its members only.
  package var direction: MessageDirection?

  package static let none = MessageOptions()

  package init(ext: [JSONMember]? = nil, replyTo: MessageKey? = nil) {
    self.ext = ext
    self.replyTo = replyTo
  }

  /// `isTranslated`: of a kind that can be.
  init(from members: [JSONMember], isTranslated: Bool) throws(WireError) {
    ext = members["ext"] == nil ? nil : try members.object("ext")
    replyTo = members["reply_to"] == nil ? nil : try MessageKey(from: members.object("reply_to"), in: "reply_to")
    needsReceipt = try members.flag("needs_receipt")
    if let text = try members.optionalString("priority") {
      guard let known = MessagePriority(rawValue: text) else {
        throw .malformed(field: "priority", reason: "neither high, normal nor low")
      }
      priority = known
    }
    if let text = try members.optionalString("webhook_env") {
      guard Self.isWebhookEnvironment(text) else {
        throw .malformed(field: "webhook_env", reason: "not 1 to 8 letters and digits")
      }
      webhookEnvironment = text
    }
    isBroadcast = try members.flag("broadcast")
    if isTranslated { translation = try Translation(from: members) }
    isOnlineOnly = try members.flag("online_only")
    direction = try MessageDirection(from: members)
  }

  package var members: [JSONMember] {
    var members: [JSONMember] = []
    if let ext { members.append(JSONMember("ext", .object(ext))) }
    if let replyTo { members.append(JSONMember("reply_to", replyTo.json)) }
    if needsReceipt { members.append(JSONMember("needs_receipt", .bool(true))) }
    if priority != .normal { members.append(JSONMember("priority", .string(priority.rawValue))) }
    if let webhookEnvironment { members.append(JSONMember("webhook_env", .string(webhookEnvironment))) }
    if isBroadcast { members.append(JSONMember("broadcast", .bool(true))) }
    members += translation.members
    if isOnlineOnly { members.append(JSONMember("online_only", .bool(true))) }
    return members + (direction?.members ?? [])
  }

  /// Characters of ASCII.
  package static let webhookEnvironmentCountMax = 8

  package static func isWebhookEnvironment(_ text: String) -> Bool {
    (1...webhookEnvironmentCountMax).contains(text.utf8.count) && text.utf8.allSatisfy { $0.isLetterOrDigit }
  }
}

/// What goes first when there is too much.
package enum MessagePriority: String, Sendable, CaseIterable { case high, normal, low }

/// A text in other languages.
package struct Translation: Equatable, Sendable {
  /// Tags as of BCP 47, each once.
  package var languages: [String]
  /// By tag, of those languages only.
  package var texts: [(language: String, text: String)]

  package static let languageCountMax = 16
  package static let tagByteCountMax = 35

  package init(into languages: [String] = [], texts: [(language: String, text: String)] = []) {
    self.languages = languages
    self.texts = texts
  }

  init(from members: [JSONMember]) throws(WireError) {
    self.init()
    if members["target_languages"] != nil { languages = try Self.languages(members["target_languages"]) }
    guard members["translations"] != nil else { return }
    for member in try members.object("translations") {
      guard languages.contains(member.name), case .string(let text) = member.value else {
        throw .malformed(field: "translations", reason: "not texts by target language")
      }
      texts.append((member.name, text))
    }
  }

  private static func languages(_ value: JSONValue?) throws(WireError) -> [String] {
    guard case .array(let values) = value else {
      throw .malformed(field: "target_languages", reason: "not an array")
    }
    guard values.count <= languageCountMax else {
      throw .tooMany(field: "target_languages", count: UInt64(values.count), countMax: languageCountMax)
    }
    var languages: [String] = []
    for value in values {
      guard case .string(let tag) = value, isTag(tag), !languages.contains(tag) else {
        throw .malformed(field: "target_languages", reason: "not language tags, each once")
      }
      languages.append(tag)
    }
    guard !languages.isEmpty else { throw .malformed(field: "target_languages", reason: "empty") }
    return languages
  }

  /// The form of BCP 47 (RFC 5646 section 2.1), looked at no closer: a language of 2 to 8 letters, then parts of 1 to 8
  /// letters and digits.
  package static func isTag(_ text: String) -> Bool {
    guard text.utf8.count <= tagByteCountMax else { return false }
    let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard let language = parts.first, (2...8).contains(language.count), language.allSatisfy({ $0.isLetter }) else {
      return false
    }
    return parts.dropFirst().allSatisfy { (1...8).contains($0.count) && $0.allSatisfy { $0.isLetterOrDigit } }
  }

  var members: [JSONMember] {
    var members: [JSONMember] = []
    if !languages.isEmpty {
      members.append(JSONMember("target_languages", .array(languages.map { .string($0) })))
    }
    if !texts.isEmpty {
      members.append(
        JSONMember("translations", .object(texts.map { JSONMember($0.language, .string($0.text)) })))
    }
    return members
  }

  package static func == (a: Translation, b: Translation) -> Bool {
    a.languages == b.languages && a.texts.elementsEqual(b.texts) { $0 == $1 }
  }
}

/// To whom of a channel something is said. It travels to each of them as a peer message, so that nobody else can read
/// it.
package struct MessageDirection: Equatable, Sendable {
  package let channel: ChannelID
  /// Each once.
  package let receivers: [PeerID]

  package static let receiverCountMax = 20

  package init(channel: ChannelID, receivers: [PeerID]) {
    precondition((1...Self.receiverCountMax).contains(receivers.count), "made here, within what readers take")
    self.channel = channel
    self.receivers = receivers
  }

  /// Nil when neither of its members is there.
  init?(from members: [JSONMember]) throws(WireError) {
    if members["channel_id"] == nil, members["receivers"] == nil { return nil }
    guard let text = try members.optionalString("channel_id"), text.utf8.count == 52,
      let channel = Base32.decode(text).flatMap({ ChannelID(bytes: $0) })
    else { throw .malformed(field: "channel_id", reason: "not a ChannelID") }
    guard case .array(let values) = members["receivers"] else {
      throw .malformed(field: "receivers", reason: "not an array")
    }
    guard values.count <= Self.receiverCountMax else {
      throw .tooMany(field: "receivers", count: UInt64(values.count), countMax: Self.receiverCountMax)
    }
    var receivers: [PeerID] = []
    for value in values {
      guard case .string(let text) = value, let peer = PeerID(text: text), !receivers.contains(peer) else {
        throw .malformed(field: "receivers", reason: "not PeerIDs, each once")
      }
      receivers.append(peer)
    }
    guard !receivers.isEmpty else { throw .malformed(field: "receivers", reason: "empty") }
    self.channel = channel
    self.receivers = receivers
  }

  var members: [JSONMember] {
    [
      JSONMember("channel_id", .string(channel.text)),
      JSONMember("receivers", .array(receivers.map { .string($0.text) })),
    ]
  }
}

extension [JSONMember] {
  /// False when missing.
  func flag(_ name: String) throws(WireError) -> Bool {
    switch self[name] {
    case nil: return false
    case .bool(let value): return value
    default: throw .malformed(field: name, reason: "neither true nor false")
    }
  }
}

extension UInt8 {
  fileprivate var isLetter: Bool { (0x41...0x5A).contains(self) || (0x61...0x7A).contains(self) }
  fileprivate var isLetterOrDigit: Bool { isLetter || (0x30...0x39).contains(self) }
}

/// What names a message everywhere.
package struct MessageKey: Hashable, Sendable {
  package let sender: PeerID
  package let id: MessageID

  package init(sender: PeerID, id: MessageID) {
    self.sender = sender
    self.id = id
  }

  init(from members: [JSONMember], in field: String) throws(WireError) {
    guard let sender = PeerID(text: try members.string("sender_id")) else {
      throw .malformed(field: field, reason: "its sender_id is not a PeerID")
    }
    guard let id = MessageID(try members.string("message_id")) else {
      throw .malformed(field: field, reason: "its message_id is not 1 to 64 bytes")
    }
    self.init(sender: sender, id: id)
  }

  /// 16 bytes to look the message up by: of a store's rows, nothing travels under it.
  package var digest: [UInt8] { Array(BLAKE2b.hash256(sender.bytes + id.text.utf8).bytes.prefix(16)) }

  var json: JSONValue {
    .object([JSONMember("sender_id", .string(sender.text)), JSONMember("message_id", .string(id.text))])
  }
}
