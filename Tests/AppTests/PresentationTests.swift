import Parley
import ParleyLocalAPI
import Testing

@testable import ParleyApp

@Suite struct PresentationTests {
  private static let hostile = "a\u{1B}[2J\u{9B}\u{202E}\rb"

  private static func message(_ body: String) -> JSON {
    [
      "sender": ["display_name": .string(hostile), "sender_id": "x\u{1B}"], "message_id": "\u{1B}", "channel": "team",
      "timestamp": "\u{1B}[2J-----------------------", "type": "text", "body": .string(body),
    ]
  }

  /// And a combined one by its title, with how to read it.
  @Test func whatIsNotKnownIsShownByItsCompatibleText() throws {
    func shown(_ members: String) throws -> String {
      Presenter.message(
        try JSON(parsing: #"{"timestamp":"2021-03-12T09:05:16Z","channel":"team",\#(members)}"#), isChannelShown: false)
    }
    let other = try shown(#""type":"later","compatible_text":"see\u001b[2J the newer one""#)
    #expect(other.hasSuffix(": " + "see\u{1B}[2J the newer one".escapedLine) && !other.contains("\u{1B}[2J"))
    #expect(try shown(#""type":"later","compatible_text":7"#).contains("which this version cannot show"))
    #expect(
      try shown(#""type":"combine","title":"Friday","summary":"Ana: hi","media_id":"abc""#)
        .hasSuffix(": combined Friday: Ana: hi · parley unpack abc"))
    #expect(
      try shown(#""type":"voice","file_name":"a.ogg","size":2000,"duration":7,"media_id":"abc""#)
        .hasSuffix(": voice a.ogg, 2.0 kB, 7 s · parley download abc"))
  }

  @Test func aFolderIsCalledOne() {
    var file: JSON = ["type": "file", "file_name": "plans", "media_id": "abc", "size": 5]
    #expect(Presenter.message(file, isChannelShown: false).contains("file plans, 5 bytes"))
    file = ["type": "file", "file_name": "plans", "media_id": "abc", "size": 5, "mime": "inode/directory"]
    #expect(Presenter.message(file, isChannelShown: false).contains("folder plans, 5 bytes"))
  }

  @Test func whatIsBesideAMessageIsSaid() {
    let peer = PeerID(bytes: [UInt8](repeating: 7, count: 32))!
    var json: JSON = ["type": "text", "body": "hi", "channel": "team"]
    #expect(Presenter.beside(json).isEmpty)
    json = [
      "type": "text", "body": "hi", "channel": "team", "receivers": [.string(peer.text)], "online_only": true,
      "priority": "high", "needs_receipt": true,
    ]
    let line = Presenter.message(json, isChannelShown: true)
    for words in ["in team", "only to \(peer.fingerprint)", "to those there", "asks for receipts", "priority high"] {
      #expect(line.contains(words), "\(line)")
    }
    let elsewhere: JSON = ["type": "photo", "file_name": "a.jpg", "size": 5, "remote_url": "https://a/b"]
    #expect(Presenter.message(elsewhere, isChannelShown: false).contains("photo a.jpg, 5 bytes · at https://a/b"))
    let command = StreamEvent(
      type: "command",
      data: ["action": "refresh", "params": ["page": "2"], "sender": ["display_name": "Ana"], "channel": "team"])
    #expect(Presenter.event(command, isChannelShown: true)?.contains("in team: command refresh page=2") == true)
  }

  @Test func noControlByteReachesTheTerminal() {
    let file: JSON = ["type": "file", "file_name": .string(Self.hostile), "media_id": .string(Self.hostile), "size": 5]
    let lines =
      [
        Presenter.message(Self.message(Self.hostile), isChannelShown: true),
        Presenter.message(file, isChannelShown: true),
        Presenter.message(
          ["type": "location", "latitude": 1, "address": .string(Self.hostile)], isChannelShown: false),
        Presenter.message(
          [
            "type": "custom", "event": .string(Self.hostile),
            "custom_ext": .object([.init(Self.hostile, .string(Self.hostile))]),
          ], isChannelShown: false),
        Presenter.message(
          [
            "type": "photo", "remote_url": .string(Self.hostile), "file_name": .string(Self.hostile),
            "receivers": [.string(Self.hostile)], "priority": .string(Self.hostile), "online_only": true,
          ], isChannelShown: false),
        Presenter.event(
          StreamEvent(
            type: "command",
            data: [
              "action": .string(Self.hostile), "params": .object([.init(Self.hostile, .string(Self.hostile))]),
              "channel": .string(Self.hostile), "sender": ["display_name": .string(Self.hostile)],
            ]), isChannelShown: true) ?? "",
        Presenter.member(["display_name": .string(Self.hostile)], nameWidth: 3), MediaCommands.line(ofMedia: file),
        ChannelCommands.line(ofChannel: ["name": .string(Self.hostile)]),
        Failure(problem: ["code": "x", "detail": .string(Self.hostile)]).message,
        Presenter.event(StreamEvent(type: "joined", data: ["channel": .string(Self.hostile)]), isChannelShown: true)
          ?? "",
        Presenter.event(
          StreamEvent(type: "member", data: ["display_name": .string(Self.hostile)]), isChannelShown: true)
          ?? "",
        Presenter.event(
          StreamEvent(type: "role", data: ["role": .string(Self.hostile), "channel": .string(Self.hostile)]),
          isChannelShown: true) ?? "",
        Presenter.event(StreamEvent(type: "closed", data: ["channel": .string(Self.hostile)]), isChannelShown: true)
          ?? "",
        Presenter.event(
          StreamEvent(
            type: "impostor", data: ["display_name": .string(Self.hostile), "channel": .string(Self.hostile)]),
          isChannelShown: true) ?? "",
        Presenter.name("x", ["organiser_name": .string(Self.hostile)]),
        PeopleCommands.line(ofContact: ["display_name": .string(Self.hostile)]),
      ]
      + PeopleCommands.lines(
        ofVerification: ["display_name": .string(Self.hostile), "code": .string(Self.hostile)], peer: "x", confirm: "y")
      + NodeCommands.lines(ofStatus: ["display_name": .string(Self.hostile)], home: Self.hostile)
    for line in lines {
      #expect(line.unicodeScalars.allSatisfy { !$0.isControl && !$0.isTreacherous }, "\(line.escapedLine)")
    }
  }

  private static func recognition(
    verified: Bool = false, alike: [PeerID] = [], posesAs: PeerID? = nil, organiserName: String? = nil
  ) -> JSON {
    [
      "verified": .bool(verified), "blocked": false, "looks_like": .array(alike.map { .string($0.text) }),
      "poses_as": posesAs.map { .string($0.text) } ?? .null,
      "organiser_name": organiserName.map { .string($0) } ?? .null,
    ]
  }

  @Test func whoSomebodyIsStandsBesideTheName() {
    let (ana, eve) = (PeerID(Bytes32(words: (1, 2, 3, 4))), PeerID(Bytes32(words: (5, 6, 7, 8))))
    func line(_ name: String, _ recognition: JSON) -> String {
      Presenter.message(
        [
          "sender": ["display_name": .string(name), "sender_id": .string(eve.text)], "channel": "team", "type": "text",
          "body": "hi", "recognition": recognition,
        ], isChannelShown: false)
    }
    let fingerprint = eve.fingerprint
    #expect(line("Eve", Self.recognition()).hasSuffix("Eve \(fingerprint): hi"))
    #expect(line("Eve", Self.recognition(verified: true)).hasSuffix("Eve \(fingerprint) verified: hi"))
    #expect(
      line("Ana", Self.recognition(posesAs: ana)).hasSuffix(
        "Ana \(fingerprint) ‼ NOT the verified \(ana.fingerprint): hi"))
    #expect(line("Ana", Self.recognition(alike: [ana])).hasSuffix("\(fingerprint) ⚠ looks like \(ana.fingerprint): hi"))
    // A check mark is the organiser's word alone.
    #expect(line("eve99", Self.recognition(organiserName: "Eve Low")).hasSuffix("Eve Low ✓ \(fingerprint): hi"))
    for mark in ["✓", "✔", "✅", "☑", "🗸"] {
      let shown = line("Ana \(mark)", Self.recognition())
      #expect(shown.contains(mark) == false && shown.contains("\\u{"), "\(shown)")
    }
    let event = StreamEvent(
      type: "impostor",
      data: [
        "peer_id": .string(eve.text), "display_name": "Ana", "fingerprint": .string(fingerprint), "channel": "team",
        "poses_as": .string(ana.text), "recognition": Self.recognition(posesAs: ana),
      ])
    let shown = Presenter.event(event, isChannelShown: true)
    #expect(shown?.contains("in team: Ana \(fingerprint) has the name of \(ana.fingerprint)") == true)
  }

  @Test func rolesAreTold() {
    let me = PeerID(Bytes32(words: (1, 2, 3, 4)))
    let admin: JSON = ["peer_id": .string(me.text), "self": false, "role": "admin", "muted": false]
    #expect(
      Presenter.event(StreamEvent(type: "role", data: admin), isChannelShown: false)?
        .contains("\(me.fingerprint) is now admin") == true)
    #expect(Presenter.role(["role": "member", "muted": true]) == "muted")
    #expect(Presenter.role(["role": "member", "muted": false]) == nil)
    #expect(Presenter.role(["role": "not_admitted", "muted": false]) == "not invited")
  }

  @Test func anAnnouncementCannotForgeAMessage() {
    let line = Presenter.event(
      StreamEvent(type: "announcement", data: ["body": "one\n09:05 Ben abcd-efgh: two", "author": "x"]),
      isChannelShown: false)
    #expect(line?.split(separator: "\n").last?.hasPrefix("    ") == true)
  }

  @Test(
    arguments: [
      ("90s", 90), ("10m", 600), ("2h", 7_200), ("1d", 86_400), ("365d", 31_536_000), ("366d", nil), ("0s", nil),
      ("-5m", nil), ("+5m", nil), ("10", nil), ("m", nil), ("", nil), ("9223372036854775807d", nil),
    ] as [(String, Int64?)])
  func timesOfMutesAreRead(_ text: String, _ seconds: Int64?) {
    #expect(RoleCommands.seconds(text) == seconds)
  }

  @Test func aMessageCannotForgeAnother() {
    let lines = Presenter.message(Self.message("one\n09:05 Ben abcd-efgh: two"), isChannelShown: false).split(
      separator: "\n")
    #expect(lines.count == 2 && lines[1].hasPrefix("    "))
  }

  @Test func membersStandInTwoSections() {
    let members: [JSON] = [
      ["display_name": "Ana", "fingerprint": "aaaa-bbbb", "status": "online", "raise_hand": true, "self": true],
      [
        "display_name": "Benjamin", "fingerprint": "cccc-dddd", "status": "offline", "raise_hand": false, "self": false,
      ],
    ]
    #expect(
      Presenter.members(members) == [
        "Online (1)", "  ✋ Ana       aaaa-bbbb  (you)", "Offline (1)", "     Benjamin  cccc-dddd",
      ])
  }

  @Test(arguments: [
    (1, 3, "1 other is here: parley members team"), (0, 3, "3 nodes heard, none in this channel: another passphrase?"),
    (0, 1, "1 node heard, none in this channel: another passphrase?"), (0, 0, "Nobody else was heard yet."),
  ])
  func aJoinSaysWhatWasHeard(_ others: Int64, _ heard: Int64, _ text: String) {
    let answer: JSON = [
      "name": "team", "open": false, "online": .integer(others + 1), "nodes_heard_elsewhere": .integer(heard),
    ]
    #expect(ChannelCommands.lines(ofJoin: answer)[1].hasPrefix(text))
  }

  @Test(arguments: [
    (0.0, "0 bytes"), (999, "999 bytes"), (1_000, "1.0 kB"), (1_234_567, "1.2 MB"), (4_294_967_296, "4.2 GB"),
    (18_446_744_073_709_551_616, "18446744.0 TB"),
  ])
  func sizesAreReadable(_ count: Double, _ text: String) { #expect(Presenter.byteCount(count) == text) }

  @Test func downloadsAreATable() {
    #expect(DownloadCommands.table([]) == [])
    let lines = DownloadCommands.table([
      [
        "download_id": 3, "state": "running", "size": 10_000_000, "received": 5_000_000, "rate": 1_000_000,
        "seconds_left": 5, "sources": 2, "file_name": "a\u{1B}b.mp4",
      ],
      [
        "download_id": 12, "state": "failed", "size": .null, "received": 0, "rate": 0, "seconds_left": .null,
        "sources": 0, "file_name": "plan.pdf", "problem": ["detail": "nobody present has it", "code": "no_source"],
      ],
    ])
    #expect(
      lines == [
        "ID  STATE    DONE     SIZE     RATE      LEFT  FROM  NAME",
        "3   running  50%      10.0 MB  1.0 MB/s  5 s   2     " + "a\u{1B}b.mp4".escapedLine,
        "12  failed   0 bytes  ?                              plan.pdf", "12: nobody present has it",
      ])
  }

  @Test func rangesAreReadAsHTTPWritesThem() throws {
    for text in ["0-0", "5-", "-5", "10-4096"] { #expect(try DownloadCommands.range(text) == text) }
    for text in ["", "-", "5", "5-4", "-0", "a-b", "1-2-3", "+1-2", "0x1-"] {
      #expect(throws: Failure.self) { try DownloadCommands.range(text) }
    }
  }

  @Test func aProgressBarFitsItsTerminal() {
    for width in [1, 10, 40, 80, 200] {
      for (received, size) in [(0.0, 0.0), (5, 10), (10, 10), (20, 10)] {
        let line = ProgressBar.line(received: received, size: size, sourceCount: 2, rate: 1e6, width: width)
        #expect(line.count < max(width, 2))
      }
    }
    #expect(
      ProgressBar.line(received: 5e6, size: 1e7, sourceCount: 2, rate: 1e6, width: 80)
        == "[############.............]  50%  5.0 MB of 10.0 MB  1.0 MB/s  from 2  5 s left")
  }

  @Test func eventsAreFoundInBytesCutAnywhere() {
    let text = ":listening\n\nid: 7\nevent: message\ndata: {\"a\":1}\n\n:\n\nevent: dropped\ndata: {\"count\":2}\n\n"
    let expected = [
      StreamEvent(type: "message", data: ["a": 1]), StreamEvent(type: "dropped", data: ["count": 2]),
    ]
    for size in [1, 2, 3, 7, 1_000] {
      var parser = EventStreamParser()
      var events: [StreamEvent] = []
      var rest = Array(text.utf8)[...]
      while !rest.isEmpty {
        events += parser.take(rest.prefix(size))
        rest = rest.dropFirst(size)
      }
      #expect(events == expected)
      #expect(parser.isListening)
    }
  }

  @Test(arguments: [
    ("hello", ChatCommand.say("hello")), ("//x", .say("/x")), ("  ", .nothing), ("/hand", .hand(isUp: true)),
    ("/hand down", .hand(isUp: false)), ("/share  my plan.pdf ", .share(path: "my plan.pdf")),
    ("/tell Ben call me", .tell(peer: "Ben", text: "call me")),
    ("/tell \"Ben B\" call me", .tell(peer: "Ben B", text: "call me")), ("/history", .history(count: 20)),
    ("/history 3", .history(count: 3)), ("/download plan.pdf", .download("plan.pdf")), ("/quit", .quit),
    ("/search 开会 \"a", .search("开会 \"a")), ("/search ", .wrong("/search WORDS")),
    ("/tell Ben", .wrong("/tell PEER TEXT")),
  ])
  func chatLinesAreUnderstood(_ line: String, _ command: ChatCommand) { #expect(ChatCommand(line) == command) }

  @Test func completionsShareTheirStart() {
    #expect(LineEditor.commonPrefix(of: ["/history", "/hand", "/help"]) == "/h")
    #expect(LineEditor.commonPrefix(of: ["/quit"]) == "/quit")
    #expect(LineEditor.commonPrefix(of: []) == nil)
  }
}
