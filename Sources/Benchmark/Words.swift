import Glibc
import Synchronization

/// The memory that publisher and subscribers of every compared system map: how far each subscriber is. Its layout is
/// that of Peers/Bench/bench.h.
///
/// `@unchecked Sendable`: the memory stays mapped until the process ends, and every access to it is atomic.
struct Words: @unchecked Sendable {
  enum Place: Int {
    /// 1: ready to hear; 2: has heard.
    case hears
    /// Different messages of the running task that came. What was sent less these was lost.
    case count
    /// CLOCK_MONOTONIC of the last of them, nanoseconds.
    case last
    /// Messages of the running task that came again.
    case again
  }

  static let subscriberCountMax = 60
  private static let byteCount = (8 + 8 * subscriberCountMax) * 8
  private let words: UnsafeMutablePointer<Atomic<UInt64>>

  init(path: String) throws(Stopped) {
    let file = open(path, O_RDWR)
    guard file >= 0 else { throw Stopped("\(path): \(String(cString: strerror(errno)))") }
    defer { close(file) }
    let memory = mmap(nil, Self.byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
    guard let memory, memory != MAP_FAILED else { throw Stopped("\(path) cannot be mapped") }
    words = memory.bindMemory(to: Atomic<UInt64>.self, capacity: Self.byteCount / 8)
  }

  private func index(_ subscriber: Int, _ place: Place) -> Int { 8 + 8 * subscriber + place.rawValue }

  func get(_ subscriber: Int, _ place: Place) -> UInt64 {
    words[index(subscriber, place)].load(ordering: .acquiring)
  }

  func set(_ subscriber: Int, _ place: Place, _ value: UInt64) {
    words[index(subscriber, place)].store(value, ordering: .releasing)
  }

  /// Releasing: who reads the sum reads what was set before it, too.
  func add(_ subscriber: Int, _ place: Place, _ value: UInt64 = 1) {
    words[index(subscriber, place)].wrappingAdd(value, ordering: .releasing)
  }

  func least(of count: Int, _ place: Place) -> UInt64 { (0..<count).map { get($0, place) }.min() ?? 0 }
  func greatest(of count: Int, _ place: Place) -> UInt64 { (0..<count).map { get($0, place) }.max() ?? 0 }
}

/// Why a measurement ended.
struct Stopped: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

enum MonotonicClock {
  /// CLOCK_MONOTONIC in nanoseconds: the same in every process of a machine.
  static func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}

/// A message of 256 bytes: its task (`w` warming up, `p` paced, `s` saturated, `e` the end), its number from 1 on, and
/// when it was due (CLOCK_MONOTONIC, nanoseconds).
struct BenchText {
  static let byteCount = 256

  let task: UInt8
  let number: UInt64
  let due: UInt64

  static func make(_ task: Character, _ number: UInt64, due: UInt64 = MonotonicClock.now()) -> String {
    let head = "\(task) \(number) \(due) "
    return head + String(repeating: "x", count: byteCount - head.utf8.count)
  }

  init?(_ text: String) {
    guard text.utf8.count == Self.byteCount, let task = text.utf8.first else { return nil }
    var numbers: [UInt64] = []
    var value: UInt64 = 0
    for byte in text.utf8.dropFirst(2) {
      if byte == UInt8(ascii: " ") {
        numbers.append(value)
        if numbers.count == 2 { break }
        value = 0
      } else {
        guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
        value = value &* 10 &+ UInt64(byte - UInt8(ascii: "0"))
      }
    }
    guard numbers.count == 2 else { return nil }
    self.task = task
    number = numbers[0]
    due = numbers[1]
  }
}
