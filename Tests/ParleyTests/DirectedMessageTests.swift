import Glibc
import Parley
import ParleyVocabulary
import Testing

/// What is said in a channel to some of its members.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct DirectedMessageTests {
  private static let secret = "for Ben and Cho only: quinquireme"

  @Test func receiversAloneHaveItInTheChannel() async throws {
    let (channel, ana, ben) = try await pair("directed-tests-some")
    let cho = try await RunningNode("Cho")
    let eva = try await RunningNode("Eva")
    for other in [cho, eva] {
      try await other.node.join(channel, secret: .open)
      try await ana.node.wait(for: other.node.peerID, in: channel)
    }
    let receivers = [ben.node.peerID, cho.node.peerID]
    let events = await ana.node.events()
    let receipt = try await ana.node.send(
      .text(Self.secret).directed(to: receivers), to: channel, waiting: 30)
    #expect(Set(receipt.deliveredTo) == Set(receivers) && receipt.presentCount == 2)
    var delivered: Set<PeerID> = []
    for await case .delivered(let name, let id, let peer) in events where id == receipt.id {
      #expect(name == channel)
      delivered.insert(peer)
      if delivered.count == 2 { break }
    }
    _ = try await ana.node.send("for all", to: channel)
    for node in [ana, ben, cho] {
      try await node.node.wait(forText: "for all", in: channel)
      let message = try #require(
        try await node.node.history(of: channel, limit: 5).first { $0.body == .text(Self.secret) })
      #expect(message.options.receivers == receivers && message.channel == channel && message.id == receipt.id)
      #expect(message.deliveredTo == (node === ana ? receivers.sorted() : []))
    }
    try await eva.node.wait(forText: "for all", in: channel)
    #expect(try await eva.node.history(of: channel, limit: 5).map(\.body) == [.text("for all")])
    for node in [ana, ben, cho, eva] { try await node.stop() }
    // Not one byte of it is on the disk of whom it was not for.
    for (node, isThere) in [(ana, true), (ben, true), (eva, false)] {
      let files = try ["", "-wal"].map { node.home.path + "/home/store.sqlite\($0)" }
        .filter { access($0, R_OK) == 0 }.map { try TemporaryHome.read($0) }
      #expect(!files.isEmpty)
      let isFound = files.contains { String(decoding: $0, as: UTF8.self).contains("quinquireme") }
      #expect(isFound == isThere)
    }
  }

  @Test func itWaitsForAReceiverWhoIsAway() async throws {
    let (channel, ana, ben) = try await pair("directed-tests-away")
    let (home, benID) = (ben.home, ben.node.peerID)
    try await ben.stop()
    try await ana.node.wait { try await $0.members(of: channel).contains { $0.peer == benID && $0.status == .offline } }
    let receipt = try await ana.node.send(.text(Self.secret).directed(to: [benID]), to: channel)
    #expect(receipt.presentCount == 0)
    #expect(try await ana.node.history(of: channel, limit: 1).map(\.deliveredTo) == [[]])
    let again = try await RunningNode("Ben", home: home)
    try await again.node.wait(forText: Self.secret, in: channel)
    try await ana.node.wait { try await $0.history(of: channel, limit: 1).first?.deliveredTo == [benID] }
    try await ana.stop()
    try await again.stop()
  }

  @Test func twentyReceiversAndNotTwentyOne() throws {
    let people = (0..<21).map { PeerID(bytes: [UInt8](repeating: UInt8($0), count: 32))! }
    let text = try MessageDraft.text("x")
    #expect(throws: Never.self) { try text.directed(to: Array(people[..<20])) }
    for count in [0, 21] {
      #expect(refusedField { _ = try text.directed(to: Array(people[..<count])) } == "receivers")
    }
  }

  /// Which field of a message is refused.
  private func refusedField(_ make: () throws -> Void) -> String? {
    do {
      try make()
      return nil
    } catch {
      guard let error = error as? ParleyError, case .badField(let name, _, _) = error else { return "\(error)" }
      return name
    }
  }

  @Test func whoCannotBeMeantIsRefused() async throws {
    let (channel, ana, ben) = try await pair("directed-tests-refused")
    let text = try MessageDraft.text("x")
    func refusal(_ make: () async throws -> Void) async -> ParleyError? {
      do {
        try await make()
        return nil
      } catch { return error as? ParleyError }
    }
    func isRefused(_ people: [String]) async {
      let error = await refusal { _ = try await ana.node.send(text.directed(to: people), to: channel) }
      guard case .badField("receivers", _, _)? = error else {
        Issue.record("\(people): \(String(describing: error))")
        return
      }
    }
    // Oneself, and the same person twice.
    await isRefused([ana.node.peerID.text])
    await isRefused([ben.node.peerID.text, "Ben"])
    let stranger = PeerID(bytes: [UInt8](repeating: 9, count: 32))!.text
    await #expect(throws: ParleyError.noSuchPeer(stranger)) {
      try await ana.node.send(text.directed(to: [stranger]), to: channel)
    }
    // To one person there is no channel.
    let told = await refusal { _ = try await ana.node.tell(text.directed(to: ["Ben"]), peer: "Ben") }
    guard case .badField("receivers", _, _)? = told else {
      Issue.record("\(String(describing: told))")
      return
    }
    #expect(try await ana.node.history(of: channel, limit: 5).isEmpty)
    try await ana.stop()
    try await ben.stop()
  }
}
