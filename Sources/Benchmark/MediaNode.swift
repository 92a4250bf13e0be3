import Glibc
import Parley
import Synchronization

/// A node of `Scripts/bench media`: shares, downloads, writes and hears as it is told on the standard input. An order
/// is a line `NUMBER WORD …`; orders run beside each other, and each is answered by a line of JSON with its number.
struct MediaNode: Sendable {
  /// Nanoseconds that others may take to come online, or to announce what is to be downloaded.
  private static let patience: UInt64 = 60_000_000_000

  let node: Node
  let channel: ChannelName

  /// Until `end`, or the end of the orders.
  func obey(_ orders: AsyncStream<String>) async throws {
    let heard = Heard(but: node.peerID)
    try await withThrowingDiscardingTaskGroup { group in
      let events = await node.events(bufferingCount: 65_536)
      group.addTask { for await event in events { heard.take(event) } }
      try await node.join(channel, secret: .open)
      for await line in orders {
        if line == "end" { break }
        let parts = line.split(separator: " ", maxSplits: 2).map { String($0) }
        guard parts.count >= 2 else { throw Stopped("no such order: \(line)") }
        group.addTask {
          do {
            let answer = try await carryOut(parts[1], parts.count > 2 ? parts[2] : "", heard)
            say("{\"order\": \(parts[0])\(answer)}")
          } catch {
            let text = "\(error)".escapedLine.filter { $0 != "\"" && $0 != "\\" }
            say("{\"order\": \(parts[0]), \"error\": \"\(text)\"}")
          }
        }
      }
      group.cancelAll()
    }
  }

  private func say(_ line: String) { _ = (line + "\n").withCString { Glibc.write(1, $0, strlen($0)) } }

  /// Returns what the answer has besides its number.
  private func carryOut(_ order: String, _ rest: String, _ heard: Heard) async throws -> String {
    switch order {
    case "members":
      guard let count = Int(rest) else { throw Stopped("members COUNT") }
      try await wait("not everybody came online") {
        try await node.members(of: channel).count { $0.status == .online } >= count
      }
      return ""
    case "share": return ", \"id\": \"\(try await node.share(path: rest, as: .file, in: channel).id.text)\""
    case "download":
      let parts = rest.split(separator: " ", maxSplits: 1)
      guard parts.count == 2, let id = MediaID(text: String(parts[0])) else { throw Stopped("download ID FOLDER") }
      return ", \"seconds\": \(try await download(id, String(parts[1])))"
    case "write":
      let numbers = rest.split(separator: " ").compactMap { UInt64($0) }
      guard numbers.count == 2 else { throw Stopped("write COUNT RATE") }
      try await pace(numbers[0], perSecond: numbers[1])
      return ""
    case "heard":
      guard let count = Int(rest) else { throw Stopped("heard COUNT") }
      try await wait("not every message was heard") { heard.count >= count }
      return ", \"microseconds\": [\(heard.take().map { "\($0 / 1_000)" }.joined(separator: ", "))]"
    default: throw Stopped("no such order: \(order)")
    }
  }

  private func wait(_ failure: String, until isThere: () async throws -> Bool) async throws {
    let since = MonotonicClock.now()
    while try await !isThere() {
      guard MonotonicClock.now() - since < Self.patience else { throw Stopped(failure) }
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  /// Seconds from the request to its end.
  private func download(_ id: MediaID, _ folder: String) async throws -> Double {
    var events: AsyncStream<DownloadEvent>?
    var start: UInt64 = 0
    try await wait("nobody announced \(id.text)") {
      start = MonotonicClock.now()
      do {
        events = try await node.download(id, to: .folder(folder)).1
        return true
      } catch ParleyError.noSuchMedia {
        return false
      }
    }
    guard let events else { throw Stopped("no download") }
    for await event in events {
      switch event {
      case .progress, .paused: continue
      case .finished: return Double(MonotonicClock.now() - start) / 1e9
      case .failed(let error): throw error
      }
    }
    throw Stopped("the download has no end")
  }

  /// As an application writes, without waiting for the message before; stamped with when each was due.
  private func pace(_ count: UInt64, perSecond rate: UInt64) async throws {
    let clock = SuspendingClock()
    let (start, clockStart) = (MonotonicClock.now(), clock.now)
    try await withThrowingDiscardingTaskGroup { group in
      for number in 1...count {
        let span = number * 1_000_000_000 / rate
        try await clock.sleep(until: clockStart + .nanoseconds(span), tolerance: .zero)
        group.addTask { _ = try await node.send(BenchText.make("p", number, due: start + span), to: channel) }
      }
    }
  }
}

/// How long the messages of others that came were on their way, in nanoseconds.
private final class Heard: Sendable {
  private let me: PeerID
  private let latencies = Mutex<[UInt64]>([])

  init(but me: PeerID) { self.me = me }

  var count: Int { latencies.withLock { $0.count } }

  func take(_ event: NodeEvent) {
    guard case .message(let message) = event, message.sender != me, case .text(let body) = message.body,
      let text = BenchText(body)
    else { return }
    let now = MonotonicClock.now()
    latencies.withLock { $0.append(now - min(now, text.due)) }
  }

  /// What came since the last time.
  func take() -> [UInt64] {
    latencies.withLock { latencies in
      defer { latencies = [] }
      return latencies
    }
  }
}
