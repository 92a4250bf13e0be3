import ParleyMachines
import ParleyVocabulary
import Testing

@Suite struct MediaTransferTests {
  private let film = MediaFixture.film

  /// One to five sources of any behaviour that come and go, and an honest one that comes last and stays.
  @Test(arguments: 1...UInt64(80)) func everySeedEndsWithTheRightFile(_ seed: UInt64) {
    var dice = MediaDice(state: seed &* 7_919)
    var net = MediaTransferSimulation(film, seed: seed)
    let all: [SourceBehaviour] = [
      .honest, .partial, .corrupt, .wrongHashes, .wrongManifest, .silent, .dripping, .changing, .busy,
    ]
    for number in 0...dice.below(5) {
      net.add(
        mediaPeer(UInt8(10 + number)), all[dice.below(all.count)], latency: .milliseconds(dice.below(20)),
        rate: [300_000, 3_000_000, 30_000_000][dice.below(3)], from: .milliseconds(dice.below(3_000)),
        until: dice.chance(40) ? .milliseconds(dice.below(10_000)) : nil)
    }
    net.add(ben, .honest, latency: .milliseconds(1), rate: 12_000_000, from: .milliseconds(dice.below(5_000)))
    net.run(atMost: .seconds(120))
    let outcome = net.outcome
    #expect(outcome.isGood, "seed \(seed)")
    for (peer, fault) in outcome.faults {
      let behaviour = net.sources[peer]!.behaviour
      #expect(behaviour != .honest && behaviour != .busy || !fault.isForGood, "seed \(seed): \(behaviour), \(fault)")
    }
  }

  @Test func honestSourcesSendEachBlockOnce() {
    var net = MediaTransferSimulation(film, seed: 1)
    for number in 1...4 {
      net.add(mediaPeer(UInt8(10 + number)), .honest, latency: .milliseconds(number), rate: 12_000_000)
    }
    net.run(atMost: .seconds(10))
    let outcome = net.outcome
    #expect(outcome.isGood && outcome.faults == [:])
    #expect(outcome.blockCount == (film.bytes.count + 16_383) / 16_384)
  }

  @Test func oneSourceIsKeptBusy() {
    var net = MediaTransferSimulation(film, seed: 1)
    net.add(ben, .honest, latency: .milliseconds(1), rate: 100_000_000)
    net.run(atMost: .seconds(10))
    // 63 ms on the wire alone.
    let outcome = net.outcome
    #expect(outcome.isGood && outcome.milliseconds < 100)
  }

  @Test func fourSourcesTogetherAreFasterThanOne() {
    var one = MediaTransferSimulation(film, seed: 1)
    one.add(ben, .honest, latency: .milliseconds(1), rate: 1_000_000)
    one.run(atMost: .seconds(20))
    var four = MediaTransferSimulation(film, seed: 1)
    for number in 1...4 {
      four.add(mediaPeer(UInt8(10 + number)), .honest, latency: .milliseconds(1), rate: 1_000_000)
    }
    four.run(atMost: .seconds(20))
    let (slow, fast) = (one.outcome, four.outcome)
    #expect(slow.isGood && fast.isGood && fast.milliseconds * 5 < slow.milliseconds * 2)
  }

  @Test func liarsAreNamedAndNeverAskedAgain() {
    var net = MediaTransferSimulation(film, seed: 3)
    net.add(mediaPeer(10), .wrongManifest, latency: .milliseconds(1), rate: 12_000_000)
    net.add(mediaPeer(11), .wrongHashes, latency: .milliseconds(1), rate: 12_000_000)
    net.add(mediaPeer(12), .corrupt, latency: .milliseconds(1), rate: 12_000_000)
    net.add(ben, .honest, latency: .milliseconds(20), rate: 1_000_000)
    net.run(atMost: .seconds(60))
    let outcome = net.outcome
    #expect(outcome.isGood)
    #expect(outcome.faults[mediaPeer(10)] == .badManifest && outcome.faults[mediaPeer(11)] == .badPieceHashes)
    guard case .badPiece? = outcome.faults[mediaPeer(12)] else {
      Issue.record("\(outcome.faults)")
      return
    }
  }
}
