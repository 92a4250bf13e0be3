import ParleyVocabulary
import ParleyWire
import Testing

@Suite struct InvitationVectorTests {
  @Test func invitations() throws {
    var file = VectorFile("invitations")
    for (name, generation, grant, type) in [
      ("class", UInt64(0), Facts.grant, ChannelType.group), ("会議室 😀/7", 70_000, Facts.adminGrant, .group),
      ("~.-_#%", 1 << 30, Facts.grant, .group), ("stage", 3, Facts.grant, .room),
    ] {
      let invitation = Invitation(
        name: try ChannelName(name),
        ownership: ChannelOwnership(founder: Facts.ana.peerID, salt: (0..<16).map { UInt8($0 * 11) }, type: type)!,
        generation: generation, secret: Bytes32((0..<32).map { UInt8($0 * 5 + 1) })!, grant: grant)
      #expect(try Invitation(link: invitation.link) == invitation)
      file.add(
        name,
        [
          JSONMember("link", invitation.link), JSONMember("link_in_capitals", invitation.linkInCapitals),
          JSONMember("given_name", name), JSONMember("founder", hex: invitation.ownership.founder.bytes),
          JSONMember("salt", hex: invitation.ownership.salt), JSONMember("generation", generation),
          JSONMember("secret", hex: invitation.secret.bytes), JSONMember("grant", hex: grant.encoded),
        ] + (type == .room ? [JSONMember("type", "room")] : []))
    }
    try file.check()
  }
}
