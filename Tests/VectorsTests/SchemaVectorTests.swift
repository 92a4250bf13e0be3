import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleySealing

@Suite struct SchemaVectorTests {
  /// Exactly these bytes, and what a reader must understand.
  @Test func messages() throws {
    var file = VectorFile("messages")
    for (name, json) in Self.messages {
      let message = try SchemaMessage(decoding: json, author: nil)
      #expect(message.encoded == json)
      file.add(name, [JSONMember("json", String(decoding: json, as: UTF8.self))] + Self.meaning(message))
    }
    // Other spellings of the same, which a reader takes and a writer never makes.
    for (name, text) in Self.otherSpellings {
      let message = try SchemaMessage(decoding: Array(text.utf8), author: Facts.ana.peerID)
      file.add(name, [JSONMember("json", text)] + Self.meaning(message))
    }
    try file.check()
  }

  private static let messages: [(String, [UInt8])] =
    [
      ("status, online", Facts.online), ("status, offline", Facts.offline), ("raise_hand, up", Facts.handUp),
      ("raise_hand, down", Facts.handDown), ("text", Facts.text), ("photo", Facts.photo), ("file", Facts.file),
      (
        "text, escapes",
        Facts.message(TextKind(body: "\"\\/\n\r\t\u{8}\u{7F}\u{85}\u{2028}я😀"), id: "номер 5", from: Facts.benSender)
      ), ("text, empty body", Facts.message(TextKind(body: ""), id: "m-6")),
      (
        "photo, all members",
        Facts.message(
          PhotoKind(
            file: MediaMembers(id: Facts.media, fileName: "", byteCount: Limit.counterMax, mimeType: ""),
            picture: PictureMembers(
              width: PictureMembers.numberMax, height: 1, isOriginal: true, isGIF: true, big: Facts.otherMedia,
              thumbnail: Facts.media)),
          id: String(repeating: "x", count: 64))
      ),
      (
        "video",
        Facts.message(
          VideoKind(
            file: MediaMembers(id: Facts.media, fileName: "a.mp4", byteCount: nil, mimeType: nil), duration: 0),
          id: "m-7")
      ),
      (
        "video, all members",
        Facts.message(
          VideoKind(
            file: MediaMembers(id: Facts.media, fileName: "a.mp4", byteCount: 1_048_577, mimeType: "video/mp4"),
            duration: PictureMembers.numberMax,
            picture: PictureMembers(width: 1_920, height: 1_080, thumbnail: Facts.otherMedia)), id: "m-8")
      ),
    ] + others + acts + attributes + deeds

  private static let others: [(String, [UInt8])] = [
    (
      "voice",
      Facts.message(
        VoiceKind(
          file: MediaMembers(id: Facts.media, fileName: "a.ogg", byteCount: 40_000, mimeType: "audio/ogg"),
          duration: 7), id: "m-9")
    ), ("location", Facts.message(LocationKind(latitude: -90, longitude: 13.376_25), id: "m-10")),
    (
      "location, all members",
      Facts.message(
        LocationKind(latitude: 31.230_416, longitude: -180, address: "人民大道 200", buildingName: "上海博物馆"), id: "m-11")
    ), ("custom", Facts.message(CustomKind(event: "seat"), id: "m-12")),
    (
      "custom, all members",
      Facts.message(CustomKind(event: "seat", fields: [("row", "3"), ("", "\n"), ("a", "")]), id: "m-13")
    ),
    (
      "text, all options",
      Facts.message(
        TextKind(body: "yes"), id: "m-14",
        options: MessageOptions(
          ext: [
            JSONMember("z", .array([.null, .bool(true), .integer(-1), .number(2.5), .string("я")])),
            JSONMember("a", .object([JSONMember("", .string(""))])),
          ], replyTo: MessageKey(sender: Facts.ben.peerID, id: MessageID("m-1")!)))
    ),
    ("combine", Facts.message(BundleVectorTests.combine(levels: 1), id: "m-16")),
    (
      "combine, all members",
      Facts.message(
        CombineKind(
          title: String(repeating: "t", count: 256), summary: "Ana: 会議\nBen: \"ok\"", compatibleText: "[会議]",
          media: Facts.otherMedia, byteCount: UInt64(MessageBundle.byteCountMax), levels: 10), id: "m-17")
    ),
    ("cmd", Facts.command),
    (
      "cmd, all members",
      Facts.message(
        CmdKind(action: String(repeating: "é", count: 64), params: [("page", "2"), ("", "")]), id: "m-17",
        options: Facts.onlineOnly)
    ), ("text, options of delivery", Facts.message(TextKind(body: "yes"), id: "m-18", options: Facts.delivery)),
    ("custom to some", Facts.message(CustomKind(event: "e"), id: "m-19", options: Facts.directed(count: 1))),
    ("text to as many as can be", Facts.message(TextKind(body: ""), id: "m-20", options: Facts.directed(count: 20))),
    (
      "photo elsewhere",
      Facts.message(
        RemoteMediaKind(type: "photo", url: "HTTPS://media.example/a.jpg", fileName: "кот.jpg"), id: "m-21")
    ),
    (
      "video elsewhere, all members",
      Facts.message(
        RemoteMediaKind(
          type: "video", url: "http://[::1]:8080?" + String(repeating: "q", count: 2_030), fileName: "",
          byteCount: Limit.counterMax, mimeType: "video/mp4", duration: 0, width: 1, height: PictureMembers.numberMax),
        id: "m-22")
    ),
    (
      "voice elsewhere",
      Facts.message(
        RemoteMediaKind(type: "voice", url: "http://a", fileName: "a.ogg", duration: 7), id: "m-23")
    ), ("file elsewhere", Facts.message(RemoteMediaKind(type: "file", url: "http://a/", fileName: "f"), id: "m-24")),
    ("text, empty ext", Facts.message(TextKind(body: "yes"), id: "m-15", options: MessageOptions(ext: []))),
  ]

  private static let acts: [(String, [UInt8])] = {
    let ben = Facts.ben.peerID
    let kinds: [(String, any MessageKind)] = [
      ("joined", JoinedKind(grant: Facts.grant)), ("joined as admin", JoinedKind(grant: Facts.adminGrant)),
      ("role, owner", RoleKind(target: ben, role: .owner, heads: Facts.heads)),
      ("role, admin", RoleKind(target: ben, role: .admin, heads: ActHeads([:]))),
      ("role, member", RoleKind(target: ben, role: .member, heads: Facts.heads)),
      ("role, muted", RoleKind(target: ben, role: .muted, heads: Facts.heads)),
      ("role, muted until", RoleKind(target: ben, role: .muted, until: Limit.counterMax, heads: Facts.heads)),
      ("role, removed", RoleKind(target: ben, role: .removed, heads: Facts.heads)),
      ("role, banned", RoleKind(target: ben, role: .banned, heads: Facts.heads)),
      ("lower_hand", LowerHandKind(target: ben, heads: Facts.heads)),
      ("announcement", AnnouncementKind(body: "Back at 9:00\n\"sharp\"")), ("close", CloseKind()),
      ("generation", GenerationKind(number: GenerationKind.numberMax, hash: Hash32(Facts.media.value))),
      ("token", TokenKind(token: "v4.public.abc")), ("organiser", OrganiserKind(key: ben)),
      ("organiser, none", OrganiserKind(key: nil)),
    ]
    return kinds.map { ("act: \($0)", Facts.message($1, id: "a-1")) }
  }()

  private static let attributes: [(String, [UInt8])] = [
    ("attribute", AttributeKind(key: "topic", value: "Plans\n\"for May\"")),
    ("attribute, empty", AttributeKind(key: "k", value: "")),
    ("attribute, deleted", AttributeKind(key: "topic", value: nil)),
    ("attribute, deleted if one's own", AttributeKind(key: "topic", value: nil, isOverwriting: false)),
    (
      "attribute, at its limits",
      AttributeKind(
        key: String(repeating: "k", count: 128), value: String(repeating: "v", count: 4_096), isUntilLeave: true,
        isOverwriting: false, replaces: Instance(0x0102_0304_0506_0708))
    ), ("typing", TypingKind(isTyping: true)), ("typing no more", TypingKind(isTyping: false)),
  ].map { (name: String, kind: any MessageKind) in (name, Facts.message(kind, id: kind is TypingKind ? nil : "t-1")) }

  /// What is done to messages.
  private static let deeds: [(String, [UInt8])] = {
    let target = MessageKey(sender: Facts.ben.peerID, id: MessageID("номер 5")!)
    let custom = EditKind.Content.custom(CustomKind(event: "seat", fields: [("row", "4")]))
    let kinds: [(String, any MessageKind)] = [
      ("recall", RecallKind(target: target)),
      ("edit, body", EditKind(target: target, content: .body("Hello \"World\""), ext: nil)),
      ("edit, custom and ext", EditKind(target: target, content: custom, ext: [JSONMember("a", .integer(1))])),
      ("edit, empty custom", EditKind(target: target, content: .custom(CustomKind(event: "seat")), ext: nil)),
      ("edit, empty ext", EditKind(target: target, content: nil, ext: [])),
      ("react", ReactKind(target: target, emoji: "👩🏽‍🚀", isOn: true)),
      ("react, off", ReactKind(target: target, emoji: String(repeating: "x", count: 64), isOn: false)),
      ("pin", PinKind(target: target, isOn: true)), ("pin, off", PinKind(target: target, isOn: false)),
      ("read", ReadKind(targets: [target])),
      (
        "read, 64 messages",
        ReadKind(targets: (1...64).map { MessageKey(sender: Facts.ana.peerID, id: MessageID("m-\($0)")!) })
      ),
    ]
    return kinds.map { ("deed: \($0)", Facts.message($1, id: "d-1")) }
  }()

  private static let otherSpellings: [(String, String)] = {
    let id = Facts.ana.peerID.text
    return [
      (
        "any order, spaces, members that are not known",
        """
         { "x" : [ { } , null ] , "body" : "Hello World", "type":"text",\t"timestamp":"2021-03-12T10:05:16.5+01:00",
        "message_id":"m-1","sender":{"z":1,"sender_id":"\(id)","display_name":"Ana"} }
        """
      ),
      (
        "escapes where none are needed",
        #"{"\u0074ype":"text","sender":{"display_name":"\u0041na","sender_id":"\#(id)"},"message_id":"m\/1","#
          + #""timestamp":"2021-03-12T09:05:16Z","body":"\ud83d\ude00\u0000"}"#
      ),
      (
        "a location in whole degrees, with an option",
        #"{"ext":{},"longitude":-0,"latitude":5e1,"type":"location","sender":{"display_name":"Ana","#
          + #""sender_id":"\#(id)"},"message_id":"l","timestamp":"2021-03-12T09:05:16Z"}"#
      ),
      (
        "a hand with what is no option of it",
        #"{"type":"raise_hand","sender":{"display_name":"Ana","sender_id":"\#(id)"},"body":"true","ext":1}"#
      ),
      (
        "a kind that is not known",
        #"{"type":"later","sender":{"display_name":"Ana","sender_id":"\#(id)"},"x":1.5}"#
      ),
      (
        "a status with a message ID",
        #"{"type":"status","sender":{"display_name":"Ana","sender_id":"\#(id)"},"message_id":"s","body":"online"}"#
      ),
      (
        "options that say nothing",
        #"{"online_only":false,"priority":"normal","needs_receipt":false,"broadcast":false,"translations":{},"#
          + #""type":"text","sender":{"display_name":"Ana","sender_id":"\#(id)"},"message_id":"o","#
          + #""timestamp":"2021-03-12T09:05:16Z","body":""}"#
      ),
      (
        "a place with languages, which only texts have",
        #"{"type":"location","sender":{"display_name":"Ana","sender_id":"\#(id)"},"message_id":"l","#
          + #""timestamp":"2021-03-12T09:05:16Z","latitude":1,"longitude":1,"target_languages":7}"#
      ),
      (
        "a photo that says what it is not",
        #"{"type":"photo","sender":{"display_name":"Ana","sender_id":"\#(id)"},"message_id":"p","#
          + #""timestamp":"2021-03-12T09:05:16Z","media_id":"\#(Facts.media.text)","file_name":"f","gif":false,"#
          + #""original":false,"duration":"long"}"#
      ),
    ]
  }()

  static func meaning(_ message: SchemaMessage) -> [JSONMember] {
    let own: [JSONMember] =
      switch message.content {
      case let status as StatusKind: [JSONMember("online", status.isOnline)]
      case let hand as RaiseHandKind: [JSONMember("raised", hand.isRaised)]
      case let text as TextKind: [JSONMember("body", text.body)]
      case let photo as PhotoKind:
        photo.file.value + photo.picture.size + [
          JSONMember("original", .bool(photo.picture.isOriginal)), JSONMember("gif", .bool(photo.picture.isGIF)),
          JSONMember("big_media_id", photo.picture.big.map { .string($0.text) } ?? .null),
          photo.picture.thumbnailMember,
        ]
      case let video as VideoKind:
        video.file.value + [JSONMember("duration", .integer(Int64(video.duration)))] + video.picture.size
          + [video.picture.thumbnailMember]
      case let file as FileKind: file.file.value
      case let voice as VoiceKind: voice.file.value + [JSONMember("duration", .integer(Int64(voice.duration)))]
      case let location as LocationKind:
        [
          JSONMember("latitude", .number(location.latitude)), JSONMember("longitude", .number(location.longitude)),
          JSONMember("address", location.address.map { .string($0) } ?? .null),
          JSONMember("building_name", location.buildingName.map { .string($0) } ?? .null),
        ]
      case let combine as CombineKind:
        [
          JSONMember("title", combine.title), JSONMember("summary", combine.summary),
          JSONMember("compatible_text", combine.compatibleText), JSONMember("media_id", combine.media.text),
          JSONMember("size", combine.byteCount), JSONMember("levels", combine.levels),
        ]
      case let custom as CustomKind:
        [
          JSONMember("event", custom.event),
          JSONMember("custom_ext", .object(custom.fields.map { JSONMember($0.name, $0.value) })),
        ]
      case let typing as TypingKind: [JSONMember("typing", typing.isTyping)]
      case let command as CmdKind:
        [
          JSONMember("action", command.action),
          JSONMember("params", .object(command.params.map { JSONMember($0.name, $0.value) })),
        ]
      case let media as RemoteMediaKind: media.value
      case let act as any ActKind: meaning(act)
      case let deed as any MessageActKind: meaning(deed)
      default: []
      }
    let options =
      [
        message.options.ext.map { JSONMember("ext", .object($0)) },
        message.options.replyTo.map {
          JSONMember(
            "reply_to", .object([JSONMember("sender_id", $0.sender.text), JSONMember("message_id", $0.id.text)]))
        },
      ].compactMap { $0 } + Facts.meaning(message.options)
    return [
      JSONMember(
        "value",
        .object(
          [
            JSONMember("type", message.content.type), JSONMember("sender_id", message.sender.peer.text),
            JSONMember("display_name", message.sender.displayName.text),
            JSONMember("message_id", message.messageID.map { .string($0.text) } ?? .null),
            JSONMember("timestamp", message.timestamp.map { .string($0) } ?? .null),
          ] + own + options))
    ]
  }
}

extension SchemaVectorTests {
  private static func meaning(_ act: any ActKind) -> [JSONMember] {
    switch act {
    case let attribute as AttributeKind:
      [
        JSONMember("key", attribute.key), JSONMember("value", attribute.value.map { .string($0) } ?? .null),
        JSONMember("until_leave", attribute.isUntilLeave), JSONMember("overwrite", attribute.isOverwriting),
        JSONMember("replaces", attribute.replaces.map { .string($0.description) } ?? .null),
      ]
    case let joined as JoinedKind: [JSONMember("grant", joined.grant.value)]
    case let role as RoleKind:
      [
        JSONMember("target", role.target.text), JSONMember("role", role.role.rawValue),
        JSONMember("until", role.until.map { .integer(Int64($0)) } ?? .null), role.heads.value,
      ]
    case let hand as LowerHandKind: [JSONMember("target", hand.target.text), hand.heads.value]
    case let announcement as AnnouncementKind: [JSONMember("body", announcement.body)]
    case let generation as GenerationKind:
      [JSONMember("number", generation.number), JSONMember("hash", hex: generation.hash.bytes)]
    case let token as TokenKind: [JSONMember("token", token.token)]
    case let organiser as OrganiserKind: [JSONMember("key", organiser.key.map { .string($0.text) } ?? .null)]
    default: []
    }
  }
}

extension SchemaVectorTests {
  private static func meaning(_ deed: any MessageActKind) -> [JSONMember] {
    switch deed {
    case let recall as RecallKind: [recall.target.value]
    case let edit as EditKind:
      [edit.target.value] + meaning(edit.content)
        + [JSONMember("ext", edit.ext.map { .object($0) } ?? .null)]
    case let react as ReactKind:
      [react.target.value, JSONMember("emoji", react.emoji), JSONMember("on", .bool(react.isOn))]
    case let pin as PinKind: [pin.target.value, JSONMember("on", .bool(pin.isOn))]
    case let read as ReadKind: [JSONMember("targets", .array(read.targets.map { $0.value.value }))]
    default: []
    }
  }

  private static func meaning(_ content: EditKind.Content?) -> [JSONMember] {
    switch content {
    case nil: []
    case .body(let body): [JSONMember("body", body)]
    case .custom(let custom):
      [
        JSONMember("event", custom.event),
        JSONMember("custom_ext", .object(custom.fields.map { JSONMember($0.name, $0.value) })),
      ]
    }
  }
}

extension MessageKey {
  fileprivate var value: JSONMember {
    JSONMember("target", .object([JSONMember("sender_id", sender.text), JSONMember("message_id", id.text)]))
  }
}

extension ActHeads {
  fileprivate var value: JSONMember {
    JSONMember(
      "heads",
      .array(heads.map { .object([JSONMember("log", bits: $0.log.value), JSONMember("number", $0.number)]) }))
  }
}

extension MediaMembers {
  fileprivate var value: [JSONMember] {
    [
      JSONMember("media_id", id.text), JSONMember("file_name", fileName),
      JSONMember("size", byteCount.map { .integer(Int64($0)) } ?? .null),
      JSONMember("mime", mimeType.map { .string($0) } ?? .null),
    ]
  }
}

extension PictureMembers {
  fileprivate var size: [JSONMember] {
    [
      JSONMember("width", width.map { .integer(Int64($0)) } ?? .null),
      JSONMember("height", height.map { .integer(Int64($0)) } ?? .null),
    ]
  }

  fileprivate var thumbnailMember: JSONMember {
    JSONMember("thumbnail_media_id", thumbnail.map { .string($0.text) } ?? .null)
  }
}
