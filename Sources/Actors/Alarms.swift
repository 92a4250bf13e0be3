import Glibc
import ParleyVocabulary
import Synchronization

/// CLOCK_BOOTTIME: monotonic, and goes on while the machine sleeps.
package enum SystemClock {
  package static func now() -> Instant {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return Instant(microseconds: UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1_000)
  }

  /// Milliseconds since 1970, for what is shown to people. Zero for a clock set before then.
  package static func wallMilliseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return time.tv_sec < 0 ? 0 : UInt64(time.tv_sec) * 1_000 + UInt64(time.tv_nsec) / 1_000_000
  }
}

/// Wakes the machines that asked for it. One thread waits for all; it also looks once a second while anything is due
/// later, since its own wait stands still while the machine sleeps.
package final class Alarms: Sendable {
  private struct State {
    var due: [Int: Instant] = [:]
    var isStopped = false
  }

  private let state = Mutex(State())
  private let condition = Condition()
  private let handlers: [@Sendable () -> Void]

  /// A handler a slot; slots are numbered in this order.
  package init(handlers: [@Sendable () -> Void]) {
    self.handlers = handlers
    var thread = pthread_t()
    let status = pthread_create(
      &thread, nil,
      { context in
        let alarms = Unmanaged<Alarms>.fromOpaque(context!).takeRetainedValue()
        alarms.work()
        return nil
      }, Unmanaged.passRetained(self).toOpaque())
    precondition(status == 0, "the system has no thread left")
    pthread_detach(thread)
  }

  /// An earlier moment replaces a later one; the handler is called once and may ask again.
  package func wake(_ slot: Int, at instant: Instant) {
    let isEarliest = state.withLock { state in
      if let due = state.due[slot], due <= instant { return false }
      let earliest = state.due.values.min()
      state.due[slot] = instant
      return earliest.map { instant < $0 } ?? true
    }
    if isEarliest { condition.signal() }
  }

  package func stop() {
    state.withLock { $0.isStopped = true }
    condition.signal()
  }

  private func work() {
    while true {
      let now = SystemClock.now()
      let (ready, next, isStopped) = state.withLock { state in
        let ready = state.due.filter { $0.value <= now }.map(\.key).sorted()
        for slot in ready { state.due[slot] = nil }
        return (ready, state.due.values.min(), state.isStopped)
      }
      if isStopped { return }
      for slot in ready { handlers[slot]() }
      if ready.isEmpty { condition.wait(next.map { min($0 - now, .seconds(1)) }) }
    }
  }
}

/// A flag to wait for, with a bound on the wait. Sendable because every access to the C objects goes through the mutex
/// they share.
final class Condition: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private var isSignalled = false

  init() {
    mutex = .allocate(capacity: 1)
    condition = .allocate(capacity: 1)
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  func signal() {
    pthread_mutex_lock(mutex)
    isSignalled = true
    pthread_cond_signal(condition)
    pthread_mutex_unlock(mutex)
  }

  func wait(_ span: Span?) {
    pthread_mutex_lock(mutex)
    defer {
      isSignalled = false
      pthread_mutex_unlock(mutex)
    }
    guard let span else {
      while !isSignalled { pthread_cond_wait(condition, mutex) }
      return
    }
    var end = timespec()
    clock_gettime(CLOCK_MONOTONIC, &end)
    let nanoseconds = end.tv_nsec + Int(span.microseconds % 1_000_000) * 1_000
    end.tv_sec += Int(span.microseconds / 1_000_000) + nanoseconds / 1_000_000_000
    end.tv_nsec = nanoseconds % 1_000_000_000
    while !isSignalled {
      if pthread_cond_timedwait(condition, mutex, &end) == ETIMEDOUT { return }
    }
  }
}
