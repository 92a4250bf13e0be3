import ParleyVocabulary
import ParleyWire

/// What a hook before the fact says of a message.
enum HookAnswer: Equatable {
  case allow
  case refuse(reason: String)
  /// These members in the place of those of the same names; null takes one away.
  case rewrite([JSONMember])

  /// Why an answer is none.
  struct Nonsense: Error, Equatable {
    let reason: String
  }

  private static let reasonByteCountMax = 1_024

  /// Nothing at all allows. Otherwise an object with `action`: `allow`, `refuse` with `reason`, or `rewrite` with
  /// `message`, an object of members.
  init(_ bytes: [UInt8]) throws(Nonsense) {
    if bytes.allSatisfy({ $0 == 0x20 || (0x09...0x0D).contains($0) }) {
      self = .allow
      return
    }
    let members = try Self.object(bytes)
    switch members["action"] {
    case .string("allow"): self = .allow
    case .string("refuse"):
      guard case .string(let reason) = members["reason"] ?? .string(""), reason.utf8.count <= Self.reasonByteCountMax
      else { throw Nonsense(reason: "its reason is no text of at most \(Self.reasonByteCountMax) bytes") }
      self = .refuse(reason: reason)
    case .string("rewrite"):
      guard case .object(let changes) = members["message"] else {
        throw Nonsense(reason: "it rewrites, and gives no message")
      }
      self = .rewrite(changes)
    default: throw Nonsense(reason: "its action is neither allow, refuse nor rewrite")
    }
  }

  private static func object(_ bytes: [UInt8]) throws(Nonsense) -> [JSONMember] {
    let value: JSONValue
    do throws(WireError) { value = try JSONValue(decoding: bytes) } catch {
      throw Nonsense(reason: "it answered what is no JSON")
    }
    guard case .object(let members) = value else { throw Nonsense(reason: "it answered what is no JSON object") }
    return members
  }

  /// Who says it, when, to whom and in what manner is not the hook's to change.
  static let fixed: Set = [
    "sender", "message_id", "timestamp", "type", "channel_id", "receivers", "online_only", "webhook_env", "broadcast",
    "needs_receipt", "priority",
  ]

  static func apply(_ changes: [JSONMember], to message: SchemaMessage) throws(Nonsense) -> SchemaMessage {
    var members = try object(message.encoded)
    for change in changes {
      if fixed.contains(change.name) { throw Nonsense(reason: "it may not change \(change.name)") }
      let index = members.firstIndex { $0.name == change.name }
      switch (index, change.value) {
      case (let index?, .null): members.remove(at: index)
      case (nil, .null): break
      case (let index?, _): members[index] = change
      case (nil, _): members.append(change)
      }
    }
    do throws(WireError) {
      return try SchemaMessage(decoding: JSONValue.object(members).encoded, author: message.sender.peer)
    } catch { throw Nonsense(reason: "what it wrote is no message: \(error)") }
  }

  /// The texts by language that a hook for translation gave: `{"translations":{"de":"…"}}`, of those asked for only.
  static func translations(
    _ bytes: [UInt8], into languages: [String]
  ) throws(Nonsense) -> [(language: String, text: String)] {
    guard case .object(let members) = try object(bytes)["translations"] else {
      throw Nonsense(reason: "it gave no translations")
    }
    var texts: [(language: String, text: String)] = []
    for member in members {
      guard languages.contains(member.name), case .string(let text) = member.value else {
        throw Nonsense(reason: "it gave what is no text in one of the languages asked for")
      }
      texts.append((member.name, text))
    }
    return texts
  }
}
