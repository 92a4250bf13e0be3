import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleySimulation

/// Deeds under loss, reordering, partitions and crashes: in the end all show the same conversation.
/// PARLEY_SEED and PARLEY_SEEDS as for the others; fewer by default.
@Test(arguments: Seeds.number("PARLEY_SEED") == nil ? Array(Seeds.chosen.prefix(40)) : Seeds.chosen)
func anySeedWithDeedsEndsInOneConversation(seed: UInt64) {
  let outcome = Scenario(seed: seed, hasDeeds: true).run()
  #expect(outcome.violations == [], "replay: PARLEY_SEED=\(seed)")
  #expect(outcome.agreedAfter != nil, "replay: PARLEY_SEED=\(seed)")
}

/// The seeds do what they are for: every kind of deed counts somewhere, and each rule is broken somewhere.
@Test func seedsWithDeedsDoEverything() {
  var states: [SimulatedMessage] = []
  for seed in 1...20 as ClosedRange<UInt64> {
    let (_, network) = Scenario(seed: seed, hasDeeds: true).runKeeping()
    for node in network.nodeIDs { states += network.conversation(node, "garden") }
  }
  #expect(states.contains { $0.state.recall != nil })
  #expect(states.contains { $0.state.editCount > 1 })
  #expect(states.contains { $0.state.reactions.count > 2 })
  #expect(states.contains { $0.state.readers.count > 1 })
  #expect(states.contains { $0.isPinned })
  #expect(states.contains { $0.state.reactions.contains { $0.emoji == "early" } })
}

private func trio() -> (SimulatedNetwork, [SimulatedNodeID]) {
  let network = SimulatedNetwork(seed: 5)
  let nodes = ["Ana", "Ben", "Cho"].map { network.addNode($0) }
  for node in nodes { network.join(node, "garden") }
  #expect(network.run(until: { nodes.allSatisfy { network.online($0, "garden").count == 3 } }, within: .seconds(30)))
  return (network, nodes)
}

private func agreed(_ network: SimulatedNetwork) -> Bool {
  network.run(until: { network.disagreement(in: "garden") == nil }, within: .seconds(90))
}

/// On two sides of a cut both sides edit, sign and take back; when it heals all see one result: the recall.
@Test func deedsOnBothSidesOfACutMeet() throws {
  let (network, nodes) = trio()
  network.hasDeeds = true
  network.send(nodes[0], "garden", "one")
  network.send(nodes[0], "garden", "two")
  #expect(agreed(network))
  let keys = network.conversation(nodes[1], "garden").map(\.key)
  try #require(keys.count == 2)
  network.partition([nodes[0]], from: [nodes[1], nodes[2]])
  network.submit(nodes[0], "garden", RecallKind(target: keys[0]), isHidden: true)
  network.submit(
    nodes[0], "garden", EditKind(target: keys[1], content: .body("deux"), ext: nil), isHidden: true)
  for node in nodes[1...] {
    network.submit(node, "garden", ReactKind(target: keys[0], emoji: "x", isOn: true), isHidden: true)
    network.submit(node, "garden", ReactKind(target: keys[1], emoji: "y", isOn: true), isHidden: true)
    network.submit(node, "garden", RecallKind(target: keys[1]), isHidden: true)
  }
  network.run(for: .seconds(3))
  network.heal()
  #expect(agreed(network))
  for node in nodes {
    let shown = network.conversation(node, "garden")
    #expect(shown[0].state.recall?.author == network.peer(of: nodes[0]) && shown[0].state.reactions == [])
    #expect(shown[1].state.content == .body("deux") && shown[1].state.recall == nil)
    #expect(shown[1].state.reactions.map(\.peers.count) == [2])
  }
}

/// KINDS.md, recall at 1:59 and 2:01 of simulated time, signed by clocks that are right.
@Test(arguments: [(119, true), (121, false)])
func recallAtItsEdgeInSimulatedTime(seconds: Int, counts: Bool) throws {
  let (network, nodes) = trio()
  network.send(nodes[0], "garden", "one")
  #expect(agreed(network))
  let sent = try #require(network.conversation(nodes[1], "garden").first)
  let node = network.nodes[0]
  let entry = try #require(node.store.history(network.channel(named: SimulatedNetwork.name("garden"))).last)
  let passed = node.clock.milliseconds(at: network.now) - entry.timestamp
  network.run(for: .milliseconds(seconds * 1_000 - Int(passed)))
  network.submit(nodes[0], "garden", RecallKind(target: sent.key), isHidden: true)
  #expect(agreed(network))
  #expect(network.conversation(nodes[2], "garden").map { $0.state.recall != nil } == [counts])
}
