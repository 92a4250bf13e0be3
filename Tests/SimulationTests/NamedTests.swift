import ParleySimulation
import ParleyVocabulary
import Testing

@Test(arguments: [3, 12])
func allSeeAllWithinASecond(count: Int) {
  let network = SimulatedNetwork(seed: 1)
  let nodes = (0..<count).map { network.addNode("N\($0)") }
  for node in nodes { network.join(node, "garden") }
  let all = network.run(
    until: { nodes.allSatisfy { network.online($0, "garden") == nodes } }, within: .seconds(1))
  #expect(all, "\(nodes.map { network.online($0, "garden").count }) \(network.violations)")
}
