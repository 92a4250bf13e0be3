import ParleyVocabulary
import Synchronization
import Testing

@testable import Parley

/// Error 509.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct SendRateTests {
  @Test func asManyAsMayGoWithinAnySecond() {
    var rate = SendRate(perSecond: 3)
    func take(_ milliseconds: Int) -> Bool {
      rate.take(at: Instant(microseconds: 5_000_000) + .milliseconds(milliseconds))
    }
    #expect([0, 400, 800].map(take) == [true, true, true])
    // The first is a second old at 1,000, not before; what was refused counts for nothing.
    #expect([801, 900, 999].map(take) == [false, false, false])
    #expect([1_000, 1_399, 1_400].map(take) == [true, false, true])
    #expect([1_800, 5_000, 5_000, 5_000, 5_000].map(take) == [true, true, true, true, false])
  }

  @Test func aRateThatIsPassedIsError509AndNothingIsSent() async throws {
    let now = Mutex(Instant(microseconds: 1_000_000))
    let ana = try await RunningNode("Ana") {
      $0.messageRateMax = 2
      $0.clock = { now.withLock { $0 } }
    }
    let channel = try ChannelName("rate-tests")
    try await ana.node.join(channel, secret: .open)
    for text in ["one", "two"] { _ = try await ana.node.send(text, to: channel) }
    let limited = ParleyError.messageRateLimited(perSecond: 2)
    await #expect(throws: limited) { try await ana.node.send("three", to: channel) }
    await #expect(throws: limited) {
      try await ana.node.send(.command(try CommandContent(action: "a")), to: channel)
    }
    await #expect(throws: limited) { try await ana.node.tell("three", peer: "nobody") }
    now.withLock { $0 = $0 + .seconds(1) }
    _ = try await ana.node.send("four", to: channel)
    #expect(
      try await ana.node.history(of: channel, limit: 5).map(\.body) == [.text("one"), .text("two"), .text("four")])
    try await ana.stop()
  }

  @Test func aRateHasBounds() {
    for perSecond in [0, 100_001] {
      var settings = NodeSettings(home: "/nowhere/to/be/made")
      settings.messageRateMax = perSecond
      #expect(throws: ParleyError.badSetting("messages a second", value: perSecond, allowed: 1...100_000)) {
        try Node(settings)
      }
    }
  }
}
