import ParleyMachines
import ParleyVocabulary

/// What one seed makes of a network: up to twelve nodes that join, talk, raise hands, leave, crash and come back while
/// the network is as bad as the seed has it; then it heals, and all must agree within `bound`.
public struct Scenario: Sendable {
  /// Simulated time in which a healed network must be of one mind: a silent member is suspected after twice its slowest
  /// beacon (30 s) and 3 s, and two more go into the dials that decide.
  public static let bound = Span.seconds(90)

  public struct Outcome: Sendable {
    public let violations: [String]
    /// After the network had healed; nil when the nodes never agreed.
    public let agreedAfter: Span?
    public let stepCount: Int
    public let nodeCount: Int
    public var isGood: Bool { violations.isEmpty && agreedAfter != nil }
  }

  public let seed: UInt64
  public let fault: SimulatedFault?
  public let sealing: SimulatedSealing
  /// Whether messages are taken back, changed, signed, pinned and read, too. Nothing is pruned then: what is compared
  /// is made of everything.
  public let hasDeeds: Bool

  public init(
    seed: UInt64, fault: SimulatedFault? = nil, sealing: SimulatedSealing = .fake, hasDeeds: Bool = false
  ) {
    self.seed = seed
    self.fault = fault
    self.sealing = sealing
    self.hasDeeds = hasDeeds
  }

  public func run() -> Outcome { runKeeping().outcome }

  /// The network as it was at the end, too.
  func runKeeping() -> (outcome: Outcome, network: SimulatedNetwork) {
    var dice = Jitter(seed: seed &* 0x2545_F491_4F6C_DD1D)
    let network = SimulatedNetwork(seed: seed, conditions: Self.conditions(&dice), sealing: sealing)
    let count = 2 + Int(dice.next() % (dice.next() % 4 == 0 ? 11 : 5))
    let nodes = (0..<count).map { index in
      network.addNode(
        "N\(index)", clock: SimulatedClock.allCases.randomElement(using: &dice)!, fault: index == 0 ? fault : nil)
    }
    let channels = dice.next() % 3 == 0 ? ["garden", "kitchen"] : ["garden"]
    for node in nodes {
      for channel in channels where channel == "garden" || dice.next() % 2 == 0 {
        network.after(dice.span(.milliseconds(0), .seconds(4))) { $0.join(node, channel) }
      }
    }
    let length = Span.seconds(Int(8 + dice.next() % 25))
    for _ in 0..<Int(10 + dice.next() % 50) {
      let act = Self.act(nodes, channels, &dice)
      network.after(dice.span(.milliseconds(0), length), act)
    }
    // Of dice of their own: what a seed makes happen otherwise stays as it was.
    var pruning = Jitter(seed: seed &* 0x9E6C_63D0_676A_9A99)
    if hasDeeds {
      schedule(network, nodes, channels, length)
    } else if pruning.next() % 4 == 0 {
      for _ in 0..<pruning.next() % 12 {
        let (node, channel) = (nodes.randomElement(using: &pruning)!, channels.randomElement(using: &pruning)!)
        let count = Int(pruning.next() % 6)
        network.after(pruning.span(.milliseconds(0), length)) { $0.prune(node, channel, keeping: count) }
      }
    }
    network.run(for: length)
    return (healed(network, nodes, channels, &dice), network)
  }

  /// Deeds, and words to do them to, all through the time.
  private func schedule(
    _ network: SimulatedNetwork, _ nodes: [SimulatedNodeID], _ channels: [String], _ length: Span
  ) {
    var deeds = Jitter(seed: seed &* 0xD6E8_FEB8_6659_FD93)
    network.hasDeeds = true
    for _ in 0..<8 {
      let (node, channel) = (nodes.randomElement(using: &deeds)!, channels.randomElement(using: &deeds)!)
      network.after(deeds.span(.milliseconds(0), length)) { $0.send(node, channel, "to be changed") }
    }
    for _ in 0..<40 + deeds.next() % 100 {
      let (node, channel) = (nodes.randomElement(using: &deeds)!, channels.randomElement(using: &deeds)!)
      let number = deeds.next()
      network.after(deeds.span(.milliseconds(0), length)) { $0.deed(node, channel, number) }
    }
  }

  private func healed(
    _ network: SimulatedNetwork, _ nodes: [SimulatedNodeID], _ channels: [String], _ dice: inout Jitter
  ) -> Outcome {
    network.heal()
    network.conditions.loss = min(network.conditions.loss, 0.1)
    network.conditions.replay = 0
    for node in nodes {
      network.resume(node)
      network.failDisk(node, for: .milliseconds(0))
      // Most come back; some are gone for good.
      if dice.next() % 5 != 0 { network.restart(node) }
    }
    let start = network.now
    var nextLook = start + .seconds(1)
    let hasAgreed = network.run(
      until: {
        guard network.now >= nextLook else { return false }
        nextLook = network.now + .seconds(1)
        return channels.allSatisfy { network.disagreement(in: $0) == nil }
      }, within: Self.bound)
    var violations = network.violations
    if !hasAgreed, violations.isEmpty {
      violations = channels.compactMap { channel in
        network.disagreement(in: channel).map { "no agreement in \(channel) within \(Self.bound.text): \($0)" }
      }
    }
    return Outcome(
      violations: violations, agreedAfter: hasAgreed ? network.now - start : nil, stepCount: network.stepCount,
      nodeCount: nodes.count)
  }

  private static func conditions(_ dice: inout Jitter) -> SimulatedConditions {
    func pick(_ values: [Double]) -> Double { values.randomElement(using: &dice)! }
    let slowDisk = dice.next() % 5 == 0
    return SimulatedConditions(
      loss: pick([0, 0, 0.02, 0.1, 0.2, 0.3, 0.4]), duplication: pick([0, 0.05, 0.3]),
      reordering: pick([0, 0.05, 0.3]), replay: pick([0, 0, 0.02]), differsByWay: dice.next() % 2 == 0,
      delay: .milliseconds(1) ... .milliseconds(dice.next() % 3 == 0 ? 40 : 4),
      diskDelay: .milliseconds(1) ... .milliseconds(slowDisk ? 300 : 12))
  }

  private static func act(
    _ nodes: [SimulatedNodeID], _ channels: [String], _ dice: inout Jitter
  ) -> (SimulatedNetwork) -> Void {
    let node = nodes.randomElement(using: &dice)!
    let other = nodes.randomElement(using: &dice)!
    let channel = channels.randomElement(using: &dice)!
    let number = dice.next()
    switch number % 32 {
    case 0...8:
      let count = dice.next() % 4 == 0 ? 40 : 3
      let isLong = dice.next() % 4 == 0
      let text = String(repeating: "a word or two ", count: isLong ? 300 : 2)
      return { network in for index in 0..<count { network.send(node, channel, "\(text)\(number % 9973) \(index)") } }
    case 9...12: return { $0.raiseHand(node, channel, number >> 8 & 1 == 0) }
    case 13...15: return { if node != other { $0.tell(node, other, "psst \(number % 9973)") } }
    case 16...17: return { $0.crash(node, hostToo: number >> 8 & 3 == 0) }
    case 18...19: return { $0.crash(node, afterEffects: Int(number >> 8 & 127)) }
    case 20...22: return { $0.restart(node) }
    case 23: return { $0.leave(node, channel) }
    case 24: return { if $0.isRunning(node) { $0.join(node, channel) } }
    case 25:
      return { network in
        network.leave(node, channel)
        network.join(node, channel)
      }
    case 26...27:
      let side = nodes.filter { _ in dice.next() % 2 == 0 }
      let rest = nodes.filter { !side.contains($0) }
      let isOneWay = number >> 8 & 3 == 0
      return { $0.partition(side, from: rest, oneWay: isOneWay) }
    case 28: return { $0.heal() }
    case 29: return { $0.pause(node) }
    case 30: return { $0.resume(node) }
    default: return { $0.failDisk(node, for: .milliseconds(Int(number >> 8 % 4_000))) }
    }
  }
}

extension Span {
  /// Such as `1.5 s`.
  public var text: String { "\(Double(microseconds / 1_000) / 1_000) s" }
}

extension Span {
  static func + (a: Self, b: Self) -> Self { .init(microseconds: a.microseconds + b.microseconds) }
}
