import Parley
import Testing

/// Owner, admins and members among real nodes.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct RolesTests {
  /// A channel of Ana's with the others in it, admitted in everybody's eyes.
  private func owned(_ channel: ChannelName, _ others: [String]) async throws -> [RunningNode] {
    let ana = try await RunningNode("Ana")
    try await ana.node.create(channel)
    let link = try await ana.node.invite(to: channel).link
    var nodes = [ana]
    for name in others {
      let node = try await RunningNode(name)
      try await node.node.join(invitation: link)
      nodes.append(node)
    }
    for node in nodes {
      for other in nodes.dropFirst() { try await wait(node, for: other, .member, in: channel) }
    }
    return nodes
  }

  private func wait(
    _ node: RunningNode, for other: RunningNode, _ rank: MemberRole.Rank, in channel: ChannelName
  ) async throws {
    let peer = other.node.peerID
    try await node.node.wait { try await $0.members(of: channel).contains { $0.peer == peer && $0.role?.rank == rank } }
  }

  private func stop(_ nodes: [RunningNode]) async throws { for node in nodes { try await node.stop() } }

  @Test func whoIsMutedIsToldSoAndHeardAgainLater() async throws {
    let channel = try name("roles-mute")
    let nodes = try await owned(channel, ["Ben"])
    let (ana, ben) = (nodes[0].node, nodes[1].node)
    #expect(try await ana.role(in: channel) == MemberRole(rank: .owner))
    _ = try await ben.send("one", to: channel)
    try await ana.wait(forText: "one", in: channel)
    try await ana.setRole(.muted(until: nil), of: ben.peerID.text, in: channel)
    try await ben.wait { try await $0.role(in: channel)?.isMuted == true }
    await #expect(throws: ParleyError.excluded(channel, .muted(until: nil))) { try await ben.send("two", to: channel) }
    try await ben.setHand(raised: true, in: channel)
    try await ana.wait { try await $0.members(of: channel).contains { $0.isHandRaised } }
    try await ana.lowerHand(of: ben.peerID.text, in: channel)
    try await ben.wait { try await $0.members(of: channel).allSatisfy { !$0.isHandRaised } }
    try await ana.unmute("Ben", in: channel)
    try await ben.wait { try await $0.role(in: channel)?.isMuted == false }
    _ = try await ben.send("three", to: channel)
    try await ana.wait(forText: "three", in: channel)
    await #expect(throws: ParleyError.notAllowed(channel, .notMuted)) { try await ana.unmute("Ben", in: channel) }
    try await stop(nodes)
  }

  @Test func whoMayNotIsToldWhy() async throws {
    let channel = try name("roles-refused")
    let open = try name("roles-refused-open")
    let nodes = try await owned(channel, ["Ben"])
    let (ana, ben) = (nodes[0].node, nodes[1].node)
    await #expect(throws: ParleyError.notAllowed(channel, .notAdmin)) {
      try await ben.setRole(.banned, of: ana.peerID.text, in: channel)
    }
    await #expect(throws: ParleyError.notAllowed(channel, .notAdmin)) { try await ben.announce("me", in: channel) }
    await #expect(throws: ParleyError.notAllowed(channel, .notAdmin)) { try await ben.invite(to: channel) }
    await #expect(throws: ParleyError.notAllowed(channel, .targetIsSelf)) {
      try await ana.setRole(.removed, of: ana.peerID.text, in: channel)
    }
    try await ana.join(open, secret: .open)
    await #expect(throws: ParleyError.notAllowed(open, .noOwner)) { try await ana.announce("me", in: open) }
    try await ana.setRole(.admin, of: ben.peerID.text, in: channel)
    try await wait(nodes[1], for: nodes[1], .admin, in: channel)
    try await ben.announce("at 9", in: channel)
    try await ana.wait { try await $0.announcement(in: channel)?.text == "at 9" }
    await #expect(throws: ParleyError.notAllowed(channel, .targetIsOwner)) {
      try await ben.setRole(.removed, of: ana.peerID.text, in: channel)
    }
    try await stop(nodes)
  }

  @Test func theRemovedHearNothingAndRolesOutliveARestart() async throws {
    let channel = try name("roles-remove")
    let nodes = try await owned(channel, ["Ben", "Cho"])
    let (ana, ben, cho) = (nodes[0].node, nodes[1].node, nodes[2].node)
    try await ana.setRole(.removed, of: cho.peerID.text, in: channel)
    try await wait(nodes[1], for: nodes[2], .removed, in: channel)
    _ = try await ana.send("without Cho", to: channel)
    try await ben.wait(forText: "without Cho", in: channel)
    #expect(try await cho.history(of: channel, limit: 10).isEmpty)
    let home = nodes[0].home
    try await nodes[0].stop()
    let again = try await RunningNode("Ana", home: home)
    let choID = cho.peerID
    try await again.node.wait {
      try await $0.members(of: channel).contains { $0.peer == choID && $0.role?.rank == .removed }
    }
    try await again.node.unban(cho.peerID.text, in: channel)
    try await wait(nodes[1], for: nodes[2], .member, in: channel)
    try await stop([again, nodes[1], nodes[2]])
  }

  @Test func ownershipGoesOverAndTheNewOwnerCloses() async throws {
    let channel = try name("roles-transfer")
    let nodes = try await owned(channel, ["Ben"])
    let (ana, ben) = (nodes[0].node, nodes[1].node)
    try await ana.setRole(.owner, of: ben.peerID.text, in: channel)
    try await wait(nodes[1], for: nodes[1], .owner, in: channel)
    #expect(try await ana.role(in: channel)?.rank == .admin)
    await #expect(throws: ParleyError.notAllowed(channel, .notOwner)) { try await ana.close(channel) }
    try await ben.close(channel)
    try await ana.wait { node in
      do {
        _ = try await node.send("still?", to: channel)
        return false
      } catch let error as ParleyError { return error == .excluded(channel, .closed) }
    }
    try await stop(nodes)
  }
}
