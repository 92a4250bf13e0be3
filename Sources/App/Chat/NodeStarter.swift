import Glibc
import Parley
import ParleyLocalAPI

/// Starts a node that goes on running when the chat ends.
enum NodeStarter {
  private static let readySecondsMax = 20

  /// Returns the process once the node answers.
  static func start(_ client: NodeClient, passphrase: [UInt8]? = nil) throws(Failure) -> pid_t {
    let home = client.home
    try makeFolder(home)
    let log = home + "/node.log"
    let output = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard output >= 0 else { throw .system(.cannotCreate, log.escapedLine) }
    defer { close(output) }
    let process = try spawn(home: home, output: output, passphrase).get()
    let end = ContinuousClock.now + .seconds(readySecondsMax)
    while !client.isNodeRunning() {
      var status: Int32 = 0
      if waitpid(process, &status, WNOHANG) == process {
        throw Failure(.unavailable, "the node did not start:\n\(lastLines(of: log))\nAll of it: \(log.escapedLine)")
      }
      guard ContinuousClock.now < end, Interruption.count == 0 else {
        kill(process, SIGTERM)
        throw Interruption.count > 0
          ? .interrupted : Failure(.tryAgain, "the node was not ready in \(readySecondsMax) s: see \(log.escapedLine)")
      }
      _ = client.wait(for: [Interruption.descriptor], milliseconds: 50)
    }
    return process
  }

  private static func makeFolder(_ path: String) throws(Failure) {
    var made = ""
    for part in path.split(separator: "/") {
      made += "/" + part
      if mkdir(made, 0o700) != 0, errno != EEXIST { throw .system(.cannotCreate, made.escapedLine) }
    }
  }

  /// The home's passphrase goes through a pipe, which holds 64 KiB: nobody waits for its reader.
  private static func spawn(home: String, output: Int32, _ passphrase: [UInt8]?) -> Result<pid_t, Failure> {
    var pipe: [Int32] = [-1, -1]
    if let passphrase {
      guard Glibc.pipe(&pipe) == 0 else { return .failure(.system(.cannotCreate, "the node did not start")) }
      for end in pipe { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      Terminal.writeAll(passphrase, to: pipe[1])
      close(pipe[1])
    }
    defer { if passphrase != nil { close(pipe[0]) } }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    if passphrase != nil {
      posix_spawn_file_actions_adddup2(&actions, pipe[0], STDIN_FILENO)
    } else {
      posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    }
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // A session of its own: Ctrl-C in the chat, or closing its window, is not for the node. glibc 2.26 and later.
    let newSession: Int16 = 0x80
    posix_spawnattr_setflags(&attributes, newSession)
    var words: [UnsafeMutablePointer<CChar>?] = ["parley", "up", "--home", home].map { (word: String) in strdup(word) }
    if passphrase != nil { words += ["--passphrase-file", "-"].map { (word: String) in strdup(word) } }
    words.append(nil)
    defer { for word in words { free(word) } }
    var process = pid_t()
    let failure = posix_spawn(&process, "/proc/self/exe", &actions, &attributes, &words, environ)
    guard failure == 0 else {
      return .failure(Failure(.cannotCreate, "the node did not start: \(String(cString: strerror(failure)))"))
    }
    return .success(process)
  }

  private static func lastLines(of path: String) -> String {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var chunk = [UInt8](repeating: 0, count: 2_048)
    let size = lseek(file, 0, SEEK_END)
    lseek(file, max(0, size - chunk.count), SEEK_SET)
    let count = max(0, read(file, &chunk, chunk.count))
    let text = String(decoding: chunk[..<count], as: UTF8.self)
    return text.split(separator: "\n").suffix(5).map { "  " + String($0).escapedLine }.joined(separator: "\n")
  }
}
