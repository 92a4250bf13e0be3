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

  private static let messages: [(String, [UInt8])] = [
    ("status, online", Facts.online), ("status, offline", Facts.offline), ("raise_hand, up", Facts.handUp),
    ("raise_hand, down", Facts.handDown), ("text", Facts.text), ("photo", Facts.photo), ("file", Facts.file),
    (
      "text, escapes",
      Facts.message(TextKind(body: "\"\\/\n\r\t\u{8}\u{7F}\u{85}\u{2028}я😀"), id: "номер 5", from: Facts.benSender)
    ), ("text, empty body", Facts.message(TextKind(body: ""), id: "m-6")),
    (
      "photo, all members",
      Facts.message(
        PhotoKind(file: MediaMembers(id: Facts.media, fileName: "", byteCount: Limit.counterMax, mimeType: "")),
        id: String(repeating: "x", count: 64))
    ),
  ]

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
        "a kind that is not known",
        #"{"type":"later","sender":{"display_name":"Ana","sender_id":"\#(id)"},"x":1.5}"#
      ),
      (
        "a status with a message ID",
        #"{"type":"status","sender":{"display_name":"Ana","sender_id":"\#(id)"},"message_id":"s","body":"online"}"#
      ),
    ]
  }()

  private static func meaning(_ message: SchemaMessage) -> [JSONMember] {
    let own: [JSONMember] =
      switch message.content {
      case let status as StatusKind: [JSONMember("online", status.isOnline)]
      case let hand as RaiseHandKind: [JSONMember("raised", hand.isRaised)]
      case let text as TextKind: [JSONMember("body", text.body)]
      case let photo as PhotoKind: photo.file.value
      case let file as FileKind: file.file.value
      default: []
      }
    return [
      JSONMember(
        "value",
        .object(
          [
            JSONMember("type", message.content.type), JSONMember("sender_id", message.sender.peer.text),
            JSONMember("display_name", message.sender.displayName.text),
            JSONMember("message_id", message.messageID.map { .string($0.text) } ?? .null),
            JSONMember("timestamp", message.timestamp.map { .string($0) } ?? .null),
          ] + own))
    ]
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
