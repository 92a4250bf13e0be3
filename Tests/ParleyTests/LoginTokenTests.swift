import Glibc
import ParleyVocabulary
import Testing

@testable import Parley

@Suite struct LoginTokenTests {
  private static let start = Timestamp(rfc3339: "2026-01-01T08:00:00Z")!
  private let ana = PeerID(Bytes32(words: (1, 2, 3, 4)))
  private let ben = PeerID(Bytes32(words: (5, 6, 7, 8)))
  private let home = TemporaryHome()

  private func secret(_ name: String = "key") throws -> OrganiserSecret {
    try OrganiserSecret.create(at: home.path + "/" + name)
  }

  private func after(_ seconds: Int64) -> Timestamp {
    Timestamp(milliseconds: Self.start.milliseconds + seconds * 1_000)
  }

  @Test func eachRefusalHasItsReason() throws {
    let (organiser, other) = (try secret(), try secret("other"))
    let team = try ChannelName("team")
    let token = try organiser.issue(
      to: ana, name: try DisplayName("Ana"), channel: team, role: "teacher", seconds: 3_600, from: Self.start)
    #expect(try LoginToken("\n " + token.text + " \r\n") == token)
    func refusal(
      _ token: LoginToken, _ peer: PeerID? = nil, _ channel: ChannelName? = nil, _ seconds: Int64 = 60,
      by key: OrganiserKey? = nil
    ) -> TokenRefusal? {
      token.refusal(for: peer ?? ana, in: channel ?? team, signedBy: key ?? organiser.publicKey, at: after(seconds))
    }
    #expect(refusal(token) == nil)
    #expect(refusal(token, ben) == .wrongSubject(ana))
    #expect(refusal(token, nil, try ChannelName("other")) == .wrongChannel(team))
    #expect(refusal(token, by: other.publicKey) == .foreign(keyID: organiser.publicKey.keyID))
    #expect(refusal(token, nil, nil, 3_599) == nil)
    #expect(refusal(token, nil, nil, 3_600) == .expired(at: after(3_600)))
    // An organiser's clock may be a minute ahead.
    #expect(refusal(token, nil, nil, -60) == nil)
    #expect(refusal(token, nil, nil, -61) == .notYetValid(from: Self.start))
    // Signed by another who names our key, and with another name under the same signature.
    let forged = try other.issue(to: ana, name: try DisplayName("Ana"), seconds: 3_600, from: Self.start)
    let parts = token.text.split(separator: ".")
    let pieces = forged.text.split(separator: ".")
    #expect(refusal(try LoginToken("v4.public.\(pieces[2]).\(parts[3])")) == .altered)
    #expect(refusal(try LoginToken("v4.public.\(parts[2]).\(pieces[3])"), by: other.publicKey) == .altered)
    #expect(refusal(try LoginToken("v4.public.\(parts[2])")) == .altered)
  }

  @Test func aTokenIsIssuedWithinLimits() throws {
    let organiser = try secret()
    let name = try DisplayName("Ana")
    #expect(throws: ParleyError.self) { try organiser.issue(to: ana, name: name, seconds: 0) }
    #expect(throws: ParleyError.self) { try organiser.issue(to: ana, name: name, seconds: 31_622_401) }
    #expect(throws: ParleyError.self) { try organiser.issue(to: ana, name: name, role: "", seconds: 1) }
    // The longest that the claims allow, in characters that JSON escapes, still fits.
    let long = try organiser.issue(
      to: ana, name: try DisplayName(String(repeating: "\"", count: 64)),
      channel: try ChannelName(String(repeating: "\\", count: 64)), role: String(repeating: "\"", count: 64),
      seconds: 60)
    #expect(try LoginToken(long.text) == long)
    #expect(
      throws: ParleyError.badToken(
        .malformed(
          "it does not begin with v4.public.: only this version and "
            + "purpose of PASETO is taken"))
    ) { try LoginToken("v4.local.AAAA") }
  }

  @Test func keysHaveTwoTexts() throws {
    let organiser = try secret()
    let key = organiser.publicKey
    #expect(OrganiserKey(anyText: key.text) == key)
    #expect(OrganiserKey(anyText: key.paserkText) == key)
    #expect(OrganiserKey(anyText: key.keyID) == nil)
    #expect(try OrganiserSecret.open(home.path + "/key").publicKey == key)
    #expect(throws: ParleyError.alreadyExists(path: home.path + "/key")) { try secret() }
    #expect(throws: ParleyError.noSuchFile(path: home.path + "/none")) {
      try OrganiserSecret.open(home.path + "/none")
    }
    #expect(chmod(home.path + "/key", 0o644) == 0)
    #expect(throws: ParleyError.self) { try OrganiserSecret.open(home.path + "/key") }
  }
}
