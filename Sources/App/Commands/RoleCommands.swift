import Parley
import ParleyLocalAPI

/// What owner and admins of a channel do. PEER is as for `tell`.
enum RoleCommands {
  static func role(_ invocation: Invocation) throws {
    let word = invocation["admin|member"]
    guard ["admin", "member"].contains(word) else {
      throw Failure.usage("say admin or member: parley role CHANNEL PEER admin")
    }
    try put(word, invocation, saying: word == "admin" ? "is an admin now" : "is a member now")
  }

  static func admin(_ invocation: Invocation) throws { try put("admin", invocation, saying: "is an admin now") }

  static func mute(_ invocation: Invocation) throws {
    var body: [JSON.Field] = []
    switch (invocation.value("--for"), invocation.value("--until")) {
    case (nil, nil): break
    case (let text?, nil):
      guard let seconds = seconds(text) else {
        throw Failure.usage("--for must be a time such as 90s, 10m, 2h or 1d, at most 365d, not \(text.escapedLine)")
      }
      body = [.init("seconds", .integer(seconds))]
    case (nil, let text?):
      guard Timestamp(rfc3339: text) != nil else {
        throw Failure.usage("--until must be a time such as 2030-01-31T12:00:00Z, not \(text.escapedLine)")
      }
      body = [.init("until", .string(text))]
    default: throw Failure.usage("give either --for or --until")
    }
    try put("muted", invocation, body, saying: "is muted")
  }

  static func remove(_ invocation: Invocation) throws { try put("removed", invocation, saying: "is removed") }
  static func ban(_ invocation: Invocation) throws { try put("banned", invocation, saying: "is banned") }
  static func transfer(_ invocation: Invocation) throws { try put("owner", invocation, saying: "is the owner now") }
  static func unmute(_ invocation: Invocation) throws { try delete("mute", invocation, saying: "is heard again") }
  static func unban(_ invocation: Invocation) throws { try delete("ban", invocation, saying: "is a member again") }
  static func lower(_ invocation: Invocation) throws { try delete("hand", invocation, saying: "has the hand down") }

  private static func put(
    _ role: String, _ invocation: Invocation, _ more: [JSON.Field] = [], saying words: String
  ) throws {
    let name = try ChannelCommands.channelName(invocation)
    let client = try NodeClient(home: Home.path(invocation))
    let answer = try client.call(
      "PUT", ["channels", name, "members", invocation["PEER"], "role"],
      body: .object([.init("role", .string(role))] + more))
    say(answer, invocation, words)
  }

  private static func delete(_ what: String, _ invocation: Invocation, saying words: String) throws {
    let name = try ChannelCommands.channelName(invocation)
    let client = try NodeClient(home: Home.path(invocation))
    say(try client.call("DELETE", ["channels", name, "members", invocation["PEER"], what]), invocation, words)
  }

  private static func say(_ answer: JSON, _ invocation: Invocation, _ words: String) {
    if invocation.isJSON { return Terminal.line(answer.text) }
    let who = "\(invocation["PEER"].escapedLine) (\(Presenter.fingerprint(ofPeer: answer["peer_id"]?.string)))"
    Terminal.line("\(who) \(words) in \(invocation["CHANNEL"].escapedLine).")
  }

  static func announce(_ invocation: Invocation) throws {
    let name = try ChannelCommands.channelName(invocation)
    let client = try NodeClient(home: Home.path(invocation))
    let text = invocation.all("TEXT").joined(separator: " ")
    let answer = try client.call("PUT", ["channels", name, "announcement"], body: ["body": .string(text)])
    if invocation.isJSON { return Terminal.line(answer.text) }
    Terminal.line(
      text.isEmpty ? "Nothing stands over \(name.escapedLine) any more." : "It stands over \(name.escapedLine).")
  }

  static func close(_ invocation: Invocation) throws {
    let name = try ChannelCommands.channelName(invocation)
    let client = try NodeClient(home: Home.path(invocation))
    let answer = try client.call("POST", ["channels", name, "close"])
    Terminal.line(invocation.isJSON ? answer.text : "\(name.escapedLine) is closed: only you can still write in it.")
  }

  /// `90s`, `10m`, `2h`, `1d`; nil for anything else, nothing, or more than a year.
  static func seconds(_ text: String) -> Int64? {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
    guard let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()),
      text.utf8.first.map({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) == true
    else { return nil }
    let (seconds, overflow) = count.multipliedReportingOverflow(by: unit)
    return !overflow && (1...31_536_000).contains(seconds) ? seconds : nil
  }
}

extension CommandTable {
  private static let whom: [Command.Argument] = [.init("CHANNEL"), .init("PEER")]

  static let role = Command(
    name: "role", arguments: whom + [.init("admin|member")], summary: "make somebody an admin, or a member again",
    details: """
      In channels with an owner. The owner makes admins; admins let people in, mute, remove and ban
      whoever is not an admin. PEER is an ID, the start of one, or a name that only one person has.
      """,
    examples: [
      .init("parley role class Ben admin", "the owner only"), .init("parley role class Ben member", "and back"),
    ], run: RoleCommands.role)

  static let admin = Command(
    name: "admin", arguments: whom, summary: "make somebody an admin",
    examples: [.init("parley admin class Ben", "as parley role class Ben admin")], run: RoleCommands.admin)

  static let mute = Command(
    name: "mute", arguments: whom,
    options: [
      .init(name: "--for", value: "TIME", help: "such as 90s, 10m, 2h or 1d"),
      .init(name: "--until", value: "WHEN", help: "such as 2030-01-31T12:00:00Z"),
    ],
    summary: "let nobody hear somebody's messages",
    details: "Until it is lifted, without an option. What they said before stays; they can still raise their hand.",
    examples: [
      .init("parley mute class Ben --for 10m", "for ten minutes"), .init("parley mute class Ben", "until unmute"),
    ], run: RoleCommands.mute)

  static let unmute = Command(
    name: "unmute", arguments: whom, summary: "lift a mute",
    details: "What they said while they were muted stays unheard.",
    examples: [.init("parley unmute class Ben", "Ben is heard again")], run: RoleCommands.unmute)

  static let remove = Command(
    name: "remove", arguments: whom, summary: "put somebody out of a channel",
    details: "They can come back with a new invitation, not with one from before. What they said stays.",
    examples: [.init("parley remove class Ben", "Ben is out")], run: RoleCommands.remove)

  static let ban = Command(
    name: "ban", arguments: whom, summary: "put somebody out, whatever invitation they get",
    examples: [.init("parley ban class Ben", "until unban")], run: RoleCommands.ban)

  static let unban = Command(
    name: "unban", arguments: whom, summary: "let somebody in again who was removed or banned",
    examples: [.init("parley unban class Ben", "Ben is a member again")], run: RoleCommands.unban)

  static let transfer = Command(
    name: "transfer", arguments: whom, summary: "hand a channel over: you are an admin of it then",
    details: "Only the new owner can give it back.",
    examples: [.init("parley transfer class Cho", "Cho owns it from now on")], run: RoleCommands.transfer)

  static let lower = Command(
    name: "lower", arguments: whom, summary: "take somebody's hand down",
    examples: [.init("parley lower class Ben", "Ben can raise it again")], run: RoleCommands.lower)

  static let announce = Command(
    name: "announce", arguments: [.init("CHANNEL"), .init("TEXT", .many)],
    summary: "put a text over a channel, for whoever joins, too",
    details: "It takes the place of the last one; an empty one ('') takes that away.",
    examples: [
      .init("parley announce class \"We begin at 9\"", "say it"),
      .init("parley announce class ''", "take it away"),
    ], run: RoleCommands.announce)

  static let close = Command(
    name: "close", arguments: [.init("CHANNEL")], summary: "end a channel for all but its owner",
    details: "What was said stays with everybody. It cannot be opened again.",
    examples: [.init("parley close class", "nobody else can write any more")], run: RoleCommands.close)
}
