import ParleyMachines
import ParleyVocabulary
import Testing

/// Many downloaders of the same media, and what the source has to send for them.
@Suite struct SwarmTests {
  /// Issue: 256 MiB to four behind links of 1 Gbit/s in 1.35 times the wire's time, the source sending at most 1.3
  /// copies. Here with half of everything, which is harder: pieces do not become smaller.
  @Test func fourReceiversShareWhatTheSourceSendsOnce() {
    let files = SwarmFiles([128 << 20])
    var swarm = SwarmSimulation(files, seed: 1)
    let rate = 125_000_000 / 2
    swarm.add(rate: rate, nil)
    swarm.add(4, rate: rate, DownloadOptions())
    swarm.run(atMost: .seconds(60))
    let (copies, time) = (swarm.copies(from: 0), swarm.wireTimes)
    #expect(swarm.isGood && copies <= 1.3 && time <= 1.35, "\(copies) copies, \(time) of the wire's time")
  }

  /// 32 MiB to thirty behind 100 Mbit/s: at most 1.5 copies from the source. How long it takes is not asked: 2.5 here.
  @Test func thirtyReceiversCostTheSourceOneCopyAndAHalf() {
    let files = SwarmFiles([32 << 20])
    var swarm = SwarmSimulation(files, seed: 1)
    swarm.add(rate: 12_500_000, nil)
    swarm.add(30, rate: 12_500_000, DownloadOptions())
    swarm.run(atMost: .seconds(60))
    let (copies, time) = (swarm.copies(from: 0), swarm.wireTimes)
    #expect(swarm.isGood && copies <= 1.5 && time < 3, "\(copies) copies, \(time) of the wire's time")
  }
}

extension SwarmSimulation {
  var isGood: Bool {
    violations.isEmpty && nodes.allSatisfy { $0.download == nil || $0.finishedAt != nil }
  }

  func copies(from number: Int) -> Double { Double(nodes[number].sentBlockByteCount) / Double(files.byteCount) }

  /// How long the slowest took, by the time one copy takes on a link with nothing beside it.
  var wireTimes: Double {
    let last = nodes.compactMap(\.finishedAt).max() ?? Instant(microseconds: 0)
    return Double(last.microseconds) / 1_000_000 / (Double(files.byteCount) / Double(nodes[0].rate))
  }
}
