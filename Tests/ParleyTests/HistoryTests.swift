import Parley
import Testing

/// History in pages, and what was said with one person.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct HistoryTests {
  @Test func pagesBackwardsMeetWithoutGapsAndWithoutRepeating() async throws {
    let channel = try name("history-tests-pages")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    for number in 1...25 { _ = try await ana.node.send("message \(number)", to: channel) }
    let all = try await ana.node.history(of: channel, limit: 100)
    #expect(all.map(\.body) == (1...25).map { .text("message \($0)") })
    for limit in [1, 4, 25, 100] {
      var pages: [Message] = []
      var before: UInt64?
      while true {
        let page = try await ana.node.history(of: channel, before: before, limit: limit)
        if page.isEmpty { break }
        #expect(page.count <= limit)
        pages = page + pages
        before = page[0].cursor
      }
      #expect(pages == all)
    }
    // One that is not there, and one of nobody's.
    #expect(try await ana.node.history(of: channel, before: all.last!.cursor + 65_536, limit: 5).isEmpty)
    #expect(try await ana.node.history(of: channel, before: 0, limit: 5).isEmpty)
    try await ana.stop()
  }

  @Test func bothSidesHaveWhatWasSaidBetweenThem() async throws {
    let channel = try name("history-tests-between")
    let ana = try await RunningNode("Ana of history")
    let ben = try await RunningNode("Ben of history")
    let (anaID, benID) = (ana.node.peerID, ben.node.peerID)
    try await ana.node.join(channel, secret: .open)
    try await ben.node.join(channel, secret: .open)
    try await ana.node.wait(for: benID, in: channel)
    try await ben.node.wait(for: anaID, in: channel)
    guard case .delivered = try await ana.node.tell("one", peer: benID.text),
      case .delivered = try await ben.node.tell("two", peer: anaID.text),
      case .delivered = try await ana.node.tell("three", peer: benID.text)
    else {
      Issue.record("somebody present gets it at once")
      return
    }
    let here = try await ana.node.messages(with: benID.text, limit: 10)
    #expect(here.map(\.body) == [.text("one"), .text("two"), .text("three")])
    #expect(here.map(\.sender) == [anaID, benID, anaID])
    #expect(here.allSatisfy { $0.peer == benID && $0.channel == nil })
    #expect(here.map(\.deliveredTo) == [[benID], [], [benID]])
    let there = try await ben.node.messages(with: "Ana of history", limit: 10)
    #expect(there.map(\.id) == here.map(\.id))
    #expect(there.allSatisfy { $0.peer == anaID })
    let page = try await ana.node.messages(with: benID.text, before: here[2].cursor, limit: 1)
    #expect(page.map(\.id) == [here[1].id])
    // While that person is away it waits, and is not delivered.
    try await ben.stop()
    try await ana.node.wait { try await $0.members(of: channel).contains { $0.peer == benID && $0.status == .offline } }
    guard case .queued(let waiting) = try await ana.node.tell("four", peer: benID.text) else {
      Issue.record("somebody away gets it later")
      return
    }
    let last = try #require(try await ana.node.messages(with: benID.text, limit: 1).first)
    #expect(last.id == waiting && last.deliveredTo.isEmpty)
    await #expect(throws: ParleyError.self) { try await ana.node.messages(with: "nobody", limit: 1) }
    try await ana.stop()
  }
}
