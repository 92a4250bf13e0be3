import Glibc
import Parley

/// A node that reads: takes what the Swift API gives and notes when.
struct Subscriber: Sendable {
  let node: Node
  let channel: ChannelName
  let words: Words
  let index: Int

  /// Until the end is heard; returns the latencies of the paced task, in nanoseconds.
  func listen() async throws -> [UInt64] {
    var latencies: [UInt64] = []
    var task: UInt8 = 0
    var seen = Numbers()
    let events = await node.events(bufferingCount: 65_536)
    try await node.join(channel, secret: .open)
    words.set(index, .hears, 1)
    for await event in events {
      guard case .message(let message) = event, case .text(let body) = message.body, let text = BenchText(body)
      else { continue }
      let now = MonotonicClock.now()
      if text.task != task {
        task = text.task
        seen = Numbers()
      }
      switch task {
      case UInt8(ascii: "w"): words.set(index, .hears, 2)
      case UInt8(ascii: "e"): return latencies
      default:
        guard seen.insert(text.number) else {
          words.add(index, .again)
          continue
        }
        if task == UInt8(ascii: "p") { latencies.append(now - min(now, text.due)) }
        words.set(index, .last, now)
        words.add(index, .count)
      }
    }
    throw Stopped("the node ended before the measurement")
  }
}

/// Which numbers have come.
private struct Numbers {
  private var bits: [UInt64] = []

  /// False when it has come before.
  mutating func insert(_ number: UInt64) -> Bool {
    let word = Int(number >> 6)
    let bit: UInt64 = 1 << (number & 63)
    if word >= bits.count { bits += Array(repeating: 0, count: word + 1 - bits.count + 1_024) }
    defer { bits[word] |= bit }
    return bits[word] & bit == 0
  }
}
