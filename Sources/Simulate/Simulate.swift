import Glibc
import ParleySimulation

/// Runs scenarios of the simulated network, or measures it; Scripts/simulate starts one of these for each core.
///
///     ParleySimulate seeds FIRST COUNT STEP [--real-sealer]
///
/// runs COUNT seeds, each STEP after the last. It says `run SEED` before each and `good SEED STEPS` or
/// `bad SEED WHAT` after it, so that whoever reads knows which seed a crash belongs to. Exit status 1 when any was bad.
@main
enum Simulate {
  static func main() {
    var arguments = Array(CommandLine.arguments.dropFirst())
    let isReal = arguments.contains("--real-sealer")
    arguments.removeAll { $0 == "--real-sealer" }
    guard arguments.first == "seeds", arguments.count == 4, let first = UInt64(arguments[1]),
      let count = UInt64(arguments[2]), let step = UInt64(arguments[3]), step > 0, count < 1 << 40, first < 1 << 60
    else {
      say("usage: ParleySimulate seeds FIRST COUNT STEP [--real-sealer]")
      exit(64)
    }
    exit(seeds(first, count, step, isReal ? .real : .fake) ? 0 : 1)
  }

  private static func seeds(_ first: UInt64, _ count: UInt64, _ step: UInt64, _ sealing: SimulatedSealing) -> Bool {
    var isGood = true
    for number in 0..<count {
      let seed = first + number * step
      say("run \(seed)")
      let outcome = Scenario(seed: seed, sealing: sealing).run()
      if outcome.isGood {
        say("good \(seed) \(outcome.stepCount)")
      } else {
        isGood = false
        say("bad \(seed) \(outcome.violations.first ?? "no agreement in the end")")
      }
    }
    return isGood
  }

  /// A line at once, whether a terminal listens or a script.
  private static func say(_ line: String) {
    print(line)
    fflush(nil)
  }
}
