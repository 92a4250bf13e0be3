import ParleyVocabulary
import ParleyWire
import Testing

@testable import Parley

/// What is said again elsewhere.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct ForwardTests {
  /// Ben is in both channels, Ana in the first only, Carl in the second only.
  private static func three(
    _ title: String
  ) async throws -> (first: ChannelName, second: ChannelName, ana: RunningNode, ben: RunningNode, carl: RunningNode) {
    let (first, ana, ben) = try await pair("forward-\(title)-1")
    let second = try name("forward-\(title)-2")
    let carl = try await RunningNode("Carl")
    for node in [ben, carl] { try await node.node.join(second, secret: .open) }
    try await carl.node.wait(for: ben.node.peerID, in: second)
    try await ben.node.wait(for: carl.node.peerID, in: second)
    return (first, second, ana, ben, carl)
  }

  private static func last(_ node: RunningNode, _ channel: ChannelName, _ count: Int) async throws -> [Message] {
    try await node.node.wait { try await $0.history(of: channel, limit: count).count == count }
    return try await node.node.history(of: channel, limit: count)
  }

  @Test func bodyAndExtAreSaidAgainUnderOnesOwnName() async throws {
    let (first, second, ana, ben, carl) = try await Self.three("bodies")
    let place = try Location(latitude: 90, longitude: -180, address: "North", buildingName: nil)
    let custom = try CustomContent(event: "seat", fields: [.init("row", "3")])
    let answered = MessageReference(sender: ana.node.peerID, id: MessageID("m")!)
    let drafts = [
      try MessageDraft.text("hello").with(ext: #"{"a":1}"#), .location(place), .custom(custom).replying(to: answered),
    ]
    for draft in drafts { _ = try await ana.node.send(draft, to: first, waiting: nil) }
    let heard = try await Self.last(ben, first, 3)
    let references = try await ben.node.references(to: heard.map(\.id), in: first)
    #expect(references == heard.map { MessageReference(sender: ana.node.peerID, id: $0.id) })
    let ids = try await ben.node.forward(references, from: first, to: .channel(second))
    let again = try await Self.last(carl, second, 3)
    #expect(again.map(\.id) == ids && again.map(\.body) == heard.map(\.body))
    #expect(again.map(\.ext) == [#"{"a":1}"#, nil, nil] && again.allSatisfy { $0.replyTo == nil })
    #expect(again.allSatisfy { $0.sender == ben.node.peerID } && Set(ids).isDisjoint(with: heard.map(\.id)))
    // To one person.
    let private_ = try await ben.node.forward([references[1]], from: first, to: .peer("Carl"))
    try await carl.node.wait { try await $0.messages(with: "Ben", limit: 1).first?.id == private_[0] }
    #expect(try await carl.node.messages(with: "Ben", limit: 1).map(\.body) == [.location(place)])
    for node in [ana, ben, carl] { try await node.stop() }
  }

  @Test func mediaIsForwardedFromWhereItIsHeldOnly() async throws {
    let (first, second, ana, ben, carl) = try await Self.three("media")
    let events = await ben.node.events()
    let photo = try await ana.node.share(
      path: ana.home.write(PictureTests.png(900, 800), "tower.png"), in: first)
    let thumbnail = try #require(photo.picture?.thumbnailID)
    for await case .fetched(_, thumbnail) in events { break }
    let message = try #require(try await Self.last(ben, first, 1).first)
    let reference = MessageReference(sender: message.sender, id: message.id)
    for target in [ForwardTarget.channel(second), .peer(carl.node.peerID.text)] {
      await #expect(throws: ParleyError.mediaNotHeld(photo.id)) {
        _ = try await ben.node.forward([reference], from: first, to: target)
      }
    }
    #expect(try await ben.node.history(of: second, limit: 1).isEmpty)
    // Where it was announced it may be said again by who has nothing of it.
    let same = try await ben.node.forward([reference], from: first, to: .channel(first))
    #expect(same.count == 1)

    let landed = try await finish(ben.node.download(photo.id, to: .folder(ben.home.path)))
    _ = try await ben.node.forward([reference], from: first, to: .channel(second))
    try await ana.stop()
    let heard = try #require(try await Self.last(carl, second, 1).first?.media)
    // The big picture is not here; the thumbnail is.
    #expect(heard.id == photo.id && heard.picture?.thumbnailID == thumbnail && heard.picture?.bigID == nil)
    let copy = try await finish(carl.node.download(photo.id, to: .folder(carl.home.path)))
    #expect(try TemporaryHome.read(copy) == TemporaryHome.read(landed))
    #expect(try await carl.node.data(of: thumbnail, byteCountMax: 1 << 20).isEmpty == false)
    for node in [ben, carl] { try await node.stop() }
  }

  @Test func mediaGoesToOnePersonToo() async throws {
    let (first, second, ana, ben, carl) = try await Self.three("person")
    let bytes = pattern(100_000)
    let shared = try await ben.node.share(path: ben.home.write(bytes, "plan.pdf"), in: first)
    let message = try #require(try await Self.last(ben, first, 1).first)
    let ids = try await ben.node.forward(
      [MessageReference(sender: message.sender, id: message.id)], from: first, to: .peer(carl.node.peerID.text))
    try await carl.node.wait { try await $0.messages(with: "Ben", limit: 1).first?.id == ids[0] }
    #expect(try await carl.node.messages(with: "Ben", limit: 1).map(\.body) == [.file(shared)])
    #expect(try await carl.node.history(of: second, limit: 1).isEmpty)
    #expect(try await carl.node.data(of: shared.id, byteCountMax: 1 << 20) == bytes)
    for node in [ana, ben, carl] { try await node.stop() }
  }

  @Test func whatCannotBeForwardedIsSaid() async throws {
    let channel = try name("forward-refused")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    let id = try await ana.node.send("x", to: channel, waiting: nil).id
    let good = MessageReference(sender: ana.node.peerID, id: id)
    for count in [0, 301] {
      await #expect(
        throws: ParleyError.badField("messages", value: "\(count)", allowed: "1 to 300 messages")
      ) {
        _ = try await ana.node.forward(Array(repeating: good, count: count), from: channel, to: .channel(channel))
      }
    }
    let other = MessageReference(sender: PeerID(Bytes32(words: (1, 2, 3, 4))), id: id)
    await #expect(throws: ParleyError.noSuchMessage(other)) {
      _ = try await ana.node.forward([good, other], from: channel, to: .channel(channel))
    }
    await #expect(throws: ParleyError.unknownMessageID(MessageID("none")!, channel)) {
      _ = try await ana.node.references(to: [id, MessageID("none")!], in: channel)
    }
    // A kind of a newer version.
    let later = UnknownKind(type: "later", members: [JSONMember("compatible_text", .string("see the newer one"))])
    let unknown = try await ana.node.say(later, in: channel, waiting: nil).id
    let shown = try #require(try await ana.node.history(of: channel, limit: 1).first)
    #expect(shown.id == unknown && shown.body == .unknown(kind: "later"))
    #expect(shown.compatibleText == "see the newer one")
    await #expect(throws: ParleyError.notForwarded(unknown, kind: "later")) {
      let reference = MessageReference(sender: ana.node.peerID, id: unknown)
      _ = try await ana.node.forward([good, reference], from: channel, to: .channel(channel))
    }
    #expect(try await ana.node.history(of: channel, limit: 10).count == 2)
    try await ana.stop()
  }
}
