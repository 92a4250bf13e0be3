import ParleyLocalAPI

/// What send and tell take beside a text.
extension CommandTable {
  static let draftOptions: [Command.Option] = [
    .init(
      name: "--as", value: "KIND",
      help: "text (when not given), location, custom, cmd, or what a --remote-url is"),
    .init(name: "--latitude", value: "DEGREES", help: "of a location: north is positive, -90 to 90"),
    .init(name: "--longitude", value: "DEGREES", help: "of a location: east is positive, -180 to 180"),
    .init(name: "--address", value: "TEXT", help: "of a location"),
    .init(name: "--building", value: "TEXT", help: "of a location"),
    .init(name: "--event", value: "NAME", help: "of a custom message: what your application calls it"),
    .init(name: "--field", value: "NAME=TEXT", isRepeatable: true, help: "of a custom message: a text by name"),
    .init(name: "--action", value: "NAME", help: "of a cmd: what the other applications shall do"),
    .init(name: "--param", value: "NAME=TEXT", isRepeatable: true, help: "of a cmd: a text by name"),
    .init(name: "--remote-url", value: "URL", help: "of a file that lies on a server of yours: nothing is transferred"),
    .init(name: "--file-name", value: "NAME", help: "of such a file"),
    .init(name: "--size", value: "BYTES", help: "of such a file"),
    .init(name: "--mime", value: "TYPE", help: "of such a file"),
    .init(name: "--seconds", value: "N", help: "how long such a voice or video is"),
    .init(name: "--ext", value: "JSON", help: "an object for your application, beside whatever is said"),
    .init(name: "--online-only", help: "for whoever is there: kept for nobody who is absent"),
    .init(name: "--priority", value: "P", help: "high, normal or low: what goes first in a room"),
    .init(name: "--receipt", help: "ask to be told who has read it"),
    .init(name: "--language", value: "TAG", isRepeatable: true, help: "have a text translated, such as de or zh-Hans"),
    .init(name: "--webhook-env", value: "NAME", help: "call the hooks of this name; else those named default"),
    .init(name: "--broadcast", help: "of an organiser: said in every room"),
  ]

  static func draftExamples(_ start: String) -> [Command.Example] {
    [
      .init("parley \(start) --as location --latitude 52.5163 --longitude 13.3777", "a place"),
      .init("parley \(start) --as custom --event seat --field row=3", "for other programs"),
      .init("parley \(start) --as cmd --action refresh --param page=2", "a command, kept by nobody"),
      .init("parley \(start) --online-only \"back in five minutes\"", "for those who are there"),
    ]
  }
}

extension MessageCommands {
  /// What is said, and what beside it.
  static func draft(_ invocation: Invocation) throws(Failure) -> [JSON.Field] {
    let kind = invocation.value("--as") ?? "text"
    for (name, owners) in draftOptionOwners where !owners.contains(kind) && invocation.options[name] != nil {
      throw .usage("\(name) goes with --as \(owners.joined(separator: " or ")) only")
    }
    if kind != "text", !invocation.all("TEXT").isEmpty {
      throw .usage("a \(kind.escapedLine) has no text: say it in another message")
    }
    var body: [JSON.Field] = [.init("type", .string(kind))]
    switch kind {
    case "text": body.append(.init("body", .string(try text(invocation))))
    case "location": body += try place(invocation)
    case "custom":
      guard let event = invocation.value("--event") else { throw .usage("a custom message needs --event NAME") }
      body += [.init("event", .string(event)), .init("custom_ext", .object(try texts("--field", invocation)))]
    case "cmd":
      guard let action = invocation.value("--action") else { throw .usage("a cmd needs --action NAME") }
      body += [.init("action", .string(action)), .init("params", .object(try texts("--param", invocation)))]
    case "photo", "voice", "video", "file": body += try remote(kind, invocation)
    default:
      throw .usage("--as takes text, location, custom or cmd, not \(kind.escapedLine); files: parley share")
    }
    return body + (try beside(invocation))
  }

  /// The same for every kind.
  private static func beside(_ invocation: Invocation) throws(Failure) -> [JSON.Field] {
    var body: [JSON.Field] = []
    if let ext = try ext(invocation) { body.append(.init("ext", ext)) }
    for (option, member) in [
      ("--online-only", "online_only"), ("--receipt", "needs_receipt"), ("--broadcast", "broadcast"),
    ] where invocation.has(option) { body.append(.init(member, .bool(true))) }
    for (option, member) in [("--priority", "priority"), ("--webhook-env", "webhook_env")] {
      if let value = invocation.value(option) { body.append(.init(member, .string(value))) }
    }
    let languages = invocation.values("--language")
    if !languages.isEmpty { body.append(.init("target_languages", .array(languages.map { .string($0) }))) }
    return body
  }

  private static func place(_ invocation: Invocation) throws(Failure) -> [JSON.Field] {
    var body: [JSON.Field] = []
    for (option, member) in [("--latitude", "latitude"), ("--longitude", "longitude")] {
      guard let value = invocation.value(option) else { throw .usage("a location needs \(option) DEGREES") }
      guard let degrees = Double(value) else { throw .usage("\(option) must be a number, not \(value.escapedLine)") }
      body.append(.init(member, .number(degrees)))
    }
    for (option, member) in [("--address", "address"), ("--building", "building_name")] {
      if let value = invocation.value(option) { body.append(.init(member, .string(value))) }
    }
    return body
  }

  private static func remote(_ kind: String, _ invocation: Invocation) throws(Failure) -> [JSON.Field] {
    guard let url = invocation.value("--remote-url") else {
      throw .usage("a \(kind) of this machine is shared: parley share; one on a server of yours needs --remote-url URL")
    }
    var body: [JSON.Field] = [.init("remote_url", .string(url))]
    for (option, member) in [("--file-name", "file_name"), ("--mime", "mime")] {
      if let value = invocation.value(option) { body.append(.init(member, .string(value))) }
    }
    for (option, member) in [("--size", "size"), ("--seconds", "duration")] {
      let number: Int64? = try invocation.number(option, in: 0...Int64.max)
      if let number { body.append(.init(member, .integer(number))) }
    }
    return body
  }

  private static let remoteKinds = ["photo", "voice", "video", "file"]
  private static let draftOptionOwners =
    [
      ("--latitude", ["location"]), ("--longitude", ["location"]), ("--address", ["location"]),
      ("--building", ["location"]), ("--event", ["custom"]), ("--field", ["custom"]), ("--action", ["cmd"]),
      ("--param", ["cmd"]), ("--language", ["text"]), ("--seconds", ["voice", "video"]),
    ] + ["--remote-url", "--file-name", "--size", "--mime"].map { ($0, remoteKinds) }

  private static func texts(_ option: String, _ invocation: Invocation) throws(Failure) -> [JSON.Field] {
    var fields: [JSON.Field] = []
    for text in invocation.values(option) {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { throw .usage("\(option) takes NAME=TEXT, not \(text.escapedLine)") }
      fields.append(.init(String(parts[0]), .string(String(parts[1]))))
    }
    return fields
  }
}
