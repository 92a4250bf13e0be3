import Glibc
import Synchronization

/// A thread of its own as an executor: for what blocks (SQLite, disk, hashing), which must never hold a thread of the
/// cooperative pool. A task that prefers it is woken here and not on a thread of the pool, which would hand it over.
///
/// Every job runs, also one that arrives after `stop()`: then a thread is started that ends when nothing is left, so
/// that a call that was on its way while the node stopped does not wait for ever.
package final class ThreadExecutor: SerialExecutor, TaskExecutor {
  private struct State {
    var jobs: [UnownedJob] = []
    var isStopped = false
    var hasThread = true
  }

  private let state = Mutex(State())
  private let wakeUp: Semaphore

  package init() {
    wakeUp = Semaphore()
    startThread()
  }

  private func startThread() {
    var thread = pthread_t()
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setstacksize(&attributes, 1 << 20)
    let context = Unmanaged.passRetained(self)
    let status = pthread_create(
      &thread, &attributes,
      { start in
        Unmanaged<ThreadExecutor>.fromOpaque(start!).takeRetainedValue().work()
        return nil
      }, context.toOpaque())
    precondition(status == 0, "the system has no thread left")
    pthread_attr_destroy(&attributes)
    pthread_detach(thread)
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let (needsThread, isFirst) = state.withLock { state in
      state.jobs.append(job)
      defer { state.hasThread = true }
      return (!state.hasThread, state.jobs.count == 1)
    }
    // Who put the first one there has woken the thread.
    if needsThread { startThread() } else if isFirst { wakeUp.signal() }
  }

  /// Ends the thread once what was enqueued is done.
  package func stop() {
    state.withLock { $0.isStopped = true }
    wakeUp.signal()
  }

  private func work() {
    while true {
      let (jobs, isOver) = state.withLock { state in
        defer { state.jobs = [] }
        let isOver = state.jobs.isEmpty && state.isStopped
        if isOver { state.hasThread = false }
        return (state.jobs, isOver)
      }
      if isOver { return }
      if jobs.isEmpty {
        wakeUp.wait()
        continue
      }
      for job in jobs {
        job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
      }
    }
  }
}

/// A POSIX semaphore on the heap. Sendable because sem_post and sem_wait may be called from any thread, and the memory
/// is only freed when nobody holds the object any more.
package final class Semaphore: @unchecked Sendable {
  private let semaphore: UnsafeMutablePointer<sem_t>

  package init() {
    semaphore = .allocate(capacity: 1)
    sem_init(semaphore, 0, 0)
  }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  package func signal() { sem_post(semaphore) }
  package func wait() { while sem_wait(semaphore) != 0 {} }
}
