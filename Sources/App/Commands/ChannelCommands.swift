import Glibc
import Parley
import ParleyLocalAPI

enum ChannelCommands {
  /// How long a join waits for somebody to be found, in seconds.
  static let companySeconds: Int64 = 3

  private static let channelOrLink = "CHANNEL or LINK"

  static func join(_ invocation: Invocation) throws {
    let given = invocation[channelOrLink]
    let isLinkWanted = given.isEmpty || invocation.has("--link-file") || given.hasPrefix("parley://join/")
    let answer = isLinkWanted ? try joinByLink(invocation) : try joinByName(given, invocation)
    if invocation.isJSON { return Terminal.line(answer.text) }
    for line in lines(ofJoin: answer) { Terminal.line(line) }
  }

  static func create(_ invocation: Invocation) throws {
    let name = try channelName(invocation)
    let client = try NodeClient(home: Home.path(invocation))
    let answer = try client.call(
      "POST", ["owned-channels"], body: .object([.init("name", .string(name))] + type(invocation)))
    Terminal.line(
      invocation.isJSON ? answer.text : "Created \(name.escapedLine). You own it; others come in by invitation.")
  }

  private static func joinByName(_ given: String, _ invocation: Invocation) throws -> JSON {
    let name: String
    do { name = try ChannelName(given).text } catch { throw Failure(.badData, error.description) }
    let client = try NodeClient(home: Home.path(invocation))
    var secret = try secret(for: name, invocation) + type(invocation)
    if let key = invocation.value("--organiser") {
      secret.append(.init("organiser", .string(try TokenCommands.organiser(key).text)))
    }
    return try join(name, secret: secret, client)
  }

  private static func type(_ invocation: Invocation) -> [JSON.Field] {
    invocation.has("--room") ? [.init("type", "room")] : []
  }

  private static func joinByLink(_ invocation: Invocation) throws -> JSON {
    let given = invocation[channelOrLink]
    guard !["--open", "--passphrase-file", "--organiser", "--room"].contains(where: invocation.has) else {
      throw Failure.usage("an invitation needs none of --open, --passphrase-file, --organiser and --room")
    }
    let link: String
    if let path = invocation.value("--link-file") {
      guard given.isEmpty else { throw Failure.usage("give either a channel or --link-file") }
      let what = path == "-" ? "the link on standard input" : path.escapedLine
      link = try text(from: path, what: what, byteCountMax: 1_100)
    } else if !given.isEmpty {
      Terminal.note("Others on this machine can see a link that is given as an argument: rather let parley join ask.")
      link = given
    } else {
      guard Terminal.isInputTerminal else {
        throw Failure.usage("say what to join: CHANNEL, or --link-file F (there is no terminal to ask at)")
      }
      guard let bytes = try Terminal.askSecret("Link of the invitation: ") else { throw Failure.interrupted }
      link = try checked(passphrase: bytes, what: "the link")
    }
    let client = try NodeClient(home: Home.path(invocation))
    return try client.call(
      "POST", ["invitations"],
      body: .object([.init("link", .string(link)), .init("wait", .integer(companySeconds))]))
  }

  static func invite(_ invocation: Invocation) throws {
    let name = try channelName(invocation)
    var fields: [JSON.Field] = []
    if let role = invocation.value("--role") { fields.append(.init("role", .string(role))) }
    if let text = invocation.value("--expires") {
      fields.append(.init("expires_after", .integer(try seconds(text))))
    }
    if let text = invocation.value("--uses") {
      guard let uses = Int64(text), uses > 0 else { throw Failure.usage("--uses takes a number from 1 on") }
      fields.append(.init("uses", .integer(uses)))
    }
    let client = try NodeClient(home: Home.path(invocation))
    let answer = try client.call("POST", ["channels", name, "invitations"], body: .object(fields))
    if invocation.isJSON { return Terminal.line(answer.text) }
    if !invocation.has("--no-qr") { for line in codeLines(answer) { Terminal.line(line) } }
    Terminal.line(answer["link"]?.string?.escapedLine ?? "")
  }

  /// Black on white where the terminal has colours, whatever its own are.
  private static func codeLines(_ answer: JSON) -> [String] {
    guard let rows = answer["code"]?.array?.compactMap(\.string), let width = rows.first?.count else {
      Terminal.note("No QR code: libqrencode is not installed.")
      return []
    }
    guard width <= Terminal.columnCount else {
      Terminal.note("No QR code: it takes \(width) columns, and the terminal has \(Terminal.columnCount).")
      return []
    }
    return rows.map { Terminal.hasColor ? "\u{1B}[38;5;231;48;5;16m\($0.escapedLine)\u{1B}[0m" : $0.escapedLine }
  }

  /// Such as `90s`, `30m`, `8h`, `7d`.
  static func seconds(_ text: String) throws(Failure) -> Int64 {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
    guard let unit = text.last.flatMap({ units[$0] }), let number = Int64(text.dropLast()), number > 0,
      case let (seconds, false) = number.multipliedReportingOverflow(by: unit)
    else { throw .usage("\(text.escapedLine) is no time: give a number with s, m, h or d behind it, such as 8h") }
    return seconds
  }

  static func rotate(_ invocation: Invocation) throws {
    let name = try channelName(invocation)
    let answer = try NodeClient(home: Home.path(invocation)).call("POST", ["channels", name, "keys"])
    Terminal.line(
      invocation.isJSON
        ? answer.text
        : "\(name.escapedLine) has a new secret (generation \(answer["generation"]?.integer ?? 0)).")
  }

  static func join(_ name: String, secret: [JSON.Field], _ client: NodeClient) throws(Failure) -> JSON {
    try client.call(
      "POST", ["channels"],
      body: .object([.init("name", .string(name)), .init("wait", .integer(companySeconds))] + secret))
  }

  static func lines(ofJoin answer: JSON) -> [String] {
    let name = answer["name"]?.string?.escapedLine ?? ""
    let isOpen = answer["open"]?.bool == true
    var lines = ["Joined \(name)\(isOpen ? ", an open channel: anyone who guesses its name can read it" : "")."]
    let others = max(0, (answer["online"]?.integer ?? 1) - 1)
    let heard = answer["nodes_heard_elsewhere"]?.integer ?? 0
    if others > 0 {
      lines.append("\(Presenter.number(others, "other is", "others are")) here: parley members \(name)")
    } else if heard > 0 {
      let hint = isOpen ? "another name, or a passphrase?" : "another passphrase?"
      lines.append("\(Presenter.number(heard, "node", "nodes")) heard, none in this channel: \(hint)")
    } else {
      lines.append("Nobody else was heard yet. Others on this network appear when they join.")
    }
    return lines
  }

  /// From the options, or asked at the terminal.
  static func secret(for name: String, _ invocation: Invocation) throws(Failure) -> [JSON.Field] {
    if invocation.has("--open") {
      guard !invocation.has("--passphrase-file") else { throw .usage("give either --open or --passphrase-file") }
      return [.init("open", true)]
    }
    if let path = invocation.value("--passphrase-file") {
      return [.init("passphrase", .string(try passphrase(from: path)))]
    }
    guard Terminal.isInputTerminal else {
      throw .usage(
        "say how to join \(name.escapedLine): --open, or --passphrase-file F (there is no terminal to ask at)")
    }
    guard let bytes = try Terminal.askSecret("Passphrase of \(name.escapedLine): ") else { throw .interrupted }
    return [.init("passphrase", .string(try checked(passphrase: bytes, what: "the passphrase")))]
  }

  private static func passphrase(from path: String) throws(Failure) -> String {
    let what = path == "-" ? "the passphrase on standard input" : path.escapedLine
    return try text(from: path, what: what, byteCountMax: 1_026)
  }

  private static func text(from path: String, what: String, byteCountMax: Int) throws(Failure) -> String {
    let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system(.noInput, what) }
    defer { if descriptor != STDIN_FILENO { close(descriptor) } }
    return try checked(passphrase: try Terminal.readAll(descriptor, byteCountMax: byteCountMax, what: what), what: what)
  }

  /// Without its trailing newline.
  static func checked(passphrase bytes: [UInt8], what: String) throws(Failure) -> String {
    var bytes = bytes
    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    guard !bytes.isEmpty else { throw Failure(.badData, "\(what) is empty: nothing was joined") }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw Failure(.badData, "\(what) is not UTF-8") }
    return text
  }

  static func channelName(_ invocation: Invocation) throws(Failure) -> String {
    do { return try ChannelName(invocation["CHANNEL"]).text } catch { throw Failure(.badData, error.description) }
  }

  static func leave(_ invocation: Invocation) throws {
    let name = try channelName(invocation)
    _ = try NodeClient(home: Home.path(invocation)).call("DELETE", ["channels", name])
    Terminal.line(
      invocation.isJSON
        ? (["event": "left", "channel": .string(name)] as JSON).text : "Left \(name.escapedLine).")
  }

  static func channels(_ invocation: Invocation) throws {
    let channels = try NodeClient(home: Home.path(invocation)).call("GET", ["channels"]).array ?? []
    if channels.isEmpty, !invocation.isJSON { Terminal.note("In no channel yet: parley join CHANNEL") }
    for channel in channels { Terminal.line(invocation.isJSON ? channel.text : line(ofChannel: channel)) }
  }

  static func line(ofChannel channel: JSON) -> String {
    let name = channel["name"]?.string?.escapedLine ?? "?"
    let open = channel["open"]?.bool == true ? ", open to anyone" : ""
    let room = channel["type"]?.string == "room" ? "room, " : ""
    return "\(name)  (\(room)\(channel["online"]?.integer ?? 0) of \(channel["members"]?.integer ?? 0) online\(open))"
  }

  static func members(_ invocation: Invocation) throws {
    let name = try channelName(invocation)
    let client = try NodeClient(home: Home.path(invocation))
    let members = try client.call("GET", ["channels", name, "members"]).array ?? []
    for line in invocation.isJSON ? members.map(\.text) : Presenter.members(members) { Terminal.line(line) }
  }
}
