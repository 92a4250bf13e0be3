import ParleyVocabulary

/// What it costs an owned channel of so many members when one is removed and the secret changes. Measured on the
/// machines that ship, over a network of 1 to 3 ms a way, with nobody speaking.
public final class RotationTrial {
  public struct Row: Sendable {
    public let memberCount: Int
    /// From the removal until every other member sends under the new generation; nil: not within a minute.
    public let known: Span?
    /// Sent and heard by a node in the 10 s from then on, above what it is without a rotation: the mean of all, and
    /// that of the node with the most.
    public let meanByteCount: Double
    public let highestByteCount: Double
    /// Sessions opened in that time, by all together.
    public let sessionCount: Int
    public let stepCount: Int
  }

  public let memberCount: Int
  private let network: SimulatedNetwork
  private static let channel = "class"
  private static let watched = Span.seconds(10)

  public init(memberCount: Int, seed: UInt64 = 1) {
    precondition(memberCount > 2, "somebody makes the secret, somebody gets it, somebody does not")
    self.memberCount = memberCount
    network = SimulatedNetwork(seed: seed)
  }

  public func run() throws(ScaleTrial.Failure) -> Row {
    let nodes = try gather()
    network.run(for: .seconds(120))
    let idle = try watch(nodes)
    let removed = nodes[memberCount / 2]
    let rest = nodes.filter { $0 != removed }
    let sessionsBefore = network.nextStream
    let before = nodes.map { network.traffic(of: $0) }
    network.trust(Self.channel, rotators: [nodes[0]], members: rest, removed: [removed], toldTo: nodes)
    network.rotate(nodes[0], Self.channel)
    let start = network.now
    let isKnown = network.run(
      until: { [network] in rest.allSatisfy { network.generation(of: $0, Self.channel) == 1 } }, within: .seconds(60))
    let known = network.now - start
    if known < Self.watched {
      network.run(for: Span(microseconds: Self.watched.microseconds - known.microseconds))
    }
    try check()
    guard network.knownGenerationCount(of: removed, Self.channel) == 1 else {
      throw ScaleTrial.Failure(description: "who was removed has the new secret")
    }
    let costs = zip(zip(nodes, before), idle).map { Double(bytes(since: $0.0.1, of: $0.0.0)) - $0.1 }
    return Row(
      memberCount: memberCount, known: isKnown ? known : nil,
      meanByteCount: costs.reduce(0, +) / Double(costs.count), highestByteCount: costs.max() ?? 0,
      sessionCount: Int(network.nextStream - sessionsBefore), stepCount: network.stepCount)
  }

  private func gather() throws(ScaleTrial.Failure) -> [SimulatedNodeID] {
    let nodes = (0..<memberCount).map { network.addNode("N\($0)") }
    network.create(nodes[0], Self.channel)
    for (index, node) in nodes.enumerated() where index > 0 {
      network.after(.milliseconds(20 * index)) { $0.invite(node, Self.channel, by: nodes[0]) }
    }
    network.run(for: .milliseconds(20 * memberCount + 100))
    network.trust(Self.channel, rotators: [nodes[0]], members: nodes, toldTo: nodes)
    let isWhole = network.run(
      until: { [network] in nodes.allSatisfy { network.onlineCount($0, Self.channel) == nodes.count } },
      within: .seconds(60) + .milliseconds(1_000 * memberCount))
    try check()
    guard isWhole else { throw ScaleTrial.Failure(description: "the \(memberCount) members do not all see all") }
    return nodes
  }

  /// What each node sends and hears in as much time when nothing happens.
  private func watch(_ nodes: [SimulatedNodeID]) throws(ScaleTrial.Failure) -> [Double] {
    let before = nodes.map { network.traffic(of: $0) }
    network.run(for: Self.watched * 6)
    try check()
    return zip(nodes, before).map { Double(bytes(since: $1, of: $0)) / 6 }
  }

  private func bytes(since before: SimulatedTraffic, of node: SimulatedNodeID) -> Int {
    let after = network.traffic(of: node)
    return after.byteCountSent - before.byteCountSent + after.byteCountHeard - before.byteCountHeard
  }

  private func check() throws(ScaleTrial.Failure) {
    if let violation = network.violations.first { throw ScaleTrial.Failure(description: violation) }
  }
}
