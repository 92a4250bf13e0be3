import Glibc
import ParleyVocabulary
import ParleyWire
import Testing

@testable import Parley

/// Hooks of a node, as its messages meet them.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct NodeHookTests {
  private let folder = TemporaryHome()

  /// A program that answers this, and writes its question behind those before.
  private func program(_ name: String, _ script: String) throws -> Hook.Target {
    let path = try folder.write(Array("#!/bin/sh\n\(script)\n".utf8), name)
    #expect(chmod(path, 0o700) == 0)
    return .command(path)
  }

  /// What a hook has been told so far.
  private func told(_ name: String) throws -> String {
    let path = folder.path + "/" + name
    return access(path, R_OK) == 0 ? String(decoding: try TemporaryHome.read(path), as: UTF8.self) : ""
  }

  private func ana(_ hooks: [Hook]) async throws -> (RunningNode, ChannelName) {
    let ana = try await RunningNode("Ana") { $0.hooks = hooks }
    let channel = try ChannelName("hook-tests")
    try await ana.node.join(channel, secret: .open)
    return (ana, channel)
  }

  private func refusal(_ send: () async throws -> Void) async -> ParleyError? {
    do {
      try await send()
      return nil
    } catch { return error as? ParleyError }
  }

  @Test func beforeSendRefusesAndWritesAnew() async throws {
    let script = """
      read -r question
      case "$question" in
        *spam*) echo '{"action":"refuse","reason":"no spam"}';;
        *word*) echo '{"action":"rewrite","message":{"body":"w***","ext":{"moderated":true}}}';;
      esac
      """
    let hook = try Hook(.beforeSend, try program("before", script))
    let (ana, channel) = try await ana([hook])
    let refused = await refusal { _ = try await ana.node.send("spam", to: channel) }
    #expect(refused == .refusedByHook("default", reason: "no spam"))
    let live = await refusal { _ = try await ana.node.send(.text("spam").onlineOnly(), to: channel) }
    #expect(live == .refusedByHook("default", reason: "no spam"))
    _ = try await ana.node.send("a bad word", to: channel)
    _ = try await ana.node.send("well", to: channel)
    let history = try await ana.node.history(of: channel, limit: 5)
    #expect(history.map(\.body) == [.text("w***"), .text("well")])
    #expect(history.map(\.ext) == [#"{"moderated":true}"#, nil])
    // What is said to some is for nobody else to read, and so cannot be said.
    let stranger = PeerID(bytes: [UInt8](repeating: 9, count: 32))!
    let directed = await refusal { _ = try await ana.node.send(.text("x").directed(to: [stranger]), to: channel) }
    guard case .badField("receivers", _, _)? = directed else {
      Issue.record("directed with a hook before: \(String(describing: directed))")
      return
    }
    try await ana.stop()
  }

  @Test func webhookEnvironmentPicksByExactName() async throws {
    let hooks = try ["default", "stage", "Stage"].map { name in
      try Hook(.afterSend, named: name, try program(name, "cat >> '\(folder.path)/told-\(name)'"))
    }
    let (ana, channel) = try await ana(hooks)
    let text = { (text: String) throws(ParleyError) in try MessageDraft.text(text) }
    _ = try await ana.node.send(text("unset"), to: channel)
    _ = try await ana.node.send(text("set").with(webhookEnvironment: "stage"), to: channel)
    _ = try await ana.node.send(text("unmatched").with(webhookEnvironment: "nobody"), to: channel)
    _ = try await ana.node.send(text("last unset"), to: channel)
    _ = try await ana.node.send(text("last set").with(webhookEnvironment: "stage"), to: channel)
    // Each is told in order: with the last it has had all.
    while try !told("told-default").contains("last unset") || !told("told-stage").contains("last set") {
      await Task.yield()
    }
    #expect(
      try told("told-default").contains(#""body":"unset""#) && !told("told-default").contains("set\",\"webhook_env"))
    #expect(try told("told-stage").contains(#""body":"set""#) && !told("told-stage").contains("unset"))
    #expect(try told("told-Stage").isEmpty)
    #expect(try !(told("told-default") + told("told-stage")).contains("unmatched"))
    #expect(
      try told("told-default").contains(#"{"event":"after_send","hook":"default","channel":"hook-tests","message":{"#))
    try await ana.stop()
  }

  @Test(arguments: [
    ("exec tail -f /dev/null", "it did not answer within 400 ms"), ("exit 1", "it ended with status 1"),
    ("kill -SEGV $$", "it was ended by signal 11"), ("echo nonsense", "it answered what is no JSON"),
    (#"echo '{"action":"maybe"}'"#, "its action is neither allow, refuse nor rewrite"),
    (#"echo '{"action":"rewrite","message":{"sender":{}}}'"#, "it may not change sender"),
  ])
  func aHookThatDoesNotAnswerIsTreatedByItsPolicy(_ script: String, _ reason: String) async throws {
    let target = try program("bad", script)
    let milliseconds = script.contains("tail") ? 400 : 30_000
    for policy in Hook.Policy.allCases {
      let hook = try Hook(.beforeSend, target, policy: policy, milliseconds: milliseconds)
      let (ana, channel) = try await ana([hook])
      let events = await ana.node.events()
      let error = await refusal { _ = try await ana.node.send("hello", to: channel) }
      #expect(error == (policy == .open ? nil : .hookFailed("default", reason: reason)))
      for await case .hookFailed(let failure) in events {
        #expect(failure.name == "default" && failure.moment == .beforeSend && failure.reason == reason)
        #expect(failure.isSent == (policy == .open))
        break
      }
      #expect(try await ana.node.history(of: channel, limit: 5).count == (policy == .open ? 1 : 0))
      try await ana.stop()
    }
  }

  @Test func aHookThatIsToldAndHangsHoldsUpNobody() async throws {
    let hook = try Hook(.afterSend, try program("slow", "exec tail -f /dev/null"), milliseconds: 300)
    let (ana, channel) = try await ana([hook])
    let events = await ana.node.events()
    let receipt = try await ana.node.send("hello", to: channel)
    for await case .hookFailed(let failure) in events {
      #expect(failure.id == receipt.id && failure.moment == .afterSend && failure.isSent)
      break
    }
    try await ana.stop()
  }

  @Test func targetLanguagesAreAskedOfTheHookForThem() async throws {
    let answer = #"echo '{"translations":{"de":"ja","zh-Hans":"是"}}'"#
    let (ana, channel) = try await ana([
      try Hook(.translate, try program("good", answer)),
      try Hook(.translate, named: "closed", try program("other", "echo '{\"translations\":{\"fr\":\"oui\"}}'")),
      try Hook(.translate, named: "open", try program("none", "echo"), policy: .open),
    ])
    let text = try MessageDraft.text("yes").translated(into: ["de", "zh-Hans"])
    _ = try await ana.node.send(text, to: channel)
    let failed = await refusal { _ = try await ana.node.send(text.with(webhookEnvironment: "closed"), to: channel) }
    #expect(failed == .hookFailed("closed", reason: "it gave what is no text in one of the languages asked for"))
    _ = try await ana.node.send(text.with(webhookEnvironment: "open"), to: channel)
    // No hook of that name, and nothing to translate.
    _ = try await ana.node.send(text.with(webhookEnvironment: "nobody"), to: channel)
    _ = try await ana.node.send("plain", to: channel)
    let translations = try await ana.node.history(of: channel, limit: 9).map { $0.options.translations.map(\.text) }
    #expect(translations == [["ja", "是"], [], [], []])
    try await ana.stop()
  }

  @Test func aHookThatCannotBeIsNotMade() throws {
    func isRefused(_ make: () throws -> Void) {
      do {
        try make()
        Issue.record("it was made")
      } catch {
        guard let error = error as? ParleyError, case .badHook = error else {
          Issue.record("\(error)")
          return
        }
      }
    }
    for name in ["", "abcdefghi", "a-b", "é"] {
      isRefused { _ = try Hook(.afterSend, named: name, .command("/bin/true")) }
    }
    for path in ["", "true", "./true", "/bin/\0true"] { isRefused { _ = try Hook(.afterSend, .command(path)) } }
    for url in ["", "ftp://a", "http://ana@a"] { isRefused { _ = try Hook(.afterSend, .address(url)) } }
    for milliseconds in [9, 60_001] {
      isRefused { _ = try Hook(.afterSend, .command("/bin/true"), milliseconds: milliseconds) }
    }
    let hook = try Hook(.afterSend, named: "abcdEF12", .command("/bin/true"))
    isRefused {
      var settings = NodeSettings(home: "/nowhere/to/be/made")
      settings.hooks = [hook, hook]
      _ = try Node(settings)
    }
  }

  @Test func answersAreReadStrictly() throws {
    func answer(_ text: String) -> HookAnswer? { try? HookAnswer(Array(text.utf8)) }
    #expect(answer("") == .allow && answer(" \n") == .allow && answer(#"{"action":"allow","x":1}"#) == .allow)
    #expect(answer(#"{"action":"refuse"}"#) == .refuse(reason: ""))
    for text in ["null", "[]", "{}", #"{"action":1}"#, #"{"action":"rewrite"}"#, #"{"action":"refuse","reason":1}"#] {
      #expect(answer(text) == nil, "\(text)")
    }
    let message = SchemaMessage(
      sender: Sender(peer: PeerID(Bytes32((0..<32).map { UInt8($0) })!), displayName: try DisplayName("Ana")),
      messageID: MessageID("m")!, timestamp: "2021-03-12T09:05:16Z", content: TextKind(body: "a"),
      options: MessageOptions(ext: []))
    func rewritten(_ changes: [JSONMember]) -> SchemaMessage? { try? HookAnswer.apply(changes, to: message) }
    #expect(rewritten([JSONMember("ext", .null), JSONMember("body", .string("b"))])?.options.ext == nil)
    #expect(rewritten([JSONMember("body", .null)]) == nil && rewritten([JSONMember("body", .integer(1))]) == nil)
    for name in HookAnswer.fixed { #expect(rewritten([JSONMember(name, .string("x"))]) == nil, "\(name)") }
    let long = String(repeating: "a", count: 30_000)
    #expect(rewritten([JSONMember("body", .string(long))]) == nil)
  }
}
