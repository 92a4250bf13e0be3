import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleyMachines

/// A hostile member signs with as many identities, runs and sessions as it likes: what is remembered stays bounded, and
/// honest people still get in.
@Suite struct FloodTests {
  private let me = PeerID(Bytes32(words: (1, 0, 0, 0)))
  private let channel = ChannelID(Bytes32(words: (3, 0, 0, 0)))
  private let address = Address(host: [127, 0, 0, 1], port: 4_000)
  private let now = Instant(microseconds: 1)

  private func peer(_ number: Int) -> PeerID { PeerID(Bytes32(words: (9, 0, 0, UInt64(number)))) }

  private func presence(_ number: Int) -> Presence {
    Presence(
      author: peer(number), instance: Instance(UInt64(number)), counter: 1, incarnation: 1, tcpPort: 1,
      intervalMilliseconds: 2_000, nonce: 1, head: 0, digest: HeadsDigest(of: [:]), lamport: 0,
      wantsAcknowledgement: false, status: [], statusHash: 0)
  }

  @Test func identitiesAreBoundedInTheLinks() {
    var machine = LinksMachine(me: me, instance: Instance(0))
    _ = machine.handle(.channelOpened(channel), at: now)
    let direct = DirectMessage(counter: 1, parts: [.echo(nonce: 1)])
    func claim(_ number: Int) -> LinksEvent {
      let presence = presence(number)
      let signed = Signed(signature: [UInt8](repeating: 0, count: 64), object: presence.encoded)
      // From as many hosts: of one only a few hundred are listened to.
      let host = Address(host: [10, UInt8(number >> 16), UInt8(number >> 8 & 255), UInt8(number & 255)], port: 4_000)
      return .claimVerified(channel, .presence(presence, signed), from: host)
    }
    // One that has answered stays whatever comes.
    _ = machine.handle(claim(1), at: now)
    _ = machine.handle(.directOpened(channel, peer(1), Instance(1), from: address, direct), at: now)
    for number in 2...SessionRule.peersMax + 100 { _ = machine.handle(claim(number), at: now) }
    #expect(machine.peers.count == SessionRule.peersMax)
    #expect(machine.claims.count == SessionRule.peersMax)
    #expect(machine.peers[peer(1)] != nil)
    #expect(machine.peers[peer(SessionRule.peersMax + 100)] != nil)
  }

  @Test func identitiesAreBoundedInAChannel() throws {
    var machine = MembershipMachine(me: me, instance: Instance(0), nonceKey: [UInt8](repeating: 0, count: 32), seed: 1)
    _ = machine.handle(.joined(channel, displayName: try DisplayName("me"), incarnation: 1, remembered: []), at: now)
    // As they are once nobody of them answered the probes. One by one it would take a minute.
    var state = try #require(machine.channels[channel])
    for number in 1...Limit.membersPerChannelMax {
      state.put(state.newMember(presence(number), now), peer(number))
    }
    machine.channels[channel] = state
    heard(5_001, &machine, at: now)
    #expect(machine.channels[channel]?.members.count == Limit.membersPerChannelMax)
    #expect(machine.channels[channel]?.members[peer(5_001)] != nil)
    // People who were seen here are not forgotten for strangers.
    for (peer, var member) in state.members {
      member.isListed = true
      state.put(member, peer)
    }
    machine.channels[channel] = state
    heard(5_002, &machine, at: now)
    #expect(machine.channels[channel]?.members == state.members)
  }

  private func heard(_ number: Int, _ machine: inout MembershipMachine, at moment: Instant) {
    _ = machine.handle(.presenceHeard(channel, presence(number), overSession: false), at: moment)
  }

  @Test(arguments: [true, false], [true, false])
  func aPeerHasOneSessionWhateverRunItNames(_ first: Bool, _ second: Bool) {
    var machine = LinksMachine(me: me, instance: Instance(0))
    _ = machine.handle(.channelOpened(channel), at: now)
    var closed: [LinkID] = []
    for number in 1...50 {
      let facts = SessionFacts(
        peer: peer(1), instance: Instance(UInt64(number)), channels: [channel],
        isInitiator: number % 2 == 0 ? first : second, remote: address)
      for effect in machine.handle(.sessionOpened(LinkID(UInt64(number)), facts), at: now) {
        if case .close(let link, _) = effect { closed.append(link) }
      }
    }
    #expect(machine.sessionCount == 1)
    #expect(closed == (1..<50).map { LinkID(UInt64($0)) })
  }

  @Test(arguments: [true, false], [true, false])
  func sessionsOfOneRunThatAreHeardOutAreFewAndEnd(_ first: Bool, _ second: Bool) {
    var machine = LinksMachine(me: me, instance: Instance(0))
    _ = machine.handle(.channelOpened(channel), at: now)
    for number in 1...50 {
      let facts = SessionFacts(
        peer: peer(1), instance: Instance(1), channels: [channel], isInitiator: number % 2 == 0 ? first : second,
        remote: address)
      _ = machine.handle(.sessionOpened(LinkID(UInt64(number)), facts), at: now)
    }
    #expect(machine.sessionCount == 1 + SessionRule.endingMax)
    // However lively the other side keeps them.
    var later = now
    for _ in 0..<8 {
      later = later + .milliseconds(500)
      for link in machine.sessions.keys { _ = machine.handle(.sessionMessage(link, .ping(1)), at: later) }
      _ = machine.handle(.woke, at: later)
    }
    #expect(machine.sessionCount == 1)
  }

  @Test func holdersNameAtMostAsManyMediaAsAQuestion() throws {
    let media = (0..<33).map { MediaID(Bytes32(words: (0, 0, 0, UInt64($0)))) }
    let message = DirectMessage(counter: 1, parts: [.holding(Array(media.prefix(32)))])
    #expect(try DirectMessage(decoding: message.encoded) == message)
    var inner = ByteWriter()
    for id in media { inner.bytes32(id.value) }
    var bytes = ByteWriter()
    bytes.varint(1)
    bytes.varint(4)
    bytes.block(inner.bytes)
    #expect(throws: WireError.malformed(field: "media IDs", reason: "not 0 to 32 of 32 bytes")) {
      try DirectMessage(decoding: bytes.bytes)
    }
  }
}
