import CMicroHTTPD
import Glibc
import Synchronization

/// The requests that libmicrohttpd has, with their sockets.
final class Registry: Sendable {
  struct Entry {
    let exchange: Exchange
    let socket: Int32
  }
  private struct State {
    var entries: [ObjectIdentifier: Entry] = [:]
    var isStopping = false
  }
  private let state = Mutex(State())
  private let empty = Signal()

  func add(_ exchange: Exchange, socket: Int32) {
    state.withLock { $0.entries[ObjectIdentifier(exchange)] = Entry(exchange: exchange, socket: socket) }
  }

  func remove(_ exchange: Exchange) {
    let isEmpty = state.withLock { state in
      state.entries[ObjectIdentifier(exchange)] = nil
      return state.entries.isEmpty
    }
    if isEmpty { empty.raise() }
  }

  var isStopping: Bool { state.withLock { $0.isStopping } }

  /// Event streams that are open.
  var streamCount: Int { all.count { $0.exchange.outlet.map { $0.head == nil } ?? false } }

  var all: [Entry] { state.withLock { Array($0.entries.values) } }

  func stop() {
    let entries = state.withLock { state in
      state.isStopping = true
      return state.entries.values
    }
    for entry in entries { entry.exchange.stop() }
  }

  func waitUntilEmpty(milliseconds: Int32) {
    let end = ContinuousClock.now + .milliseconds(Int(milliseconds))
    while state.withLock({ !$0.entries.isEmpty }) {
      let left = (end - .now).milliseconds
      guard left > 0 else { return }
      empty.wait(milliseconds: left)
    }
  }
}

extension Duration {
  /// Rounded up, and within Int32, as poll(2) wants it.
  package var milliseconds: Int32 {
    let (seconds, attoseconds) = components
    guard seconds < 1_000_000 else { return .max }
    return Int32(clamping: seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
  }
}
