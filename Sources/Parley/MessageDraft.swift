import ParleyVocabulary
import ParleyWire

/// A message to be sent. One that no reader would take cannot be made: the errors name the field, its value and what is
/// allowed.
public struct MessageDraft: Sendable {
  let content: any MessageKind
  var options = MessageOptions.none
  /// To whom of a channel, as for `Node.tell`; empty: to all.
  var receivers: [String] = []

  init(_ content: any MessageKind, _ options: MessageOptions = .none) {
    self.content = content
    self.options = options
  }

  /// For whoever is there, and nobody else.
  var isLive: Bool { type(of: content).isLive || options.isOnlineOnly }

  /// What it will say: the message's JSON but for what only the node knows (sender, message_id, timestamp).
  package var json: String {
    let type = JSONMember("type", .string(content.type))
    let named = receivers.isEmpty ? [] : [JSONMember("receivers", .array(receivers.map { .string($0) }))]
    let members = [type] + content.members + options.members + named
    return String(decoding: JSONValue.object(members).encoded, as: UTF8.self)
  }

  /// Throws `.emptyMessage`.
  public static func text(_ text: String) throws(ParleyError) -> MessageDraft {
    guard !text.isEmpty else { throw .emptyMessage }
    return MessageDraft(TextKind(body: text))
  }

  /// A place.
  public static func location(_ location: Location) -> MessageDraft {
    MessageDraft(
      LocationKind(
        latitude: location.latitude, longitude: location.longitude, address: location.address,
        buildingName: location.buildingName))
  }

  /// What the application makes of its own.
  public static func custom(_ custom: CustomContent) -> MessageDraft {
    MessageDraft(CustomKind(event: custom.event, fields: custom.fields.map { ($0.name, $0.value) }))
  }

  /// The same with data of the application beside it, looked at by nobody else. `json`: the text of a JSON object,
  /// nested at most 15 deep; it counts toward the 30,000 bytes of the message. Throws `.badField`.
  public func with(ext json: String) throws(ParleyError) -> MessageDraft {
    var draft = self
    draft.options.ext = try Self.ext(json)
    return draft
  }

  static func ext(_ json: String) throws(ParleyError) -> [JSONMember] {
    let value: JSONValue
    do throws(WireError) { value = try JSONValue(decoding: json.utf8) } catch {
      throw .badField("ext", value: json, allowed: "a JSON object (\(error))")
    }
    guard case .object(let members) = value, value.depth < Limit.jsonDepthMax else {
      throw .badField("ext", value: json, allowed: "a JSON object, nested at most \(Limit.jsonDepthMax - 1) deep")
    }
    return members
  }

  /// The same as an answer to a message, whether its readers have that or not.
  public func replying(to message: MessageReference) -> MessageDraft {
    var draft = self
    draft.options.replyTo = MessageKey(sender: message.sender, id: message.id)
    return draft
  }
}

/// What names a message everywhere.
public struct MessageReference: Sendable, Hashable {
  /// Who signed it.
  public let sender: PeerID
  /// As its sender chose it: two senders may choose the same.
  public let id: MessageID

  public init(sender: PeerID, id: MessageID) {
    self.sender = sender
    self.id = id
  }

  init(_ key: MessageKey) { self.init(sender: key.sender, id: key.id) }
}

/// A place, as somebody said it.
public struct Location: Sendable, Equatable {
  /// Degrees, WGS 84; north is positive, −90 to 90.
  public let latitude: Double
  /// Degrees, WGS 84; east is positive, −180 to 180.
  public let longitude: Double
  /// At most 1,024 bytes of UTF-8; hostile until shown escaped.
  public let address: String?
  /// At most 1,024 bytes of UTF-8; hostile until shown escaped.
  public let buildingName: String?

  /// Throws `.badField`.
  public init(
    latitude: Double, longitude: Double, address: String? = nil, buildingName: String? = nil
  ) throws(ParleyError) {
    guard LocationKind.latitudes.contains(latitude) else {
      throw .badField("latitude", value: "\(latitude)", allowed: "-90 to 90 degrees")
    }
    guard LocationKind.longitudes.contains(longitude) else {
      throw .badField("longitude", value: "\(longitude)", allowed: "-180 to 180 degrees")
    }
    for (name, text) in [("address", address), ("building_name", buildingName)] {
      guard let text, text.utf8.count > LocationKind.textByteCountMax else { continue }
      throw .badField(name, value: text, allowed: "at most \(LocationKind.textByteCountMax) bytes")
    }
    self.latitude = latitude
    self.longitude = longitude
    self.address = address
    self.buildingName = buildingName
  }

  init(_ kind: LocationKind) {
    latitude = kind.latitude
    longitude = kind.longitude
    address = kind.address
    buildingName = kind.buildingName
  }
}

/// What an application says in its own words: a name, and texts by name.
public struct CustomContent: Sendable, Equatable {
  /// One of the texts.
  public struct Field: Sendable, Equatable {
    public let name: String
    public let value: String

    public init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// 1 to 128 bytes of UTF-8; hostile until shown escaped.
  public let event: String
  /// In the order written; no name twice.
  public let fields: [Field]

  /// Throws `.badField`.
  public init(event: String, fields: [Field] = []) throws(ParleyError) {
    guard (1...CustomKind.eventByteCountMax).contains(event.utf8.count) else {
      throw .badField("event", value: event, allowed: "1 to \(CustomKind.eventByteCountMax) bytes")
    }
    try Self.check(fields, "custom_ext")
    self.event = event
    self.fields = fields
  }

  static func check(_ fields: [Field], _ member: String) throws(ParleyError) {
    var names: Set<[UInt8]> = []
    for field in fields where !names.insert(Array(field.name.utf8)).inserted || field.name.utf8.contains(0) {
      throw .badField(member, value: field.name, allowed: "each name once, without U+0000")
    }
  }

  init(_ kind: CustomKind) {
    event = kind.event
    fields = kind.fields.map { Field($0.name, $0.value) }
  }
}
