import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

@testable import Parley

@Suite struct HubTests {
  /// Two actors tell: membership may still be working off a presence when login has told of the end.
  @Test func aPresenceToldAfterTheChannelWasLeftDoesNotCount() throws {
    let me = PeerID(Bytes32(words: (1, 1, 1, 1)))
    let channel = ChannelID(Bytes32(words: (2, 2, 2, 2)))
    let name = try ChannelName("kitchen")
    let hub = Hub(me: me, instance: Instance(1), trouble: { _ in }, aborted: {})
    func tellOnline(_ value: UInt64) throws {
      let view = MemberView(
        peer: PeerID(Bytes32(words: (3, 3, 3, value))), displayName: try DisplayName("Ben"), isOnline: true,
        isHandRaised: false)
      hub.take(.member(channel, view))
    }
    hub.take(.opened(name, channel))
    try tellOnline(1)
    #expect(hub.presentCount(in: channel) == 1)
    hub.take(.closed(name, channel))
    try tellOnline(2)
    #expect(hub.presentCount(in: channel) == 0)
    hub.take(.opened(name, channel))
    #expect(hub.presentCount(in: channel) == 0)
    try tellOnline(1)
    #expect(hub.presentCount(in: channel) == 1)
  }

  /// What is indexed and folded by the number beside a message must be what is shown as JSON.
  @Test func aMessageUnderAnotherKindsNumberIsShownToNobody() throws {
    let me = PeerID(Bytes32(words: (1, 1, 1, 1)))
    let ben = PeerID(Bytes32(words: (2, 2, 2, 2)))
    let channel = ChannelID(Bytes32(words: (3, 3, 3, 3)))
    let name = try ChannelName("kitchen")
    let hub = Hub(me: me, instance: Instance(1), trouble: { _ in }, aborted: {})
    let sender = Sender(peer: ben, displayName: try DisplayName("Ben"))
    let json = SchemaMessage(
      sender: sender, messageID: MessageID("m")!, timestamp: Timestamp(milliseconds: 0).text,
      content: TextKind(body: "hello")
    ).encoded
    let poll = #"{"sender":{"display_name":"Ben","sender_id":"\#(ben.text)"},"message_id":"p","type":"poll"}"#
    func shown(_ items: [Entry.Item]) -> [String] {
      let entry = Entry(
        key: LogKey(author: ben, log: Instance(2)), number: 1, lamport: 1, timestamp: 0, isHidden: false, items: items)
      return hub.messages(entry, channel: channel, name: name, cursor: 1).map(\.id.text)
    }
    #expect(shown([.init(kind: TextKind.code, body: json)]) == ["m"])
    for other in [0, RaiseHandKind.code, PhotoKind.code, 200] {
      #expect(shown([.init(kind: other, body: json)]) == [])
    }
    // What a newer version says keeps a number of its own, and none of ours.
    #expect(shown([.init(kind: 200, body: Array(poll.utf8))]) == ["p"])
    #expect(shown([.init(kind: TextKind.code, body: Array(poll.utf8))]) == [])
  }

  /// A power cut may take what is shown at once; who keeps a cursor is told what it cannot take.
  @Test func whoKeepsACursorIsToldOnceItIsOnTheDisk() async throws {
    let me = PeerID(Bytes32(words: (1, 1, 1, 1)))
    let channel = ChannelID(Bytes32(words: (2, 2, 2, 2)))
    let hub = Hub(me: me, instance: Instance(1), trouble: { _ in }, aborted: {})
    hub.take(.opened(try ChannelName("kitchen"), channel))
    let plain = hub.events(bufferingCount: 16)
    let (paged, wasPaged) = AsyncStream<Void>.makeStream()
    let keeping = hub.events(after: 0, in: nil, bufferingCount: 16) { _, _ in
      wasPaged.finish()
      return .init(events: [], through: 0, isLast: true)
    }
    async let told = Self.texts(keeping)
    // From then on it is told, before it reads the store.
    for await _ in paged {}
    let sender = Sender(peer: me, displayName: try DisplayName("Ana"))
    for number in [1, 2] as [UInt64] {
      let json = SchemaMessage(
        sender: sender, messageID: MessageID("m\(number)")!, timestamp: Timestamp(milliseconds: 0).text,
        content: TextKind(body: "\(number)")
      ).encoded
      let entry = Entry(
        key: LogKey(author: me, log: Instance(1)), number: number, lamport: number, timestamp: 0, isHidden: false,
        items: [.init(kind: TextKind.code, body: json)])
      hub.take(.messaging(.entryStored(channel, entry, cursor: number)))
    }
    hub.take(.messaging(.synced(cursor: 1)))
    hub.finish()
    #expect(await Self.texts(plain) == ["1", "2"])
    #expect(await told == ["1"])
  }

  private static func texts(_ events: AsyncStream<Parley.NodeEvent>) async -> [String] {
    var texts: [String] = []
    for await event in events {
      if case .message(let message) = event, case .text(let body) = message.body { texts.append(body) }
    }
    return texts
  }
}
