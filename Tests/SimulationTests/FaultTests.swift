import ParleySimulation
import Testing

/// The checks bite: each mistake made on purpose is noticed by one of the first seeds, and the same seed is good
/// without it, so it is the mistake that was noticed.
@Test(arguments: SimulatedFault.allCases)
func everyDeliberateFaultIsCaught(fault: SimulatedFault) throws {
  let seed = (1...600 as ClosedRange<UInt64>).first { Scenario(seed: $0, fault: fault).run().violations != [] }
  let caught = try #require(seed, "no seed caught \(fault)")
  let outcome = Scenario(seed: caught, fault: fault).run()
  print("\(fault.rawValue) was caught by seed \(caught): \(outcome.violations[0])")
  #expect(Scenario(seed: caught).run().isGood)
}
