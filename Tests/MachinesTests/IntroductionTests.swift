import ParleyMachines
import ParleyVocabulary
import Testing

/// Nodes that a person named by address.
struct IntroductionTests {
  private let me = PeerID(Bytes32(words: (1, 0, 0, 0)))
  private let other = PeerID(Bytes32(words: (2, 0, 0, 0)))
  private let channel = ChannelID(Bytes32(words: (3, 0, 0, 0)))
  private let address = Address(host: [192, 0, 2, 7], port: 4_000)

  private func at(_ milliseconds: UInt64) -> Instant { Instant(microseconds: milliseconds * 1_000) }

  private func dials(_ effects: [LinksEffect]) -> [LinkID] {
    effects.compactMap { effect in
      guard case .dial(let link, address, expecting: nil, _) = effect else { return nil }
      return link
    }
  }

  private func facts(_ peer: PeerID, _ instance: UInt64) -> SessionFacts {
    SessionFacts(
      peer: peer, instance: Instance(instance), channels: [channel], isInitiator: true, remote: address)
  }

  @Test func aNamedNodeIsDialledUntilItIsThereAndAgainWhenItIsGone() throws {
    var machine = LinksMachine(me: me, instance: Instance(1))
    #expect(dials(machine.handle(.introduce(address), at: at(0))).isEmpty)
    let first = dials(machine.handle(.channelOpened(channel), at: at(0)))
    try #require(first.count == 1)
    #expect(dials(machine.handle(.woke, at: at(500))).isEmpty)
    _ = machine.handle(.sessionClosed(first[0], reason: "nobody listens"), at: at(600))
    #expect(dials(machine.handle(.woke, at: at(3_500))).isEmpty)
    let second = dials(machine.handle(.woke, at: at(3_600)))
    try #require(second.count == 1)
    _ = machine.handle(.sessionOpened(second[0], facts(other, 5)), at: at(3_700))
    // Nothing is said in it for a minute but signs of life: it stays.
    var now: UInt64 = 4_000
    while now < 64_000 {
      _ = machine.handle(.sessionMessage(second[0], .pong(1)), at: at(now))
      let effects = machine.handle(.woke, at: at(now))
      #expect(dials(effects).isEmpty && effects.allSatisfy { if case .close = $0 { false } else { true } })
      now += 500
    }
    _ = machine.handle(.sessionClosed(second[0], reason: "the other side closed"), at: at(now))
    let third = dials(machine.handle(.woke, at: at(now + 500)))
    try #require(third.count == 1)
    // It was started again, as somebody else.
    let newcomer = PeerID(Bytes32(words: (9, 0, 0, 0)))
    _ = machine.handle(.sessionOpened(third[0], facts(newcomer, 6)), at: at(now + 600))
    #expect(dials(machine.handle(.woke, at: at(now + 10_000))).isEmpty)
  }

  @Test func ourOwnAddressIsDialledOnce() throws {
    var machine = LinksMachine(me: me, instance: Instance(1))
    _ = machine.handle(.channelOpened(channel), at: at(0))
    let first = dials(machine.handle(.introduce(address), at: at(0)))
    try #require(first.count == 1)
    _ = machine.handle(.sessionOpened(first[0], facts(me, 1)), at: at(10))
    for second in 1..<20 { #expect(dials(machine.handle(.woke, at: at(UInt64(second) * 1_000))).isEmpty) }
  }
}
