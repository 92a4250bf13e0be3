import Foundation
import Testing

/// The house's rules, read off the tree. Each test prints every offence with its place.
@Suite struct TidyTests {
  @Test func functionsFitAPage() throws {
    let functionLineCountMax = 70
    for file in try SourceFile.all(under: ["Sources", "Tests"], endings: [".swift"]) {
      for function in MeasuredFunction.all(in: file.text) where function.lineCount > functionLineCountMax {
        Issue.record("\(file.path):\(function.line): \(function.name) has \(function.lineCount) lines")
      }
    }
  }

  @Test func filesAndLinesAreShort() throws {
    let fileLineCountMax = 500
    let lineLengthMax = 120
    let files = try SourceFile.all(
      under: ["Sources", "Tests", "Peers", "Scripts", ".ci"], endings: [".swift", ".py", ""])
    #expect(files.count > 30)
    for file in files {
      if file.lines.count > fileLineCountMax { Issue.record("\(file.path) has \(file.lines.count) lines") }
      for (number, line) in file.lines.enumerated() where line.count > lineLengthMax {
        Issue.record("\(file.path):\(number + 1): \(line.count) columns")
      }
    }
  }

  @Test func nothingIsLeftForLater() throws {
    // Put together here so that this file does not find itself.
    let marks = ["TO" + "DO", "FIX" + "ME", "X" + "XX:"]
    for file in try SourceFile.all(
      under: ["Sources", "Tests", "Peers", "Scripts", ".ci"], endings: [".swift", ".py", ".md", ".h", ""])
    {
      for (number, line) in file.lines.enumerated() where marks.contains(where: { line.contains($0) }) {
        Issue.record("\(file.path):\(number + 1): \(line)")
      }
    }
  }

  /// Tests wait for what they expect, never for time to pass.
  @Test func testsDoNotSleep() throws {
    let sleep = try Regex("\\b(Task\\.sleep|Thread\\.sleep|usleep|nanosleep|time\\.sleep|sleep)\\s*\\(")
    for file in try SourceFile.all(under: ["Tests", "Peers"], endings: [".swift", ".py"]) {
      let isSwift = file.path.hasSuffix(".swift")
      let code = isSwift ? String(decoding: CodeScanner.code(of: file.text), as: UTF8.self) : file.text
      for match in code.matches(of: sleep) {
        Issue.record("\(file.path): \(code[match.range]) in a test: wait for the event instead")
      }
    }
  }

  /// One home for each C library, so that its rules are kept in one place.
  @Test(arguments: [
    ("CSodium", ["Hashing", "Sealing"]), ("CCrypto", ["Hashing"]), ("CSQLite", ["Store"]), ("CUV", ["Sockets"]),
    ("CJansson", ["Wire"]), ("CUTF8Proc", ["Vocabulary"]), ("CICU", ["Vocabulary"]), ("CMicroHTTPD", ["LocalAPI"]),
    ("CCurl", ["App", "Hooks"]),
    ("CEdit", ["App"]), ("CQREncode", ["Parley"]), ("CLinux", ["Disk", "Hooks", "Pictures"]),
  ])
  func cLibrariesStayInTheirRooms(_ library: String, _ rooms: [String]) throws {
    let importLine = try Regex("(?m)^[^/\\n]*\\bimport \(library)\\b")
    for file in try SourceFile.all(under: ["Sources"], endings: [".swift"]) where file.text.contains(importLine) {
      let room = file.path.split(separator: "/")[1]
      #expect(rooms.contains(String(room)), "\(file.path) imports \(library)")
    }
  }

  /// What the compiler cannot check must be argued in a sentence.
  @Test func uncheckedClaimsAreProven() throws {
    for file in try SourceFile.all(under: ["Sources"], endings: [".swift"]) {
      for (number, line) in file.lines.enumerated()
      where line.contains("@unchecked Sendable") || line.contains("nonisolated(unsafe)") {
        let before = file.lines[max(0, number - 3)...number]
        #expect(before.contains { $0.contains("//") }, "\(file.path):\(number + 1): why is this safe?")
      }
    }
  }
}

/// The measure itself.
@Suite struct ScannerTests {
  @Test func functionsAreMeasured() {
    let source = """
      protocol P {
        func required(_ a: Int) async
        init(b: Int)
      }
      struct S {
        var text: String { "}" }
        func one() { print("{ \\(two { 3 }) }") } // }
        init(
          a: Int
        ) {
          /* } /* } */ } */
          let raw = #"\\( " { "#
        }
        func two<T>(_ body: () -> T) -> T
        where T: Hashable {
          body()
        }
      }
      """
    #expect(
      MeasuredFunction.all(in: source) == [
        .init(name: "text", line: 6, lineCount: 1), .init(name: "one", line: 7, lineCount: 1),
        .init(name: "init", line: 8, lineCount: 6), .init(name: "two", line: 14, lineCount: 4),
      ])
  }

  @Test func commentsAndStringsAreNotCode() {
    let code = CodeScanner.code(of: "a // sleep()\nb \"sleep()\" c \"\"\"\nx\"y\n\"\"\" d")
    #expect(String(decoding: code, as: UTF8.self).split(whereSeparator: \.isWhitespace) == ["a", "b", "c", "d"])
  }
}

struct SourceFile {
  /// From the root of the package.
  let path: String
  let text: String
  let lines: [Substring]

  init(path: String, text: String) {
    self.path = path
    self.text = text
    let pieces = text.split(separator: "\n", omittingEmptySubsequences: false)
    lines = Array(text.hasSuffix("\n") ? pieces.dropLast() : pieces[...])
  }

  static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// Every file under these folders with one of these endings; "" stands for names without a dot.
  static func all(under folders: [String], endings: [String]) throws -> [SourceFile] {
    var files: [SourceFile] = []
    for folder in folders {
      let walk = FileManager.default.enumerator(atPath: root.appendingPathComponent(folder).path)
      while let relative = walk?.nextObject() as? String {
        let name = relative.split(separator: "/").last.map(String.init) ?? ""
        guard endings.contains(where: { $0.isEmpty ? !name.contains(".") : name.hasSuffix($0) }) else { continue }
        guard !relative.contains("Corpus/"), !relative.contains("__pycache__") else { continue }
        guard walk?.fileAttributes?[.type] as? FileAttributeType == .typeRegular else { continue }
        let data = try Data(contentsOf: root.appendingPathComponent(folder).appendingPathComponent(relative))
        guard let text = String(data: data, encoding: .utf8) else { continue }
        files.append(SourceFile(path: folder + "/" + relative, text: text))
      }
    }
    return files.sorted { $0.path < $1.path }
  }
}
