import ParleyMachines
import ParleySealing
import ParleyTransport
import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleyActors

/// Runs on the transport's thread: what it delivers enters the links actor at once, as from the real network.
private actor Stage {
  let transport: FakeTransport
  nonisolated var unownedExecutor: UnownedSerialExecutor { transport.executor.asUnownedSerialExecutor() }
  private var acceptedCount: UInt64 = 0

  init(_ transport: FakeTransport) { self.transport = transport }

  private func deliver(_ event: TransportEvent) { transport.state.withLock { $0.handler }?(event) }

  private func answer(_ id: ConnectionID, _ bytes: [UInt8]) -> [UInt8] {
    transport.state.withLock { $0.written[id] = [] }
    deliver(.received(id, ReceivedBytes(bytes)))
    return transport.state.withLock { $0.written[id] ?? [] }
  }

  /// Somebody dials in and proves the channel.
  func dialIn(_ identity: Identity, _ purpose: SessionPurpose, _ channel: ChannelKeys) throws -> ConnectionID {
    acceptedCount += 1
    let id = ConnectionID(1 << 63 + acceptedCount)
    deliver(.accepted(id, from: Address(host: [127, 0, 0, 1], port: 9)))
    var handshake = SessionHandshake(
      initiator: purpose, channels: [channel], identity: identity, instance: Instance(acceptedCount))
    let offer = try handshake.receive(answer(id, handshake.start())).send
    let (introduction, established) = try handshake.receive(answer(id, offer))
    try #require(established != nil)
    _ = answer(id, introduction)
    return id
  }

  func hear(_ datagram: [UInt8]) {
    deliver(.datagram(datagram, from: Address(host: [127, 0, 0, 1], port: 9), interface: "lo"))
  }
}

@Suite(.timeLimit(.minutes(1)))
struct LinksActorTests {
  private let kitchen = ChannelKeys.open(name: try! ChannelName("kitchen"))
  private let transport = FakeTransport()
  private let switchboard = Switchboard { _ in }
  private let links: LinksActor
  private var question: LinksMail {
    .event(.multicast(kitchen.id, [.plain(.whoHas([MediaID(Bytes32(words: (1, 2, 3, 4)))]))]))
  }

  init() {
    Sealing.initialize()
    let identity = Identity.random()
    links = LinksActor(
      LinksMachine(me: identity.peerID, instance: Instance(99)), identity: identity, transport: transport,
      switchboard: switchboard)
  }

  /// Everything posted so far is handled when this returns.
  private func runToTheEnd() async {
    switchboard.close()
    await links.run()
  }

  @Test func aChannelLeftAndJoinedAtOnceStaysOpen() async throws {
    try await links.start(TransportSettings())
    let opened = LinksMail.event(.channelOpened(kitchen.id))
    let closed = LinksMail.event(.channelClosed(kitchen.id))
    // Login opens the second time before membership has said goodbye and closes the first.
    for mail in [.install(kitchen), opened, .uninstall(kitchen.id), .install(kitchen), opened, closed] {
      switchboard.links.post(mail)
    }
    for mail in [.uninstall(kitchen.id), question, closed, question] { switchboard.links.post(mail) }
    await runToTheEnd()
    #expect(transport.state.withLock { $0.multicasts.count } == 1)
  }

  @Test func theKeysOfAJoinThatFailedAreNotUsed() async throws {
    try await links.start(TransportSettings())
    for mail in [.install(kitchen), .uninstall(kitchen.id), .event(.channelOpened(kitchen.id)), question] {
      switchboard.links.post(mail)
    }
    await runToTheEnd()
    #expect(transport.state.withLock { $0.multicasts.isEmpty })
  }

  @Test func aStartThatFailsEndsTheTransport() async throws {
    let failing = FakeTransport(failure: .cannotListen(port: 1, reason: "not permitted"))
    let identity = Identity.random()
    let links = LinksActor(
      LinksMachine(me: identity.peerID, instance: Instance(1)), identity: identity, transport: failing,
      switchboard: switchboard)
    await #expect(throws: TransportError.cannotListen(port: 1, reason: "not permitted")) {
      try await links.start(TransportSettings())
    }
    #expect(failing.state.withLock { $0.stopCount } == 1)
  }

  @Test func oneMemberHasFourMediaSessionsAtMost() async throws {
    try await links.start(TransportSettings())
    let stage = Stage(transport)
    async let running: Void = links.run()
    switchboard.links.post(.install(kitchen))
    switchboard.links.post(.event(.channelOpened(kitchen.id)))
    while switchboard.links.count > 0 { await Task.yield() }
    let eve = Identity.random()
    var sessions: [ConnectionID] = []
    for _ in 0..<4 { sessions.append(try await stage.dialIn(eve, .media, kitchen)) }
    _ = try await stage.dialIn(Identity.random(), .media, kitchen)
    #expect(transport.state.withLock { $0.closed.isEmpty })
    _ = try await stage.dialIn(eve, .media, kitchen)
    #expect(transport.state.withLock { $0.closed } == [sessions[0]])
    switchboard.close()
    await running
  }

  @Test func whoeverDoesNotReadItsAnswersIsCutOff() async throws {
    try await links.start(TransportSettings())
    let stage = Stage(transport)
    async let running: Void = links.run()
    switchboard.links.post(.install(kitchen))
    switchboard.links.post(.event(.channelOpened(kitchen.id)))
    while switchboard.links.count > 0 { await Task.yield() }
    let id = try await stage.dialIn(Identity.random(), .media, kitchen)
    transport.state.withLock { $0.queuedByteCount[id] = 16 << 20 }
    switchboard.links.post(.sendMedia(LinkID(1), [.cancel(1)]))
    switchboard.close()
    await running
    #expect(transport.state.withLock { $0.closed } == [id])
  }

  @Test func aTagSeenInTheClearSilencesNobody() throws {
    var tags = TagTable()
    let now = Instant(microseconds: 5)
    let keys = [kitchen.id: kitchen]
    let tag = kitchen.tag(of: Instance(7))
    // An outsider repeats it under another instance before its owner is heard.
    #expect(tags.channel(tag, Instance(8), keys, now) == nil)
    #expect(tags.foreignCount(since: now) == 1)
    #expect(tags.channel(tag, Instance(7), keys, now) == kitchen.id)
    for number in 0..<10_000 { _ = tags.channel(UInt64(number), Instance(9), keys, now) }
    #expect(tags.foreignCount(since: now) <= 4_096)
  }
}
