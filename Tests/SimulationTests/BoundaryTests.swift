import ParleySimulation
import Testing

/// A process dies between two effects that a machine returned, whichever two they are, and what was not synced is lost.
@Test func aCrashAtAnyEffectBoundaryLosesNothingThatWasPromised() {
  let sweep = BoundarySweep(seed: 1)
  let whole = sweep.run(crashingBefore: nil)
  #expect(whole.isAgreed && whole.violations == [])
  #expect(whole.effectCount > 300, "the story is too short to say much")
  for effect in 0..<whole.effectCount {
    let outcome = sweep.run(crashingBefore: effect)
    #expect(outcome.isAgreed, "crashed before effect \(effect)")
    #expect(outcome.violations == [], "crashed before effect \(effect)")
  }
  print("crashed before each of \(whole.effectCount) effects")
}

/// The story is one that would show it: not every crash may be harmless to a node that promises too early.
@Test func thePromisesOfAHastyNodeAreBrokenByACrash() {
  let sweep = BoundarySweep(seed: 1, fault: .losesLastBatch)
  let whole = sweep.run(crashingBefore: nil)
  let broken = (0..<whole.effectCount).lazy.filter { sweep.run(crashingBefore: $0).violations != [] }
  #expect(broken.first != nil)
}
