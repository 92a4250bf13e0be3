import Parley
import ParleyLocalAPI

/// What the user wishes of a channel or a person.
enum SettingCommands {
  static func settings(_ invocation: Invocation) throws {
    let subject = invocation["CHANNEL or PEER"]
    let client = try NodeClient(home: Home.path(invocation))
    let channels = try client.call("GET", ["channels"]).array ?? []
    let name = (try? ChannelName(subject).text) ?? subject
    let isChannel = channels.contains { $0["name"]?.string == name }
    let path = isChannel ? ["channels", name, "settings"] : ["peers", subject, "settings"]
    let (key, value) = (invocation.arguments["KEY"]?.first, invocation.arguments["VALUE"]?.first)
    guard let key else { return show(try client.call("GET", path), invocation) }
    guard let value else { throw Failure.usage("say what \(key.escapedLine) shall be") }
    show(try client.call("PUT", path, body: .object([try field(key, value, isChannel: isChannel)])), invocation)
  }

  static func field(_ key: String, _ value: String, isChannel: Bool) throws(Failure) -> JSON.Field {
    switch key {
    case "muted", "own-messages", "receipts",
      "previews" where isChannel, "voice" where isChannel:
      guard ["on", "off"].contains(value) else { throw .usage("\(key) is on or off") }
      return .init(member(key), .bool(value == "on"))
    case "history-days" where isChannel, "history-entries" where isChannel:
      if value == "default" { return .init(member(key), .null) }
      guard let number = Int64(value), number > 0 else {
        throw .usage("\(key) is a number from 1 on, or default, not \(value.escapedLine)")
      }
      return .init(member(key), .integer(number))
    default:
      let more = isChannel ? ", previews, voice, history-days and history-entries" : " (of a person)"
      throw .usage("there is no setting \(key.escapedLine): there are muted, own-messages, receipts\(more)")
    }
  }

  private static func member(_ key: String) -> String { String(key.map { $0 == "-" ? "_" : $0 }) }

  private static func show(_ settings: JSON, _ invocation: Invocation) {
    if invocation.isJSON { return Terminal.line(settings.text) }
    for line in lines(of: settings) { Terminal.line(line) }
  }

  static func lines(of settings: JSON) -> [String] {
    (settings.members ?? []).map { field in
      let value = field.value.bool.map { $0 ? "on" : "off" } ?? field.value.integer.map { "\($0)" } ?? "default"
      return "\(String(field.name.map { $0 == "_" ? "-" : $0 })) \(value)"
    }
  }
}

extension CommandTable {
  static let settings = Command(
    name: "settings", arguments: [.init("CHANNEL or PEER"), .init("KEY", .optional), .init("VALUE", .optional)],
    summary: "show or change what your node does with a channel or a person",
    details: """
      muted on: messages come, and nobody is notified of them. own-messages off: watch and other
      programs get only what others say. receipts off: nobody is told what you have read. Of a
      channel also previews off and voice off: they come only when they are looked at or asked for;
      and history-days and history-entries: a number, or default.
      """,
    examples: [
      .init("parley settings team", "how they are"), .init("parley settings team muted on", "no notifications"),
      .init("parley settings team history-days 7", "keep a week of it"),
      .init("parley settings Ben muted on", "of one person, everywhere"),
    ], run: SettingCommands.settings)
}
