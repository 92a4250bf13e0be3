import Glibc
import Parley
import ParleyLocalAPI

enum MessageCommands {
  static func send(_ invocation: Invocation) throws {
    let name = try ChannelCommands.channelName(invocation)
    let wait: Int64? = try invocation.number("--wait", in: 0...3_600)
    let client = try NodeClient(home: Home.path(invocation))
    var body = try draft(invocation)
    let people = invocation.values("--to")
    if !people.isEmpty { body.append(.init("to", .array(people.map { .string($0) }))) }
    if let wait { body.append(.init("wait", .integer(wait))) }
    let receipt = try client.call("POST", ["channels", name, "messages"], body: .object(body))
    if invocation.isJSON { return Terminal.line(receipt.text) }
    Terminal.line(receipt["message_id"]?.string?.escapedLine ?? "")
    guard wait != nil else { return }
    let present = receipt["present"]?.integer ?? 0
    let delivered = receipt["delivered_to"]?.array?.count ?? 0
    if !people.isEmpty { return Terminal.line("\(delivered) of \(people.count) have it.") }
    Terminal.line(present == 0 ? "Nobody else is present." : "\(delivered) of \(present) present have it.")
  }

  static func ext(_ invocation: Invocation) throws(Failure) -> JSON? {
    guard let text = invocation.value("--ext") else { return nil }
    guard let json = try? JSON(parsing: Array(text.utf8)), json.members != nil else {
      throw .usage("--ext must be a JSON object, such as '{\"colour\":\"red\"}'")
    }
    return json
  }

  static func fields(_ invocation: Invocation) throws(Failure) -> [JSON.Field] {
    var fields: [JSON.Field] = []
    for text in invocation.options["--field"] ?? [] {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { throw .usage("--field takes NAME=TEXT, not \(text.escapedLine)") }
      fields.append(.init(String(parts[0]), .string(String(parts[1]))))
    }
    return fields
  }

  /// The words of the command line, or all of standard input less one trailing newline.
  static func text(_ invocation: Invocation) throws(Failure) -> String {
    let words = invocation.all("TEXT")
    guard !words.isEmpty else { throw .usage("TEXT is missing: say something, or - to read it") }
    guard words == ["-"] else { return words.joined(separator: " ") }
    var bytes = try Terminal.readAll(STDIN_FILENO, byteCountMax: 1_000_000, what: "the message on standard input")
    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw Failure(.badData, "the message on standard input is not UTF-8: share it as a file (parley share)")
    }
    return text
  }

  static func tell(_ invocation: Invocation) throws {
    let peer = invocation["PEER"]
    let client = try NodeClient(home: Home.path(invocation))
    let answer = try client.call(
      "POST", ["peers", peer, "messages"], body: .object(try draft(invocation)))
    Terminal.line(invocation.isJSON ? answer.text : outcome(answer, peer: peer))
  }

  static func outcome(_ answer: JSON, peer: String) -> String {
    answer["outcome"]?.string == "delivered"
      ? "delivered" : "queued: \(peer.escapedLine) is away; it goes out when they appear"
  }

  static func hand(_ invocation: Invocation) throws {
    let name = try ChannelCommands.channelName(invocation)
    let word = invocation["up|down"]
    guard ["up", "down"].contains(word) else {
      throw Failure.usage("say up or down: parley hand \(name.escapedLine) up")
    }
    let client = try NodeClient(home: Home.path(invocation))
    let answer = try client.call("PUT", ["channels", name, "hand"], body: ["raised": .bool(word == "up")])
    Terminal.line(invocation.isJSON ? answer.text : "Your hand in \(name.escapedLine) is \(word).")
  }

  static func history(_ invocation: Invocation) throws {
    let name = try ChannelCommands.channelName(invocation)
    let limit: Int = try invocation.number("--limit", in: 1...10_000) ?? 50
    let client = try NodeClient(home: Home.path(invocation))
    let messages = try client.call(
      "GET", ["channels", name, "messages"], query: [("limit", "\(limit)")])
    for message in messages.array ?? [] {
      let id = invocation.has("--ids") ? (message["message_id"]?.string?.escapedLine ?? "?") + " " : ""
      Terminal.line(invocation.isJSON ? message.text : id + Presenter.message(message, isChannelShown: false))
    }
  }

  static func search(_ invocation: Invocation) throws {
    let limit: Int = try invocation.number("--limit", in: 1...1_000) ?? 50
    let client = try NodeClient(home: Home.path(invocation))
    let words = invocation.all("[CHANNEL] WORDS")
    let names = words.count > 1 ? try client.call("GET", ["channels"]).array ?? [] : []
    let (channel, text) = searched(words, channels: names.compactMap { $0["name"]?.string })
    guard text.contains(where: { !$0.isWhitespace }) else { throw Failure.usage("say what to look for") }
    var query = [("text", text), ("limit", "\(limit)")]
    if let channel { query.append(("channel", channel)) }
    let messages = try client.call("GET", ["search"], query: query)
    for message in messages.array ?? [] {
      Terminal.line(invocation.isJSON ? message.text : Presenter.message(message, isChannelShown: channel == nil))
    }
  }

  /// The first of several words is a channel when the node is in one of this name.
  static func searched(_ words: [String], channels: [String]) -> (channel: String?, text: String) {
    if words.count > 1, let name = try? ChannelName(words[0]).text, channels.contains(name) {
      return (name, words.dropFirst().joined(separator: " "))
    }
    return (nil, words.joined(separator: " "))
  }

  static func watch(_ invocation: Invocation) throws {
    var query: [(String, String)] = []
    let isFiltered = invocation.arguments["CHANNEL"] != nil
    if isFiltered { query = [("channel", try ChannelCommands.channelName(invocation))] }
    let since: UInt64? = try invocation.number("--since", in: 0...UInt64.max)
    let patience: Int64 = try invocation.number("--reconnect", in: 0...86_400) ?? 0
    let isJSON = invocation.isJSON
    var watch = Watch(
      client: try NodeClient(home: Home.path(invocation)), query: query, cursor: since.map { "\($0)" },
      patience: .seconds(patience))
    // SIGINT is the proper end of a watch.
    do throws(Failure) { try watch.run { show($0, isJSON: isJSON, isChannelShown: !isFiltered) } } catch {
      if error != .interrupted { throw error }
    }
  }

  private static func show(_ event: StreamEvent, isJSON: Bool, isChannelShown: Bool) {
    if isJSON {
      Terminal.line(JSON.object([.init("event", .string(event.type))] + (event.data.members ?? [])).text)
    } else if let line = Presenter.event(event, isChannelShown: isChannelShown) {
      Terminal.line(line)
    }
  }
}
