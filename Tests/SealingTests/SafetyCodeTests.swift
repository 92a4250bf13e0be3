import ParleyVocabulary
import Testing

@testable import ParleySealing

@Suite struct SafetyCodeTests {
  /// Computed with Python's hashlib from the derivation as the specification has it.
  @Test func knownCodes() throws {
    let one = try #require(PeerID(bytes: Array(0..<32)))
    let other = try #require(PeerID(bytes: Array(32..<64)))
    #expect(SafetyCode.groups(one, other) == ["28214", "28230", "50944", "80055", "98031", "81942"])
    let high = try #require(PeerID(bytes: [UInt8](repeating: 255, count: 32)))
    let low = try #require(PeerID(bytes: [UInt8](repeating: 0, count: 32)))
    #expect(SafetyCode.groups(high, low) == ["72733", "27042", "40758", "39049", "25929", "91654"])
  }

  @Test func bothSidesSeeTheSameAndNobodyElse() {
    let (ana, ben, eve) = (Identity.random().peerID, Identity.random().peerID, Identity.random().peerID)
    #expect(SafetyCode.groups(ana, ben) == SafetyCode.groups(ben, ana))
    #expect(SafetyCode.groups(ana, ben) != SafetyCode.groups(ana, eve))
  }
}
