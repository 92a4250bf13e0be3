import ParleySimulation
import ParleyVocabulary
import Testing

/// A network without loss in which everybody has joined and sees everybody.
func garden(_ count: Int, seed: UInt64 = 1, loss: Double = 0) -> (SimulatedNetwork, [SimulatedNodeID]) {
  let network = SimulatedNetwork(seed: seed)
  let nodes = (0..<count).map { network.addNode("N\($0)") }
  for node in nodes { network.join(node, "garden") }
  let all = network.run(
    until: { nodes.allSatisfy { network.online($0, "garden") == nodes } }, within: .seconds(5))
  #expect(all)
  network.conditions.loss = loss
  return (network, nodes)
}

@Test(arguments: [3, 12])
func allSeeAllWithinASecond(count: Int) {
  let network = SimulatedNetwork(seed: 1)
  let nodes = (0..<count).map { network.addNode("N\($0)") }
  for node in nodes { network.join(node, "garden") }
  let all = network.run(
    until: { nodes.allSatisfy { network.online($0, "garden") == nodes } }, within: .seconds(1))
  #expect(all, "\(nodes.map { network.online($0, "garden").count }) \(network.violations)")
}

@Test(arguments: [3, 12])
func aLeaveIsSeenWithinASecond(count: Int) {
  let (network, nodes) = garden(count)
  network.run(for: .seconds(20))
  network.leave(nodes[0], "garden")
  let rest = Array(nodes.dropFirst())
  #expect(network.run(until: { rest.allSatisfy { network.online($0, "garden") == rest } }, within: .seconds(1)))
  #expect(rest.allSatisfy { node in network.members(node, "garden").first?.isOnline == false })
}

@Test(arguments: [2, 3, 12])
func aCrashedProcessIsSeenBySixSeconds(count: Int) {
  for quiet in [1, 200] {
    let (network, nodes) = garden(count)
    network.run(for: .seconds(quiet))
    network.crash(nodes[1])
    let rest = nodes.filter { $0 != nodes[1] }
    let seen = network.run(until: { rest.allSatisfy { network.online($0, "garden") == rest } }, within: .seconds(6))
    #expect(seen, "after \(quiet) s of quiet")
  }
}

@Test(arguments: [2, 3, 12])
func aDeadHostIsSeenByFifteenSeconds(count: Int) {
  let (network, nodes) = garden(count)
  network.run(for: .seconds(200))
  network.crash(nodes[1], hostToo: true)
  let rest = nodes.filter { $0 != nodes[1] }
  #expect(network.run(until: { rest.allSatisfy { network.online($0, "garden") == rest } }, within: .seconds(15)))
}

@Test func aPausedNodeCatchesUpWithTenThousandMessages() {
  let (network, nodes) = garden(3)
  network.pause(nodes[2])
  for round in 0..<100 {
    network.after(.milliseconds(round * 590)) { network in
      for number in 0..<100 { network.send(nodes[number % 2], "garden", "\(round).\(number)") }
    }
  }
  network.run(for: .seconds(60))
  #expect(network.history(nodes[0], "garden").count == 10_000)
  #expect(network.history(nodes[2], "garden").count < 10_000)
  network.resume(nodes[2])
  #expect(network.run(until: { network.history(nodes[2], "garden").count == 10_000 }, within: .seconds(30)))
  #expect(network.run(until: { network.disagreement(in: "garden") == nil }, within: .seconds(60)))
  #expect(network.violations == [])
}

@Test func aLateJoinerHasHistoryAndHands() {
  let (network, nodes) = garden(3)
  for number in 0..<50 { network.send(nodes[number % 3], "garden", "\(number)") }
  network.raiseHand(nodes[1], "garden", true)
  network.run(for: .seconds(40))
  let late = network.addNode("Late")
  network.join(late, "garden")
  let knows = network.run(
    until: {
      network.history(late, "garden") == network.history(nodes[0], "garden")
        && network.members(late, "garden").map(\.isHandRaised) == [false, true, false, false]
    }, within: .seconds(3))
  #expect(knows, "\(network.members(late, "garden")) \(network.history(late, "garden").count)")
  #expect(network.history(late, "garden").count == 50)
  // The author of most of it may be gone meanwhile; whoever starts again knows the hands, too.
  network.crash(nodes[0])
  network.restart(nodes[0])
  let stillKnows = network.run(
    until: { network.members(nodes[0], "garden").map(\.isHandRaised) == [false, true, false, false] },
    within: .seconds(5))
  #expect(stillKnows, "\(network.members(nodes[0], "garden"))")
}

@Test func twoHalvesThatBothWroteHeal() {
  let (network, nodes) = garden(6)
  network.partition(Array(nodes[..<3]), from: Array(nodes[3...]))
  for round in 0..<100 {
    network.after(.seconds(round)) { network in
      for node in nodes { network.send(node, "garden", "\(round)") }
    }
  }
  network.run(for: .seconds(120))
  #expect(network.online(nodes[0], "garden") == Array(nodes[..<3]))
  #expect(network.online(nodes[5], "garden") == Array(nodes[3...]))
  #expect(network.history(nodes[0], "garden").count == 300)
  network.heal()
  #expect(network.run(until: { network.disagreement(in: "garden") == nil }, within: .seconds(30)))
  #expect(network.history(nodes[0], "garden").count == 600)
}

@Test func noFalseAlarmInAnHourAtTenPercentLoss() {
  let (network, nodes) = garden(5, seed: 3, loss: 0.1)
  network.run(for: .seconds(10))
  let hour = network.now + .seconds(3_600)
  while network.now < hour, network.violations.isEmpty {
    network.run(for: .seconds(1))
    guard nodes.allSatisfy({ network.online($0, "garden") == nodes }) else {
      Issue.record("somebody was taken for gone")
      return
    }
  }
  #expect(network.violations == [])
}

/// The first row of the table that `Scripts/simulate scale` prints, with an hour for a day.
@Test func tenMembersCostLittleAndNoticeSoon() throws {
  let row = try ScaleTrial(memberCount: 10).run(watching: .seconds(3_600))
  #expect(row.mean.bytesSent > 0 && row.mean.bytesHeard > 0)
  #expect(row.highest.bytes < 200)
  #expect(row.sessionsHighest <= 4)
  let join = try #require(row.join)
  let crash = try #require(row.crash)
  let deadHost = try #require(row.deadHost)
  #expect(join <= .seconds(2) && crash <= .seconds(2) && deadHost <= .seconds(15))
  #expect(row.falseAlarmCount == 0)
}

@Test func aNodeIsReachedAfterItsAddressChanged() {
  let (network, nodes) = garden(3)
  network.run(for: .seconds(60))
  network.move(nodes[1])
  network.run(for: .seconds(60))
  network.tell(nodes[0], nodes[1], "found you")
  network.send(nodes[1], "garden", "here")
  let isFound = network.run(
    until: { network.privateMessageCount(nodes[1]) == 1 && network.disagreement(in: "garden") == nil },
    within: .seconds(40))
  #expect(isFound, "\(network.disagreement(in: "garden") ?? "agreed") \(network.violations)")
}

@Test func whoIsReachedOnlyByAddressIsAMemberLikeOthers() {
  let network = SimulatedNetwork(seed: 5, loss: 1)
  let nodes = ["Ana", "Ben"].map { network.addNode($0) }
  for node in nodes { network.join(node, "garden") }
  network.run(for: .seconds(2))
  network.conditions.datagramsOnly = true
  network.introduce(nodes[0], to: nodes[1])
  #expect(network.run(until: { network.online(nodes[1], "garden") == nodes }, within: .seconds(5)))
  network.send(nodes[0], "garden", "by session")
  #expect(network.run(until: { network.history(nodes[1], "garden") == ["by session"] }, within: .seconds(5)))
  network.run(for: .seconds(150))
  #expect(network.disagreement(in: "garden") == nil)
}
