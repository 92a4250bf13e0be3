import ParleyMachines
import ParleyVocabulary
import Testing

/// Two who download from one honest source, with three members beside it who do them harm.
@Suite struct HostileSwarmTests {
  private static let files = SwarmFiles([24 << 20])
  private static let rate = 12_500_000

  private func run(_ behaviour: SwarmBehaviour?, _ seed: UInt64) -> SwarmSimulation {
    var swarm = SwarmSimulation(Self.files, seed: seed)
    if let behaviour { swarm.add(3, behaviour, rate: Self.rate, nil) }
    swarm.add(rate: Self.rate, nil)
    swarm.add(2, rate: Self.rate, DownloadOptions())
    swarm.run(atMost: .seconds(60))
    return swarm
  }

  @Test(arguments: [
    SwarmBehaviour.wrongBytes, .wrongHashes, .endlessManifest, .claimsAll, .silent, .drips,
  ])
  func othersCompleteInHalfAsLongAgain(_ behaviour: SwarmBehaviour) {
    let (honest, swarm) = (run(nil, 1), run(behaviour, 1))
    let (alone, time) = (honest.wireTimes, swarm.wireTimes)
    #expect(honest.isGood && swarm.isGood && time <= alone * 1.5, "\(behaviour): \(time) instead of \(alone)")
  }
}
