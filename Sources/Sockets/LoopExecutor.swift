import CUV
import Glibc
import Synchronization

/// A libuv loop on a thread of its own, as a serial executor. An actor that returns it as its `unownedExecutor` is
/// isolated on the loop's thread, so libuv's callbacks enter it with `assumeIsolated`, without a hop. A task of such an
/// actor that is given this as its executor goes on here after every wait; any other task is first woken on a thread of
/// Swift's pool, which then hands it over: two changes of threads instead of none.
///
/// Every job runs, also one that arrives after `end()`: then a thread is started that ends when the queue is empty, so
/// that nobody awaits for ever.
///
/// `@unchecked Sendable`: `state` and `thread` are synchronised; the libuv handles are touched by `init` before the
/// thread exists and after that only on the thread, but for `uv_async_send`, which may be called from anywhere while
/// the handle is open: it is called under the lock of `state`, whose phase says whether the handle is open.
final class LoopExecutor: SerialExecutor, TaskExecutor, @unchecked Sendable {
  private enum Phase {
    /// → `ending`: `end()` is called.
    case running
    /// → `draining`: the thread has begun to close its own handles.
    case ending
    /// No `uv_async_send` any more. → `ended`: the loop is gone and the queue empty.
    case draining
    /// No thread. → `draining`: a job arrives.
    case ended
  }

  private struct State {
    var phase = Phase.running
    var jobs: [UnownedJob] = []
  }

  /// After so many rounds of jobs that enqueue jobs, the loop looks at its sockets again.
  private static let roundCountMax = 16
  /// Or after so long: timers and sockets wait meanwhile.
  private static let roundsNanoseconds: UInt64 = 8_000_000

  private let state = Mutex(State())
  /// The `pthread_t` of the thread that runs jobs now; 0: none.
  private let thread = Atomic<UInt>(0)
  let loop = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
  private let async = UnsafeMutablePointer<uv_async_t>.allocate(capacity: 1)
  private let prepare = UnsafeMutablePointer<uv_prepare_t>.allocate(capacity: 1)
  private let check = UnsafeMutablePointer<uv_check_t>.allocate(capacity: 1)

  init() throws(SocketError) {
    try SocketError.check(uv_loop_init(loop), "open an event loop")
    let made = uv_async_init(loop, async) { LoopExecutor.of($0!).beginEnd() }
    if made < 0 { _ = uv_loop_close(loop) }
    try SocketError.check(made, "open an event descriptor")
    _ = uv_prepare_init(loop, prepare)
    _ = uv_check_init(loop, check)
    let me = Unmanaged.passUnretained(self).toOpaque()
    async.pointee.data = me
    prepare.pointee.data = me
    check.pointee.data = me
    // Jobs enqueued by timers run before the loop waits, those enqueued by sockets or other threads right after.
    _ = uv_prepare_start(prepare) { LoopExecutor.of($0!).runJobs() }
    _ = uv_check_start(check) { LoopExecutor.of($0!).runJobs() }
    startThread { $0.runLoop() }
  }

  deinit {
    async.deallocate()
    prepare.deallocate()
    check.deallocate()
    loop.deallocate()
  }

  // MARK: SerialExecutor

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let needsThread = state.withLock { state in
      state.jobs.append(job)
      switch state.phase {
      case .running, .ending:
        if state.jobs.count == 1, !isOnThread { uv_async_send(async) }
        return false
      case .draining:
        return false
      case .ended:
        state.phase = .draining
        return true
      }
    }
    if needsThread { startThread { $0.runRest() } }
  }

  func isIsolatingCurrentContext() -> Bool? { isOnThread }

  func checkIsolated() {
    precondition(isOnThread, "the transport is called on its executor only")
  }

  private var isOnThread: Bool {
    let current = thread.load(ordering: .acquiring)
    return current != 0 && pthread_equal(pthread_t(current), pthread_self()) != 0
  }

  /// Ends the loop as soon as all other handles are closed, and then the thread. May be called from anywhere and twice.
  func end() {
    state.withLock { state in
      guard case .running = state.phase else { return }
      state.phase = .ending
      uv_async_send(async)
    }
  }

  // MARK: the thread

  private static func of(_ handle: UnsafeMutablePointer<some Any>) -> LoopExecutor {
    let data = uv_handle_get_data(UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self))
    return Unmanaged<LoopExecutor>.fromOpaque(data!).takeUnretainedValue()
  }

  private final class Start {
    let executor: LoopExecutor
    let body: (LoopExecutor) -> Void
    init(_ executor: LoopExecutor, _ body: @escaping (LoopExecutor) -> Void) {
      self.executor = executor
      self.body = body
    }
  }

  private func startThread(_ body: @escaping (LoopExecutor) -> Void) {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
    var id = pthread_t()
    let start = Unmanaged.passRetained(Start(self, body)).toOpaque()
    let result = pthread_create(&id, &attributes, LoopExecutor.threadMain, start)
    precondition(result == 0, "the system gives no thread: \(String(cString: strerror(result)))")
  }

  private static let threadMain: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { raw in
    let start = Unmanaged<Start>.fromOpaque(raw!).takeRetainedValue()
    // libuv writes without MSG_NOSIGNAL: a peer's reset must be an error here, not the end of the process.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    start.executor.thread.store(UInt(pthread_self()), ordering: .releasing)
    start.body(start.executor)
    return nil
  }

  private func runLoop() {
    _ = uv_run(loop, UV_RUN_DEFAULT)
    let result = uv_loop_close(loop)
    precondition(result == 0, "every handle is closed before the loop ends")
    runRest()
  }

  /// Runs what is queued, then gives up the thread.
  private func runRest() {
    while true {
      let jobs = state.withLock { state in
        if state.jobs.isEmpty {
          state.phase = .ended
          thread.store(0, ordering: .releasing)
        }
        return take(&state)
      }
      if jobs.isEmpty { return }
      run(jobs)
    }
  }

  private func beginEnd() {
    let ends = state.withLock { state in
      guard case .ending = state.phase else { return false }
      state.phase = .draining
      return true
    }
    guard ends else { return }
    for handle in [UnsafeMutableRawPointer(async), .init(prepare), .init(check)] {
      uv_close(handle.assumingMemoryBound(to: uv_handle_t.self), nil)
    }
  }

  private func runJobs() {
    let end = uv_hrtime() + Self.roundsNanoseconds
    for _ in 0..<Self.roundCountMax {
      let jobs = state.withLock { take(&$0) }
      if jobs.isEmpty { return }
      run(jobs)
      if uv_hrtime() >= end { break }
    }
    state.withLock { state in
      switch state.phase {
      case .running, .ending: if !state.jobs.isEmpty { uv_async_send(async) }
      case .draining, .ended: break
      }
    }
  }

  private func take(_ state: inout State) -> [UnownedJob] {
    var jobs: [UnownedJob] = []
    swap(&jobs, &state.jobs)
    return jobs
  }

  private func run(_ jobs: [UnownedJob]) {
    for job in jobs {
      job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
    }
  }
}
