import Testing

/// Everything that can be sent is shown by a test: the table in Sources/Wire/Wire.docc/Kinds.md says by which.
@Suite struct KindRowTests {
  private struct Row {
    let name: String
    let line: Int
    let tests: [String]
    let isBuilt: Bool
  }

  private static let path = "Sources/Wire/Wire.docc/Kinds.md"

  /// The rows, by the sections in which they stand: what is under "Not yet" has no tests.
  private static func rows() throws -> [Row] {
    let pages = try SourceFile.all(under: ["Sources/Wire/Wire.docc"], endings: ["Kinds.md"])
    let page = try #require(pages.first { $0.path == path })
    var rows: [Row] = []
    var isBuilt = true
    for (number, line) in page.lines.enumerated() {
      if line.hasPrefix("## ") { isBuilt = line != "## Not yet" }
      guard line.hasPrefix("| ") else { continue }
      let cells = line.split(separator: "|").map { $0.drop { $0 == " " } }
      let name = String(cells[0].reversed().drop { $0 == " " }.reversed())
      if name == "Row" { continue }
      let tests = cells.count > 2 ? cells[2].split(separator: "`").filter { $0.contains(".") }.map(String.init) : []
      rows.append(Row(name: name, line: number + 1, tests: tests, isBuilt: isBuilt))
    }
    return rows
  }

  /// `Suite.function` of Swift, and `File.function` for those outside a suite; `file.function` of Python.
  private static func allTests() throws -> Set<String> {
    var found: Set<String> = []
    let suite = /(?:struct|class|extension)\s+(?:\w+\.)*(\w+)/
    let test = /@Test\b[\s\S]*?\bfunc\s+(\w+)/
    for file in try SourceFile.all(under: ["Tests"], endings: [".swift"]) {
      let stem = String(file.path.split(separator: "/").last!.dropLast(6))
      let suites = file.text.matches(of: suite).map { String($0.output.1) } + [stem]
      for name in file.text.matches(of: test).map({ String($0.output.1) }) {
        for suite in suites { found.insert("\(suite).\(name)") }
      }
    }
    for file in try SourceFile.all(under: ["Tests", "Peers"], endings: [".py"]) {
      let module = file.path.split(separator: "/").last!.dropLast(3)
      for match in file.text.matches(of: /def (test_\w+)/) { found.insert("\(module).\(match.output.1)") }
    }
    return found
  }

  @Test func everyRowNamesTestsThatExist() throws {
    let tests = try Self.allTests()
    #expect(tests.count > 500)
    for row in try Self.rows() where row.isBuilt {
      if row.tests.isEmpty { Issue.record("\(Self.path):\(row.line): \(row.name) has no test") }
      for test in row.tests where !tests.contains(test) {
        Issue.record("\(Self.path):\(row.line): \(row.name): there is no test \(test)")
      }
    }
  }

  @Test func everyRowIsThereOnce() throws {
    let rows = try Self.rows()
    let names = rows.map(\.name)
    for row in rows where names.count(where: { $0 == row.name }) > 1 {
      Issue.record("\(Self.path):\(row.line): \(row.name) stands there twice")
    }
    for name in Self.needed where !names.contains(name) { Issue.record("\(Self.path): there is no row \(name)") }
    for row in rows where !row.isBuilt && !row.tests.isEmpty {
      Issue.record("\(Self.path):\(row.line): \(row.name) has tests: move it to where they are shown")
    }
  }

  /// What there must be, whatever else is added.
  private static let needed =
    [
      "status", "raise_hand", "text", "message of 30,000 and 30,001 bytes", "photo", "photo: 720 and 170 dots",
      "photo: ratio 0, 1 and 1.01", "photo: original", "photo: GIF", "photo: orientation and place",
      "photo: real files", "voice", "voice: duration", "video", "video: thumbnail", "file", "location",
      "location: 90 and 90.0001 degrees", "custom", "cmd", "cmd: action em_x", "combine",
      "combine: 300 and 301 messages", "combine: 10 and 11 levels", "combine: which messages",
      "combine: compatible_text", "remote_url", "transfersMediaAutomatically",
    ] + [
      "ext", "online_only", "receivers", "receivers: 20 and 21", "receivers with a before-send hook", "needs_receipt",
      "needs_receipt in a room", "priority", "priority: 20 and 21 a second", "priority: 200 high ones a second",
      "webhook_env: 8 and 9 characters", "broadcast", "target_languages", "error 509",
    ] + [
      "recall", "recall: 1:59 and 2:01", "recall by an admin", "recall of cmd", "edit", "edit: 10 and 11",
      "edit of another's message", "edit of a photo's body", "edit: both empty", "forward", "forward of media",
      "read receipt", "delivery receipt", "react: 20 and 21", "pin: 20 and 21", "reply_to", "acts in the simulator",
      "acts of a modified client",
    ] + [
      "send", "share: progress", "listeners", "includesOwnMessages", "downloadsThumbnails", "downloadsVoice",
      "historyKept", "local copy", "channel types", "attributes", "attributes: 100 and 101 keys",
      "attributes: 128 and 129 bytes of a key", "attributes: 4,096 and 4,097 bytes of a value",
      "attributes: overwriting", "attributes: deletion", "typing", "settings of a channel", "hook: before-send",
      "hook: after-send", "hook that hangs", "hook: webhook_env",
    ] + [
      "login", "connection states", "join and leave", "message to a peer", "download to memory", "download to a file",
      "downloads list",
    ]
}
