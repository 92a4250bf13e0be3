import Glibc
import ParleyVocabulary
import Testing

@testable import Parley

/// Previews and voice that come before anybody asks.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct FetchTests {
  private static func received(_ node: RunningNode) throws -> [String] {
    let folder = node.home.path + "/home/received"
    return access(folder, F_OK) == 0 ? try PictureTests.names(in: folder).sorted() : []
  }

  /// Shares so many bytes as voice.
  private static func say(
    _ node: RunningNode, _ channel: ChannelName, _ bytes: [UInt8], _ file: String
  ) async throws -> MediaID {
    let path = try node.home.write(bytes, file)
    return try await node.node.share(path: path, ShareOptions(as: .voice, seconds: 1), in: channel) { _ in }.media.id
  }

  private static func fetched(_ events: AsyncStream<NodeEvent>, _ count: Int) async -> Set<MediaID> {
    var ids: Set<MediaID> = []
    for await case .fetched(_, let id) in events {
      ids.insert(id)
      if ids.count == count { break }
    }
    return ids
  }

  @Test func aPreviewAndVoiceAreHereBeforeTheyAreAskedFor() async throws {
    let (channel, ana, ben) = try await pair("fetch-tests")
    let events = await ben.node.events()
    let voice = pattern(3 << 20)
    let photo = try await ana.node.share(
      path: ana.home.write(PictureTests.png(900, 800), "tower.png"), in: channel)
    let thumbnail = try #require(photo.picture?.thumbnailID)
    let note = try await Self.say(ana, channel, voice, "note.amr")
    #expect(await Self.fetched(events, 2) == [thumbnail, note])
    #expect(try Self.received(ben) == [thumbnail.text, note.text].sorted())
    // Nobody sees them among what was asked for.
    #expect(try await ben.node.downloads().isEmpty)
    try await ana.stop()
    #expect(try await ben.node.data(of: note, byteCountMax: 4 << 20) == voice)
    let small = try await ben.node.data(of: thumbnail, byteCountMax: 1 << 20)
    #expect(PictureTests.size(ofJPEG: small) == [191, 170])
    try await ben.stop()
    // Also after a restart, and the messages say so.
    let again = try await RunningNode("Ben", home: ben.home)
    try await again.node.wait { try await $0.history(of: channel, limit: 2).map(\.fetched) == [[thumbnail], [note]] }
    #expect(try await again.node.data(of: note, byteCountMax: 4 << 20) == voice)
    try await again.stop()
  }

  @Test func whatIsNotWantedIsNotFetched() async throws {
    let (channel, ana, ben) = try await pair("fetch-tests-off") { $0.downloadsThumbnails = false }
    let events = await ben.node.events()
    let photo = try await ana.node.share(
      path: ana.home.write(PictureTests.png(900, 800), "tower.png"), in: channel)
    #expect(photo.picture?.thumbnailID != nil)
    // Longer than what comes unasked.
    _ = try await Self.say(ana, channel, pattern(8 << 20 + 1), "long.amr")
    let note = try await Self.say(ana, channel, pattern(8 << 20), "short.amr")
    #expect(await Self.fetched(events, 1) == [note])
    #expect(try Self.received(ben) == [note.text])
    try await ana.stop()
    try await ben.stop()
  }

  /// As is wished of the channel, also after a restart.
  @Test func aChannelsSettingsSayWhatIsFetched() async throws {
    let (channel, ana, ben) = try await pair("fetch-tests-settings")
    var settings = ChannelSettings()
    settings.downloadsThumbnails = false
    try await ben.node.set(settings, of: channel)
    try await ben.stop()
    let again = try await RunningNode("Ben", home: ben.home)
    #expect(try await again.node.settings(of: channel) == settings)
    try await ana.node.wait(for: again.node.peerID, in: channel)
    let events = await again.node.events()
    let photo = try await ana.node.share(
      path: ana.home.write(PictureTests.png(900, 800), "tower.png"), in: channel)
    #expect(photo.picture?.thumbnailID != nil)
    let note = try await Self.say(ana, channel, pattern(9), "note.amr")
    #expect(await Self.fetched(events, 1) == [note])
    #expect(try Self.received(again) == [note.text])
    try await ana.stop()
    try await again.stop()
  }

  @Test func nothingIsFetchedOfTheBlocked() async throws {
    let (channel, ana, ben) = try await pair("fetch-tests-blocked")
    let carl = try await RunningNode("Carl")
    try await carl.node.join(channel, secret: .open)
    try await ben.node.wait(for: carl.node.peerID, in: channel)
    _ = try await ben.node.block(ana.node.peerID.text)
    let events = await ben.node.events()
    let sent = try await ana.node.share(
      path: ana.home.write(pattern(5), "a.amr"), ShareOptions(as: .voice, seconds: 1), in: channel
    ) { _ in }
    // Carl has it, and says something after it.
    try await carl.node.wait(forMedia: sent.media.id, in: channel)
    let note = try await Self.say(carl, channel, pattern(7), "c.amr")
    #expect(await Self.fetched(events, 1) == [note])
    #expect(try Self.received(ben) == [note.text])
    for node in [ana, ben, carl] { try await node.stop() }
  }

  @Test func whatIsKeptHasABound() async throws {
    let (channel, ana, ben) = try await pair("fetch-tests-bound") { $0.fetchedByteCountMax = 1 << 20 }
    let events = await ben.node.events()
    var notes: [MediaID] = []
    for number in 0..<3 {
      notes.append(try await Self.say(ana, channel, pattern(400_000 + number), "\(number).amr"))
      #expect(await Self.fetched(events, 1) == [notes[number]])
    }
    // The third took the place of the first; what was heard of it is told no more.
    #expect(try Self.received(ben) == [notes[1].text, notes[2].text].sorted())
    #expect(try await ben.node.history(of: channel, limit: 3).map(\.fetched) == [[], [notes[1]], [notes[2]]])
    try await ana.stop()
    try await ben.stop()
  }

  /// A message that was taken back takes along what came unasked.
  @Test func whatIsTakenBackIsKeptNoMore() async throws {
    let (channel, ana, ben) = try await pair("fetch-tests-recalled")
    let events = await ben.node.events()
    let note = try await Self.say(ana, channel, pattern(9), "note.amr")
    #expect(await Self.fetched(events, 1) == [note])
    let message = try #require(try await ben.node.history(of: channel, limit: 1).first)
    #expect(message.fetched == [note])
    try await ana.node.recall(MessageReference(sender: message.sender, id: message.id), in: channel)
    try await ben.node.wait { try await $0.history(of: channel, limit: 1).first?.body == .recalled(kind: "voice") }
    // The file goes behind that; the test's time limit bounds the wait.
    while try !Self.received(ben).isEmpty { _ = try await ben.node.history(of: channel, limit: 1) }
    #expect(try await ben.node.history(of: channel, limit: 1).first?.fetched == [])
    await #expect(throws: ParleyError.noSuchMedia(note)) { _ = try await ben.node.bytes(of: note) }
    // And what was taken back is not said again.
    let reference = MessageReference(sender: message.sender, id: message.id)
    await #expect(throws: ParleyError.refusedDeed(reference, .recalled)) {
      _ = try await ben.node.forward([reference], from: channel, to: .channel(channel))
    }
    try await ana.stop()
    try await ben.stop()
  }

  private static func offer(_ sender: UInt64, _ number: Int) -> FetchOffer {
    FetchOffer(
      id: MediaID(Bytes32(words: (1, sender, 0, UInt64(number)))), sender: PeerID(Bytes32(words: (2, 0, 0, sender))),
      channel: ChannelID(Bytes32(words: (3, 0, 0, 0))), kind: "voice", byteCountMax: 1)
  }

  @Test func tenThousandOffersWaitInLittleAndKeepNobodyBack() {
    var queue = FetchQueue()
    for number in 0..<10_000 { queue.add(Self.offer(1, number)) }
    #expect(queue.count == FetchQueue.countMaxEach)
    queue.add(Self.offer(2, 0))
    // The newest of the first, then the other's, though the first has 63 more.
    let first = queue.take()
    let second = queue.take()
    #expect(first == Self.offer(1, 9_999) && second == Self.offer(2, 0))
    #expect(queue.take() == nil)
    queue.end(Self.offer(2, 0))
    // One of each at a time.
    #expect(queue.take() == nil)
    queue.end(Self.offer(1, 9_999))
    #expect(queue.take() == Self.offer(1, 9_998))
  }

  @Test func tenThousandSendersWaitInLittle() {
    var queue = FetchQueue()
    for sender in 0..<10_000 { queue.add(Self.offer(UInt64(sender), 0)) }
    #expect(queue.count == FetchQueue.countMax)
    var taken = 0
    while let offer = queue.take() {
      queue.end(offer)
      taken += 1
    }
    #expect(taken == FetchQueue.countMax && queue.count == 0)
  }
}
