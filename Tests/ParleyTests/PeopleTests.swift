import Glibc
import ParleyVocabulary
import Testing

@testable import Parley

extension Node {
  fileprivate func member(_ peer: PeerID, in channel: ChannelName) async throws -> Member {
    try #require(try await members(of: channel).first { $0.peer == peer })
  }
}

@Suite(.timeLimit(.minutes(2))) struct PeopleTests {
  @Test func bothSidesSeeOneCodeAndWhatIsConfirmedStays() async throws {
    let team = try name("verify-\(getpid())")
    let ana = try await RunningNode("Ana")
    let home = TemporaryHome()
    var ben = try await RunningNode("Ben", home: home)
    for node in [ana, ben] { try await node.node.join(team, secret: .open) }
    try await ana.node.wait(for: ben.node.peerID, in: team)
    try await ben.node.wait(for: ana.node.peerID, in: team)
    let here = try await ana.node.verification(of: "Ben")
    let there = try await ben.node.verification(of: ana.node.peerID.text)
    #expect(here.code == there.code && here.code.split(separator: " ").allSatisfy { $0.count == 5 })
    #expect(here.isVerified == false)
    #expect(try await ben.node.member(ana.node.peerID, in: team).recognition == .none)
    // The text of a screen that shows other keys confirms nothing.
    let other = PeerID(Bytes32(words: (1, 2, 3, 4))).text
    for scanned in [
      "", here.code, there.qrText, "parley://verify/\(ana.node.peerID)/\(other)", "parley://verify/\(other)/\(other)",
    ] {
      await #expect(throws: ParleyError.self, "\(scanned)") { try await ben.node.verify("Ana", scanned: scanned) }
    }
    #expect(try await ben.node.contacts().isEmpty)
    #expect(try await ben.node.verify("Ana", scanned: here.qrText).isVerified)
    #expect(try await ben.node.member(ana.node.peerID, in: team).recognition.isVerified)
    try await ben.stop()
    ben = try await RunningNode("Ben", home: home)
    #expect(try await ben.node.verification(of: ana.node.peerID.text).isVerified)
    #expect(try await ben.node.contacts().map(\.displayName) == ["Ana"])
    #expect(try await ben.node.unverify(ana.node.peerID.text).isVerified == false)
    #expect(try await ben.node.contacts().isEmpty)
    for node in [ana, ben] { try await node.stop() }
  }

  @Test func whoPosesAsSomebodyVerifiedIsAnnounced() async throws {
    let team = try name("pose-\(getpid())")
    let ana = try await RunningNode("Ana")
    let bob = try await RunningNode("Bob")
    for node in [ana, bob] { try await node.node.join(team, secret: .open) }
    try await ana.node.wait(for: bob.node.peerID, in: team)
    _ = try await ana.node.verify("Bob")
    let events = await ana.node.events()
    let eve = try await RunningNode("Воb")
    try await eve.node.join(team, secret: .open)
    var announced: Member?
    for await event in events {
      if case .impostor(team, let member, let of) = event {
        #expect(of == bob.node.peerID)
        announced = member
        break
      }
    }
    #expect(announced?.peer == eve.node.peerID && announced?.displayName == "Воb")
    #expect(try await ana.node.member(eve.node.peerID, in: team).recognition.likeness == .verified(bob.node.peerID))
    #expect(try await ana.node.member(bob.node.peerID, in: team).recognition.likeness == .others([eve.node.peerID]))
    // What they say is marked too, also in the history; at one who verified nobody the two only look alike.
    _ = try await eve.node.send("I am Bob", to: team)
    try await ana.node.wait(forText: "I am Bob", in: team)
    let said = try #require(try await ana.node.history(of: team, limit: 1).first)
    #expect(said.recognition.likeness == .verified(bob.node.peerID))
    try await bob.node.wait { try await $0.members(of: team).contains { $0.recognition.likeness != .none } }
    #expect(try await bob.node.member(eve.node.peerID, in: team).recognition.likeness == .others([bob.node.peerID]))
    for node in [ana, bob, eve] { try await node.stop() }
  }

  @Test func nothingIsShownOfTheBlocked() async throws {
    let team = try name("block-\(getpid())")
    let home = TemporaryHome()
    var ana = try await RunningNode("Ana", home: home)
    let eve = try await RunningNode("Eve")
    let ben = try await RunningNode("Ben")
    for node in [ana, eve, ben] { try await node.node.join(team, secret: .open) }
    try await ana.node.wait(for: eve.node.peerID, ben.node.peerID, in: team)
    try await eve.node.wait(for: ana.node.peerID, ben.node.peerID, in: team)
    try await eve.node.setHand(raised: true, in: team)
    _ = try await eve.node.send("before", to: team)
    try await ana.node.wait(forText: "before", in: team)
    try await ana.node.wait { try await $0.members(of: team).contains(where: \.isHandRaised) }
    let file = try home.write([1, 2, 3], "file")
    let media = try await eve.node.share(path: file, as: .file, in: team) { _ in }.media.id
    try await ana.node.wait { try await $0.media(of: team).count == 1 }
    #expect(try await ana.node.block("Eve").isBlocked)
    let events = await ana.node.events()
    #expect(try await ana.node.history(of: team, limit: 10).isEmpty)
    #expect(try await ana.node.member(eve.node.peerID, in: team).isHandRaised == false)
    #expect(try await ana.node.media(of: team).isEmpty)
    #expect(try await ana.node.search("before", in: team, limit: 10).isEmpty)
    await #expect(throws: ParleyError.noSuchMedia(media)) {
      try await ana.node.download(media, to: .folder(home.path), .all)
    }
    // Neither what they say next, to all or to one; somebody else's message comes after it.
    _ = try await eve.node.send("after", to: team)
    #expect(try await eve.node.tell("only you", peer: "Ana") != .queued(MessageID("none")!))
    try await ben.node.wait(forText: "after", in: team)
    _ = try await ben.node.send("end", to: team)
    for await event in events {
      guard case .message(let message) = event else { continue }
      #expect(message.body == .text("end"))
      break
    }
    // It stays so after a restart, and ends with unblock.
    try await ana.stop()
    ana = try await RunningNode("Ana", home: home)
    #expect(try await ana.node.contacts().map(\.isBlocked) == [true])
    #expect(try await ana.node.history(of: team, limit: 10).map(\.body) == [.text("end")])
    #expect(try await ana.node.unblock(eve.node.peerID.text).isBlocked == false)
    #expect(try await ana.node.history(of: team, limit: 10).count == 4)
    for node in [ana, eve, ben] { try await node.stop() }
  }
}
