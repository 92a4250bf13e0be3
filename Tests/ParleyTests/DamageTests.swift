import Glibc
import Parley
import Synchronization
import Testing

/// What a node does when its disk is not as it was left.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct DamageTests {
  /// Runs a node on the home and collects what it says of trouble.
  private func running(
    _ home: TemporaryHome, _ body: (Node) async throws -> Void
  ) async throws -> [String] {
    let troubles = Mutex<[String]>([])
    let node = try Node(NodeSettings(home: home.path + "/home", displayName: "Ana", interfaces: ["lo"])) { trouble in
      troubles.withLock { $0.append(trouble) }
    }
    let run = Task { try await node.run() }
    try await node.ready()
    try await body(node)
    await node.stop()
    try await run.value
    return troubles.withLock { $0 }
  }

  @Test func aDamagedStoreComesBackVerified() async throws {
    let channel = try name("damage-tests")
    let home = TemporaryHome()
    let ben = try await RunningNode("Ben")
    let stranger = ben.node.peerID.text
    try await ben.stop()
    var before: [Message] = []
    _ = try await running(home) { node in
      try await node.join(channel, secret: .passphrase(Array("seven wet dogs".utf8)))
      for text in ["one", "two", "three"] { _ = try await node.send(text, to: channel, waiting: nil) }
      guard case .queued = try await node.tell("later", peer: stranger) else {
        Issue.record("nobody is there to take it")
        return
      }
      before = try await node.history(of: channel, limit: 10)
    }
    let store = home.path + "/home/store.sqlite"
    let file = open(store, O_RDWR)
    try #require(file >= 0)
    #expect(pwrite(file, "not a database", 14, 0) == 14)
    close(file)
    let troubles = try await running(home) { node in
      #expect(try await node.history(of: channel, limit: 10) == before)
      // In a log of its own, as at every start: no number is ever given twice.
      _ = try await node.send("four", to: channel, waiting: nil)
      let after = try await node.history(of: channel, limit: 10)
      #expect(after.map(\.body) == ["one", "two", "three", "four"].map { .text($0) })
      #expect(after.map(\.cursor).sorted() == after.map(\.cursor), "cursors never go back")
    }
    #expect(troubles.count == 1)
    #expect(troubles.first?.contains("3 entries of channels, 1 messages between two, 1 that wait") == true)
    #expect(try await running(home) { _ in } == [])
  }
}
