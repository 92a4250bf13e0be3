import Glibc
import ParleySimulation
import ParleyVocabulary
import Testing

/// PARLEY_SEEDS: how many seeds. PARLEY_SEED: this one only. PARLEY_FIRST_SEED: where to begin.
enum Seeds {
  static func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }

  static let chosen: [UInt64] = {
    if let one = number("PARLEY_SEED") { return [one] }
    let first = number("PARLEY_FIRST_SEED") ?? 1
    return Array(first..<first + (number("PARLEY_SEEDS") ?? 200))
  }()

  static func replay(_ seed: UInt64) -> Comment {
    "replay: PARLEY_SEED=\(seed) swift test --filter SimulationTests.anySeedEndsInAgreement"
  }
}

@Test(arguments: Seeds.chosen)
func anySeedEndsInAgreement(seed: UInt64) {
  let outcome = Scenario(seed: seed).run()
  #expect(outcome.violations == [], Seeds.replay(seed))
  #expect(outcome.agreedAfter != nil, Seeds.replay(seed))
}
