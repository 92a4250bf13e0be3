import ParleyVocabulary
import Testing

@testable import ParleyWire

@Suite struct TokenClaimsTests {
  static let peer = PeerID(Bytes32(words: (1, 2, 3, 4)))

  private func claims(_ json: String) throws(WireError) -> TokenClaims { try TokenClaims(decoding: Array(json.utf8)) }

  private func json(_ changes: KeyValuePairs<String, String?> = [:]) -> String {
    var members = [
      "sub": "\"\(Self.peer.text)\"", "name": "\"Ana\"", "channel": "\"team\"", "role": "\"teacher\"",
      "iat": "\"2026-01-01T08:00:00Z\"", "exp": "\"2026-01-01T16:00:00Z\"",
    ]
    for (name, value) in changes { members[name] = value }
    return "{" + members.map { "\"\($0)\":\($1)" }.sorted().joined(separator: ",") + "}"
  }

  @Test func claimsAreRead() throws {
    let read = try claims(json())
    #expect(read.subject == Self.peer && read.name.text == "Ana" && read.channel?.text == "team")
    #expect(read.role == "teacher")
    #expect(read.validFrom.text == "2026-01-01T08:00:00Z" && read.expires.text == "2026-01-01T16:00:00Z")
    #expect(try TokenClaims(decoding: read.encoded) == read)
    let bare = try claims(json(["channel": nil, "role": nil, "jti": "[1]"]))
    #expect(bare.channel == nil && bare.role == nil)
    #expect(try TokenClaims(decoding: bare.encoded) == bare)
    #expect(try claims(json(["nbf": "\"2026-01-01T09:00:00Z\""])).validFrom.text == "2026-01-01T09:00:00Z")
  }

  @Test(arguments: [
    ("sub", nil), ("sub", "\"ana\""), ("sub", "1"), ("name", nil), ("name", "\"\""), ("name", "\"a\\u0007\""),
    ("name", "\"\(String(repeating: "n", count: 65))\""), ("channel", "\" \""), ("channel", "null"), ("role", "\"\""),
    ("role", "\"a\\nb\""), ("role", "\"\(String(repeating: "r", count: 65))\""), ("iat", nil), ("iat", "1767254400"),
    ("iat", "\"2026-01-01\""), ("exp", nil), ("exp", "\"2026-01-01T08:00:00Z\""), ("exp", "\"2026-02-30T08:00:00Z\""),
    ("nbf", "\"soon\""), ("nbf", "\"2026-01-01T16:00:00Z\""),
  ])
  func claimsThatAreMissingOrMalformedAreRefused(_ name: String, _ value: String?) {
    #expect(throws: WireError.self) { try claims(json([name: value])) }
  }

  @Test func otherPayloadsAreRefused() {
    for text in ["", "[]", "{", "{\"sub\":\"a\",\"sub\":\"b\"}"] {
      #expect(throws: WireError.self) { try claims(text) }
    }
    let long = "{\"a\":\"" + String(repeating: "a", count: Limit.tokenByteCountMax) + "\"}"
    #expect(throws: WireError.self) { try claims(long) }
  }

  @Test func theFooterNamesTheKey() {
    #expect(TokenClaims.keyID(inFooter: TokenClaims.footer(keyID: "k4.pid.x")) == "k4.pid.x")
    for text in ["", "key", "{\"kid\":1}", "{}", "[\"kid\"]"] {
      #expect(TokenClaims.keyID(inFooter: Array(text.utf8)) == nil)
    }
  }
}
