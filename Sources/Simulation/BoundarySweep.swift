import ParleyMachines
import ParleyVocabulary

/// One short story in which a node crashes between two given effects: run with every boundary, nothing that a machine
/// returned is left untried. The node joins, talks, hears, tells and is told in private, leaves, comes back; whichever
/// effect it dies before, it starts again on what its disk has, and all agree in the end.
public struct BoundarySweep: Sendable {
  public struct Outcome: Sendable {
    public let violations: [String]
    public let isAgreed: Bool
    /// How many effects the machines of the node returned before the story's end.
    public let effectCount: Int
  }

  public let seed: UInt64
  public let fault: SimulatedFault?

  public init(seed: UInt64, fault: SimulatedFault? = nil) {
    self.seed = seed
    self.fault = fault
  }

  /// Nil: nobody crashes.
  public func run(crashingBefore effect: Int?) -> Outcome {
    let network = SimulatedNetwork(seed: seed, conditions: SimulatedConditions(loss: 0.05, duplication: 0.05))
    let victim = network.addNode("V", fault: fault)
    let others = ["A", "B"].map { network.addNode($0) }
    if let effect { network.crash(victim, afterEffects: effect) }
    for node in [victim] + others { network.join(node, "garden") }
    for step in 0..<6 {
      network.after(.milliseconds(700 + 350 * step)) { network in
        network.send(victim, "garden", "from V \(step)")
        network.send(others[step % 2], "garden", "to V \(step)")
        network.raiseHand(victim, "garden", step % 2 == 0)
        network.tell(victim, others[1 - step % 2], "psst \(step)")
        network.tell(others[step % 2], victim, "hush \(step)")
      }
    }
    network.after(.milliseconds(2_000)) { $0.crash(others[0]) }
    network.after(.milliseconds(2_600)) { $0.restart(others[0]) }
    network.after(.milliseconds(3_000)) { $0.leave(victim, "garden") }
    network.after(.milliseconds(3_100)) { $0.join(victim, "garden") }
    var effectCount = 0
    var restartAt: Instant?
    let end = network.now + .seconds(5)
    network.run(
      until: {
        if let at = restartAt {
          if network.now >= at { network.restart(victim) }
        } else if !network.isRunning(victim) {
          restartAt = network.now + .milliseconds(300)
        }
        return network.now >= end
      }, within: .seconds(6))
    effectCount = network.nodes[victim.index].effectCount
    network.restart(victim)
    let isAgreed = network.run(until: { network.disagreement(in: "garden") == nil }, within: Scenario.bound)
    var violations = network.violations
    if !isAgreed, violations.isEmpty { violations = [network.disagreement(in: "garden") ?? "agreed too late"] }
    return Outcome(violations: violations, isAgreed: isAgreed, effectCount: effectCount)
  }
}
