import ParleyMachines
import ParleySimulation
import ParleyVocabulary
import ParleyWire
import Testing

/// A channel of the first node, in which all others are by its invitation.
private func owned(_ count: Int, seed: UInt64 = 1) -> (SimulatedNetwork, [SimulatedNodeID]) {
  let network = SimulatedNetwork(seed: seed)
  let nodes = (0..<count).map { network.addNode("N\($0)") }
  network.found("class", by: nodes[0])
  for node in nodes { network.join(node, "class") }
  #expect(network.run(until: { nodes.allSatisfy { network.online($0, "class") == nodes } }, within: .seconds(5)))
  for node in nodes.dropFirst() { network.useInvitation(node, "class", of: nodes[0]) }
  expect(nodes.dropFirst().map { ($0, .member) }, network, nodes)
  return (network, nodes)
}

/// All come to take these for that.
private func expect(
  _ standings: [(SimulatedNodeID, Standing)], _ network: SimulatedNetwork, _ nodes: [SimulatedNodeID],
  _ comment: Comment? = nil
) {
  let isSo = network.run(
    until: {
      nodes.allSatisfy { node in standings.allSatisfy { network.standing(node, "class", of: $0.0) == $0.1 } }
    }, within: .seconds(60))
  #expect(isSo, comment)
}

private func expectShown(_ texts: Set<String>, _ network: SimulatedNetwork, _ nodes: [SimulatedNodeID]) {
  let isSo = network.run(
    until: { nodes.allSatisfy { Set(network.shown($0, "class")) == texts } }, within: .seconds(60))
  #expect(isSo, "\(nodes.map { network.shown($0, "class") }) \(network.violations)")
}

@Test func whoeverCameWithoutAnInvitationIsHeardByNobody() {
  let (network, nodes) = owned(3)
  let stranger = network.addNode("S")
  network.join(stranger, "class")
  #expect(network.run(until: { network.online(stranger, "class").count == 4 }, within: .seconds(5)))
  // Past its own node, which would not send it.
  network.forge(stranger, "class", TextKind(body: "hello"), isHidden: false, log: 9, number: 1, lamport: 5)
  network.send(nodes[1], "class", "who is that")
  expectShown(["who is that"], network, nodes)
  #expect(network.run(until: { network.history(nodes[2], "class").count == 2 }, within: .seconds(30)))
  expectShown(["who is that"], network, nodes)
}

@Test func theMutedAreHeardByNobodyUntilTheyAreUnmuted() {
  let (network, nodes) = owned(3)
  network.send(nodes[1], "class", "before")
  expectShown(["before"], network, nodes)
  network.setRole(nodes[0], "class", .muted, of: nodes[1])
  expect([(nodes[1], .muted(until: nil))], network, nodes)
  network.send(nodes[1], "class", "refused at home")
  network.forge(nodes[1], "class", TextKind(body: "past it"), isHidden: false, log: 9, number: 1, lamport: 1)
  network.run(for: .seconds(5))
  expectShown(["before"], network, nodes)
  network.setRole(nodes[0], "class", .member, of: nodes[1])
  expect([(nodes[1], .member)], network, nodes)
  network.send(nodes[1], "class", "after")
  expectShown(["before", "after"], network, nodes)
}

@Test func whatWasSaidOnTheOtherSideOfACutIsVoidOnceTheRemovalIsKnown() {
  let (network, nodes) = owned(4)
  network.partition([nodes[0], nodes[1]], from: [nodes[2], nodes[3]])
  network.run(for: .seconds(1))
  network.setRole(nodes[0], "class", .removed, of: nodes[3])
  expect([(nodes[3], .removed)], network, [nodes[0], nodes[1]])
  network.send(nodes[3], "class", "still here")
  expectShown(["still here"], network, [nodes[2], nodes[3]])
  network.heal()
  expect([(nodes[3], .removed)], network, nodes)
  expectShown([], network, nodes)
}

@Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8])
func twoAdminsWhoActAtOnceResolveAlikeEverywhere(seed: UInt64) {
  let (network, nodes) = owned(5, seed: seed)
  network.setRole(nodes[0], "class", .admin, of: nodes[1])
  network.setRole(nodes[0], "class", .admin, of: nodes[2])
  expect([(nodes[1], .admin), (nodes[2], .admin)], network, nodes)
  network.partition([nodes[0], nodes[1]], from: [nodes[2], nodes[3], nodes[4]])
  network.run(for: .seconds(1))
  network.setRole(nodes[1], "class", .banned, of: nodes[2])
  network.setRole(nodes[2], "class", .banned, of: nodes[1])
  network.setRole(nodes[1], "class", .muted, of: nodes[3])
  network.setRole(nodes[2], "class", .removed, of: nodes[3])
  network.setRole(nodes[2], "class", .muted, of: nodes[4])
  network.send(nodes[4], "class", "said at once")
  network.run(for: .seconds(3))
  network.heal()
  // Neither gets at the other; of what they did to others all see the same.
  expect(
    [(nodes[1], .admin), (nodes[2], .admin), (nodes[3], .removed), (nodes[4], .muted(until: nil))], network, nodes)
  #expect(network.run(until: { network.digestsAgree("class") }, within: .seconds(60)))
  let shown = network.shown(nodes[0], "class")
  #expect(nodes.allSatisfy { network.shown($0, "class") == shown })
  #expect(network.violations.isEmpty)
}

@Test func nothingThatIsBackdatedOrFarAheadCounts() {
  let (network, nodes) = owned(4)
  network.setRole(nodes[0], "class", .admin, of: nodes[1])
  expect([(nodes[1], .admin)], network, nodes)
  network.setRole(nodes[0], "class", .member, of: nodes[1])
  expect([(nodes[1], .member)], network, nodes)
  let peers = nodes.map { network.peer(of: $0) }
  for (log, lamport) in [(UInt64(71), UInt64(1)), (72, Limit.counterMax), (73, Limit.counterMax / 2)] {
    let ban = RoleKind(target: peers[2], role: .banned, heads: ActHeads([:]))
    network.forge(nodes[1], "class", ban, isHidden: true, log: log, number: 1, lamport: lamport)
    network.forge(nodes[3], "class", ban, isHidden: true, log: log, number: 1, lamport: lamport)
    let crown = RoleKind(target: peers[3], role: .owner, heads: ActHeads([:]))
    network.forge(nodes[3], "class", crown, isHidden: true, log: log + 10, number: 1, lamport: lamport)
  }
  #expect(network.run(until: { network.digestsAgree("class") }, within: .seconds(60)))
  network.run(for: .seconds(5))
  expect([(nodes[0], .owner), (nodes[1], .member), (nodes[2], .member), (nodes[3], .member)], network, nodes)
}

@Test func aHandIsLoweredForAllAndCanBeRaisedAgain() {
  let (network, nodes) = owned(3)
  func isUp(_ expected: Bool) -> Bool {
    network.run(
      until: {
        nodes.allSatisfy { node in
          network.members(node, "class").first { $0.node == nodes[2] }?.isHandRaised == expected
        }
      }, within: .seconds(30))
  }
  network.raiseHand(nodes[2], "class", true)
  #expect(isUp(true))
  network.lowerHand(nodes[0], "class", of: nodes[2])
  #expect(isUp(false))
  network.raiseHand(nodes[2], "class", true)
  #expect(isUp(true))
  network.setRole(nodes[0], "class", .removed, of: nodes[2])
  expect([(nodes[2], .removed)], network, nodes)
  #expect(isUp(false))
}

@Test func actsAreThereAgainAfterARestart() {
  let (network, nodes) = owned(3)
  network.setRole(nodes[0], "class", .muted, of: nodes[1])
  expect([(nodes[1], .muted(until: nil))], network, nodes)
  network.crash(nodes[2])
  network.run(for: .seconds(10))
  network.restart(nodes[2])
  #expect(network.run(until: { network.isIn(nodes[2], "class") }, within: .seconds(5)))
  #expect(network.standing(nodes[2], "class", of: nodes[1]) == .muted(until: nil))
}

@Test func aClosedChannelIsClosedForAllButItsOwner() {
  let (network, nodes) = owned(3)
  network.send(nodes[1], "class", "before")
  expectShown(["before"], network, nodes)
  network.close(nodes[0], "class")
  let isClosed = { nodes.allSatisfy { network.governance($0, "class")?.isClosed == true } }
  #expect(network.run(until: isClosed, within: .seconds(30)))
  network.send(nodes[1], "class", "refused")
  network.send(nodes[0], "class", "the end")
  expectShown(["before", "the end"], network, nodes)
}

// MARK: With keys

/// The same with secrets: whoever is in good standing by the acts gets the new one, and nobody else.
@Test(arguments: 1...6 as ClosedRange<UInt64>)
func whoIsRemovedByAnActGetsNoNewSecret(_ seed: UInt64) {
  let network = SimulatedNetwork(seed: seed, loss: 0.1)
  let nodes = (0..<5).map { network.addNode("N\($0)") }
  network.found("class", by: nodes[0])
  network.create(nodes[0], "class")
  for node in nodes.dropFirst() { network.invite(node, "class", by: nodes[0]) }
  #expect(
    network.run(until: { nodes.allSatisfy { network.online($0, "class").count == 5 } }, within: .seconds(60)))
  for node in nodes.dropFirst() { network.useInvitation(node, "class", of: nodes[0]) }
  expect(nodes.dropFirst().map { ($0, .member) }, network, nodes)
  let removed = nodes[1 + Int(seed % 4)]
  let rest = nodes.filter { $0 != removed }
  network.setRole(nodes[0], "class", .removed, of: removed)
  expect([(removed, .removed)], network, rest)
  network.rotate(nodes[0], "class")
  let isDone = network.run(
    until: { rest.allSatisfy { network.generation(of: $0, "class") == 1 } }, within: .seconds(120))
  #expect(isDone, "seed \(seed): \(rest.map { network.generation(of: $0, "class") })")
  for node in rest { network.send(node, "class", "among us") }
  network.send(removed, "class", "let me in")
  network.run(for: .seconds(60))
  #expect(network.knownGenerationCount(of: removed, "class") == 1)
  #expect(network.history(removed, "class").contains("among us") == false)
  for node in rest { #expect(network.shown(node, "class") == [String](repeating: "among us", count: 4)) }
  #expect(network.violations == [])
}
