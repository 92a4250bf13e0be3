import Glibc
import Parley
import ParleyLocalAPI

enum ChannelCommands {
  /// How long a join waits for somebody to be found, in seconds.
  static let companySeconds: Int64 = 3

  static func join(_ invocation: Invocation) throws {
    let name = try channelName(invocation)
    let client = try NodeClient(home: Home.path(invocation))
    var secret = try secret(for: name, invocation)
    if let key = invocation.value("--organiser") {
      secret.append(.init("organiser", .string(try TokenCommands.organiser(key).text)))
    }
    let answer = try join(name, secret: secret, client)
    if invocation.isJSON { return Terminal.line(answer.text) }
    for line in lines(ofJoin: answer) { Terminal.line(line) }
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
    let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system(.noInput, what) }
    defer { if descriptor != STDIN_FILENO { close(descriptor) } }
    return try checked(passphrase: try Terminal.readAll(descriptor, byteCountMax: 1_026, what: what), what: what)
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
    return "\(name)  (\(channel["online"]?.integer ?? 0) of \(channel["members"]?.integer ?? 0) online\(open))"
  }

  static func members(_ invocation: Invocation) throws {
    let name = try channelName(invocation)
    let client = try NodeClient(home: Home.path(invocation))
    let members = try client.call("GET", ["channels", name, "members"]).array ?? []
    for line in invocation.isJSON ? members.map(\.text) : Presenter.members(members) { Terminal.line(line) }
  }
}
