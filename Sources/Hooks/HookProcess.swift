import CLinux
import Glibc
import ParleyVocabulary

/// A program that is asked one question. It leads a process group of its own, which is ended with it.
struct HookProcess {
  private let call: HookCall

  init(_ call: HookCall) { self.call = call }

  private static func reason(_ code: Int32) -> String { String(cString: strerror(code)) }

  /// What programs need to find their way; nothing else of the node's.
  private static var environment: [String] {
    let names: [String] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"]
    return names.compactMap { name -> String? in
      guard let value = getenv(name) else { return nil }
      return "\(name)=\(String(cString: value))"
    }
  }

  func run(_ path: String) throws(HookError) -> [UInt8] {
    guard let input = HookPipe(), let output = HookPipe() else { throw .notStarted(reason: Self.reason(errno)) }
    let process = try start(path, input.read, output.write)
    input.closeReading()
    output.closeWriting()
    return try follow(process, input, output)
  }

  private func start(_ path: String, _ input: Int32, _ output: Int32) throws(HookError) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawnattr_init(&attributes)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    posix_spawn_file_actions_adddup2(&actions, input, 0)
    posix_spawn_file_actions_adddup2(&actions, output, 1)
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    // The node ignores SIGPIPE, and threads of it block signals: the program begins as from a shell.
    var none = sigset_t()
    var all = sigset_t()
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    var process = pid_t()
    let words = ([path] + Self.environment).map { strdup($0) }
    defer { for word in words { free(word) } }
    let arguments = [words[0], nil]
    let environment = words.dropFirst() + [nil]
    var code: Int32 = 0
    for _ in 0..<50 {
      code = posix_spawn(&process, path, &actions, &attributes, arguments, Array(environment))
      guard code == ETXTBSY else { break }
      // Somebody has the program open for writing, as while it is installed.
      poll(nil, 0, 10)
    }
    guard code == 0 else { throw .notStarted(reason: "\(path.escapedLine): \(Self.reason(code))") }
    return process
  }

  private func follow(_ process: pid_t, _ input: HookPipe, _ output: HookPipe) throws(HookError) -> [UInt8] {
    let end = Self.milliseconds() + Int64(call.milliseconds)
    let descriptor = parley_process_descriptor(process)
    defer { if descriptor >= 0 { close(descriptor) } }
    var rest = call.question[...]
    var answer: [UInt8] = []
    var status: Int32 = 0
    while true {
      let left = end - Self.milliseconds()
      guard left > 0 else {
        Self.end(process)
        throw .tooSlow(milliseconds: call.milliseconds)
      }
      if rest.isEmpty { input.closeWriting() }
      var waited = [
        pollfd(fd: input.write, events: Int16(POLLOUT), revents: 0),
        pollfd(fd: output.isOver ? -1 : output.read, events: Int16(POLLIN), revents: 0),
        pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
      ]
      // Before Linux 5.3 a process has no descriptor that tells of its end: look every 10 ms.
      poll(&waited, 3, Int32(clamping: descriptor >= 0 ? left : min(left, 10)))
      if waited[0].revents != 0 { input.put(&rest) }
      let hasEnded = waitpid(process, &status, WNOHANG) == process
      output.take(into: &answer, byteCountMax: HookCall.answerByteCountMax + 1)
      if answer.count > HookCall.answerByteCountMax {
        if !hasEnded { Self.end(process) }
        throw .tooMuch(byteCountMax: HookCall.answerByteCountMax)
      }
      guard hasEnded else { continue }
      // What it left running is not waited for, and not left.
      kill(-process, SIGKILL)
      let signal = status & 0x7F
      guard signal == 0 else { throw .failed(reason: "it was ended by signal \(signal)") }
      guard status == 0 else { throw .failed(reason: "it ended with status \(status >> 8 & 0xFF)") }
      return answer
    }
  }

  private static func end(_ process: pid_t) {
    kill(-process, SIGKILL)
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0, errno == EINTR {}
  }

  private static func milliseconds() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000
  }
}

/// Both ends close when it goes. Neither blocks here.
private final class HookPipe {
  private(set) var read: Int32
  private(set) var write: Int32
  private(set) var isOver = false

  init?() {
    var ends: [Int32] = [-1, -1]
    guard parley_pipe(&ends) == 0 else { return nil }
    (read, write) = (ends[0], ends[1])
  }

  deinit {
    closeReading()
    closeWriting()
  }

  func closeReading() {
    if read >= 0 { close(read) }
    read = -1
  }

  func closeWriting() {
    if write >= 0 { close(write) }
    write = -1
  }

  /// What goes in now. A reader that is gone takes nothing more, and the signal of that ends nobody.
  func put(_ bytes: inout ArraySlice<UInt8>) {
    _ = fcntl(write, F_SETFL, O_NONBLOCK)
    var (pipe, before, pending) = (sigset_t(), sigset_t(), sigset_t())
    sigemptyset(&pipe)
    sigaddset(&pipe, SIGPIPE)
    sigpending(&pending)
    pthread_sigmask(SIG_BLOCK, &pipe, &before)
    defer {
      var now = timespec()
      // The one that was raised here, unless another waited before.
      if sigismember(&pending, SIGPIPE) == 0 { sigtimedwait(&pipe, nil, &now) }
      pthread_sigmask(SIG_SETMASK, &before, nil)
    }
    while !bytes.isEmpty {
      let count = bytes.withUnsafeBytes { Glibc.write(write, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { return }
      guard count > 0 else { return bytes = [] }
      bytes = bytes.dropFirst(count)
    }
  }

  /// What is there now.
  func take(into bytes: inout [UInt8], byteCountMax: Int) {
    _ = fcntl(read, F_SETFL, O_NONBLOCK)
    var part = [UInt8](repeating: 0, count: 16_384)
    while !isOver, bytes.count < byteCountMax {
      let count = Glibc.read(read, &part, part.count)
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { return }
      guard count > 0 else {
        isOver = true
        return
      }
      bytes += part[..<min(count, byteCountMax - bytes.count)]
    }
  }
}
