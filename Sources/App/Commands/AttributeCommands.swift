import Parley
import ParleyLocalAPI

/// Texts by name that stand in a channel.
enum AttributeCommands {
  static func attributes(_ invocation: Invocation) throws {
    let name = try ChannelCommands.channelName(invocation)
    let words = invocation.all("set KEY VALUE | delete KEY")
    let client = try NodeClient(home: Home.path(invocation))
    switch (words.first, words.count) {
    case (nil, _): try list(name, client, invocation)
    case ("set", 3...): try set(name, words[1], words.dropFirst(2).joined(separator: " "), client, invocation)
    case ("delete", 2): try delete(name, words[1], client, invocation)
    default:
      throw Failure.usage("say set KEY VALUE, or delete KEY; with neither they are listed")
    }
  }

  private static func list(_ name: String, _ client: NodeClient, _ invocation: Invocation) throws {
    guard !invocation.has("--no-overwrite"), !invocation.has("--until-leave") else {
      throw Failure.usage("--no-overwrite and --until-leave go with set and delete")
    }
    let attributes = try client.call("GET", ["channels", name, "attributes"]).array ?? []
    for attribute in attributes { Terminal.line(invocation.isJSON ? attribute.text : line(of: attribute)) }
  }

  static func line(of attribute: JSON) -> String {
    let key = attribute["key"]?.string?.escapedLine ?? "?"
    let author = Presenter.fingerprint(ofPeer: attribute["sender_id"]?.string)
    let end = attribute["until_leave"]?.bool == true ? ", until they leave" : ""
    return "\(key) = \(attribute["value"]?.string?.escapedLine ?? "")  \(Terminal.dim("(\(author)\(end))"))"
  }

  private static func set(
    _ name: String, _ key: String, _ value: String, _ client: NodeClient, _ invocation: Invocation
  ) throws {
    let answer = try client.call(
      "PUT", ["channels", name, "attributes"],
      body: [
        "key": .string(key), "value": .string(value), "overwrite": .bool(!invocation.has("--no-overwrite")),
        "until_leave": .bool(invocation.has("--until-leave")),
      ])
    Terminal.line(invocation.isJSON ? answer.text : "\(key.escapedLine) is set in \(name.escapedLine).")
  }

  private static func delete(
    _ name: String, _ key: String, _ client: NodeClient, _ invocation: Invocation
  ) throws {
    guard !invocation.has("--until-leave") else { throw Failure.usage("--until-leave goes with set") }
    var query = [("key", key)]
    if invocation.has("--no-overwrite") { query.append(("overwrite", "false")) }
    let answer = try client.call("DELETE", ["channels", name, "attributes"], query: query)
    Terminal.line(invocation.isJSON ? answer.text : "\(key.escapedLine) is gone from \(name.escapedLine).")
  }
}

extension CommandTable {
  static let attributes = Command(
    name: "attributes", arguments: [.init("CHANNEL"), .init("set KEY VALUE | delete KEY", .any)],
    options: [
      .init(name: "--no-overwrite", help: "leave what somebody else has set"),
      .init(name: "--until-leave", help: "set: it goes when you leave or are gone"),
    ],
    summary: "texts by name that stand in a channel: list, set or delete them",
    details: "At most 100 in a channel; a key has at most 128 bytes, a value 4096. Every member sees and may set them.",
    examples: [
      .init("parley attributes lobby", "list them"),
      .init("parley attributes lobby set topic \"Plans for May\"", "set one"),
      .init("parley attributes lobby set seat-1 Ana --no-overwrite --until-leave", "take a seat that is free"),
      .init("parley attributes lobby delete topic", "take it away"),
    ], run: AttributeCommands.attributes)
}

/// What is said in all rooms.
enum BroadcastCommand {
  static func broadcast(_ invocation: Invocation) throws {
    let client = try NodeClient(home: Home.path(invocation))
    let body = try MessageCommands.draft(invocation)
    let outcomes = try client.call("POST", ["broadcast"], body: .object(body)).array ?? []
    for outcome in outcomes { Terminal.line(invocation.isJSON ? outcome.text : line(of: outcome)) }
  }

  static func line(of outcome: JSON) -> String {
    let channel = outcome["channel"]?.string?.escapedLine ?? "?"
    if let id = outcome["message_id"]?.string { return "\(channel)  \(id.escapedLine)" }
    return "\(channel)  not sent: \(outcome["problem"]?["detail"]?.string?.escapedLine ?? "?")"
  }
}

extension CommandTable {
  static let broadcast = Command(
    name: "broadcast", arguments: [.init("TEXT", .any)], options: draftOptions,
    summary: "send a message to every room that you own or help to run",
    details: "Prints the message's ID in each. Other rooms and groups hear nothing.",
    examples: [.init("parley broadcast \"The doors close at nine\"", "say it everywhere")],
    run: BroadcastCommand.broadcast)
}
