import CLinux
import Glibc
import ParleyPictures
import Testing

/// Programs that try what they must not.
@Suite struct ConfinementTests {
  private func run(_ tool: ConfinedTool, input: [UInt8] = [], seconds: Int = 20) throws(ToolError) -> [UInt8] {
    let file = TemporaryFile(input)
    var limits = ConfinedTool.Limits()
    limits.seconds = seconds
    limits.outputByteCountMax = 1 << 16
    return try tool.run([], input: file.descriptor, limits)
  }

  /// What the error says; empty when it went well.
  private func words(_ script: String, shell: String = "/bin/sh", seconds: Int = 20) throws -> String {
    let folder = ToolFolder()
    let tool = try folder.tool(script, shell: shell)
    do {
      let answer = try run(tool, seconds: seconds)
      return "went well: " + String(decoding: answer, as: UTF8.self)
    } catch {
      return "\(error)"
    }
  }

  @Test func itReadsItsInputAndAnswers() throws {
    let folder = ToolFolder()
    let tool = try folder.tool("exec cat")
    #expect(try run(tool, input: Array("what is given".utf8)) == Array("what is given".utf8))
  }

  @Test func oneThatHangsIsEnded() throws {
    let folder = ToolFolder()
    let tool = try folder.tool("exec sleep 600")
    #expect(throws: ToolError.tooSlow(tool: tool.name, seconds: 1)) { try run(tool, seconds: 1) }
  }

  /// The kernel counts a second of processor time; the clock would let it go on for 20.
  @Test func oneThatSpinsIsEnded() throws {
    let folder = ToolFolder()
    let tool = try folder.tool("while :; do :; done")
    #expect(throws: ToolError.tooSlow(tool: tool.name, seconds: 1)) { try run(tool, seconds: 1) }
  }

  @Test func oneThatWritesWithoutEndIsEnded() throws {
    let folder = ToolFolder()
    let tool = try folder.tool("exec cat /dev/zero")
    #expect(throws: ToolError.tooMuchOutput(tool: tool.name, byteCountMax: 1 << 16)) { try run(tool) }
  }

  @Test func whatItSaysIsShortAndEscaped() throws {
    let said = try words("printf '\\033[2Jtrouble\\nmore' >&2; exit 3")
    #expect(said.hasSuffix("failed with status 3: \\u{1b}[2Jtrouble"))
    let endless = try words("exec cat /dev/zero >&2", seconds: 1)
    #expect(endless.utf8.count < 2_000)
  }

  @Test func itWritesNowhere() throws {
    let folder = ToolFolder()
    let target = folder.path + "/written"
    #expect(try words("echo x > \(target)").contains("cannot create"))
    #expect(access(target, F_OK) != 0)
    let kept = try folder.file(Array("kept".utf8))
    #expect(try words("exec rm -f \(kept)").contains("failed"))
    #expect(try words("exec chmod 777 \(kept)").contains("failed"))
    #expect(try words("exec mkdir \(folder.path)/made").contains("failed"))
    #expect(access(kept, F_OK) == 0 && access(folder.path + "/made", F_OK) != 0)
    #expect(try words("exec 3<>\(kept)").contains("cannot open") || words("exec 3<>\(kept)").contains("cannot create"))
  }

  /// A frame of a film must not be able to show the user's keys. Without Landlock nothing stands before this.
  @Test(.enabled(if: parley_landlock_version() > 0)) func itReadsNothingElse() throws {
    let folder = ToolFolder()
    let other = try folder.file(Array("secret".utf8))
    #expect(try words("exec cat \(other)").contains("Permission denied"))
    #expect(try words("exec cat /etc/passwd").contains("Permission denied"))
    #expect(try words("exec cat /proc/self/environ").contains("Permission denied"))
    #expect(try words("exec ls /tmp").contains("Permission denied"))
  }

  @Test func itHasNoNetwork() throws {
    for family in ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET"] {
      let said = try words("import socket\nsocket.socket(socket.\(family), socket.SOCK_RAW)", shell: python)
      #expect(!said.hasPrefix("went well"), "\(family): \(said)")
    }
    // What it failed with is what the filter answers; the first line of a Python error says only that there is one.
    let code = try words(
      "import socket\ntry: socket.create_connection(('127.0.0.1', 9))\nexcept OSError as e: print(e.errno)",
      shell: python)
    #expect(code == "went well: \(EPERM)\n")
  }

  @Test func itStartsNoOtherProcess() throws {
    #expect(try words("ls /usr").contains("Cannot fork"))
    let code = try words("import os\ntry: os.kill(os.getppid(), 0)\nexcept OSError as e: print(e.errno)", shell: python)
    #expect(code == "went well: \(EPERM)\n")
  }

  @Test func itInheritsNothing() throws {
    setenv("PARLEY_TEST_SECRET", "swordfish", 1)
    let environment = try words("exec env")
    #expect(environment.contains("LC_ALL=C") && !environment.contains("swordfish"))
    // Open in this process, and not marked to be closed.
    let leak = open("/etc/passwd", O_RDONLY)
    defer { close(leak) }
    let script = """
      import os
      found = []
      for number in range(1024):
        try: os.fstat(number)
        except OSError: continue
        found.append(number)
      print(found)
      """
    // The script itself is open under 3.
    let found = try words(script, shell: python)
    #expect(["went well: [0, 1, 2]\n", "went well: [0, 1, 2, 3]\n"].contains(found), "\(found)")
  }

  @Test func itsMemoryIsBounded() throws {
    #expect(try words("exec dd bs=3G count=1 if=/dev/zero").contains("memory exhausted"))
  }

  @Test func oneThatIsMissingIsNamed() {
    for name in ["no-such-tool-of-parley", "/no/such/tool"] {
      #expect(throws: ToolError.missing(tool: name)) { try run(ConfinedTool(name)) }
    }
    #expect(throws: ToolError.self) { try run(ConfinedTool("/etc/passwd")) }
  }
}

private let python = "/usr/bin/python3 -S"

/// A folder for scripts that play the tool; goes with the last reference.
final class ToolFolder {
  let path: String
  private var count = 0

  init() {
    var template = Array("/tmp/parley-tools-XXXXXX".utf8CString)
    path = template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
  }

  deinit {
    for number in 0..<count { unlink("\(path)/\(number)") }
    rmdir(path)
  }

  func file(_ bytes: [UInt8]) throws -> String {
    let name = "\(path)/\(count)"
    count += 1
    let file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    try #require(file >= 0)
    #expect(write(file, bytes, bytes.count) == bytes.count)
    close(file)
    return name
  }

  func tool(_ script: String, shell: String = "/bin/sh") throws -> ConfinedTool {
    let name = try file(Array("#!\(shell)\n\(script)\n".utf8))
    chmod(name, 0o700)
    return ConfinedTool(name)
  }
}
