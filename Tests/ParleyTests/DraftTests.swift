import Parley
import Testing

@Suite(.serialized, .timeLimit(.minutes(1)))
struct DraftTests {
  @Test func everyKindArrivesAsItWasMade() async throws {
    let channel = try name("draft-tests")
    let ana = try await RunningNode("Ana of drafts")
    let ben = try await RunningNode("Ben of drafts")
    try await ana.node.join(channel, secret: .open)
    try await ben.node.join(channel, secret: .open)
    try await ana.node.wait(for: ben.node.peerID, in: channel)
    let place = try Location(latitude: 31.25, longitude: -0.5, address: "人民大道 200", buildingName: "博物馆")
    let custom = try CustomContent(event: "seat", fields: [.init("row", "3"), .init("", "")])
    let events = await ben.node.events()
    let first = try await ana.node.send(
      .location(place).with(ext: #"{ "n" : [1.5, {"z":null}], "a" : "\u00e9" }"#), to: channel)
    let answered = MessageReference(sender: ana.node.peerID, id: first.id)
    _ = try await ana.node.send(.custom(custom).replying(to: answered), to: channel)
    _ = try await ana.node.tell(.text("to you").with(ext: "{}"), peer: "Ben of drafts")
    var messages: [Message] = []
    for await case .message(let message) in events {
      messages.append(message)
      if messages.count == 3 { break }
    }
    #expect(messages.filter { $0.channel == channel }.map(\.body) == [.location(place), .custom(custom)])
    let byExt = messages.map(\.ext)
    #expect(Set(byExt) == [#"{"n":[1.5,{"z":null}],"a":"é"}"#, nil, "{}"])
    #expect(messages.compactMap(\.replyTo) == [answered])
    // As the store has them, too; and places are found by their words.
    #expect(try await ben.node.history(of: channel, limit: 10).map(\.body) == [.location(place), .custom(custom)])
    #expect(try await ben.node.search("博物", in: channel, limit: 5).map(\.id) == [first.id])
    try await ana.stop()
    try await ben.stop()
  }

  @Test func whatNoReaderTakesCannotBeMade() {
    func isRefused<Made>(_ field: String, _ make: () throws -> Made) {
      do {
        _ = try make()
        Issue.record("made in spite of its \(field)")
      } catch ParleyError.badField(let name, _, _) {
        #expect(name == field)
      } catch { Issue.record("\(error)") }
    }
    let long = String(repeating: "é", count: 513)
    for degrees in [90.0001, -.infinity, .nan] {
      isRefused("latitude") { try Location(latitude: degrees, longitude: 0) }
      isRefused("longitude") { try Location(latitude: 0, longitude: degrees * 2) }
    }
    isRefused("address") { try Location(latitude: 0, longitude: 0, address: long) }
    isRefused("building_name") { try Location(latitude: 0, longitude: 0, buildingName: long) }
    isRefused("event") { try CustomContent(event: "") }
    isRefused("event") { try CustomContent(event: String(repeating: "e", count: 129)) }
    isRefused("custom_ext") { try CustomContent(event: "e", fields: [.init("a", "1"), .init("a", "2")]) }
    isRefused("custom_ext") { try CustomContent(event: "e", fields: [.init("a\0", "1")]) }
    let deep = String(repeating: #"{"a":"#, count: 16) + "1" + String(repeating: "}", count: 16)
    for ext in ["", "[]", "null", "{", #"{"a":1,"a":2}"#, #"{"a":1e999}"#, deep] {
      isRefused("ext") { try MessageDraft.text("x").with(ext: ext) }
    }
    for action in ["", "em_x", "easemob::x", "parley.x", String(repeating: "a", count: 129)] {
      isRefused("action") { try CommandContent(action: action) }
    }
    isRefused("params") { try CommandContent(action: "a", parameters: [.init("a", "1"), .init("a", "2")]) }
    #expect(throws: Never.self) { try CommandContent(action: String(repeating: "a", count: 128)) }
    let text = MessageDraft.location(try! Location(latitude: 0, longitude: 0))
    for name in ["", "abcdefghi", "a b", "é"] { isRefused("webhook_env") { try text.with(webhookEnvironment: name) } }
    #expect(throws: Never.self) { try text.with(webhookEnvironment: "abcdEF12") }
    isRefused("target_languages") { try text.translated(into: ["de"]) }
    for languages in [[], ["d"], ["de", "de"], (0..<17).map { "de-\($0)" }] {
      isRefused("target_languages") { try MessageDraft.text("x").translated(into: languages) }
    }
    for url in [
      "", "ftp://a", "http://", "http://a b", "http://ana@a", "http://a" + String(repeating: "b", count: 2_041),
    ] {
      isRefused("remote_url") { try RemoteMedia(kind: .file, url: url, fileName: "") }
    }
    isRefused("duration") { try RemoteMedia(kind: .voice, url: "http://a", fileName: "") }
    isRefused("duration") { try RemoteMedia(kind: .photo, url: "http://a", fileName: "", seconds: 1) }
    isRefused("width") { try RemoteMedia(kind: .voice, url: "http://a", fileName: "", seconds: 1, width: 1) }
    isRefused("file_name") { try RemoteMedia(kind: .file, url: "http://a", fileName: long) }
    #expect(throws: Never.self) { try MessageDraft.text("x").with(ext: String(deep.dropFirst(5).dropLast())) }
    #expect(throws: ParleyError.emptyMessage) { try MessageDraft.text("") }
  }
}
