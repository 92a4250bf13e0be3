import Parley
import ParleyLocalAPI

/// Messages said again, put together and taken apart.
enum ForwardCommands {
  static func forward(_ invocation: Invocation) throws {
    let name = try ChannelCommands.channelName(invocation)
    var body = [JSON.Field("messages", .array(invocation.all("MESSAGE_ID").map { .string($0) }))]
    switch (invocation.value("--to"), invocation.value("--to-peer")) {
    case (let channel?, nil): body.append(.init("to", .string(channel)))
    case (nil, let peer?): body.append(.init("to_peer", .string(peer)))
    default: throw Failure.usage("say where to, either --to CHANNEL or --to-peer PEER")
    }
    let client = try NodeClient(home: Home.path(invocation))
    let answer = try client.call("POST", ["channels", name, "forwards"], body: .object(body))
    if invocation.isJSON { return Terminal.line(answer.text) }
    for id in answer["message_ids"]?.array ?? [] { Terminal.line(id.string?.escapedLine ?? "") }
  }

  static func combine(_ invocation: Invocation) throws {
    let name = try ChannelCommands.channelName(invocation)
    guard let title = invocation.value("--title") else { throw Failure.usage("say what it is called: --title TEXT") }
    var body = [
      JSON.Field("messages", .array(invocation.all("MESSAGE_ID").map { .string($0) })), .init("title", .string(title)),
    ]
    for (option, member) in [("--summary", "summary"), ("--compatible-text", "compatible_text"), ("--to", "to")] {
      if let value = invocation.value(option) { body.append(.init(member, .string(value))) }
    }
    let client = try NodeClient(home: Home.path(invocation))
    let answer = try client.call("POST", ["channels", name, "combined"], body: .object(body))
    Terminal.line(invocation.isJSON ? answer.text : answer["message_id"]?.string?.escapedLine ?? "")
  }

  static func unpack(_ invocation: Invocation) throws {
    let client = try NodeClient(home: Home.path(invocation))
    let messages = try client.call("GET", ["media", invocation["MEDIA_ID"], "messages"]).array ?? []
    for message in messages {
      Terminal.line(
        invocation.isJSON ? message.text : Presenter.message(message, isChannelShown: false, isInBundle: true))
    }
  }
}

extension CommandTable {
  static let forward = Command(
    name: "forward", arguments: [.init("CHANNEL"), .init("MESSAGE_ID", .many)],
    options: [
      .init(name: "--to", value: "CHANNEL", help: "a channel that you are in"),
      .init(name: "--to-peer", value: "PEER", help: "one person only"),
    ],
    summary: "say messages of a channel again, elsewhere",
    details: """
      Under your name. A file is not sent again: where it was not announced before, your node must have
      it, and serves it there too. IDs are in parley history CHANNEL --json. Prints the new IDs.
      """,
    examples: [
      .init("parley forward team ID --to lobby", "in another channel"),
      .init("parley forward team ID ID --to-peer Ben", "to one person"),
    ], run: ForwardCommands.forward)

  static let combine = Command(
    name: "combine", arguments: [.init("CHANNEL"), .init("MESSAGE_ID", .many)],
    options: [
      .init(name: "--title", value: "TEXT", help: "what it is called"),
      .init(name: "--summary", value: "TEXT", help: "what is in it"),
      .init(name: "--compatible-text", value: "TEXT", help: "for programs that do not know combined messages"),
      .init(name: "--to", value: "CHANNEL", help: "say it there; else in the same channel"),
    ],
    summary: "put messages of a channel together into one",
    details: """
      Of 1 to 300 messages: texts, photos, voice, videos, files, custom and combined ones, at most 10
      levels of these. Prints the message's ID.
      """,
    examples: [.init("parley combine team ID ID --title \"Lunch, decided\"", "in the order given")],
    run: ForwardCommands.combine)

  static let unpack = Command(
    name: "unpack", arguments: [.init("MEDIA_ID")],
    summary: "show the messages that somebody put together",
    details: "That their senders wrote them is said by nobody but whoever put them together.",
    examples: [.init("parley unpack ID", "the media ID that the combined message shows")],
    run: ForwardCommands.unpack)
}
