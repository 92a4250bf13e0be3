import ParleyVocabulary
import ParleyWire

/// Messages that somebody put together. `Node.unpack(_:)` gives them.
public struct CombinedMessages: Sendable, Equatable {
  /// 1 to 256 bytes of UTF-8; hostile until shown escaped.
  public let title: String
  /// At most 1,024 bytes of UTF-8; hostile until shown escaped.
  public let summary: String
  /// What nodes show that do not know this kind: 1 to 1,024 bytes of UTF-8; hostile until shown escaped.
  public let compatibleText: String
  /// The file with the messages.
  public let bundle: MediaReference
  /// 1 to 10: one more than the most of any combined messages in it, 1 without any.
  public let levels: Int

  public init(title: String, summary: String, compatibleText: String, bundle: MediaReference, levels: Int) {
    self.title = title
    self.summary = summary
    self.compatibleText = compatibleText
    self.bundle = bundle
    self.levels = levels
  }

  init(_ kind: CombineKind) {
    self.init(
      title: kind.title, summary: kind.summary, compatibleText: kind.compatibleText,
      bundle: MediaReference(
        id: kind.media, fileName: MessageBundle.fileName, byteCount: kind.byteCount, mimeType: MessageBundle.mimeType),
      levels: kind.levels)
  }
}

/// One of the messages that were combined. Nothing but the word of whoever combined them says that its sender wrote it.
public struct UnpackedMessage: Sendable, Equatable {
  /// Who is said to have written it.
  public let sender: PeerID
  /// As they wished to be shown then: hostile until shown escaped.
  public let senderName: String
  public let id: MessageID
  /// RFC 3339.
  public let timestamp: String
  public let body: Message.Body
  /// Data of the application: the text of a JSON object. Hostile.
  public let ext: String?
  /// The message as it was written.
  public let json: String

  public init(
    sender: PeerID, senderName: String, id: MessageID, timestamp: String, body: Message.Body, ext: String?, json: String
  ) {
    self.sender = sender
    self.senderName = senderName
    self.id = id
    self.timestamp = timestamp
    self.body = body
    self.ext = ext
    self.json = json
  }

  init?(_ message: SchemaMessage) {
    guard let id = message.messageID else { return nil }
    self.init(
      sender: message.sender.peer, senderName: message.sender.displayName.text, id: id,
      timestamp: message.timestamp ?? "", body: Message.Body(message.content),
      ext: message.options.ext.map { String(decoding: JSONValue.object($0).encoded, as: UTF8.self) },
      json: String(decoding: message.encoded, as: UTF8.self))
  }
}

/// What is to be combined, and how it is called.
public struct CombineDraft: Sendable, Equatable {
  public let title: String
  public let summary: String
  public let compatibleText: String

  /// `compatibleText`: nil for the title in brackets. Throws `.badField`.
  public init(title: String, summary: String = "", compatibleText: String? = nil) throws(ParleyError) {
    let text = compatibleText ?? "[\(title)]"
    let fields = [
      ("title", title, 1, CombineKind.titleByteCountMax), ("summary", summary, 0, CombineKind.textByteCountMax),
      ("compatible_text", text, 1, CombineKind.textByteCountMax),
    ]
    for (name, value, least, most) in fields where !(least...most).contains(value.utf8.count) {
      throw .badField(name, value: value, allowed: "\(least) to \(most) bytes")
    }
    self.title = title
    self.summary = summary
    self.compatibleText = text
  }

  /// Messages that can be combined into one.
  public static let countRange = MessageBundle.countRange
  /// Levels of combined messages in combined messages.
  public static let levelRange = MessageBundle.levelRange
}

extension Message {
  /// The file with the messages of a combined one.
  public var bundle: MediaReference? {
    if case .combine(let combined) = body { combined.bundle } else { nil }
  }

  /// What is shown where the kind is not known; nil where its sender said nothing. Hostile until shown escaped.
  public var compatibleText: String? {
    switch body {
    case .combine(let combined): return combined.compatibleText
    case .unknown:
      guard case .object(let members)? = try? JSONValue(decoding: json.utf8) else { return nil }
      return (try? members.optionalString("compatible_text")) ?? nil
    default: return nil
    }
  }
}
