import Glibc
import Synchronization

/// Questions to hooks, in the order in which they were asked, on so many threads of their own: a hook that hangs keeps
/// no thread of anybody else. Threads end when nothing waits.
package final class HookLane: Sendable {
  private struct Job: Sendable {
    let call: HookCall
    let answer: @Sendable (Result<[UInt8], HookError>) -> Void
  }

  private struct State {
    var waiting: [Job] = []
    var threadCount = 0
  }

  private let state = Mutex(State())
  private let threadsMax: Int
  private let countMax: Int

  /// `countMax`: questions that may wait beside those being asked.
  package init(threadsMax: Int, countMax: Int) {
    self.threadsMax = threadsMax
    self.countMax = countMax
  }

  package func ask(_ call: HookCall) async -> Result<[UInt8], HookError> {
    await withCheckedContinuation { continuation in ask(call) { continuation.resume(returning: $0) } }
  }

  /// `answer` is called once, from a thread of the lane or from this call.
  package func ask(_ call: HookCall, answer: @escaping @Sendable (Result<[UInt8], HookError>) -> Void) {
    let (isTaken, needsThread) = state.withLock { state in
      guard state.waiting.count < countMax else { return (false, false) }
      state.waiting.append(Job(call: call, answer: answer))
      guard state.threadCount < threadsMax else { return (true, false) }
      state.threadCount += 1
      return (true, true)
    }
    guard isTaken else { return answer(.failure(.busy(countMax: countMax))) }
    if needsThread, !startThread() {
      let left = state.withLock { state -> [Job] in
        state.threadCount -= 1
        guard state.threadCount == 0 else { return [] }
        defer { state.waiting = [] }
        return state.waiting
      }
      for job in left { job.answer(.failure(.notStarted(reason: "the system has no thread left"))) }
    }
  }

  private func startThread() -> Bool {
    var thread = pthread_t()
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    // TLS handshakes, and the answer's bound.
    pthread_attr_setstacksize(&attributes, 1 << 20)
    defer { pthread_attr_destroy(&attributes) }
    let context = Unmanaged.passRetained(self)
    let status = pthread_create(
      &thread, &attributes,
      { start in
        Unmanaged<HookLane>.fromOpaque(start!).takeRetainedValue().work()
        return nil
      }, context.toOpaque())
    guard status == 0 else {
      context.release()
      return false
    }
    pthread_detach(thread)
    return true
  }

  private func work() {
    while true {
      let job = state.withLock { state -> Job? in
        guard !state.waiting.isEmpty else {
          state.threadCount -= 1
          return nil
        }
        return state.waiting.removeFirst()
      }
      guard let job else { return }
      job.answer(job.call.run())
    }
  }
}
