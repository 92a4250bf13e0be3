import Glibc
import Parley

/// One node of `Scripts/bench`, used through the Swift API as any application uses it.
///
///     ParleyBenchmark sub WORDS INDEX LATENCIES HOME
///     ParleyBenchmark pub WORDS SUBSCRIBERS HOME
///     ParleyBenchmark media INTERFACE HOME
@main enum Benchmark {
  static func main() async {
    let words = CommandLine.arguments
    do {
      switch words.dropFirst().first {
      case "sub" where words.count == 6 && Int(words[3]) != nil:
        try await subscribe(Words(path: words[2]), Int(words[3])!, latencies: words[4], home: words[5])
      case "pub" where words.count == 5 && Int(words[3]) != nil:
        try await publish(Words(path: words[2]), Int(words[3])!, home: words[4])
      case "media" where words.count == 4:
        let orders = readOrders()
        try await withNode(words[3], "Bench", interface: words[2]) { node, channel in
          try await MediaNode(node: node, channel: channel).obey(orders)
        }
      default:
        note(
          "usage: ParleyBenchmark sub WORDS INDEX LATENCIES HOME | pub WORDS SUBSCRIBERS HOME | media INTERFACE HOME")
        exit(64)
      }
    } catch {
      note("ParleyBenchmark: \("\(error)".escapedLine)")
      exit(1)
    }
  }

  private static func note(_ line: String) { _ = (line + "\n").withCString { write(2, $0, strlen($0)) } }

  private static func withNode(
    _ home: String, _ name: String, interface: String = "lo",
    _ body: @escaping @Sendable (Node, ChannelName) async throws -> Void
  ) async throws {
    let node = try Node(NodeSettings(home: home, displayName: name, interfaces: [interface])) { trouble in
      note("\(name): \(trouble.escapedLine)")
    }
    let channel = try ChannelName("bench")
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await node.run() }
      do { try await body(node, channel) } catch {
        await node.stop()
        throw error
      }
      await node.stop()
      try await group.waitForAll()
    }
  }

  private static func subscribe(_ words: Words, _ index: Int, latencies path: String, home: String) async throws {
    try await withNode(home, "Bench \(index)") { node, channel in
      let latencies = try await Subscriber(node: node, channel: channel, words: words, index: index).listen()
      try save(latencies, to: path)
    }
  }

  private static func save(_ latencies: [UInt64], to path: String) throws {
    guard let file = fopen(path, "wb") else { throw Stopped("\(path): \(String(cString: strerror(errno)))") }
    defer { fclose(file) }
    guard fwrite(latencies, 8, latencies.count, file) == latencies.count else { throw Stopped("\(path): not written") }
  }

  private static func publish(_ words: Words, _ subscriberCount: Int, home: String) async throws {
    let orders = readOrders()
    try await withNode(home, "Bench") { node, channel in
      try await node.join(channel, secret: .open)
      try await Publisher(node: node, channel: channel, words: words, subscriberCount: subscriberCount).obey(orders)
    }
  }

  /// Lines of the standard input, read on a thread of their own: Swift's pool has no thread to spare for waiting.
  private static func readOrders() -> AsyncStream<String> {
    let (stream, continuation) = AsyncStream.makeStream(of: String.self)
    let context = Unmanaged.passRetained(Box(continuation)).toOpaque()
    var thread = pthread_t()
    let status = pthread_create(
      &thread, nil,
      { context in
        let continuation = Unmanaged<Box>.fromOpaque(context!).takeRetainedValue().continuation
        while let line = readLine() {
          continuation.yield(line)
          // A thread that waits on the standard input would hold up exit(3).
          if line == "end" { break }
        }
        continuation.finish()
        return nil
      }, context)
    precondition(status == 0, "the system has a thread left")
    pthread_detach(thread)
    return stream
  }

  private final class Box: Sendable {
    let continuation: AsyncStream<String>.Continuation
    init(_ continuation: AsyncStream<String>.Continuation) { self.continuation = continuation }
  }
}
