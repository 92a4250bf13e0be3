import Parley
import ParleyLocalAPI
import Testing

@testable import ParleyApp

@Suite struct CommandLineTests {
  private let parser = CommandLineParser(commands: CommandTable.all)

  fileprivate func invocation(_ line: String) throws -> Invocation {
    guard case .run(_, let invocation) = try parser.parse(line.split(separator: " ").map(String.init)) else {
      throw Failure.usage("not a command to run: \(line)")
    }
    return invocation
  }

  @Test func wordsBecomeArgumentsAndOptions() throws {
    let send = try invocation("--home /h send team --wait 5 a b --json")
    #expect(send.commandName == "send")
    #expect(send["CHANNEL"] == "team")
    #expect(send.all("TEXT") == ["a", "b"])
    #expect(send.value("--wait") == "5")
    #expect(send.value("--home") == "/h")
    #expect(send.isJSON)
    let up = try invocation("up --interface=lo --interface eth1 --name=")
    #expect(up.values("--interface") == ["lo", "eth1"])
    #expect(up.value("--name") == "")
    #expect(try invocation("send team -- --wait -x").all("TEXT") == ["--wait", "-x"])
    #expect(try invocation("send team -").all("TEXT") == ["-"])
    #expect(try invocation("download X -o - --force").value("--output") == "-")
    #expect(try invocation("watch").arguments["CHANNEL"] == nil)
  }

  @Test(arguments: [
    ("", "say what to do"), ("sned team x", "did you mean parley send?"), ("frobnicate", "all commands"),
    ("send", "CHANNEL is missing"), ("leave a b", "b is one too many"),
    ("up --prot 1", "has no option --prot"), ("up --port", "--port needs a value"),
    ("up --port 1 --port 2", "given twice"),
    ("up --json=1", "takes no value"), ("leave \u{1B}[2J \u{1B}[2J", "\\u{1b}[2J is one too many"),
  ])
  func whatIsWrongIsAUsageError(_ line: String, _ part: String) {
    do {
      _ = try parser.parse(line.split(separator: " ").map(String.init))
      Issue.record("\(line) was taken")
    } catch {
      #expect(error.status == .usage)
      #expect(error.message.contains(part), "\(error.message)")
    }
  }

  @Test(arguments: [
    ("send team", "TEXT is missing"), ("tell Ben --as song", "--as takes text, location, custom or cmd"),
    ("tell Ben --as photo", "--remote-url URL"), ("send team --as cmd", "--action NAME"),
    ("send team --as cmd --action a --param x", "NAME=TEXT"), ("send team hi --action a", "--as cmd only"),
    ("send team hi --remote-url http://a", "--as photo or voice or video or file only"),
    ("send team --as location --language de", "--language goes with --as text only"),
    ("send team hi --latitude 1", "--latitude goes with --as location only"),
    ("send team hi --as location", "a location has no text"),
    ("send team --as location --latitude 1", "a location needs --longitude"),
    ("send team --as location --latitude north --longitude 1", "--latitude must be a number"),
    ("send team --as custom", "--event NAME"), ("send team --as custom --event e --field x", "NAME=TEXT"),
    ("send team hi --ext []", "--ext must be a JSON object"),
  ])
  func whatCannotBeSaidIsAUsageError(_ line: String, _ part: String) throws {
    do {
      _ = try MessageCommands.draft(invocation(line))
      Issue.record("\(line) was taken")
    } catch let error as Failure {
      #expect(error.status == .usage)
      #expect(error.message.contains(part), "\(error.message)")
    }
  }

  @Test func whatIsSaidBecomesTheBody() throws {
    let text = "send team a b"
    #expect(try JSON.object(MessageCommands.draft(invocation(text))).text == #"{"type":"text","body":"a b"}"#)
    let place = "tell Ben --as location --latitude 1.5 --longitude=-2 --address A"
    #expect(
      try JSON.object(MessageCommands.draft(invocation(place))).text
        == #"{"type":"location","latitude":1.5,"longitude":-2.0,"address":"A"}"#)
    let custom = "send team --as custom --event e --field a==b --field c= --ext {\"x\":1}"
    #expect(
      try JSON.object(MessageCommands.draft(invocation(custom))).text
        == #"{"type":"custom","event":"e","custom_ext":{"a":"=b","c":""},"ext":{"x":1}}"#)
    let command = "send team --as cmd --action refresh --param page=2 --online-only"
    #expect(
      try JSON.object(MessageCommands.draft(invocation(command))).text
        == #"{"type":"cmd","action":"refresh","params":{"page":"2"},"online_only":true}"#)
    let options = "send team --priority high --receipt --broadcast --webhook-env a1 --language de --language fr hi"
    #expect(
      try JSON.object(MessageCommands.draft(invocation(options))).text
        == #"{"type":"text","body":"hi","needs_receipt":true,"broadcast":true,"priority":"high","#
        + #""webhook_env":"a1","target_languages":["de","fr"]}"#)
    let remote = "send team --as voice --remote-url https://a/b --file-name f --seconds 7"
    #expect(
      try JSON.object(MessageCommands.draft(invocation(remote))).text
        == #"{"type":"voice","remote_url":"https://a/b","file_name":"f","duration":7}"#)
    #expect(try invocation("send team --to Ben --to k3vq hi").values("--to") == ["Ben", "k3vq"])
  }

  @Test func numbersHaveTheirRange() async throws {
    let history = try invocation("history team --limit 10001")
    #expect(throws: Failure.self) { let _: Int? = try history.number("--limit", in: 1...10_000) }
    let up = try invocation("up --port 65536")
    #expect(throws: Failure.self) { let _: UInt16? = try up.number("--port", in: 0...UInt16.max) }
    for line in ["up --history-days 0", "up --history-entries 99", "up --history-days -1"] {
      let up = try invocation(line + " --home /nowhere/to/be/made")
      await #expect(throws: Failure.self) { try await NodeCommands.up(up) }
    }
    #expect(try invocation("up --port 65535").number("--port", in: 0...UInt16.max) == 65_535)
  }

  @Test func numbersOfBytesHaveUnits() async throws {
    for (text, count) in [
      ("0", 0), ("65536", 65_536), ("500k", 500_000), ("5M", 5_000_000), ("5MB", 5_000_000), ("2GiB", 2 << 30),
      ("1Ti", 1 << 40), ("64Ki", 65_536),
    ] { #expect(Invocation.byteCount(text) == count) }
    for text in ["", "M", "-5M", "5X", "5 M", "5i", "9223372036854775807k", "99999999999999999999", "1.5M", "٣M"] {
      #expect(Invocation.byteCount(text) == nil)
    }
    for line in ["--upload-limit 1k", "--download-limit no", "--parts-limit -1", "--upload-limit 2T"] {
      let up = try invocation("up \(line) --home /nowhere/to/be/made")
      await #expect(throws: Failure.self) { try await NodeCommands.up(up) }
    }
  }

  @Test func theIssuesCommandsAreAllThere() {
    let names = Set(CommandTable.all.map(\.name))
    #expect(
      names == [
        "up", "down", "status", "id", "create", "invite", "rotate", "join", "leave", "channels", "members", "send",
        "tell", "hand", "forward", "combine", "unpack", "share", "unshare", "media", "files", "download", "downloads",
        "watch", "history", "search",
        "chat", "verify", "block", "unblock", "contacts", "organiser", "token", "role", "admin", "mute", "unmute",
        "remove", "ban", "unban", "transfer", "lower", "announce", "close", "passphrase", "identity", "page",
        "attributes", "settings", "broadcast", "doctor", "completion", "manual",
        "recall", "edit", "react", "pin", "reply", "read", "receipts",
      ])
  }

  @Test func aSearchBeginsWithAChannelOnlyIfThereIsOne() throws {
    let words = try invocation("search team lunch --limit 5").all("[CHANNEL] WORDS")
    #expect(MessageCommands.searched(words, channels: ["other", "team"]) == ("team", "lunch"))
    #expect(MessageCommands.searched(words, channels: ["other"]) == (nil, "team lunch"))
    #expect(MessageCommands.searched(["team"], channels: ["team"]) == (nil, "team"))
    #expect(MessageCommands.searched(["caf\u{65}\u{301}", "a", "b"], channels: ["caf\u{E9}"]) == ("caf\u{E9}", "a b"))
  }

  @Test(arguments: CommandTable.all.map(\.name)) func everyCommandHasHelpWithExamples(_ name: String) throws {
    for words in [[name, "--help"], ["help", name], [name, "x", "-h"]] {
      guard case .help(let command?) = try parser.parse(words) else {
        Issue.record("\(words) asks for help")
        return
      }
      let text = Help.text(of: command)
      #expect(text.contains("Usage: parley \(name)"))
      #expect(text.contains("Examples:\n"))
      #expect(text.split(separator: "\n").allSatisfy { $0.count <= 110 })
      for example in command.examples { #expect(example.line.contains("parley \(name)")) }
    }
    #expect(Help.overview(CommandTable.sections).contains("\n  \(name)"))
  }

  /// What an example shows, the parser takes.
  @Test func examplesAreRight() throws {
    for command in CommandTable.all {
      for example in command.examples {
        let line = example.line.split(separator: "|").first { $0.contains("parley") } ?? ""
        let words = line.replacing("\"", with: "").split(separator: " ").map(String.init)
        _ = try parser.parse(Array(words.dropFirst()))
      }
    }
  }

  @Test(arguments: [
    ("not_in_channel", Failure.Status.noInput), ("message_too_long", .badData), ("no_source", .unavailable),
    ("already_exists", .cannotCreate), ("queue_full", .tryAgain), ("profile_in_use", .tryAgain),
    ("other_user", .notPermitted),
    ("something_new", .unavailable),
  ])
  func codesHaveTheirExitStatus(_ code: String, _ status: Failure.Status) {
    #expect(Failure.status(ofCode: code) == status)
  }

  @Test func peersAreHostAndPort() throws {
    for text in ["192.0.2.7:4000", "[fe80::1]:4000", "host.example:1"] { try NodeCommands.checkPeer(text) }
    for text in ["", "host", ":4000", "host:", "host:0", "host:65536", "fe80::1:4000", "host:x"] {
      #expect(throws: Failure.self) { try NodeCommands.checkPeer(text) }
    }
  }

  @Test func passphrasesLoseOneNewline() throws {
    #expect(try ChannelCommands.checked(passphrase: Array("a b\n".utf8), what: "it") == "a b")
    #expect(try ChannelCommands.checked(passphrase: Array("a\n\n".utf8), what: "it") == "a\n")
    #expect(throws: Failure.self) { try ChannelCommands.checked(passphrase: [10], what: "it") }
    #expect(throws: Failure.self) { try ChannelCommands.checked(passphrase: [0xFF], what: "it") }
  }
}

extension CommandLineTests {
  @Test func timesHaveUnits() {
    #expect(Invocation.seconds("45s") == 45)
    #expect(Invocation.seconds("30m") == 1_800)
    #expect(Invocation.seconds("8h") == 28_800)
    #expect(Invocation.seconds("7d") == 604_800)
    for text in ["", "8", "h", "-1h", "1w", "1.5h", "99999999999999999d", "8 h", "٣h"] {
      #expect(Invocation.seconds(text) == nil, "\(text)")
    }
  }

  @Test func whatATokenNeedsIsSaid() throws {
    for line in [
      "token sign", "token key", "token issue", "token key f --name x", "token inspect --sub x",
      "token issue --key-file f --sub short --name x", "token issue --key-file f out",
    ] {
      let invocation = try invocation(line)
      do {
        try TokenCommands.token(invocation)
        Issue.record("\(line) was carried out")
      } catch let failure as Failure { #expect(failure.status == .usage, "\(line): \(failure.message)") }
    }
  }
}
