import Parley

/// The message that a call's body asks for.
extension Fields {
  static let draftNames = [
    "type", "body", "latitude", "longitude", "address", "building_name", "event", "custom_ext", "ext", "reply_to",
  ]
  private static let commonNames: Set = ["type", "ext", "reply_to"]

  /// Without `type`: a text.
  func draft() throws -> MessageDraft {
    var draft = try content()
    if let ext = try object("ext") { draft = try draft.with(ext: JSON.object(ext).text) }
    if let answered = try object("reply_to") {
      draft = draft.replying(to: try Self.reference(answered, "reply_to"))
    }
    return draft
  }

  private func content() throws -> MessageDraft {
    switch try string("type") {
    case nil, "text":
      try refuse(["latitude", "longitude", "address", "building_name", "event", "custom_ext"], of: "a text")
      return try .text(required("body"))
    case "location":
      try refuse(["body", "event", "custom_ext"], of: "a location")
      return .location(
        try Location(
          latitude: try requiredNumber("latitude"), longitude: try requiredNumber("longitude"),
          address: try string("address"), buildingName: try string("building_name")))
    case "custom":
      try refuse(["body", "latitude", "longitude", "address", "building_name"], of: "a custom message")
      return .custom(try CustomContent(event: try required("event"), fields: try customFields()))
    case let type?:
      throw Problem.badRequest(
        "\"\(type.escapedLine)\" cannot be sent here: \"type\" must be \"text\", \"location\" or \"custom\"; files are "
          + "shared (POST …/media)")
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
      edit = .custom(try CustomContent(event: try required("event"), fields: customFields()))
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

  private func customFields() throws -> [CustomContent.Field] {
    var fields: [CustomContent.Field] = []
    for member in try object("custom_ext") ?? [] {
      guard let text = member.value.string else { throw Problem.badRequest("\"custom_ext\" must hold strings only") }
      fields.append(.init(member.name, text))
    }
    return fields
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
