import Parley
import Testing

extension NodeTests {
  @Test func aSearchFindsWhatWasSaidAndShared() async throws {
    let (team, other) = (try name("node-tests-search"), try name("node-tests-search-2"))
    let ana = try await RunningNode("Ana")
    try await ana.node.join(team, secret: .open)
    try await ana.node.join(other, secret: .open)
    for text in ["Lunch at the Café?", "明天开会", "🎉 lunch", "\"quoted\" AND c++"] {
      _ = try await ana.node.send(text, to: team)
    }
    _ = try await ana.node.send("lunch elsewhere", to: other)
    try await ana.node.setHand(raised: true, in: team)
    let file = try ana.home.write(Array("plan".utf8), "Lunch plan 开会.txt")
    let media = try await ana.node.share(path: file, as: .file, in: team)

    func texts(_ words: String, in place: ChannelName? = team, limit: Int = 50, of node: Node) async throws -> [String]
    {
      try await node.search(words, in: place, limit: limit).map { message in
        switch message.body {
        case .text(let text): text
        case .file(let file): file.fileName
        default: "unexpected"
        }
      }
    }
    let node = ana.node
    #expect(try await texts("lunch", of: node) == ["Lunch plan 开会.txt", "🎉 lunch", "Lunch at the Café?"])
    #expect(try await texts("lunch", limit: 2, of: node) == ["Lunch plan 开会.txt", "🎉 lunch"])
    #expect(try await texts("lun", in: other, of: node) == ["lunch elsewhere"])
    #expect(Set(try await texts("lunch", in: nil, of: node)).count == 4)
    #expect(try await texts("开会", in: nil, of: node) == ["Lunch plan 开会.txt", "明天开会"])
    #expect(try await texts("🎉", of: node) == ["🎉 lunch"])
    #expect(try await texts("cafe", of: node) == ["Lunch at the Café?"])
    #expect(try await texts("NEAR(\"c++", of: node) == [])
    #expect(try await texts("c++", of: node) == ["\"quoted\" AND c++"])
    #expect(try await texts("true", in: nil, of: node) == [], "hands are not part of what people look for")
    #expect(try await texts("", in: nil, of: node) == [])
    await #expect(throws: ParleyError.notInChannel(try name("nowhere"))) {
      try await node.search("lunch", in: try name("nowhere"), limit: 1)
    }

    // What is found is what the history shows, and goes on to be found.
    let history = try await node.history(of: team, limit: 100)
    let found = try await node.search("lunch", in: team, limit: 100)
    #expect(found == history.filter { found.map(\.id).contains($0.id) }.reversed())
    #expect(found.first?.media?.id == media.id)
    let home = ana.home
    try await ana.stop()
    let again = try await RunningNode("Ana", home: home)
    #expect(try await texts("开会", of: again.node) == ["Lunch plan 开会.txt", "明天开会"])
    try await again.stop()
  }

  /// Several messages under one number are found one by one.
  @Test func aSearchFindsSingleMessagesOfABatch() async throws {
    let channel = try name("node-tests-search-batch")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 100..<400 { group.addTask { _ = try await ana.node.send("number \(number)", to: channel) } }
      try await group.waitForAll()
    }
    let all = try await ana.node.search("number", in: channel, limit: 1_000)
    let history = try await ana.node.history(of: channel, limit: 1_000)
    #expect(all == history.reversed())
    #expect(Set(all.map { $0.cursor >> 8 }).count < 300, "nothing was batched")
    #expect(try await ana.node.search("number 217", in: channel, limit: 10).map(\.body) == [.text("number 217")])
    #expect(try await ana.node.search("number 31", in: channel, limit: 100).count == 10)
    try await ana.stop()
  }
}
