import ParleySimulation
import ParleyVocabulary
import Testing

private let lesson = "class"

/// A channel of the first node, with all others in it as members who see each other.
private func network(seed: UInt64, members count: Int, loss: Double = 0) -> (SimulatedNetwork, [SimulatedNodeID]) {
  let network = SimulatedNetwork(seed: seed, loss: loss)
  let nodes = (0..<count).map { network.addNode("N\($0)") }
  network.create(nodes[0], lesson)
  for node in nodes.dropFirst() { network.invite(node, lesson, by: nodes[0]) }
  network.trust(lesson, rotators: [nodes[0]], members: nodes, toldTo: nodes)
  let all = network.run(
    until: { nodes.allSatisfy { network.online($0, lesson).count == count } }, within: .seconds(60))
  #expect(all, "seed \(seed): they meet")
  return (network, nodes)
}

private func allHold(_ number: UInt64, _ nodes: [SimulatedNodeID], _ network: SimulatedNetwork) -> Bool {
  nodes.allSatisfy { network.generation(of: $0, lesson) == number } && network.generationCount(of: nodes, lesson) == 1
}

@Test(arguments: 1...20 as ClosedRange<UInt64>)
func aRotationReachesAllUnderLossAndNothingSaidIsLost(_ seed: UInt64) {
  let (network, nodes) = network(seed: seed, members: 3 + Int(seed % 6), loss: 0.2)
  for (index, node) in nodes.enumerated() {
    for number in 0..<10 {
      network.after(.milliseconds(index * 7 + number * 40)) { $0.send(node, lesson, "\(index).\(number)") }
    }
  }
  network.after(.milliseconds(150)) { $0.rotate(nodes[0], lesson) }
  network.run(for: .milliseconds(500))
  #expect(network.run(until: { allHold(1, nodes, network) }, within: .seconds(60)), "seed \(seed)")
  let agreed = network.run(
    until: { nodes.allSatisfy { network.history($0, lesson).count == nodes.count * 10 } }, within: .seconds(90))
  #expect(agreed, "seed \(seed)")
  #expect(network.violations == [])
}

@Test(arguments: 1...20 as ClosedRange<UInt64>)
func whoIsRemovedReadsAndWritesNothingAfterwards(_ seed: UInt64) {
  let (network, nodes) = network(seed: seed, members: 4 + Int(seed % 5), loss: 0.1)
  let removed = nodes[1 + Int(seed) % (nodes.count - 1)]
  let rest = nodes.filter { $0 != removed }
  network.trust(lesson, rotators: [nodes[0]], members: rest, removed: [removed], toldTo: nodes)
  network.rotate(nodes[0], lesson)
  #expect(network.run(until: { allHold(1, rest, network) }, within: .seconds(60)), "seed \(seed)")
  for node in rest { network.send(node, lesson, "among us") }
  network.send(removed, lesson, "let me in")
  network.crash(removed)
  network.restart(removed)
  network.run(for: .seconds(5))
  network.send(removed, lesson, "let me in again")
  network.run(for: .seconds(200))
  #expect(network.knownGenerationCount(of: removed, lesson) == 1)
  #expect(network.history(removed, lesson).contains("among us") == false)
  for node in rest {
    #expect(network.history(node, lesson) == [String](repeating: "among us", count: rest.count), "seed \(seed)")
    #expect(network.online(node, lesson).contains(removed) == false, "seed \(seed)")
  }
  #expect(network.violations == [])
}

@Test(arguments: 1...20 as ClosedRange<UInt64>)
func thoseWhoWereCutOffOrAwayCatchUp(_ seed: UInt64) {
  let (network, nodes) = network(seed: seed, members: 6, loss: 0.1)
  let away = nodes[5]
  let cut = Array(nodes[3..<5])
  network.crash(away, hostToo: seed % 2 == 0)
  network.partition(Array(nodes[0..<3]), from: cut)
  network.run(for: .seconds(Int(seed)))
  network.rotate(nodes[0], lesson)
  #expect(network.run(until: { allHold(1, Array(nodes[0..<3]), network) }, within: .seconds(60)), "seed \(seed)")
  network.rotate(nodes[0], lesson)
  network.send(nodes[1], lesson, "while you were away")
  network.send(nodes[3], lesson, "on the other side")
  // Longer than what was on its way is read.
  network.run(for: .seconds(130))
  #expect(cut.allSatisfy { network.generation(of: $0, lesson) == 0 })
  network.heal()
  network.restart(away)
  #expect(network.run(until: { allHold(2, nodes, network) }, within: .seconds(90)), "seed \(seed)")
  let said: Set = ["while you were away", "on the other side"]
  let agreed = network.run(
    until: { nodes.allSatisfy { Set(network.history($0, lesson)) == said } }, within: .seconds(90))
  #expect(agreed, "seed \(seed)")
  #expect(network.violations == [])
}

/// Two admins on two sides of a cut: both numbers are 1, and all end with one of them.
@Test(arguments: 1...20 as ClosedRange<UInt64>)
func twoRotationsAtOnceEndAsOne(_ seed: UInt64) {
  let (network, nodes) = network(seed: seed, members: 6, loss: 0.1)
  network.trust(lesson, rotators: [nodes[0], nodes[5]], members: nodes, toldTo: nodes)
  if seed % 2 == 0 { network.partition(Array(nodes[0..<3]), from: Array(nodes[3...])) }
  network.rotate(nodes[0], lesson)
  network.rotate(nodes[5], lesson)
  network.run(for: .seconds(10))
  network.send(nodes[0], lesson, "here")
  network.send(nodes[5], lesson, "there")
  network.run(for: .seconds(5))
  network.heal()
  let agreed = network.run(
    until: {
      allHold(1, nodes, network) && nodes.allSatisfy { Set(network.history($0, lesson)) == ["here", "there"] }
    }, within: .seconds(120))
  #expect(agreed, "seed \(seed)")
  #expect(network.violations == [])
}

/// An invitation from before a rotation: its secret is an older one.
@Test func aNewcomerWithAnOldInvitationGetsTheNewestSecretOnceItIsAMember() {
  let (network, nodes) = network(seed: 3, members: 4)
  let late = network.addNode("Late")
  network.invite(late, lesson, by: nodes[0])
  network.leave(late, lesson)
  network.rotate(nodes[0], lesson)
  #expect(network.run(until: { allHold(1, nodes, network) }, within: .seconds(10)))
  network.join(late, lesson)
  network.run(for: .seconds(60))
  #expect(network.generation(of: late, lesson) == 0, "nobody knows it yet")
  network.trust(lesson, rotators: [nodes[0]], members: nodes + [late], toldTo: nodes + [late])
  #expect(network.run(until: { allHold(1, nodes + [late], network) }, within: .seconds(60)))
}

@Test func aRotationInAChannelOfAHundredIsQuickAndCheap() throws {
  let row = try RotationTrial(memberCount: 100).run()
  let known = try #require(row.known)
  #expect(known < .seconds(5))
  #expect(row.meanByteCount < 60_000)
  #expect(row.sessionCount < 100)
}
