import Glibc
import ParleySimulation
import ParleyVocabulary

/// Runs scenarios of the simulated network, or measures it; Scripts/simulate starts one of these for each core.
///
///     ParleySimulate seeds FIRST COUNT STEP [--real-sealer] [--deeds]
///     ParleySimulate scale MEMBERS HOURS
///     ParleySimulate rotation MEMBERS
///
/// The first runs COUNT seeds, each STEP after the last. It says `run SEED` before each and `good SEED STEPS` or
/// `bad SEED WHAT` after it, so that whoever reads knows which seed a crash belongs to. Exit status 1 when any was bad.
/// The second prints a row of the table of scale, after a watch of so many simulated hours at 10 % loss; the third what
/// a removal and the new secret cost a channel of so many.
@main
enum Simulate {
  static func main() {
    var arguments = Array(CommandLine.arguments.dropFirst())
    let isReal = arguments.contains("--real-sealer")
    let hasDeeds = arguments.contains("--deeds")
    arguments.removeAll { $0 == "--real-sealer" || $0 == "--deeds" }
    if arguments.first == "scale", arguments.count == 3, let members = Int(arguments[1]),
      let hours = Double(arguments[2]), (2...2_000).contains(members), (0...240).contains(hours)
    {
      exit(scale(members, .seconds(Int(hours * 3_600))) ? 0 : 1)
    }
    if arguments.first == "rotation", arguments.count == 2, let members = Int(arguments[1]),
      (3...2_000).contains(members)
    {
      exit(rotation(members) ? 0 : 1)
    }
    guard arguments.first == "seeds", arguments.count == 4, let first = UInt64(arguments[1]),
      let count = UInt64(arguments[2]), let step = UInt64(arguments[3]), step > 0, count < 1 << 40, first < 1 << 60
    else {
      say(
        "usage: ParleySimulate seeds FIRST COUNT STEP [--real-sealer] [--deeds] | scale MEMBERS HOURS | "
          + "rotation MEMBERS"
      )
      exit(64)
    }
    exit(seeds(first, count, step, isReal ? .real : .fake, hasDeeds) ? 0 : 1)
  }

  private static func seeds(
    _ first: UInt64, _ count: UInt64, _ step: UInt64, _ sealing: SimulatedSealing, _ hasDeeds: Bool
  ) -> Bool {
    var isGood = true
    for number in 0..<count {
      let seed = first + number * step
      say("run \(seed)")
      let outcome = Scenario(seed: seed, sealing: sealing, hasDeeds: hasDeeds).run()
      if outcome.isGood {
        say("good \(seed) \(outcome.stepCount)")
      } else {
        isGood = false
        say("bad \(seed) \(outcome.violations.first ?? "no agreement in the end")")
      }
    }
    return isGood
  }

  /// One line of words and numbers.
  private static func scale(_ members: Int, _ watched: Span) -> Bool {
    do {
      let row = try ScaleTrial(memberCount: members).run(watching: watched)
      func text(_ span: Span?) -> String { span.map { "\(Double($0.microseconds) / 1_000_000)" } ?? "-" }
      say(
        "row members=\(members) sent=\(row.mean.bytesSent) heard=\(row.mean.bytesHeard) highest=\(row.highest.bytes)"
          + " datagrams_sent=\(row.mean.datagramsSent) datagrams_heard=\(row.mean.datagramsHeard)"
          + " sessions=\(row.sessionsMean) sessions_highest=\(row.sessionsHighest) join=\(text(row.join))"
          + " crash=\(text(row.crash)) dead_host=\(text(row.deadHost)) watched=\(text(row.watched))"
          + " false_alarms=\(row.falseAlarmCount) steps=\(row.stepCount)")
      return true
    } catch {
      say("bad \(members) members: \(error)")
      return false
    }
  }

  private static func rotation(_ members: Int) -> Bool {
    do {
      let row = try RotationTrial(memberCount: members).run()
      say(
        "rotation members=\(members) known=\(row.known?.text ?? "-") mean_bytes=\(Int(row.meanByteCount))"
          + " highest_bytes=\(Int(row.highestByteCount)) sessions=\(row.sessionCount) steps=\(row.stepCount)")
      return row.known != nil
    } catch {
      say("bad \(members) members: \(error)")
      return false
    }
  }

  /// A line at once, whether a terminal listens or a script.
  private static func say(_ line: String) {
    print(line)
    fflush(nil)
  }
}
