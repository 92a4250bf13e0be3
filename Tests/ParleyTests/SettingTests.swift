import Parley
import Testing

/// What the user wishes of channels and people.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct SettingTests {
  private func texts(of events: AsyncStream<NodeEvent>, through last: String) async -> [String] {
    var texts: [String] = []
    for await event in events {
      if case .message(let message) = event, case .text(let text) = message.body { texts.append(text) }
      if texts.last == last { break }
    }
    return texts
  }

  @Test func settingMutedMarksWhatOthersSay() async throws {
    let (channel, ana, ben) = try await pair("settings-muted")
    func last(_ text: String) async throws -> Message? {
      try await ana.node.history(of: channel, limit: 10).first { $0.body == .text(text) }
    }
    _ = try await ben.node.send("one", to: channel)
    try await ana.node.wait(forText: "one", in: channel)
    #expect(try await last("one")?.isMuted == false)
    var settings = try await ana.node.settings(of: channel)
    #expect(settings == ChannelSettings())
    settings.isMuted = true
    try await ana.node.set(settings, of: channel)
    let events = await ana.node.events(bufferingCount: 64)
    _ = try await ben.node.send("two", to: channel)
    for await event in events {
      guard case .message(let message) = event else { continue }
      #expect(message.isMuted)
      break
    }
    _ = try await ana.node.send("mine", to: channel)
    #expect(try await last("mine")?.isMuted == false, "one's own is no news")
    try await ana.node.set(ChannelSettings(), of: channel)
    #expect(try await last("two")?.isMuted == false)
    var wishes = PeerSettings()
    wishes.isMuted = true
    try await ana.node.set(wishes, ofPeer: ben.node.peerID.text)
    #expect(try await last("two")?.isMuted == true)
    #expect(try await ben.node.settings(ofPeer: ana.node.peerID.text) == PeerSettings(), "nobody else learns of it")
    try await ana.stop()
    try await ben.stop()
  }

  @Test func settingIncludesOwnMessagesDecidesWhatSubscribersGet() async throws {
    let (channel, ana, ben) = try await pair("settings-echo")
    var settings = ChannelSettings()
    settings.includesOwnMessages = false
    try await ana.node.set(settings, of: channel)
    let events = await ana.node.events(bufferingCount: 64)
    let (_, paged) = try await ana.node.events(since: 0, bufferingCount: 64)
    _ = try await ana.node.send("mine", to: channel)
    _ = try await ben.node.send("theirs", to: channel)
    try await ana.node.wait(forText: "theirs", in: channel)
    for stream in [events, paged] { #expect(await texts(of: stream, through: "theirs") == ["theirs"]) }
    try await ana.node.set(ChannelSettings(), of: channel)
    _ = try await ana.node.send("mine again", to: channel)
    for stream in [events, paged] { #expect(await texts(of: stream, through: "mine again") == ["mine again"]) }
    #expect(try await ana.node.history(of: channel, limit: 10).count == 3, "the history has everything")
    try await ana.stop()
    try await ben.stop()
  }

  @Test func settingsAreRememberedAndChecked() async throws {
    let channel = try name("settings-kept")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, as: .room, secret: .open)
    var settings = ChannelSettings()
    settings.isMuted = true
    settings.sendsReceipts = false
    for (days, entries) in [(1, 100), (36_500, 10_000_000)] {
      settings.historyDays = days
      settings.historyEntryCountMax = entries
      try await ana.node.set(settings, of: channel)
    }
    for (days, entries) in [(0, 100), (36_501, 100), (1, 99), (1, 10_000_001)] {
      var bad = ChannelSettings()
      bad.historyDays = days
      bad.historyEntryCountMax = entries
      await #expect(throws: ParleyError.self) { try await ana.node.set(bad, of: channel) }
    }
    #expect(try await ana.node.settings(of: channel) == settings)
    let stranger = PeerID(bytes: [UInt8](repeating: 9, count: 32))!.text
    var wishes = PeerSettings()
    wishes.includesOwnMessages = false
    try await ana.node.set(wishes, ofPeer: stranger)
    try await ana.stop()
    let again = try await RunningNode("Ana", home: ana.home)
    #expect(try await again.node.settings(of: channel) == settings)
    #expect(try await again.node.settings(ofPeer: stranger) == wishes)
    try await again.node.set(ChannelSettings(), of: channel)
    #expect(try await again.node.settings(of: channel) == ChannelSettings())
    try await again.stop()
  }

  @Test func settingReceiptsOffNobodyIsToldWhatWasRead() async throws {
    let (channel, ana, ben) = try await pair("settings-receipts")
    let id = try await ana.node.send("read me", to: channel).id
    try await ben.node.wait(forText: "read me", in: channel)
    let message = MessageReference(sender: ana.node.peerID, id: id)
    @Sendable func readers() async throws -> [PeerID] {
      try await ana.node.message(message, in: channel)?.state.readBy.map(\.peer) ?? []
    }
    var settings = ChannelSettings()
    settings.sendsReceipts = false
    try await ben.node.set(settings, of: channel)
    try await ben.node.markRead([message], in: channel)
    _ = try await ben.node.send("after it", to: channel)
    try await ana.node.wait(forText: "after it", in: channel)
    #expect(try await readers().isEmpty)
    try await ben.node.set(ChannelSettings(), of: channel)
    try await ben.node.markRead([message], in: channel)
    try await ana.node.wait { _ in try await readers() == [ben.node.peerID] }
    try await ana.stop()
    try await ben.stop()
  }
}
