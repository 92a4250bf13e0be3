import ParleyVocabulary
import ParleyWire
import Testing

/// What readers take of options, and what not: at each limit, and one beyond it.
struct OptionTests {
  private static let peer = PeerID(Bytes32((0..<32).map { UInt8($0) })!)

  private func read(_ own: String, type: String = "text") -> SchemaMessage? {
    let body = type == "text" ? #","body":"b""# : ""
    let json =
      #"{"type":"\#(type)","sender":{"display_name":"Ana","sender_id":"\#(Self.peer.text)"},"message_id":"m","#
      + #""timestamp":"2021-03-12T09:05:16Z"\#(body),\#(own)}"#
    return try? SchemaMessage(decoding: Array(json.utf8), author: Self.peer)
  }

  @Test func webhookEnvironmentHasEightCharactersAndNotNine() {
    #expect(read(#""webhook_env":"abcdEF12""#)?.options.webhookEnvironment == "abcdEF12")
    #expect(read(#""webhook_env":"abcdEF123""#) == nil)
    #expect(read(#""webhook_env":"""#) == nil)
  }

  @Test func receiversAreTwentyAndNotTwentyOne() {
    func members(_ count: Int) -> String {
      let peers = (0..<count).map { PeerID(Bytes32(repeatElement(UInt8($0), count: 32))!).text }
      return #""channel_id":"\#(Self.peer.text)","receivers":["\#(peers.joined(separator: "\",\""))"]"#
    }
    #expect(read(members(20))?.options.direction?.receivers.count == 20)
    #expect(read(members(21)) == nil)
  }

  @Test func actionsThatAreReservedAreNone() {
    for action in ["em_x", "em_", "easemob::", "easemob::x", "parley.", "parley.x"] {
      #expect(read(#""action":"\#(action)""#, type: "cmd") == nil)
    }
    for action in ["em-x", "xem_", "easemob:x", "parley", "EM_x"] {
      #expect((read(#""action":"\#(action)""#, type: "cmd")?.content as? CmdKind)?.action == action)
    }
  }

  @Test func prioritiesAreThree() {
    for priority in MessagePriority.allCases {
      #expect(read(#""priority":"\#(priority.rawValue)""#)?.options.priority == priority)
    }
    #expect(read(#""priority":"HIGH""#) == nil)
  }

  @Test func languagesHaveTheFormOfTags() {
    for tag in ["de", "zh-Hans", "sr-Latn-RS", "de-1901", "x1-a", "abcdefghi", "d", "de-", "-de", "de--a", ""] {
      let isOne = ["de", "zh-Hans", "sr-Latn-RS", "de-1901"].contains(tag)
      #expect((read(#""target_languages":["\#(tag)"]"#) != nil) == isOne, "\(tag)")
    }
    #expect(Translation.isTag("abcdefgh-abcdefgh-abcdefgh-abcdefgh"))
    #expect(Translation.isTag("abcdefgh-abcdefgh-abcdefgh-abcdefgh-") == false)
  }

  @Test func onlyWhatLiesElsewhereHasAnAddress() throws {
    let own = #""remote_url":"https://media.example/a","file_name":"f","duration":3"#
    for type in ["photo", "voice", "video", "file"] {
      let media = try #require(read(own, type: type)?.content as? RemoteMediaKind)
      #expect(media.url == "https://media.example/a" && media.type == type)
    }
    // A text that has one is a text.
    #expect(read(own)?.content is TextKind)
    let longest = "http://" + String(repeating: "a", count: 2_041)
    #expect(RemoteMediaKind.isAddress(longest) && !RemoteMediaKind.isAddress(longest + "a"))
  }

  @Test func aKindElsewhereHasTheNumberOfItsKind() throws {
    let own = #""remote_url":"https://media.example/a","file_name":"f","duration":3"#
    let video = try #require(read(own, type: "video"))
    #expect(KindRegistry.fits(VideoKind.code, video) && !KindRegistry.fits(PhotoKind.code, video))
    #expect(KindRegistry.code(of: video.content.type) == VideoKind.code)
  }
}
