import ParleyVocabulary
import ParleyWire
import Testing

@testable import Parley

/// Messages put together into one, and taken apart again.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct CombineTests {
  private static func last(_ node: RunningNode, _ channel: ChannelName) async throws -> CombinedMessages {
    let message = try #require(try await node.node.history(of: channel, limit: 1).first)
    guard case .combine(let combined) = message.body else { throw ParleyError.emptyMessage }
    return combined
  }

  private static func wait(_ node: RunningNode, for id: MessageID, in channel: ChannelName) async throws {
    try await node.node.wait { try await $0.history(of: channel, limit: 1).first?.id == id }
  }

  private static func send(_ node: RunningNode, _ text: String, _ channel: ChannelName) async throws -> MessageReference
  {
    MessageReference(
      sender: node.node.peerID, id: try await node.node.send(text, to: channel, waiting: nil).id)
  }

  @Test func everyKindIsCombinedAndUnpacked() async throws {
    let (channel, ana, ben) = try await pair("combine-tests")
    let node = ana.node
    _ = try await Self.send(ana, "hello", channel)
    let photo = try await node.share(path: ana.home.write(PictureTests.png(40, 30), "a.png"), in: channel)
    for (kind, file) in [(ShareKind.voice, "b.amr"), (.video, "c.mp4"), (.file, "d.bin")] {
      let path = try ana.home.write(pattern(1_000 + file.utf8.count) + Array(file.utf8), file)
      _ = try await node.share(
        path: path, ShareOptions(as: kind, seconds: kind == .file ? nil : 7, ext: #"{"k":1}"#), in: channel
      ) { _ in }
    }
    _ = try await node.send(.custom(CustomContent(event: "seat")), to: channel, waiting: nil)
    let said = try await node.history(of: channel, limit: 10)
    let all = said.map { MessageReference(sender: $0.sender, id: $0.id) }
    let draft = try CombineDraft(title: "Friday", summary: "Ana: hello")
    let receipt = try await node.combine(all, from: channel, draft)
    try await Self.wait(ben, for: receipt.id, in: channel)

    let combined = try await Self.last(ben, channel)
    #expect([combined.title, combined.summary, combined.compatibleText] == ["Friday", "Ana: hello", "[Friday]"])
    #expect(combined.levels == 1)
    let unpacked = try await ben.node.unpack(combined.bundle.id)
    #expect(unpacked.map(\.body) == said.map(\.body) && unpacked.map(\.id) == said.map(\.id))
    #expect(unpacked.map(\.ext) == said.map(\.ext) && unpacked.allSatisfy { $0.sender == node.peerID })
    #expect(unpacked.map(\.timestamp) == said.map(\.timestamp))
    #expect(try await ben.node.data(of: photo.id, byteCountMax: 1 << 20) == PictureTests.png(40, 30))
    // It is found by its words, and is no file in the list.
    #expect(try await ben.node.search("friday", in: channel, limit: 5).map(\.id) == [receipt.id])
    #expect(try await ben.node.media(of: channel).map(\.kind) == ["photo", "voice", "video", "file"])
    try await ana.stop()
    try await ben.stop()
  }

  @Test func threeHundredAreCombinedAndNotOneMore() async throws {
    let (channel, ana, ben) = try await pair("combine-tests-many")
    let one = try await Self.send(ana, "again", channel)
    let draft = try CombineDraft(title: "t")
    for count in [0, 301] {
      await #expect(throws: ParleyError.badField("messages", value: "\(count)", allowed: "1 to 300 messages")) {
        _ = try await ana.node.combine(Array(repeating: one, count: count), from: channel, draft)
      }
    }
    let receipt = try await ana.node.combine(Array(repeating: one, count: 300), from: channel, draft)
    try await Self.wait(ben, for: receipt.id, in: channel)
    let unpacked = try await ben.node.unpack(try await Self.last(ben, channel).bundle.id)
    #expect(unpacked.count == 300 && Set(unpacked.map(\.id)) == [one.id])
    try await ana.stop()
    try await ben.stop()
  }

  @Test func tenLevelsAreCombinedAndNotOneMore() async throws {
    let (channel, ana, ben) = try await pair("combine-tests-deep")
    var reference = try await Self.send(ana, "the innermost", channel)
    for level in 1...10 {
      let receipt = try await ana.node.combine([reference], from: channel, CombineDraft(title: "level \(level)"))
      reference = MessageReference(sender: ana.node.peerID, id: receipt.id)
      #expect(try await Self.last(ana, channel).levels == level)
    }
    await #expect(throws: ParleyError.badField("levels", value: "11", allowed: "1 to 10")) {
      _ = try await ana.node.combine([reference], from: channel, CombineDraft(title: "level 11"))
    }
    try await Self.wait(ben, for: reference.id, in: channel)
    var next = try await Self.last(ben, channel).bundle.id
    for level in (1...9).reversed() {
      let inner = try await ben.node.unpack(next)
      guard case .combine(let combined)? = inner.first?.body else {
        Issue.record("no level \(level)")
        return
      }
      #expect(combined.title == "level \(level)")
      next = combined.bundle.id
    }
    #expect(try await ben.node.unpack(next).map(\.body) == [.text("the innermost")])
    try await ana.stop()
    try await ben.stop()
  }

  @Test func otherKindsAndUnknownIDsAreRefused() async throws {
    let channel = try name("combine-tests-refused")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    let text = try await Self.send(ana, "x", channel)
    let place = try await ana.node.send(
      .location(Location(latitude: 1, longitude: 1)), to: channel, waiting: nil)
    let draft = try CombineDraft(title: "t")
    await #expect {
      let place = MessageReference(sender: ana.node.peerID, id: place.id)
      _ = try await ana.node.combine([text, place], from: channel, draft)
    } throws: { error in
      if case .badField("messages", "location", _)? = error as? ParleyError { true } else { false }
    }
    let none = MessageReference(sender: ana.node.peerID, id: MessageID("none")!)
    await #expect(throws: ParleyError.noSuchMessage(none)) {
      _ = try await ana.node.combine([text, none], from: channel, draft)
    }
    // The texts at their edges and one beyond.
    let long = String(repeating: "t", count: 1_025)
    #expect(throws: Never.self) {
      _ = try CombineDraft(
        title: String(long.prefix(256)), summary: String(long.dropLast()), compatibleText: String(long.dropLast()))
    }
    let wrong = [
      ("", "", "c", "title"), (String(long.prefix(257)), "", "c", "title"), ("t", long, "c", "summary"),
      ("t", "", "", "compatible_text"), ("t", "", long, "compatible_text"),
    ]
    for (title, summary, compatible, field) in wrong {
      #expect {
        _ = try CombineDraft(title: title, summary: summary, compatibleText: compatible)
      } throws: { error in
        if case .badField(field, _, _)? = error as? ParleyError { true } else { false }
      }
    }
    #expect(try await ana.node.history(of: channel, limit: 10).count == 2)
    try await ana.stop()
  }

  /// A member with a modified client: what it announces as combined messages is not what it must be.
  @Test func aBundleThatIsNoneIsRefusedByItsReader() async throws {
    let (channel, ana, ben) = try await pair("combine-tests-hostile")
    func line(_ content: any MessageKind) async -> [UInt8] {
      await ana.node.message(content, MessageID("m")!).encoded + [0x0A]
    }
    let text = await line(TextKind(body: "x"))
    let media = MediaID(Bytes32(words: (1, 2, 3, 4)))
    let deep = await line(
      CombineKind(title: "t", summary: "", compatibleText: "c", media: media, byteCount: 0, levels: 10))
    let place = await line(LocationKind(latitude: 0, longitude: 0))
    let bundles: [(String, [UInt8])] = [
      ("nonsense", pattern(5_000)), ("a place", text + place), ("eleven levels", text + deep), ("nothing", []),
      ("301 messages", Array(repeating: text, count: 301).flatMap { $0 }),
      ("as many levels as announced", deep), ("a line without an end", text.dropLast()),
    ]
    for (number, (what, bytes)) in bundles.enumerated() {
      let file = try await ana.node.share(path: ana.home.write(bytes, "\(number)"), as: .file, in: channel)
      let kind = CombineKind(
        title: what, summary: "", compatibleText: "c", media: file.id, byteCount: UInt64(bytes.count), levels: 10)
      let id = try await ana.node.say(kind, in: channel, waiting: nil).id
      try await Self.wait(ben, for: id, in: channel)
      await #expect("\(what)") {
        _ = try await ben.node.unpack(file.id)
      } throws: { error in
        if case .badBundle(file.id, _)? = error as? ParleyError { true } else { false }
      }
    }
    try await ana.stop()
    try await ben.stop()
  }

  /// What they announce is served there too.
  @Test func inAnotherChannelTheirMediaIsServedByWhoCombinedThem() async throws {
    let (first, ana, ben) = try await pair("combine-tests-there-1")
    let second = try name("combine-tests-there-2")
    let carl = try await RunningNode("Carl")
    for node in [ben, carl] { try await node.node.join(second, secret: .open) }
    try await carl.node.wait(for: ben.node.peerID, in: second)
    let bytes = pattern(50_000)
    let file = try await ana.node.share(path: ana.home.write(bytes, "plan.pdf"), in: first)
    try await ben.node.wait(forMedia: file.id, in: first)
    let message = try #require(try await ben.node.history(of: first, limit: 1).first)
    let reference = MessageReference(sender: message.sender, id: message.id)
    let draft = try CombineDraft(title: "t")
    await #expect(throws: ParleyError.mediaNotHeld(file.id)) {
      _ = try await ben.node.combine([reference], from: first, to: second, draft)
    }
    _ = try await finish(ben.node.download(file.id, to: .folder(ben.home.path)))
    let inner = try await ben.node.combine([reference], from: first, to: second, draft)
    try await ana.stop()
    try await Self.wait(carl, for: inner.id, in: second)
    let bundle = try await Self.last(carl, second).bundle.id
    await #expect(throws: ParleyError.noSuchMedia(file.id)) { _ = try await carl.node.contents(of: file.id) }
    let unpacked = try await carl.node.unpack(bundle)
    #expect(unpacked.map(\.sender) == [ana.node.peerID] && unpacked.map(\.body) == [.file(file)])
    #expect(try await carl.node.data(of: file.id, byteCountMax: 1 << 20) == bytes)
    for node in [ben, carl] { try await node.stop() }
  }
}
