import Parley

/// The message that a call's body asks for.
extension Fields {
  /// What each kind has of its own.
  private static let ownNames: [String: [String]] = [
    "text": ["body", "target_languages"],
    "location": ["latitude", "longitude", "address", "building_name"],
    "custom": ["event", "custom_ext"],
    "cmd": ["action", "params"],
    "photo": ["remote_url", "file_name", "size", "mime", "width", "height"],
    "voice": ["remote_url", "file_name", "size", "mime", "duration"],
    "video": ["remote_url", "file_name", "size", "mime", "duration", "width", "height"],
    "file": ["remote_url", "file_name", "size", "mime", "width", "height"],
  ]
  private static let optionNames = [
    "ext", "reply_to", "online_only", "needs_receipt", "priority", "webhook_env", "broadcast",
  ]
  static let draftNames = ["type"] + Set(ownNames.values.joined()).sorted() + optionNames

  /// Without `type`: a text.
  func draft() throws -> MessageDraft {
    let type = try string("type") ?? "text"
    guard let own = Self.ownNames[type] else {
      throw Problem.badRequest(
        "\"\(type.escapedLine)\" cannot be sent here: \"type\" must be one of "
          + Self.ownNames.keys.sorted().joined(separator: ", ") + "; files are shared (POST …/media)")
    }
    for name in Set(Self.ownNames.values.joined()).sorted() where !own.contains(name) && has(name) {
      throw Problem.badRequest("\"\(name)\" is no member of a message of type \(type)")
    }
    return try withOptions(try content(type))
  }

  private func withOptions(_ content: MessageDraft) throws -> MessageDraft {
    var draft = content
    if let ext = try object("ext") { draft = try draft.with(ext: JSON.object(ext).text) }
    if let answered = try object("reply_to") {
      draft = draft.replying(to: try Self.reference(answered, "reply_to"))
    }
    if try bool("online_only") == true { draft = draft.onlineOnly() }
    if try bool("needs_receipt") == true { draft = draft.needingReceipt() }
    if try bool("broadcast") == true { draft = draft.broadcast() }
    if let name = try string("webhook_env") { draft = try draft.with(webhookEnvironment: name) }
    if let languages = try strings("target_languages") { draft = try draft.translated(into: languages) }
    if let text = try string("priority") {
      guard let priority = Message.Priority(rawValue: text) else {
        throw Problem.badRequest("\"priority\" must be \"high\", \"normal\" or \"low\"")
      }
      draft = draft.with(priority: priority)
    }
    return draft
  }

  private func content(_ type: String) throws -> MessageDraft {
    switch type {
    case "text": return try .text(required("body"))
    case "location":
      return .location(
        try Location(
          latitude: try requiredNumber("latitude"), longitude: try requiredNumber("longitude"),
          address: try string("address"), buildingName: try string("building_name")))
    case "custom": return .custom(try CustomContent(event: try required("event"), fields: try texts("custom_ext")))
    case "cmd": return .command(try CommandContent(action: try required("action"), parameters: try texts("params")))
    default:
      guard let url = try string("remote_url") else {
        throw Problem.badRequest("a \(type) of this machine is shared (POST …/media); here it needs a \"remote_url\"")
      }
      return .remote(
        try RemoteMedia(
          kind: RemoteMedia.Kind(rawValue: type)!, url: url, fileName: try string("file_name") ?? "",
          byteCount: try whole("size").map { UInt64($0) }, mimeType: try string("mime"),
          seconds: try whole("duration"), width: try whole("width"), height: try whole("height")))
    }
  }

  /// How a file is shared, and what beside it.
  func shareOptions() throws -> ShareOptions {
    var options = ShareOptions(as: try Router.kind(try string("as")))
    if try bool("original") == true {
      guard options.kind == nil || options.kind == .photo else {
        throw Problem.badRequest("\"original\" is for photos: videos, voice and files go out as they are")
      }
      options.kind = .originalPhoto
    }
    if has("duration") {
      guard let seconds = Int(exactly: try requiredNumber("duration")) else {
        throw Problem.badRequest("\"duration\" must be whole seconds")
      }
      options.seconds = seconds
    }
    options.thumbnailPath = try path("thumbnail")
    if let ext = try object("ext") { options.ext = JSON.object(ext).text }
    if let answered = try object("reply_to") { options.replyTo = try Self.reference(answered) }
    return options
  }

  static let editNames = ["body", "event", "custom_ext", "ext"]

  /// What a message is to say instead.
  func edit() throws -> MessageEdit {
    let ext = try object("ext").map { JSON.object($0).text }
    var edit: MessageEdit?
    if has("event") {
      try refuse(["body"], of: "a custom message")
      edit = .custom(try CustomContent(event: try required("event"), fields: texts("custom_ext")))
    } else {
      try refuse(["custom_ext"], of: "a text")
      if has("body") { edit = try .text(required("body")) }
    }
    switch (edit, ext) {
    case (let edit?, let ext?): return try edit.with(ext: ext)
    case (let edit?, nil): return edit
    case (nil, let ext?): return try .ext(ext)
    case (nil, nil): throw ParleyError.emptyMessage
    }
  }

  func references(_ name: String) throws(Problem) -> [MessageReference] {
    guard let values = try array(name) else { throw .badRequest("the body lacks \"\(name)\"") }
    var references: [MessageReference] = []
    for value in values { references.append(try Self.reference(value.members ?? [], name)) }
    return references
  }

  private func refuse(_ names: [String], of what: String) throws(Problem) {
    for name in names where has(name) { throw .badRequest("\"\(name)\" is no member of \(what)") }
  }

  private func texts(_ name: String) throws(Problem) -> [CustomContent.Field] {
    var fields: [CustomContent.Field] = []
    for member in try object(name) ?? [] {
      guard let text = member.value.string else { throw Problem.badRequest("\"\(name)\" must hold strings only") }
      fields.append(.init(member.name, text))
    }
    return fields
  }

  static func reference(
    _ members: [JSON.Field], _ name: String = "reply_to"
  ) throws(Problem) -> MessageReference {
    let json = JSON.object(members)
    guard let sender = json["sender_id"]?.string.flatMap({ PeerID(text: $0) }),
      let id = json["message_id"]?.string.flatMap({ MessageID($0) })
    else { throw .badRequest("\"\(name)\" must hold a \"sender_id\" and a \"message_id\"") }
    return MessageReference(sender: sender, id: id)
  }
}
