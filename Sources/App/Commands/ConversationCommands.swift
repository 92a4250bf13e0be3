import Parley
import ParleyLocalAPI

/// What is done to messages. MESSAGE is an ID, the start of one, or `SENDER/ID`.
enum ConversationCommands {
  /// How far back a message is looked for that is named by its ID alone.
  private static let looksBack = 1_000

  /// Where a message is found: its sender's ID and its own.
  struct Target {
    let channel: String
    let sender: String
    let id: String
    var path: [String] { ["channels", channel, "messages", sender, id] }
    var json: JSON { ["sender_id": .string(sender), "message_id": .string(id)] }
  }

  static func target(_ text: String, in channel: String, _ client: NodeClient) throws(Failure) -> Target {
    if let slash = text.firstIndex(of: "/"), PeerID(text: String(text[..<slash])) != nil {
      return Target(channel: channel, sender: String(text[..<slash]), id: String(text[text.index(after: slash)...]))
    }
    let messages = try client.call(
      "GET", ["channels", channel, "messages"], query: [("limit", "\(looksBack)")])
    return try target(text, in: channel, among: messages.array ?? [])
  }

  /// The whole ID counts before the start of others.
  static func target(_ text: String, in channel: String, among messages: [JSON]) throws(Failure) -> Target {
    func found(_ isSo: (String) -> Bool) -> [Target] {
      var keys: Set<String> = []
      return messages.compactMap { message in
        guard let id = message["message_id"]?.string, let sender = message["sender"]?["sender_id"]?.string, isSo(id),
          keys.insert("\(sender) \(id)").inserted
        else { return nil }
        return Target(channel: channel, sender: sender, id: id)
      }
    }
    var matches = found { $0 == text }
    if matches.isEmpty, text.utf8.count >= 4 { matches = found { $0.hasPrefix(text) } }
    guard let first = matches.first else {
      throw Failure(
        .noInput,
        "none of the last \(looksBack) messages of \(channel.escapedLine) has the ID \(text.escapedLine): see parley "
          + "history \(channel.escapedLine) --ids, or name it as SENDER/ID")
    }
    guard matches.count == 1 else {
      throw Failure(
        .usage,
        "several messages match \(text.escapedLine): say which by "
          + matches.map { "\($0.sender)/\($0.id.escapedLine)" }.joined(separator: ", "))
    }
    return first
  }

  private static func target(_ invocation: Invocation) throws -> (target: Target, client: NodeClient) {
    let name = try ChannelCommands.channelName(invocation)
    let client = try NodeClient(home: Home.path(invocation))
    return (try target(invocation["MESSAGE"], in: name, client), client)
  }

  private static func say(_ answer: JSON, _ invocation: Invocation) {
    Terminal.line(invocation.isJSON ? answer.text : Presenter.message(answer, isChannelShown: false))
  }

  static func recall(_ invocation: Invocation) throws {
    let (target, client) = try target(invocation)
    say(try client.call("POST", target.path + ["recall"]), invocation)
  }

  static func edit(_ invocation: Invocation) throws {
    let (target, client) = try target(invocation)
    var body: [JSON.Field] = []
    let words = invocation.all("TEXT").joined(separator: " ")
    if let event = invocation.value("--event") {
      guard words.isEmpty else { throw Failure.usage("give either TEXT or --event") }
      body += [.init("event", .string(event)), .init("custom_ext", .object(try MessageCommands.fields(invocation)))]
    } else if !words.isEmpty {
      body.append(.init("body", .string(words)))
    }
    if let ext = try MessageCommands.ext(invocation) { body.append(.init("ext", ext)) }
    guard !body.isEmpty else { throw Failure.usage("say what it shall be: TEXT, --event or --ext") }
    say(try client.call("PUT", target.path, body: .object(body)), invocation)
  }

  static func react(_ invocation: Invocation) throws {
    let (target, client) = try target(invocation)
    let body: JSON = ["emoji": .string(invocation["EMOJI"]), "on": .bool(!invocation.has("--off"))]
    say(try client.call("PUT", target.path + ["reaction"], body: body), invocation)
  }

  static func pin(_ invocation: Invocation) throws {
    let name = try ChannelCommands.channelName(invocation)
    let client = try NodeClient(home: Home.path(invocation))
    guard let text = invocation.arguments["MESSAGE"]?.first else {
      for message in try client.call("GET", ["channels", name, "pins"]).array ?? [] { say(message, invocation) }
      return
    }
    let target = try target(text, in: name, client)
    say(
      try client.call("PUT", target.path + ["pin"], body: ["on": .bool(!invocation.has("--off"))]), invocation)
  }

  static func reply(_ invocation: Invocation) throws {
    let (target, client) = try target(invocation)
    var body = try MessageCommands.draft(invocation)
    body.append(.init("reply_to", target.json))
    let receipt = try client.call("POST", ["channels", target.channel, "messages"], body: .object(body))
    Terminal.line(invocation.isJSON ? receipt.text : receipt["message_id"]?.string?.escapedLine ?? "")
  }

  static func read(_ invocation: Invocation) throws {
    let name = try ChannelCommands.channelName(invocation)
    let client = try NodeClient(home: Home.path(invocation))
    let ids = invocation.all("MESSAGE")
    let messages =
      try client.call(
        "GET", ["channels", name, "messages"], query: [("limit", "\(looksBack)")]
      ).array ?? []
    var targets: [JSON] = []
    for id in ids {
      let target = id.contains("/") ? try target(id, in: name, client) : try target(id, in: name, among: messages)
      targets.append(target.json)
    }
    if ids.isEmpty {
      targets = messages.suffix(50).compactMap { message in
        guard let sender = message["sender"]?["sender_id"], let id = message["message_id"] else { return nil }
        return ["sender_id": sender, "message_id": id]
      }
    }
    let answer = try client.call("POST", ["channels", name, "read"], body: ["messages": .array(targets)])
    if invocation.isJSON { Terminal.line(answer.text) }
  }

  static func receipts(_ invocation: Invocation) throws {
    let (target, client) = try target(invocation)
    let message = try client.call("GET", target.path)
    if invocation.isJSON {
      return Terminal.line(
        JSON.object([
          .init("delivered_to", message["delivered_to"] ?? .array([])),
          .init("read_by", message["state"]?["read_by"] ?? .array([])),
        ]).text)
    }
    let readers = message["state"]?["read_by"]?.array ?? []
    let delivered = message["delivered_to"]?.array ?? []
    Terminal.line("Read by \(readers.count), on the disk of \(delivered.count) that said so.")
    for reader in readers {
      Terminal.line(
        "  \(Presenter.fingerprint(ofPeer: reader["operator_id"]?.string)) "
          + Presenter.time(reader["operation_time"]?.string))
    }
  }
}

extension CommandTable {
  private static let one: [Command.Argument] = [.init("CHANNEL"), .init("MESSAGE")]

  static let recall = Command(
    name: "recall", arguments: one, summary: "take a message back: nobody is shown it any more",
    details: """
      Your own within two minutes; in a channel with an owner, he and admins any message at any
      time. MESSAGE is an ID (parley history CHANNEL --ids), the start of one, or SENDER/ID.
      """,
    examples: [.init("parley recall team k3vqa7", "the start of its ID is enough")], run: ConversationCommands.recall)

  static let edit = Command(
    name: "edit", arguments: one + [.init("TEXT", .any)],
    options: [
      .init(name: "--event", value: "NAME", help: "of a custom message: what your application calls it"),
      .init(name: "--field", value: "NAME=TEXT", isRepeatable: true, help: "of a custom message: a text by name"),
      .init(name: "--ext", value: "JSON", help: "an object for your application, in place of the last one"),
    ],
    summary: "change what a message of yours says, ten times at most",
    details: "Of files, pictures and places only --ext can change. MESSAGE is as for recall.",
    examples: [.init("parley edit team k3vqa7 \"Lunch at 1\"", "other words")], run: ConversationCommands.edit)

  static let react = Command(
    name: "react", arguments: one + [.init("EMOJI")],
    options: [.init(name: "--off", help: "take it off again")], summary: "put a sign on a message",
    examples: [
      .init("parley react team k3vqa7 👍", "MESSAGE is as for recall"),
      .init("parley react team k3vqa7 👍 --off", "take it off"),
    ], run: ConversationCommands.react)

  static let pin = Command(
    name: "pin", arguments: [.init("CHANNEL"), .init("MESSAGE", .optional)],
    options: [.init(name: "--off", help: "take it down")],
    summary: "pin a message over a channel, or list those pinned",
    details: "At most 20. In a channel with an owner, he and admins pin; in an open one, anybody.",
    examples: [
      .init("parley pin team k3vqa7", "MESSAGE is as for recall"), .init("parley pin team", "what is pinned"),
    ], run: ConversationCommands.pin)

  static let reply = Command(
    name: "reply", arguments: one + [.init("TEXT", .any)], options: draftOptions, summary: "answer a message",
    details: "As send, and the message says which one it answers. MESSAGE is as for recall.",
    examples: [.init("parley reply team k3vqa7 \"Yes, at 1\"", "say it")], run: ConversationCommands.reply)

  static let read = Command(
    name: "read", arguments: [.init("CHANNEL"), .init("MESSAGE", .any)],
    summary: "tell a channel that you have read messages; without MESSAGE the last 50",
    details: "MESSAGE is as for recall. Nothing is told unless you ask for it.",
    examples: [.init("parley read team k3vqa7", "this one"), .init("parley read team", "the last ones")],
    run: ConversationCommands.read)

  static let receipts = Command(
    name: "receipts", arguments: one, summary: "show who has a message, and who says to have read it",
    examples: [.init("parley receipts team k3vqa7", "MESSAGE is as for recall")],
    run: ConversationCommands.receipts)
}
