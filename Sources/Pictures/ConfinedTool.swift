import CLinux
import Glibc
import ParleyVocabulary

/// A program of the system that decodes what strangers made. It reads one open file as its standard input and answers
/// on its standard output; `CLinux/confined.h` takes everything else from it. What Landlock (Linux 5.13) adds: nothing
/// can be read but that file and the system's programs and libraries. Blocks; the thread must not end meanwhile.
package struct ConfinedTool: Sendable {
  package struct Limits: Sendable {
    /// By the wall clock, and by the processor's.
    package var seconds = 20
    package var memoryByteCount: UInt64 = 1 << 30
    package var outputByteCountMax = 8 << 20
    package init() {}
  }

  /// A path, or a name to look for in PATH.
  package let name: String

  package init(_ name: String) { self.name = name }

  private static let wordsByteCountMax = 4_096
  private static let environment = [
    "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "HOME=/", "VIPS_CONCURRENCY=1", "VIPS_BLOCK_UNTRUSTED=1",
    "MALLOC_ARENA_MAX=1",
  ]
  /// Where programs, libraries and their data are; those that are missing are passed over.
  private static let systemFolders = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/gnu/store", "/run/current-system",
  ]
  private static let systemFiles = ["/etc/ld.so.cache", "/dev/null", "/dev/zero", "/dev/urandom"]

  /// What it wrote, when it ended well.
  package func run(_ arguments: [String], input: Int32, _ limits: Limits = Limits()) throws(ToolError) -> [UInt8] {
    guard let path = found() else { throw .missing(tool: name) }
    let ruleset = try rules(path, input)
    defer { if ruleset >= 0 { close(ruleset) } }
    guard let output = Pipe(), let words = Pipe() else { throw .notStarted(tool: name, reason: Self.reason()) }
    let process = try start(path, arguments, input, output.write, words.write, ruleset, limits, triesLeft: 50)
    output.closeWriting()
    words.closeWriting()
    return try follow(process, output, words, limits)
  }

  private func found() -> String? {
    if name.utf8.contains(UInt8(ascii: "/")) { return access(name, X_OK) == 0 ? name : nil }
    let folders = getenv("PATH").map { String(cString: $0) } ?? "/usr/local/bin:/usr/bin:/bin"
    return folders.split(separator: ":").filter { $0.first == "/" }.map { "\($0)/\(name)" }.first {
      access($0, X_OK) == 0
    }
  }

  private static func reason(_ code: Int32 = errno) -> String { String(cString: strerror(code)) }

  // MARK: Starting

  /// Landlock's; -1 where the kernel has none, or it is turned off.
  private func rules(_ path: String, _ input: Int32) throws(ToolError) -> Int32 {
    let version = parley_landlock_version()
    guard version > 0 else { return -1 }
    let ruleset = parley_landlock_make(version)
    guard ruleset >= 0 else { throw .notConfined(tool: name, reason: "Landlock: \(Self.reason())") }
    let read = UInt64(PARLEY_LANDLOCK_READ)
    let run = read | UInt64(PARLEY_LANDLOCK_EXECUTE)
    func allow(_ path: String, _ access: UInt64) {
      let file = parley_open_place(path)
      guard file >= 0 else { return }
      _ = parley_landlock_allow(ruleset, file, access)
      close(file)
    }
    for folder in Self.systemFolders { allow(folder, run | UInt64(PARLEY_LANDLOCK_LIST)) }
    for file in Self.systemFiles { allow(file, read) }
    allow(path, run)
    // ffmpeg opens its standard input once more to be able to seek.
    _ = parley_landlock_allow(ruleset, input, read)
    return ruleset
  }

  private func start(
    _ path: String, _ arguments: [String], _ input: Int32, _ output: Int32, _ words: Int32, _ ruleset: Int32,
    _ limits: Limits, triesLeft: Int
  ) throws(ToolError) -> pid_t {
    var stage: Int32 = 0
    var code: Int32 = 0
    let process = Self.withCStrings([path] + arguments) { arguments in
      Self.withCStrings(Self.environment) { environment in
        path.withCString { path in
          var confined = parley_confined(
            path: path, arguments: arguments, environment: environment, input: input, output: output, errors: words,
            ruleset: ruleset, memory_byte_count: limits.memoryByteCount,
            processor_seconds: UInt64(max(1, limits.seconds)))
          let process = parley_confined_start(&confined, &stage)
          code = errno
          return process
        }
      }
    }
    guard process < 0 else { return process }
    if code == ETXTBSY, triesLeft > 0 {
      // Somebody has the program open for writing, as while it is installed.
      poll(nil, 0, 10)
      return try start(path, arguments, input, output, words, ruleset, limits, triesLeft: triesLeft - 1)
    }
    switch UInt32(stage) {
    case PARLEY_STAGE_CONFINEMENT.rawValue: throw .notConfined(tool: name, reason: Self.reason(code))
    case PARLEY_STAGE_EXECUTION.rawValue where code == ENOENT: throw .missing(tool: name)
    default: throw .notStarted(tool: name, reason: Self.reason(code))
    }
  }

  private static func withCStrings<T>(
    _ texts: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> T
  ) -> T {
    let copies = texts.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    return (copies + [nil]).withUnsafeBufferPointer { body($0.baseAddress!) }
  }

  // MARK: Until it ends

  private func follow(
    _ process: pid_t, _ output: Pipe, _ words: Pipe, _ limits: Limits
  ) throws(ToolError) -> [UInt8] {
    let end = Self.milliseconds() + Int64(max(1, limits.seconds)) * 1_000
    let descriptor = parley_process_descriptor(process)
    defer { if descriptor >= 0 { close(descriptor) } }
    var answer: [UInt8] = []
    var said: [UInt8] = []
    var status: Int32 = 0
    while true {
      let left = end - Self.milliseconds()
      guard left > 0 else {
        Self.end(process)
        throw .tooSlow(tool: name, seconds: limits.seconds)
      }
      var waited = [
        pollfd(fd: output.isOver ? -1 : output.read, events: Int16(POLLIN), revents: 0),
        pollfd(fd: words.isOver ? -1 : words.read, events: Int16(POLLIN), revents: 0),
        pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
      ]
      // Before Linux 5.3 a process has no descriptor that tells of its end: look every 10 ms.
      poll(&waited, 3, Int32(clamping: descriptor >= 0 ? left : min(left, 10)))
      let hasEnded = waitpid(process, &status, WNOHANG) == process
      output.take(into: &answer, byteCountMax: limits.outputByteCountMax + 1)
      words.take(into: &said, byteCountMax: Self.wordsByteCountMax)
      if answer.count > limits.outputByteCountMax {
        if !hasEnded { Self.end(process) }
        throw .tooMuchOutput(tool: name, byteCountMax: limits.outputByteCountMax)
      }
      guard hasEnded else { continue }
      guard status == 0 else { throw failure(status, said, limits) }
      return answer
    }
  }

  private func failure(_ status: Int32, _ said: [UInt8], _ limits: Limits) -> ToolError {
    let line = String(decoding: said.prefix { $0 != 10 && $0 != 13 }, as: UTF8.self).prefix(200)
    let signal = status & 0x7F
    // The kernel's limit on processor time.
    if signal == SIGXCPU { return .tooSlow(tool: name, seconds: limits.seconds) }
    let reason = signal == 0 ? "failed with status \(status >> 8 & 0xFF)" : "was ended by signal \(signal)"
    return .failed(tool: name, reason: reason, words: String(line).escapedLine)
  }

  /// It leads a group of its own, though it cannot start another process.
  private static func end(_ process: pid_t) {
    kill(-process, SIGKILL)
    kill(process, SIGKILL)
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0, errno == EINTR {}
  }

  private static func milliseconds() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000
  }
}

/// Both ends close when it goes.
private final class Pipe {
  let read: Int32
  private(set) var write: Int32
  private(set) var isOver = false

  init?() {
    var ends: [Int32] = [-1, -1]
    guard parley_pipe(&ends) == 0 else { return nil }
    (read, write) = (ends[0], ends[1])
    _ = fcntl(read, F_SETFL, O_NONBLOCK)
  }

  deinit {
    close(read)
    closeWriting()
  }

  func closeWriting() {
    if write >= 0 { close(write) }
    write = -1
  }

  /// What is there now; what goes beyond the bound is read and let go.
  func take(into bytes: inout [UInt8], byteCountMax: Int) {
    var part = [UInt8](repeating: 0, count: 65_536)
    while !isOver {
      let count = Glibc.read(read, &part, part.count)
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { return }
      guard count > 0 else {
        isOver = true
        return
      }
      bytes += part[..<min(count, max(0, byteCountMax - bytes.count))]
      if bytes.count >= byteCountMax { return }
    }
  }
}
