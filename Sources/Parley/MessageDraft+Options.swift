import ParleyVocabulary
import ParleyWire

extension MessageDraft {
  /// What an application tells others to do: never kept, shown, recalled or edited. Whoever is there has it as
  /// `NodeEvent.command`.
  public static func command(_ command: CommandContent) -> MessageDraft {
    MessageDraft(CmdKind(action: command.action, params: command.parameters.map { ($0.name, $0.value) }))
  }

  /// A photo, voice, video or file on a server of the application's own.
  public static func remote(_ media: RemoteMedia) -> MessageDraft { MessageDraft(media.content) }

  /// The same for whoever is there: it is not kept for anybody who is absent. Those who got it keep it, and so does its
  /// sender; it goes out once and is not repeated, so that a lossy network may lose it.
  public func onlineOnly() -> MessageDraft { changed { $0.isOnlineOnly = true } }

  /// The same with a wish to be told who has read it. Not for rooms.
  public func needingReceipt() -> MessageDraft { changed { $0.needsReceipt = true } }

  /// The same with another priority, which counts in rooms.
  public func with(priority: Message.Priority) -> MessageDraft {
    changed { $0.priority = MessagePriority(rawValue: priority.rawValue)! }
  }

  /// The same as what an organiser says in every room.
  public func broadcast() -> MessageDraft { changed { $0.isBroadcast = true } }

  /// The same with another choice of hooks: those with exactly this name are called, or none. 1 to 8 letters and digits
  /// of ASCII. Throws `.badField`.
  public func with(webhookEnvironment name: String) throws(ParleyError) -> MessageDraft {
    guard MessageOptions.isWebhookEnvironment(name) else {
      throw .badField("webhook_env", value: name, allowed: "1 to 8 letters and digits of ASCII")
    }
    return changed { $0.webhookEnvironment = name }
  }

  /// The same, to be had in these languages too: 1 to 16 tags of BCP 47, such as `de` or `zh-Hans`, each once and of at
  /// most 35 bytes; of texts only. This node's hook for translation is asked when it is sent; with none it goes out
  /// with the tags alone. Throws `.badField`.
  public func translated(into languages: [String]) throws(ParleyError) -> MessageDraft {
    let name = "target_languages"
    guard content is TextKind else { throw .badField(name, value: content.type, allowed: "of texts only") }
    let count = Translation.languageCountMax
    guard (1...count).contains(languages.count) else {
      throw .badField(name, value: "\(languages.count) languages", allowed: "1 to \(count)")
    }
    for (index, tag) in languages.enumerated() {
      guard Translation.isTag(tag), !languages[..<index].contains(tag) else {
        throw .badField(name, value: tag, allowed: "tags such as de or zh-Hans, each once")
      }
    }
    return changed { $0.translation = Translation(into: languages) }
  }

  /// The same, in a channel, for these members only: 1 to 20 of them, none twice and not oneself. It travels to each as
  /// a peer message, which nobody else can read, and waits for who is away. Throws `.badField`.
  public func directed(to receivers: [PeerID]) throws(ParleyError) -> MessageDraft {
    try directed(to: receivers.map(\.text))
  }

  /// The same, each named as for `Node.tell`. Whom that means is found out when it is sent. Throws `.badField`.
  public func directed(to people: [String]) throws(ParleyError) -> MessageDraft {
    let count = MessageDirection.receiverCountMax
    guard (1...count).contains(people.count) else {
      throw .badField("receivers", value: "\(people.count) people", allowed: "1 to \(count)")
    }
    var draft = self
    draft.receivers = people
    return draft
  }

  private func changed(_ change: (inout MessageOptions) -> Void) -> MessageDraft {
    var draft = self
    change(&draft.options)
    return draft
  }
}

/// What an application tells others to do.
public struct CommandContent: Sendable, Equatable {
  /// 1 to 128 bytes of UTF-8; hostile until shown escaped.
  public let action: String
  /// In the order written; no name twice.
  public let parameters: [CustomContent.Field]

  /// Throws `.badField`, also for an action that begins with `em_`, `easemob::` or `parley.`, which are reserved.
  public init(action: String, parameters: [CustomContent.Field] = []) throws(ParleyError) {
    guard CmdKind.isAllowed(action) else {
      throw .badField(
        "action", value: action,
        allowed: "1 to \(CmdKind.actionByteCountMax) bytes that begin with none of "
          + CmdKind.reserved.joined(separator: ", "))
    }
    try CustomContent.check(parameters, "params")
    self.action = action
    self.parameters = parameters
  }

  init(_ kind: CmdKind) {
    action = kind.action
    parameters = kind.params.map { CustomContent.Field($0.name, $0.value) }
  }
}

/// A command that came: what an application tells this one to do.
public struct Command: Sendable, Equatable {
  /// Nil from peer to peer.
  public let channel: ChannelName?
  /// With `sender` the key of the command.
  public let id: MessageID
  /// Who signed it, or whose session it came in.
  public let sender: PeerID
  /// As the sender wished to be shown when writing: hostile until shown escaped.
  public let senderName: String
  /// RFC 3339, UTC, as the sender's clock had it.
  public let timestamp: String
  /// What to do.
  public let content: CommandContent
  /// Data of the application: the text of a JSON object. Hostile.
  public let ext: String?
  /// What is known of who the sender is, beyond that name.
  public let recognition: Recognition
  /// The checked message, encoded again: exactly the members of the schema.
  public let json: String

  public init(
    channel: ChannelName?, id: MessageID, sender: PeerID, senderName: String, timestamp: String,
    content: CommandContent, ext: String? = nil, recognition: Recognition = .none, json: String
  ) {
    self.channel = channel
    self.id = id
    self.sender = sender
    self.senderName = senderName
    self.timestamp = timestamp
    self.content = content
    self.ext = ext
    self.recognition = recognition
    self.json = json
  }
}

/// A photo, voice, video or file on a server of the application's own.
public struct RemoteMedia: Sendable, Equatable {
  /// What it is.
  public enum Kind: String, Sendable, CaseIterable { case photo, voice, video, file }
  /// What it is.
  public let kind: Kind
  /// An address of `http` or `https`, at most 2,048 bytes of printable ASCII, without name and password. Hostile: this
  /// node has not looked there.
  public let url: String
  /// At most 1,024 bytes of UTF-8; hostile until shown escaped or made safe (`SafeFileName`).
  public let fileName: String
  /// As its sender says; nil when not said.
  public let byteCount: UInt64?
  /// As its sender says.
  public let mimeType: String?
  /// Of voice and video: whole seconds, 0 to 2³¹ − 1.
  public let seconds: Int?
  /// Of photo, video and file: dots, 1 to 2³¹ − 1.
  public let width: Int?
  /// Of photo, video and file: dots, 1 to 2³¹ − 1.
  public let height: Int?

  /// Throws `.badField`.
  public init(
    kind: Kind, url: String, fileName: String, byteCount: UInt64? = nil, mimeType: String? = nil, seconds: Int? = nil,
    width: Int? = nil, height: Int? = nil
  ) throws(ParleyError) {
    guard RemoteMediaKind.isAddress(url) else {
      throw .badField(
        "remote_url", value: url,
        allowed: "an address of http or https, of at most \(RemoteMediaKind.urlByteCountMax) bytes")
    }
    for (name, text, most) in [("file_name", fileName, 1_024), ("mime", mimeType ?? "", 255)]
    where text.utf8.count > most { throw .badField(name, value: text, allowed: "at most \(most) bytes") }
    if let byteCount, byteCount > Limit.counterMax {
      throw .badField("size", value: "\(byteCount)", allowed: "at most \(Limit.counterMax)")
    }
    let isTimed = kind == .voice || kind == .video
    guard isTimed == (seconds != nil) else {
      throw .badField("duration", value: seconds.map { "\($0)" } ?? "nothing", allowed: "of voice and video")
    }
    let numbers = [("duration", seconds, 0), ("width", width, 1), ("height", height, 1)]
    for case (let name, let value?, let least) in numbers {
      guard (least...Int(PictureMembers.numberMax)).contains(value), kind != .voice || name == "duration" else {
        throw .badField(name, value: "\(value)", allowed: "\(least) to 2147483647, of what is seen")
      }
    }
    self.kind = kind
    self.url = url
    self.fileName = fileName
    self.byteCount = byteCount
    self.mimeType = mimeType
    self.seconds = seconds
    self.width = width
    self.height = height
  }

  init(_ media: RemoteMediaKind) {
    kind = Kind(rawValue: media.type)!
    url = media.url
    fileName = media.fileName
    byteCount = media.byteCount
    mimeType = media.mimeType
    seconds = media.duration.map { Int($0) }
    width = media.width.map { Int($0) }
    height = media.height.map { Int($0) }
  }

  var content: RemoteMediaKind {
    RemoteMediaKind(
      type: kind.rawValue, url: url, fileName: fileName, byteCount: byteCount, mimeType: mimeType,
      duration: seconds.map { UInt32($0) }, width: width.map { UInt32($0) }, height: height.map { UInt32($0) })
  }
}
