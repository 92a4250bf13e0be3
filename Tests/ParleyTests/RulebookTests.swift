import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

@testable import Parley

/// What the application sees of roles, without a network.
@Suite struct RulebookTests {
  private let me = PeerID(Bytes32(words: (1, 1, 1, 1)))
  private let ben = PeerID(Bytes32(words: (2, 2, 2, 2)))
  private let channel = ChannelID(Bytes32(words: (9, 9, 9, 9)))
  private let hub: Hub
  private var governance: Governance

  init() throws {
    hub = Hub(me: me, instance: Instance(1), trouble: { _ in }, aborted: {})
    let ownership = ChannelOwnership(founder: me, salt: [UInt8](repeating: 0, count: 16))!
    governance = Governance(ownership)
    hub.take(.messaging(.governed(channel, governance, Governance.Change())))
    hub.take(.opened(try ChannelName("class"), channel))
  }

  private func entry(_ author: PeerID, _ number: UInt64, _ content: any MessageKind) throws -> Entry {
    let json = SchemaMessage(
      sender: Sender(peer: author, displayName: try DisplayName("X")), messageID: MessageID("m\(number)")!,
      timestamp: Timestamp(milliseconds: 0).text, content: content
    ).encoded
    return Entry(
      key: LogKey(author: author, log: Instance(author == me ? 1 : 2)), number: number, lamport: number, timestamp: 0,
      isHidden: content is any ActKind, items: [.init(kind: KindRegistry.code(of: content.type), body: json)],
      signature: [UInt8](repeating: 0, count: Signed.signatureByteCount))
  }

  private mutating func act(_ author: PeerID, _ number: UInt64, _ content: any ActKind) throws {
    let acts = Act.acts(of: try entry(author, number, content)) { _ in true }
    let change = governance.take(acts)
    hub.take(.messaging(.governed(channel, governance, change)))
  }

  private mutating func makeBen(_ role: RoleKind.Role, _ number: UInt64, head: UInt64) throws {
    try act(me, number, RoleKind(target: ben, role: role, heads: ActHeads([Instance(2): head])))
  }

  private func say(_ author: PeerID, _ number: UInt64) throws {
    let entry = try entry(author, number, TextKind(body: "\(number)"))
    hub.take(.messaging(.entryStored(channel, entry, cursor: number)))
  }

  private func told(_ events: AsyncStream<Parley.NodeEvent>) async -> [String] {
    hub.finish()
    var told: [String] = []
    for await event in events {
      switch event {
      case .message(let message): told.append(message.id.text)
      case .roleChanged(_, let change): told.append("\(change.role.rank) \(change.role.isMuted)")
      case .voided(_, let ids): told.append("voided \(ids.map(\.text).joined(separator: " "))")
      case .counted(_, let messages): told.append("counted \(messages.map(\.id.text).joined(separator: " "))")
      case .announced(_, let announcement): told.append("announced \(announcement?.text ?? "nothing")")
      case .closed: told.append("closed")
      default: continue
      }
    }
    return told
  }

  @Test mutating func theOwnerSaysWhoseTokensAreAskedFor() async throws {
    let (key, chosen) = (OrganiserKey(Bytes32(words: (7, 7, 7, 7))), OrganiserKey(Bytes32(words: (8, 8, 8, 8))))
    hub.tokens.open(channel, try ChannelName("class"), chosen: nil, [])
    #expect(hub.takeNewOrganisers().isEmpty)
    try act(me, 1, OrganiserKind(key: PeerID(key.value)))
    #expect(hub.tokens.organiser(of: channel) == key)
    #expect(hub.takeNewOrganisers().map(\.id) == [channel] && hub.takeNewOrganisers().isEmpty)
    // A user's own choice goes before it; without one the owner's counts again.
    #expect(hub.tokens.choose(chosen, in: channel))
    #expect(hub.tokens.organiser(of: channel) == chosen)
    #expect(hub.tokens.choose(nil, in: channel))
    let events = hub.events(bufferingCount: 100)
    try say(me, 2)
    try act(me, 3, OrganiserKind(key: nil))
    #expect(hub.tokens.organiser(of: channel) == nil)
    try say(me, 4)
    #expect(await told(events).filter { $0.hasPrefix("m") } == ["m4"])
  }

  @Test mutating func whoIsNotAdmittedIsShownOnceItIs() async throws {
    let events = hub.events(bufferingCount: 64)
    try say(ben, 1)
    try say(ben, 2)
    try makeBen(.member, 3, head: 1)
    try say(ben, 4)
    #expect(await told(events) == ["member false", "counted m2", "m4"])
  }

  @Test mutating func whatWasShownIsTakenBackWhenAnActComesLate() async throws {
    let events = hub.events(bufferingCount: 64)
    try makeBen(.member, 1, head: 0)
    for number in 2...5 as ClosedRange<UInt64> { try say(ben, number) }
    try makeBen(.muted, 6, head: 3)
    try say(ben, 7)
    #expect(
      await told(events) == ["member false", "m2", "m3", "m4", "m5", "member true", "voided m4 m5"])
    let entry = try entry(ben, 4, TextKind(body: "4"))
    #expect(hub.messages(entry, channel: channel, name: try ChannelName("class"), cursor: 4).isEmpty)
  }

  @Test mutating func mediaOfTheVoidIsNotAnnounced() throws {
    try makeBen(.member, 1, head: 0)
    let id = MediaID(bytes: [UInt8](repeating: 3, count: 32))!
    let file = FileKind(file: MediaMembers(id: id, fileName: "f", byteCount: 1, mimeType: nil))
    hub.take(.messaging(.entryStored(channel, try entry(ben, 2, file), cursor: 2)))
    #expect(hub.announcements(in: channel).map(\.id.text) == ["m2"])
    try makeBen(.removed, 3, head: 1)
    #expect(hub.announcements(in: channel).isEmpty)
    #expect(hub.announcement(of: id) == nil)
  }

  @Test mutating func announcementsAndTheEndAreTold() async throws {
    let events = hub.events(bufferingCount: 64)
    try act(me, 1, AnnouncementKind(body: "at 9"))
    try act(me, 2, AnnouncementKind(body: ""))
    try act(me, 3, CloseKind())
    #expect(await told(events) == ["announced at 9", "announced nothing", "closed"])
  }
}
