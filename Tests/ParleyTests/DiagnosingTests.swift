import ParleyVocabulary
import Testing

@testable import Parley

@Suite struct DiagnosingTests {
  private func facts(_ interface: Diagnosis.Interface? = nil) -> Diagnosing.Facts {
    var facts = Diagnosing.Facts()
    facts.interfaces = [
      interface
        ?? .init(
          name: "eth1", addresses: ["192.0.2.1"], sentCount: 9, returnedCount: 9, heardCount: 3,
          heardFrom: ["192.0.2.2"])
    ]
    facts.channelCount = 1
    facts.freeByteCount = 50_000_000_000
    facts.clock = 1_800_000_000
    return facts
  }

  private func codes(_ facts: Diagnosing.Facts, _ level: Diagnosis.Finding.Level? = nil) -> [String] {
    Diagnosing.findings(facts).filter { level == nil || $0.level == level }.map(\.code)
  }

  @Test func nothingIsAProblemWhereAllWorks() {
    #expect(codes(facts()) == ["multicast_works", "disk_has_room", "clock_right"])
    #expect(codes(facts(), .problem).isEmpty)
  }

  @Test func aFirewallIsSuspectedWhenOwnDatagramsDoNotComeBack() {
    let cut = Diagnosis.Interface(name: "eth1", addresses: ["192.0.2.1"], sentCount: Diagnosing.sentEnough)
    #expect(codes(facts(cut), .problem) == ["own_datagrams_lost"])
    let advice = Diagnosing.findings(facts(cut)).first { $0.code == "own_datagrams_lost" }?.advice
    #expect(advice?.contains("45800") == true)
    let young = Diagnosis.Interface(name: "eth1", addresses: ["192.0.2.1"], sentCount: Diagnosing.sentEnough - 1)
    #expect(codes(facts(young), .problem).isEmpty)
  }

  @Test func isolationIsMentionedWhenNobodyElseIsHeard() {
    let alone = Diagnosis.Interface(name: "wlan0", addresses: ["192.0.2.1"], sentCount: 9, returnedCount: 9)
    #expect(codes(facts(alone), .notice) == ["nobody_heard"])
    #expect(Diagnosing.findings(facts(alone)).first?.text.contains("client isolation") == true)
  }

  @Test func refusedDatagramsOtherVersionsAndTroubleAreProblems() {
    let refused = Diagnosis.Interface(
      name: "eth1", addresses: ["192.0.2.1"], sentCount: 9, sendFailure: "operation not permitted")
    #expect(codes(facts(refused), .problem) == ["send_refused"])
    let mixed = Diagnosis.Interface(
      name: "eth1", addresses: ["192.0.2.1"], sentCount: 9, returnedCount: 9, heardCount: 1, otherVersionCount: 1)
    #expect(codes(facts(mixed), .problem) == ["other_version"])
    let broken = Diagnosis.Interface(name: "eth1", addresses: [], trouble: "it is gone")
    #expect(codes(facts(broken), .problem) == ["no_interface", "interface_trouble"])
  }

  @Test func withoutAChannelNothingIsSent() {
    var facts = facts(Diagnosis.Interface(name: "eth1", addresses: ["192.0.2.1"]))
    facts.channelCount = 0
    #expect(codes(facts, .notice) == ["no_channel"])
  }

  @Test func whoIsHeardAndNotReachedIsNamed() {
    var facts = facts()
    facts.unreachable = [.init(address: "192.0.2.2:4000", reason: "connection refused")]
    let finding = Diagnosing.findings(facts).first { $0.code == "tcp_unreachable" }
    #expect(finding?.level == .problem)
    #expect(finding?.text == "192.0.2.2:4000 cannot be reached over TCP: connection refused")
  }

  @Test func disksAndClocksAreLookedAt() {
    var facts = facts()
    facts.freeByteCount = Diagnosing.freeLittle - 1
    #expect(codes(facts, .notice) == ["disk_nearly_full"])
    facts.freeByteCount = Diagnosing.freeLittle / 10 - 1
    #expect(codes(facts, .problem) == ["disk_nearly_full"])
    facts.freeByteCount = nil
    facts.secondsAhead = 90
    #expect(codes(facts, .problem) == ["clocks_differ"])
    facts.clock = Diagnosing.clockMin - 1
    #expect(codes(facts, .problem) == ["clock_wrong"])
    facts.troubles = ["the disk is full"]
    #expect(codes(facts, .problem) == ["trouble", "clock_wrong"])
  }

  @Test func anotherPlaceOfTheSameIdentityIsAllThatMatters() {
    var facts = facts()
    facts.state = .aborted
    #expect(codes(facts, .problem) == ["started_elsewhere"])
  }

  @Test func timesAreCountedInTheStepsTheyFitIn() {
    var histogram = Histogram()
    histogram.note(seconds: 0.001)
    histogram.note(seconds: 0.3)
    histogram.note(seconds: 60)
    histogram.note(seconds: -1)
    histogram.note(seconds: .nan)
    #expect(histogram.count == 3)
    #expect(histogram.counts.first == 1)
    #expect(histogram.counts.last == 2)
    #expect(histogram.sum == 60.301)
  }
}
