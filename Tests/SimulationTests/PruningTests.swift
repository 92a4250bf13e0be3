import ParleyVocabulary
import Testing

@testable import ParleySimulation

private func texts(_ network: SimulatedNetwork, _ node: SimulatedNodeID) -> [String] {
  network.history(node, "garden")
}

/// An author that is gone, and three who keep different lengths of what it said.
private func library(seed: UInt64, keeping: [Int], author keptCount: Int = 1) -> (SimulatedNetwork, [SimulatedNodeID]) {
  let network = SimulatedNetwork(seed: seed, conditions: SimulatedConditions(loss: 0.1))
  let author = network.addNode("Author")
  let holders = keeping.indices.map { network.addNode("Holder \($0)") }
  for node in [author] + holders { network.join(node, "garden") }
  network.run(for: .seconds(3))
  for number in 1...20 {
    network.send(author, "garden", "\(number)")
    network.run(for: .milliseconds(50))
  }
  network.run(for: .seconds(10))
  // Its author comes back in a run of its own, and has kept little.
  network.crash(author)
  network.run(for: .seconds(20))
  network.restart(author)
  network.run(for: .seconds(20))
  network.prune(author, "garden", keeping: keptCount)
  for (holder, count) in zip(holders, keeping) { network.prune(holder, "garden", keeping: count) }
  network.run(for: .seconds(1))
  return (network, holders)
}

@Test(arguments: 1...10 as ClosedRange<UInt64>)
func aNewcomerGetsTheLongestHistoryThatIsThere(_ seed: UInt64) {
  let (network, _) = library(seed: seed, keeping: [4, 12, 7])
  let newcomer = network.addNode("Newcomer")
  network.join(newcomer, "garden")
  network.run(for: .seconds(15))
  #expect(texts(network, newcomer) == (9...20).map { "\($0)" })
  #expect(network.disagreement(in: "garden") == nil)
  // Whatever each keeps, all say the same of what there is.
  #expect(network.digestCount(in: "garden") == 1)
  #expect(network.violations == [])
}

@Test(arguments: 1...10 as ClosedRange<UInt64>)
func whatAllHaveLetGoIsGoneAndTheNextIsHeard(_ seed: UInt64) {
  let (network, holders) = library(seed: seed, keeping: [0, 0, 0], author: 0)
  let newcomer = network.addNode("Newcomer")
  network.join(newcomer, "garden")
  network.run(for: .seconds(15))
  #expect(texts(network, newcomer) == [])
  network.send(holders[0], "garden", "next")
  network.run(for: .seconds(15))
  for node in holders + [newcomer] { #expect(texts(network, node).last == "next") }
  #expect(network.disagreement(in: "garden") == nil)
  #expect(network.violations == [])
}

/// Restarted in the middle, it does not ask for what it has passed over.
@Test(arguments: 1...10 as ClosedRange<UInt64>)
func whatWasPassedOverStaysPassedOverAfterARestart(_ seed: UInt64) {
  let (network, _) = library(seed: seed, keeping: [5])
  let newcomer = network.addNode("Newcomer")
  network.join(newcomer, "garden")
  network.run(for: .milliseconds(1_700 + Int(seed) * 150))
  network.crash(newcomer)
  network.restart(newcomer)
  network.run(for: .seconds(15))
  #expect(texts(network, newcomer) == (16...20).map { "\($0)" })
  #expect(network.disagreement(in: "garden") == nil)
  #expect(network.violations == [])
}
