import Parley
import Testing

/// Real nodes: what a message announced goes with it.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct RecalledMediaTests {
  private func share(_ path: String, _ node: RunningNode, in channel: ChannelName) async throws -> MessageReference {
    let media = try await node.node.share(path: path, in: channel) { _ in }.media.id
    try await node.node.wait(forMedia: media, in: channel)
    let message = try #require(try await node.node.history(of: channel, limit: 1).first)
    return MessageReference(sender: message.sender, id: message.id)
  }

  /// KINDS.md, recall: its media is let go by everyone who honours it, once no other message announces it; files in the
  /// user's own folders stay.
  @Test func mediaGoesWithItsLastMessage() async throws {
    let (channel, ana, ben) = try await pair("deeds-media")
    let bytes = pattern(100_000)
    let path = try ana.home.write(bytes, "plan.bin")
    let first = try await share(path, ana, in: channel)
    let id = try #require(try await ana.node.message(first, in: channel)?.media?.id)
    let second = try await share(path, ana, in: channel)
    try await ben.node.wait { try await $0.message(second, in: channel) != nil }
    let (_, events) = try await ben.node.download(id, to: .folder(ben.home.path))
    var landed: String?
    for await case .finished(let path) in events { landed = path }
    let copy = try #require(landed)
    try await ana.node.recall(first, in: channel)
    try await ben.node.wait { try await $0.message(first, in: channel)?.state.recalled != nil }
    #expect(try await ben.node.message(second, in: channel)?.media?.id == id)
    try await ana.node.recall(second, in: channel)
    try await ben.node.wait { try await $0.message(second, in: channel)?.state.recalled != nil }
    #expect(try await ben.node.media(of: channel) == [])
    await #expect(throws: ParleyError.noSuchMedia(id)) { try await ben.node.download(id, to: .folder(ben.home.path)) }
    #expect(try TemporaryHome.read(path) == bytes)
    #expect(try TemporaryHome.read(copy) == bytes)
    try await ana.stop()
    try await ben.stop()
  }
}
