import Glibc
import ParleyActors
import ParleySealing
import ParleyVocabulary
import ParleyWire
import Testing

@testable import Parley

extension Node {
  /// Shows any text as a token, as a node may that checks nothing.
  fileprivate func show(_ token: String, in name: ChannelName) async throws {
    let engine = try await running()
    let json = try checked(message(TokenKind(token: token), Sealing.randomMessageID()))
    _ = await engine.messaging.submit(try channel(name).id, kind: TokenKind.code, isHidden: true, json: json)
  }

  /// The next refusal of what somebody else says that an event tells.
  fileprivate static func refusal(in events: inout AsyncStream<NodeEvent>.AsyncIterator) async -> TokenRefusal? {
    while let event = await events.next() {
      if case .tokenRefused(_, _, let refusal, isSelf: false) = event { return refusal }
    }
    return nil
  }
}

@Suite(.timeLimit(.minutes(2))) struct TokenTests {
  private let files = TemporaryHome()
  private let organiser: OrganiserSecret

  init() throws { organiser = try OrganiserSecret.create(at: files.path + "/organiser") }

  private static func seconds(ago count: Int64) -> Timestamp {
    Timestamp(milliseconds: Timestamp.now.milliseconds - count * 1_000)
  }

  private func token(
    _ peer: PeerID, _ name: String, in channel: ChannelName? = nil, ago: Int64 = 0, for seconds: Int = 3_600,
    by secret: OrganiserSecret? = nil
  ) throws -> LoginToken {
    try (secret ?? organiser).issue(
      to: peer, name: try DisplayName(name), channel: channel, role: "pupil", seconds: seconds,
      from: Self.seconds(ago: ago))
  }

  @Test func whatIsSaidWithoutTheOrganisersWordIsNotShown() async throws {
    let team = try name("token-\(getpid())")
    let ana = try await RunningNode("Ana")
    let eve = try await RunningNode("Eve")
    let (asked, other) = (ana.node, eve.node.peerID)
    try await asked.join(team, secret: .open, organiser: organiser.publicKey)
    // Eve's node asks for nothing, so it says anything.
    try await eve.node.join(team, secret: .open)
    try await asked.wait(for: other, in: team)
    #expect(try await asked.members(of: team).first { $0.peer == other }?.recognition.tokenRefusal == .missing)
    await #expect(throws: ParleyError.badToken(.missing)) { try await asked.send("mine", to: team) }
    await #expect(throws: ParleyError.badToken(.missing)) { try await asked.setHand(raised: true, in: team) }
    var events = await asked.events(bufferingCount: 4_096).makeAsyncIterator()
    _ = try await eve.node.send("unseen", to: team)
    #expect(await Node.refusal(in: &events) == .missing)
    // Each bad token has its reason.
    let foreigner = try OrganiserSecret.create(at: files.path + "/other")
    let foreign = try token(other, "Eve", by: foreigner)
    let good = try token(other, "Eve Low", in: team)
    let parts = good.text.split(separator: ".")
    let altered = "v4.public." + foreign.text.split(separator: ".")[2] + "." + parts[3]
    let late = try token(other, "Eve", ago: 7_200)
    let early = try token(other, "Eve", ago: -7_200)
    let elsewhere = try name("elsewhere")
    let cases: [(String, TokenRefusal)] = [
      (foreign.text, .foreign(keyID: foreigner.publicKey.keyID)), (altered, .altered),
      (try token(ana.node.peerID, "Ana").text, .wrongSubject(ana.node.peerID)),
      (try token(other, "Eve", in: elsewhere).text, .wrongChannel(elsewhere)),
      ("v4.public.x", .malformed("its body is not base64url of a payload and a signature")),
      (late.text, .expired(at: late.expires)), (early.text, .notYetValid(from: early.validFrom)),
    ]
    for (text, reason) in cases {
      try await eve.node.show(text, in: team)
      let told = await Node.refusal(in: &events)
      if case .malformed = reason, case .malformed = told { continue }
      #expect(told == reason)
    }
    #expect(try await asked.history(of: team, limit: 10).isEmpty)
    // The organiser's word opens it.
    try await eve.node.logIn(with: good)
    while let event = await events.next() {
      guard case .tokenAccepted(team, other, let word) = event else { continue }
      #expect(word.name == "Eve Low" && word.role == "pupil" && word.expires == good.expires)
      break
    }
    _ = try await eve.node.send("seen", to: team)
    try await asked.wait(forText: "seen", in: team)
    let said = try #require(try await asked.history(of: team, limit: 1).last)
    #expect(said.recognition.organiserWord?.name == "Eve Low" && said.senderName == "Eve")
    #expect(try await asked.members(of: team).first { $0.peer == other }?.recognition.organiserWord?.role == "pupil")
    // Without an organiser all is shown, without anybody's word.
    try await asked.setOrganiser(nil, in: team)
    let all = try await asked.history(of: team, limit: 10)
    #expect(all.map(\.body) == [.text("unseen"), .text("seen")] && all.allSatisfy { $0.recognition == .none })
    try await asked.setOrganiser(foreigner.publicKey, in: team)
    #expect(try await asked.history(of: team, limit: 10).isEmpty)
    for node in [ana, eve] { try await node.stop() }
  }

  @Test func ownTokensAreCheckedRememberedAndRenewed() async throws {
    let team = try name("own-\(getpid())")
    let home = TemporaryHome()
    var ana = try await RunningNode("Ana", home: home)
    let me = ana.node.peerID
    try await ana.node.join(team, secret: .open, organiser: organiser.publicKey)
    let ben = PeerID(Bytes32(words: (1, 2, 3, 4)))
    for (token, refusal) in [
      (try token(ben, "Ana"), TokenRefusal.wrongSubject(ben)),
      (try token(me, "Ana", ago: 7_200), .expired(at: try token(me, "Ana", ago: 7_200).expires)),
    ] {
      do throws(ParleyError) {
        try await ana.node.logIn(with: token)
        Issue.record("logged in with \(token)")
      } catch {
        guard case .badToken(let reason) = error else { throw error }
        #expect(reason.code == refusal.code)
      }
    }
    #expect(await ana.node.loginToken() == nil)
    // One that ends in less than 30 s is announced at once, and replaced without an interruption.
    let events = await ana.node.events(bufferingCount: 4_096)
    let short = try token(me, "Ana", ago: 3_575)
    try await ana.node.logIn(with: short)
    _ = try await ana.node.send("one", to: team)
    var seen: [String] = []
    for await event in events {
      switch event {
      case .tokenAccepted(team, me, _): seen.append("accepted")
      case .tokenExpiring(short): seen.append("expiring")
      case .left: Issue.record("the connection was disturbed: \(event)")
      default: continue
      }
      if seen.contains("expiring"), seen.contains("accepted") { break }
    }
    let long = try token(me, "Ana Lima")
    try await ana.node.logIn(with: long)
    _ = try await ana.node.send("two", to: team)
    #expect(try await ana.node.history(of: team, limit: 1).last?.recognition.organiserWord?.name == "Ana Lima")
    #expect(await ana.node.loginToken() == long)
    // It lasts over a restart.
    try await ana.stop()
    ana = try await RunningNode("Ana", home: home)
    #expect(await ana.node.loginToken() == long)
    #expect(try await ana.node.organiser(of: team) == organiser.publicKey)
    _ = try await ana.node.send("three", to: team)
    #expect(try await ana.node.history(of: team, limit: 10).count == 3)
    try await ana.stop()
  }

  @Test func theFileIsReadAgainBeforeTheEnd() async throws {
    let team = try name("file-\(getpid())")
    let home = TemporaryHome()
    let first = try await RunningNode("Ana", home: home)
    let me = first.node.peerID
    try await first.stop()
    let (short, long) = (try token(me, "Ana", ago: 3_568), try token(me, "Ana Lima"))
    let path = try files.write(Array(short.text.utf8), "token")
    let ana = try await RunningNode("Ana", home: home) { $0.tokenFile = path }
    // The first was read at the start; time is looked at once there is a channel.
    unlink(path)
    _ = try files.write(Array((long.text + "\n").utf8), "token")
    let events = await ana.node.events(bufferingCount: 4_096)
    try await ana.node.join(team, secret: .open, organiser: organiser.publicKey)
    for await event in events {
      if case .tokenExpiring = event { Issue.record("the file had a new one") }
      if case .tokenAccepted(team, me, let word) = event, word.expires == long.expires { break }
    }
    #expect(await ana.node.loginToken() == long)
    try await ana.stop()
    // A file that says nothing for this node ends its start.
    unlink(path)
    _ = try files.write(Array(try token(PeerID(Bytes32(words: (1, 2, 3, 4))), "Ana").text.utf8), "token")
    await #expect(throws: ParleyError.self) { try await RunningNode("Ana", home: home) { $0.tokenFile = path } }
  }
}
