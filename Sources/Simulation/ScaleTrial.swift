import ParleyMachines
import ParleyVocabulary

/// What a channel of so many members costs when nobody says anything, and how soon all know who came and who went.
/// Measured on the machines that ship, over a network of 1 to 3 ms a way.
public final class ScaleTrial {
  /// Of one node, a second.
  public struct Rate: Sendable {
    public var bytesSent = 0.0
    public var bytesHeard = 0.0
    public var datagramsSent = 0.0
    public var datagramsHeard = 0.0
    public var bytes: Double { bytesSent + bytesHeard }
  }

  public struct Row: Sendable {
    public let memberCount: Int
    /// Of all nodes, and of the one that sends and hears most.
    public let mean: Rate
    public let highest: Rate
    public let sessionsMean: Double
    public let sessionsHighest: Int
    /// The slowest of several: until all list a newcomer as online and the newcomer lists all; until all list one whose
    /// process crashed, or whose host died, as offline. Nil: not within a minute.
    public let join: Span?
    public let crash: Span?
    public let deadHost: Span?
    /// Watched at 10 % loss.
    public let watched: Span
    public let falseAlarmCount: Int
    public let stepCount: Int
  }

  /// What went wrong before there was anything to measure.
  public struct Failure: Error, CustomStringConvertible {
    public let description: String
  }

  public let memberCount: Int
  private let network: SimulatedNetwork
  private var nodes: [SimulatedNodeID] = []
  private let repeats: Int
  private static let channel = "garden"
  private static let patience = Span.seconds(60)

  public init(memberCount: Int, seed: UInt64 = 1) {
    self.memberCount = memberCount
    repeats = min(memberCount / 2, memberCount > 200 ? 3 : 10)
    network = SimulatedNetwork(seed: seed)
  }

  /// Starts the members, measures, and watches for so long. Throws when something happened that must not.
  public func run(watching span: Span) throws(Failure) -> Row {
    try gather()
    let join = try slowest { newcomer() }
    // Beacons slow down from 2 s to their slowest, each interval 1.5 times the last.
    network.run(for: .seconds(90) + beaconInterval * 2)
    let idle = try idleRates()
    let sessions = nodes.map { network.nodes[$0.index].process?.sessionCount ?? 0 }
    let crash = try slowest { loss(hostToo: false) }
    let deadHost = try slowest { loss(hostToo: true) }
    let alarms = try falseAlarms(within: span)
    return Row(
      memberCount: memberCount, mean: idle.mean, highest: idle.highest,
      sessionsMean: Double(sessions.reduce(0, +)) / Double(sessions.count), sessionsHighest: sessions.max() ?? 0,
      join: join, crash: crash, deadHost: deadHost, watched: span, falseAlarmCount: alarms,
      stepCount: network.stepCount)
  }

  private func check() throws(Failure) {
    if let violation = network.violations.first { throw Failure(description: violation) }
  }

  /// How long a beacon stays away at most in a channel of this size: `MembershipRule`.
  private var beaconInterval: Span {
    max(MembershipRule.quiet, MembershipRule.perMember * memberCount)
  }

  /// All but those that come as newcomers.
  private func gather() throws(Failure) {
    for number in 0..<memberCount - repeats {
      let node = network.addNode("N\(number)")
      nodes.append(node)
      network.after(.milliseconds(20 * number)) { $0.join(node, Self.channel) }
    }
    network.run(for: .milliseconds(20 * memberCount))
    let isWhole = network.run(
      until: { [network, nodes] in nodes.allSatisfy { network.onlineCount($0, Self.channel) == nodes.count } },
      within: Self.patience + beaconInterval * 2)
    try check()
    guard isWhole else { throw Failure(description: "the \(nodes.count) members do not all see all") }
  }

  private func idleRates() throws(Failure) -> (mean: Rate, highest: Rate) {
    let span = max(.seconds(1_200), beaconInterval * 4)
    let before = nodes.map { network.traffic(of: $0) }
    network.run(for: span)
    try check()
    let seconds = Double(span.microseconds) / 1_000_000
    let rates = zip(nodes, before).map { node, before in
      let after = network.traffic(of: node)
      func rate(_ value: (SimulatedTraffic) -> Int) -> Double { Double(value(after) - value(before)) / seconds }
      return Rate(
        bytesSent: rate(\.byteCountSent), bytesHeard: rate(\.byteCountHeard),
        datagramsSent: rate(\.datagramCountSent), datagramsHeard: rate(\.datagramCountHeard))
    }
    func mean(_ value: (Rate) -> Double) -> Double { rates.map(value).reduce(0, +) / Double(rates.count) }
    let all = Rate(
      bytesSent: mean(\.bytesSent), bytesHeard: mean(\.bytesHeard), datagramsSent: mean(\.datagramsSent),
      datagramsHeard: mean(\.datagramsHeard))
    return (all, rates.max { $0.bytes < $1.bytes } ?? all)
  }

  private func slowest(_ measure: () -> Span?) throws(Failure) -> Span? {
    var slowest = Span.milliseconds(0)
    for _ in 0..<repeats {
      network.run(for: network.dice.span(.seconds(20), .seconds(40)))
      let measured = measure()
      try check()
      guard let span = measured else { return nil }
      slowest = max(slowest, span)
    }
    return slowest
  }

  private func newcomer() -> Span? {
    let node = network.addNode("Late \(nodes.count)")
    network.join(node, Self.channel)
    let others = nodes
    nodes.append(node)
    let from = network.now
    let isSeen = network.run(
      until: { [network] in
        network.onlineCount(node, Self.channel) == others.count + 1
          && others.allSatisfy { network.lists($0, node, Self.channel) }
      }, within: Self.patience)
    return isSeen ? network.now - from : nil
  }

  private func loss(hostToo: Bool) -> Span? {
    let victim = nodes.randomElement(using: &network.dice)!
    let others = nodes.filter { $0 != victim }
    network.crash(victim, hostToo: hostToo)
    let from = network.now
    let isKnown = network.run(
      until: { [network] in others.allSatisfy { !network.lists($0, victim, Self.channel) } },
      within: Self.patience)
    let span = network.now - from
    network.restart(victim)
    return isKnown ? span : nil
  }

  private func falseAlarms(within span: Span) throws(Failure) -> Int {
    network.run(for: .seconds(60))
    let before = network.falseAlarmCount
    network.conditions.loss = 0.1
    network.run(for: span)
    try check()
    return network.falseAlarmCount - before
  }
}

extension SimulatedNetwork {
  /// As the node's application was told, itself included.
  func onlineCount(_ id: SimulatedNodeID, _ channel: String) -> Int {
    let known = nodes[id.index].application.members[self.channel(named: Self.name(channel))] ?? [:]
    return known.values.count { $0.isOnline }
  }

  /// Whether the node lists the other one as online.
  func lists(_ id: SimulatedNodeID, _ other: SimulatedNodeID, _ channel: String) -> Bool {
    let known = nodes[id.index].application.members[self.channel(named: Self.name(channel))]
    return known?[nodes[other.index].peer]?.isOnline == true
  }
}
