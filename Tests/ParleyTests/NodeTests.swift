import Glibc
import Parley
import Testing

/// Real nodes in one process: real sockets on the loopback interface, real encryption, real files. All nodes of this
/// machine hear each other's multicast, so every test has a channel of its own.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct NodeTests {
  @Test func twoNodesSeeEachOtherWriteRaiseHandsAndLeave() async throws {
    let channel = try name("node-tests-main")
    let ana = try await RunningNode("Ana")
    let ben = try await RunningNode("Ben")
    try await ana.node.join(channel, secret: .open)
    try await ben.node.join(channel, secret: .open)
    try await ana.node.wait(for: ben.node.peerID, in: channel)
    try await ben.node.wait(for: ana.node.peerID, in: channel)

    let receipt = try await ana.node.send("hello Ben", to: channel, waiting: 10)
    #expect(receipt.deliveredTo == [ben.node.peerID])
    #expect(receipt.presentCount == 1)
    try await ben.node.wait(forText: "hello Ben", in: channel)
    let heard = try #require(try await ben.node.history(of: channel, limit: 1).first)
    #expect(heard.id == receipt.id)
    #expect(heard.sender == ana.node.peerID)
    #expect(heard.senderName == "Ana")

    try await ben.node.setHand(raised: true, in: channel)
    let benID = ben.node.peerID
    try await ana.node.wait { try await $0.members(of: channel).contains { $0.peer == benID && $0.isHandRaised } }
    #expect(try await ana.node.members(of: channel).map(\.displayName) == ["Ben", "Ana"])

    try await ben.node.leave(channel)
    try await ana.node.wait { try await $0.members(of: channel).contains { $0.peer == benID && $0.status == .offline } }
    let gone = try #require(try await ana.node.members(of: channel).last)
    #expect(gone.peer == benID && !gone.isHandRaised)
    try await ana.stop()
    try await ben.stop()
  }

  @Test func aMessageToOnePersonIsDeliveredOrWaits() async throws {
    let channel = try name("node-tests-tell")
    let ana = try await RunningNode("Ana of tell")
    let ben = try await RunningNode("Ben of tell")
    try await ana.node.join(channel, secret: .open)
    try await ben.node.join(channel, secret: .open)
    try await ana.node.wait(for: ben.node.peerID, in: channel)
    let events = await ben.node.events()
    guard case .delivered(let id) = try await ana.node.tell("psst", peer: "Ben of tell") else {
      Issue.record("somebody present gets it at once")
      return
    }
    for await case .message(let message) in events {
      #expect(message.id == id && message.body == .text("psst") && message.channel == nil)
      break
    }
    let home = ben.home
    let benID = ben.node.peerID
    try await ben.stop()
    try await ana.node.wait { try await $0.members(of: channel).contains { $0.peer == benID && $0.status == .offline } }
    guard case .queued(let waiting) = try await ana.node.tell("later", peer: benID.text) else {
      Issue.record("it waits for somebody who is away")
      return
    }
    let deliveries = await ana.node.events()
    let again = try await RunningNode("Ben of tell", home: home)
    for await event in deliveries where event == .delivered(nil, waiting, to: benID) { break }
    try await ana.stop()
    try await again.stop()
  }

  @Test func aWrongPassphraseSeesNothing() async throws {
    let channel = try name("node-tests-secret")
    let ana = try await RunningNode("Ana")
    let ben = try await RunningNode("Ben")
    let eve = try await RunningNode("Eve")
    try await ana.node.join(channel, secret: .passphrase(Array("right".utf8)))
    try await eve.node.join(channel, secret: .passphrase(Array("wrong".utf8)))
    try await ben.node.join(channel, secret: .passphrase(Array("right".utf8)))
    try await ana.node.wait(for: ben.node.peerID, in: channel)
    _ = try await ana.node.send("between us", to: channel, waiting: 10)
    try await ben.node.wait(forText: "between us", in: channel)
    // All of it went past Eve, too: what she hears, she counts.
    #expect(await eve.node.nodesHeardElsewhere() >= 2)
    #expect(try await eve.node.members(of: channel).map(\.peer) == [eve.node.peerID])
    #expect(try await eve.node.history(of: channel, limit: 10).isEmpty)
    #expect(try await ana.node.members(of: channel).count == 2)
    for node in [ana, ben, eve] { try await node.stop() }
  }

  @Test func historyHasOneOrderEverywhere() async throws {
    let channel = try name("node-tests-order")
    let ana = try await RunningNode("Ana")
    let ben = try await RunningNode("Ben")
    try await ana.node.join(channel, secret: .open)
    try await ben.node.join(channel, secret: .open)
    try await ana.node.wait(for: ben.node.peerID, in: channel)
    try await ben.node.wait(for: ana.node.peerID, in: channel)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for node in [ana.node, ben.node] {
        for number in 0..<50 {
          group.addTask { _ = try await node.send("\(node.name) \(number)", to: channel) }
        }
      }
      try await group.waitForAll()
    }
    for node in [ana.node, ben.node] {
      try await node.wait { try await $0.history(of: channel, limit: 200).count == 100 }
    }
    let anas = try await ana.node.history(of: channel, limit: 200).map(\.id)
    let bens = try await ben.node.history(of: channel, limit: 200).map(\.id)
    #expect(anas == bens)
    #expect(Set(anas).count == 100)
    let last = try await ana.node.history(of: channel, limit: 7).map(\.id)
    #expect(last == anas.suffix(7))
    try await ana.stop()
    try await ben.stop()
  }

  @Test func aRestartKeepsHistoryAndIsInItsChannelsAgain() async throws {
    let channel = try name("node-tests-restart")
    let home = TemporaryHome()
    let first = try await RunningNode("Ana", home: home)
    try await first.node.join(channel, secret: .passphrase([1]))
    let id = try await first.node.send("before", to: channel, waiting: nil).id
    let peerID = first.node.peerID
    try await first.stop()
    let second = try await RunningNode("Ana", home: home)
    #expect(second.node.peerID == peerID)
    #expect(await second.node.channels().map(\.name) == [channel])
    #expect(await second.node.channels().map(\.isOpen) == [false])
    #expect(try await second.node.history(of: channel, limit: 10).map(\.id) == [id])
    let after = try await second.node.send("after", to: channel, waiting: nil).id
    #expect(try await second.node.history(of: channel, limit: 10).map(\.id) == [id, after])
    try await second.node.leave(channel)
    try await second.stop()
    let third = try await RunningNode("Ana", home: home)
    #expect(await third.node.channels().isEmpty)
    try await third.stop()
  }

  @Test func twoNodesOnOneHomeAreRefused() async throws {
    let home = TemporaryHome()
    let first = try await RunningNode("Ana", home: home)
    #expect(throws: ParleyError.profileInUse(home: home.path + "/home", processID: getpid())) {
      _ = try Node(NodeSettings(home: home.path + "/home", interfaces: ["lo"]))
    }
    try await first.stop()
  }

  @Test func stopEndsTheRunAndWhatWaits() async throws {
    let channel = try name("node-tests-stop")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    let events = await ana.node.events()
    try await ana.stop()
    var isEnded = false
    for await event in events { isEnded = event == .stateChanged(.disconnected, reason: "logged out") || isEnded }
    #expect(isEnded)
    await #expect(throws: ParleyError.stopped) { _ = try await ana.node.send("too late", to: channel, waiting: nil) }
    await #expect(throws: ParleyError.stopped) { try await ana.node.run() }
    #expect(await ana.node.status().state == .disconnected)
  }

  /// Whatever is asked around the end gets an answer or an error; nobody waits for ever.
  @Test func callsAroundTheEndAllReturn() async throws {
    let channel = try name("node-tests-end")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    let other = try name("node-tests-end-2")
    let path = try ana.home.write([1, 2, 3], "shared")
    let media = try await ana.node.share(path: path, in: channel)
    let node = ana.node
    let folder = ana.home.path
    await withTaskGroup(of: Void.self) { group in
      for round in 0..<40 {
        group.addTask { _ = try? await node.history(of: channel, limit: 10) }
        group.addTask { _ = try? await node.members(of: channel) }
        group.addTask { _ = try? await node.send("\(round)", to: channel, waiting: nil) }
        group.addTask { try? await node.join(other, secret: .open) }
        group.addTask { try? await node.leave(other) }
        group.addTask { _ = try? await node.share(path: path, in: channel) }
        group.addTask { try? await node.setHand(raised: round % 2 == 0, in: channel) }
        group.addTask {
          guard let (_, events) = try? await node.download(media.id, to: .folder(folder)) else { return }
          for await _ in events {}
        }
        if round == 20 { group.addTask { try? await ana.stop() } }
      }
      await group.waitForAll()
    }
    await #expect(throws: ParleyError.stopped) { _ = try await node.history(of: channel, limit: 1) }
  }

  @Test func aNodeStoppedBeforeItRunsEnds() async throws {
    let home = TemporaryHome()
    let node = try Node(NodeSettings(home: home.path + "/home", displayName: "Ana", interfaces: ["lo"]))
    await node.stop()
    try await node.run()
  }

  @Test func aWrongInterfaceEndsTheRunWithItsName() async throws {
    let home = TemporaryHome()
    let node = try Node(NodeSettings(home: home.path + "/home", displayName: "Ana", interfaces: ["nothere0"]))
    let caller = Task { try await node.ready() }
    let error = await #expect(throws: ParleyError.self) { try await node.run() }
    #expect(error?.description.contains("nothere0") == true)
    await #expect(throws: ParleyError.stopped) { try await caller.value }
  }
}
