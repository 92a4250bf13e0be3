import CMicroHTTPD
import Synchronization

/// A connection of libmicrohttpd, to be suspended and resumed.
///
/// Unchecked: `MHD_resume_connection` may be called from any thread, and who holds a value uses it only under the lock
/// of the exchange or outlet that owns it, and not after that was told of the end of its request, until when it is
/// alive.
struct ConnectionReference: @unchecked Sendable {
  let pointer: OpaquePointer
}

/// The bytes of one event stream, or of a file, on their way from a task to libmicrohttpd's thread. Holds at most about
/// `byteCountMax`: then `write` waits until the client has read some, and what waits beyond that is the node's own
/// bounded buffer of events.
final class EventOutlet: Sendable {
  static let byteCountMax = 65_536

  /// How an answer begins that is no event stream.
  struct Head: Sendable {
    let status: UInt32
    /// What follows.
    let byteCount: UInt64
    let headers: [(name: String, value: String)]

    init(status: UInt32, byteCount: UInt64, headers: [(String, String)]) {
      self.status = status
      self.byteCount = byteCount
      self.headers = headers.map { (name: $0, value: $1) }
    }
  }

  /// Nil for an event stream.
  let head: Head?

  init(head: Head? = nil) { self.head = head }

  fileprivate struct State {
    var buffer: [UInt8] = []
    var readCount = 0
    /// The producer has written its last.
    var isFinished = false
    /// The client is gone.
    var isClosed = false
    var suspended: ConnectionReference?
    var roomWaiter: CheckedContinuation<Void, Never>?
    var closeWaiter: CheckedContinuation<Void, Never>?
    /// Nil before the first.
    var lastWrite: ContinuousClock.Instant?

    var pendingCount: Int { buffer.count - readCount }

    mutating func resumeConnection() {
      guard let connection = suspended else { return }
      suspended = nil
      MHD_resume_connection(connection.pointer)
    }
  }
  private let state = Mutex(State())

  /// Returns once there is room for more. False when the client is gone.
  func write(_ bytes: [UInt8]) async -> Bool {
    let isOpen = state.withLock { state in
      guard !state.isClosed else { return false }
      state.append(bytes)
      return true
    }
    guard isOpen else { return false }
    await withCheckedContinuation { continuation in
      let hasRoom = state.withLock { state in
        if state.isClosed || state.pendingCount <= Self.byteCountMax { return true }
        state.roomWaiter = continuation
        return false
      }
      if hasRoom { continuation.resume() }
    }
    return state.withLock { !$0.isClosed }
  }

  /// What was written still goes out; then the stream ends.
  func finish() {
    state.withLock { state in
      state.isFinished = true
      state.resumeConnection()
    }
  }

  /// The client is gone, or must go: nothing more is kept.
  func close() {
    let waiters = state.withLock { state in
      state.isClosed = true
      state.buffer = []
      state.readCount = 0
      state.resumeConnection()
      defer { (state.roomWaiter, state.closeWaiter) = (nil, nil) }
      return [state.roomWaiter, state.closeWaiter]
    }
    for waiter in waiters { waiter?.resume() }
  }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Returns when the client is gone, or the task is cancelled.
  func closed() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isClosed = state.withLock { state in
          if state.isClosed || Task.isCancelled { return true }
          state.closeWaiter = continuation
          return false
        }
        if isClosed { continuation.resume() }
      }
    } onCancel: {
      let waiter = state.withLock { state in
        defer { state.closeWaiter = nil }
        return state.closeWaiter
      }
      waiter?.resume()
    }
  }

  /// Called by libmicrohttpd's thread when the socket takes more. Suspends the connection when there is nothing.
  func read(into target: UnsafeMutableRawBufferPointer, for connection: ConnectionReference) -> Int {
    let (result, waiter) = state.withLock { state -> (Int, CheckedContinuation<Void, Never>?) in
      if state.isClosed { return (parley_mhd_end_with_error(), nil) }
      guard state.pendingCount > 0 else {
        if state.isFinished { return (parley_mhd_end_of_stream(), nil) }
        MHD_suspend_connection(connection.pointer)
        state.suspended = connection
        return (0, nil)
      }
      let count = min(target.count, state.pendingCount)
      state.buffer.withUnsafeBytes {
        target.copyMemory(from: .init(rebasing: $0[state.readCount..<state.readCount + count]))
      }
      state.readCount += count
      if state.pendingCount == 0 {
        state.buffer.removeAll(keepingCapacity: true)
        state.readCount = 0
      }
      guard state.pendingCount <= Self.byteCountMax / 2 else { return (count, nil) }
      defer { state.roomWaiter = nil }
      return (count, state.roomWaiter)
    }
    waiter?.resume()
    return result
  }

  /// Writes a comment when nothing was written for `interval`, so that a client that is gone without a word is noticed.
  /// Never the first thing: that says that nothing is missed from there on. Returns how long until the next is due.
  func keepAlive(every interval: Duration) -> Duration {
    guard head == nil else { return interval }
    return state.withLock { state in
      guard let lastWrite = state.lastWrite else { return interval }
      let due = lastWrite + interval - .now
      guard due <= .zero, !state.isClosed, !state.isFinished else { return max(due, .milliseconds(100)) }
      if state.pendingCount == 0 { state.append(Array(":\n\n".utf8)) } else { state.lastWrite = .now }
      return interval
    }
  }
}

extension EventOutlet.State {
  fileprivate mutating func append(_ bytes: [UInt8]) {
    if readCount > 0 {
      buffer.removeFirst(readCount)
      readCount = 0
    }
    buffer += bytes
    lastWrite = .now
    resumeConnection()
  }
}
