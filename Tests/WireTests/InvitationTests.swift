import ParleyHashing
import ParleyVocabulary
import ParleyWire
import Testing

@Suite struct InvitationTests {
  static func invitation(named name: String = "Klasse 7/b: Übung", uses: UInt64 = 30) throws -> Invitation {
    let founder = PeerID(Bytes32(repeatElement(7, count: 32))!)
    let grant = Grant(
      inviter: founder, inviteID: [UInt8](repeating: 9, count: 16), role: .member, issued: 1_700_000_000_000,
      expires: 1_700_000_100_000, uses: uses, signature: [UInt8](repeating: 3, count: 64))
    return Invitation(
      name: try ChannelName(name), ownership: ChannelOwnership(founder: founder, salt: (0..<16).map { UInt8($0) })!,
      generation: 70_000, secret: Bytes32(repeatElement(5, count: 32))!, grant: grant)
  }

  @Test(arguments: ["a", "Klasse 7/b: Übung", "会議室 😀", String(repeating: "é", count: 32), "~.-_#%"])
  func aLinkIsReadAsItWasWritten(_ name: String) throws {
    let invitation = try Self.invitation(named: name)
    let link = invitation.link
    #expect(link.utf8.count <= Invitation.linkByteCountMax)
    #expect(link.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
    #expect(try Invitation(link: link) == invitation)
    #expect(try Invitation(link: invitation.linkInCapitals) == invitation)
    #expect(try Invitation(link: " \(link)\r\n") == invitation)
    #expect(link.utf8.count(where: { $0 == UInt8(ascii: "#") }) == 1, "the secret is in the fragment")
  }

  @Test func everyAlteredLinkIsRefused() throws {
    let invitation = try Self.invitation()
    let link = Array(invitation.link.utf8)
    for at in link.indices {
      for other in [link[at] ^ 1, link[at] ^ 0x20, UInt8(ascii: "q"), UInt8(ascii: "%")] where other != link[at] {
        var altered = link
        altered[at] = other
        let text = String(decoding: altered, as: UTF8.self)
        #expect(throws: InvitationError.self, "\(text)") { try Invitation(link: text) }
      }
    }
    for count in 0..<link.count {
      #expect(throws: InvitationError.self) {
        try Invitation(link: String(decoding: link.prefix(count), as: UTF8.self))
      }
    }
    #expect(throws: InvitationError.altered) { try Invitation(link: invitation.link + "a") }
  }

  @Test func eachReasonIsTold() throws {
    #expect(throws: InvitationError.notALink) { try Invitation(link: "https://example.org/") }
    #expect(throws: InvitationError.notALink) { try Invitation(link: "") }
    #expect(throws: InvitationError.altered) { try Invitation(link: "parley://join/team") }
    #expect(throws: InvitationError.tooLong(byteCount: 1_025, byteCountMax: 1_024)) {
      try Invitation(link: "parley://join/" + String(repeating: "a", count: 1_011))
    }
    #expect(throws: InvitationError.badName(NameError.empty.description)) { try Invitation(link: "parley://join/#aa") }
    // With a check sum that fits.
    func link(_ body: [UInt8]) -> String {
      let sum = BLAKE2b.hash(Array("parley/1/link".utf8) + Array("team".utf8) + [0] + body, byteCount: 32).prefix(4)
      return "parley://join/team#" + Base32.encode(body + sum)
    }
    #expect(throws: InvitationError.unknownVersion(3)) { try Invitation(link: link([3, 1, 2, 3])) }
    #expect(throws: InvitationError.malformed(.truncated(field: "founder", needed: 32, remaining: 3))) {
      try Invitation(link: link([1, 1, 2, 3]))
    }
  }
}
