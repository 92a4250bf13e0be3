import Glibc
import Parley

/// The node that writes. Obeys orders from the standard input and answers each by a line of JSON.
struct Publisher: Sendable {
  /// Nanoseconds without progress after which a task is over.
  private static let stalled: UInt64 = 10_000_000_000

  let node: Node
  let channel: ChannelName
  let words: Words
  let subscriberCount: Int

  func obey(_ orders: AsyncStream<String>) async throws {
    for await order in orders {
      let parts = order.split(separator: " ")
      switch (parts.first, parts.dropFirst().compactMap { UInt64($0) }) {
      case ("warm", _):
        try await warmUp()
        answer("{}")
      case ("pace", let numbers) where numbers.count == 2:
        answer("{\"sent\": \(try await pace(numbers[0], perSecond: numbers[1]))}")
      case ("saturate", let numbers) where numbers.count == 2:
        let (sent, seconds) = try await saturate(milliseconds: numbers[0], window: numbers[1])
        answer("{\"sent\": \(sent), \"seconds\": \(seconds)}")
      case ("end", _):
        _ = try await node.send(BenchText.make("e", 1), to: channel)
        answer("{}")
        return
      default: throw Stopped("no such order: \(order)")
      }
    }
  }

  private func answer(_ line: String) {
    // Past stdio: flushing it would wait for the thread that reads the standard input.
    _ = (line + "\n").withCString { write(1, $0, strlen($0)) }
  }

  /// Until everybody is online and has heard something.
  private func warmUp() async throws {
    let since = MonotonicClock.now()
    while try await node.members(of: channel).count(where: { $0.status == .online }) <= subscriberCount
      || words.least(of: subscriberCount, .hears) < 1
    {
      guard MonotonicClock.now() - since < 3 * Self.stalled else { throw Stopped("not everybody came online") }
      try await Task.sleep(for: .milliseconds(20))
    }
    var number: UInt64 = 0
    var left = 50
    while left > 0 {
      guard MonotonicClock.now() - since < 4 * Self.stalled else { throw Stopped("not every subscriber hears") }
      if words.least(of: subscriberCount, .hears) >= 2 { left -= 1 }
      number += 1
      _ = try await node.send(BenchText.make("w", number), to: channel)
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  private func begin() {
    for subscriber in 0..<subscriberCount {
      for place in [Words.Place.count, .last, .again] { words.set(subscriber, place, 0) }
    }
  }

  /// Until all have everything, or nobody has got on for ten seconds.
  private func awaitAll(_ count: UInt64) async throws {
    var least: UInt64 = 0
    var since = MonotonicClock.now()
    while least < count, MonotonicClock.now() - since < Self.stalled {
      let now = words.least(of: subscriberCount, .count)
      if now != least { since = MonotonicClock.now() }
      least = now
      if least < count { try await Task.sleep(for: .microseconds(200)) }
    }
  }

  private func pace(_ count: UInt64, perSecond rate: UInt64) async throws -> UInt64 {
    begin()
    // Both show CLOCK_MONOTONIC.
    let clock = SuspendingClock()
    let (start, clockStart) = (MonotonicClock.now(), clock.now)
    try await withThrowingDiscardingTaskGroup { group in
      for number in 1...count {
        let span = number * 1_000_000_000 / rate
        try await clock.sleep(until: clockStart + .nanoseconds(span), tolerance: .zero)
        // As an application writes: without waiting for the one before. Stamped with when it was due: a writer that is
        // held up and then writes late does not look fast.
        group.addTask { _ = try await node.send(BenchText.make("p", number, due: start + span), to: channel) }
      }
    }
    try await awaitAll(count)
    return count
  }

  /// As fast as the subscribers follow: never more than `window` messages ahead of the slowest.
  private func saturate(milliseconds: UInt64, window: UInt64) async throws -> (sent: UInt64, seconds: Double) {
    begin()
    let start = MonotonicClock.now()
    let sent = try await withThrowingDiscardingTaskGroup { group in
      var sent: UInt64 = 0
      while MonotonicClock.now() - start < milliseconds * 1_000_000 {
        let ahead = sent - words.least(of: subscriberCount, .count)
        if ahead >= window { try await Task.sleep(for: .microseconds(500)) }
        for _ in 0..<(window - min(ahead, window)) {
          sent += 1
          let number = sent
          group.addTask { _ = try await node.send(BenchText.make("s", number), to: channel) }
        }
      }
      return sent
    }
    try await awaitAll(sent)
    let last = words.greatest(of: subscriberCount, .last)
    return (sent, Double(last - min(last, start)) / 1e9)
  }
}
