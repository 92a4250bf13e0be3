import Parley
import ParleyVocabulary
import Testing

/// What is for whoever is there: commands and messages that are kept for nobody absent.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct LiveMessageTests {
  @Test func commandIsAnEventOfItsOwnAndKeptNowhere() async throws {
    let (channel, ana, ben) = try await pair("live-tests-command")
    let events = await ben.node.events()
    let start = try await ben.node.events(since: 0).cursor
    let content = try CommandContent(action: "refresh", parameters: [.init("page", "2")])
    let receipt = try await ana.node.send(.command(content).with(ext: #"{"a":1}"#), to: channel)
    guard case .delivered = try await ana.node.tell(.command(content), peer: ben.node.peerID.text) else {
      Issue.record("who is there gets it")
      return
    }
    var commands: [Command] = []
    for await case .command(let command) in events {
      commands.append(command)
      if commands.count == 2 { break }
    }
    let inChannel = try #require(commands.first { $0.channel == channel })
    #expect(inChannel.id == receipt.id && inChannel.content == content && inChannel.ext == #"{"a":1}"#)
    #expect(inChannel.sender == ana.node.peerID)
    #expect(commands.contains { $0.channel == nil && $0.content == content })
    // A text behind it is all there is.
    _ = try await ana.node.send("after", to: channel)
    try await ben.node.wait(forText: "after", in: channel)
    for node in [ana.node, ben.node] {
      #expect(try await node.history(of: channel, limit: 10).map(\.body) == [.text("after")])
    }
    #expect(try await ben.node.messages(with: ana.node.peerID.text, limit: 10).isEmpty)
    let (_, since) = try await ben.node.events(since: start)
    for await event in since {
      guard case .message(let message) = event else { continue }
      #expect(message.body == .text("after"))
      break
    }
    try await ana.stop()
    try await ben.stop()
  }

  @Test func onlineOnlyIsKeptByThoseWhoWereThereAndByNobodyElse() async throws {
    let (channel, ana, ben) = try await pair("live-tests-online-only")
    _ = try await ana.node.send("first", to: channel)
    try await ben.node.wait(forText: "first", in: channel)
    _ = try await ana.node.send(.text("for you there").onlineOnly(), to: channel)
    try await ben.node.wait(forText: "for you there", in: channel)
    // Of any size.
    let long = String(repeating: "long ", count: 5_800)
    _ = try await ana.node.send(.text(long).onlineOnly(), to: channel)
    try await ben.node.wait(forText: long, in: channel)
    _ = try await ana.node.send("last", to: channel)
    let eva = try await RunningNode("Eva")
    try await eva.node.join(channel, secret: .open)
    try await eva.node.wait(forText: "last", in: channel)
    #expect(try await eva.node.history(of: channel, limit: 10).map(\.body) == [.text("first"), .text("last")])
    try await ben.node.wait(forText: "last", in: channel)
    let all: [Message.Body] = [.text("first"), .text("for you there"), .text(long), .text("last")]
    for node in [ana.node, ben.node] {
      let history = try await node.history(of: channel, limit: 10)
      #expect(history.map(\.body) == all)
      #expect(history.map(\.options.isOnlineOnly) == [false, true, true, false])
      // In pages, and from a cursor.
      let page = try await node.history(of: channel, before: history[2].cursor, limit: 1)
      #expect(page == [history[1]])
    }
    // It is here after a restart, too.
    let home = ben.home
    try await ben.stop()
    let again = try await RunningNode("Ben", home: home)
    #expect(try await again.node.history(of: channel, limit: 10).map(\.body) == all)
    for node in [ana, again, eva] { try await node.stop() }
  }

  @Test func onlineOnlyToOnePersonDoesNotWait() async throws {
    let (_, ana, ben) = try await pair("live-tests-one")
    let benID = ben.node.peerID
    let draft = try MessageDraft.text("now").onlineOnly()
    guard case .delivered(let id) = try await ana.node.tell(draft, peer: benID.text) else {
      Issue.record("who is there gets it")
      return
    }
    try await ben.node.wait { try await !$0.messages(with: ana.node.peerID.text, limit: 5).isEmpty }
    for (node, other) in [(ana.node, benID), (ben.node, ana.node.peerID)] {
      #expect(try await node.messages(with: other.text, limit: 5).map(\.id) == [id])
    }
    try await ben.stop()
    try await ana.node.wait { node in
      for channel in await node.channels() where channel.onlineCount > 1 { return false }
      return true
    }
    await #expect(throws: ParleyError.peerAway(benID)) { try await ana.node.tell(draft, peer: benID.text) }
    await #expect(throws: ParleyError.peerAway(benID)) {
      try await ana.node.tell(.command(try CommandContent(action: "a")), peer: benID.text)
    }
    #expect(try await ana.node.messages(with: benID.text, limit: 5).count == 1)
    try await ana.stop()
  }

  @Test func optionsArriveAsTheyWereSet() async throws {
    let (channel, ana, ben) = try await pair("live-tests-options")
    let draft = try MessageDraft.text("yes").needingReceipt().with(webhookEnvironment: "Stage123")
      .translated(into: ["de", "zh-Hans"])
    _ = try await ana.node.send(draft, to: channel)
    let media = try RemoteMedia(
      kind: .video, url: "https://media.example/a.mp4", fileName: "a.mp4", byteCount: 5, mimeType: "video/mp4",
      seconds: 61, width: 640, height: 480)
    _ = try await ana.node.send(.remote(media), to: channel)
    try await ben.node.wait { try await $0.history(of: channel, limit: 5).count == 2 }
    let history = try await ben.node.history(of: channel, limit: 5)
    var expected = Message.Options()
    expected.needsReceipt = true
    expected.webhookEnvironment = "Stage123"
    expected.targetLanguages = ["de", "zh-Hans"]
    #expect(history[0].options == expected)
    // It lies elsewhere: there is nothing to download.
    #expect(history[1].body == .remote(media) && history[1].media == nil)
    #expect(try await ben.node.media(of: channel).isEmpty)
    try await ana.stop()
    try await ben.stop()
  }
}
