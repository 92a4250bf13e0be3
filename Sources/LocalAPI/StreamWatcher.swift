import CMicroHTTPD
import Glibc
import Synchronization

/// Notices within milliseconds that a client of a stream is gone (libmicrohttpd does not look at suspended
/// connections), and keeps streams alive. Sleeps while there are none.
final class StreamWatcher: Sendable {
  private let registry: Registry
  private let keepAliveInterval: Duration
  private let wake = Signal()
  private let isEnding = Atomic(false)
  private let thread = Mutex<pthread_t?>(nil)

  init(registry: Registry, keepAliveInterval: Duration) {
    self.registry = registry
    self.keepAliveInterval = keepAliveInterval
  }

  /// `stop` must follow: the thread borrows `self`.
  func start() {
    var thread = pthread_t()
    let failure = pthread_create(
      &thread, nil,
      { context in
        Unmanaged<StreamWatcher>.fromOpaque(context!).takeUnretainedValue().watch()
        return nil
      }, Unmanaged.passUnretained(self).toOpaque())
    precondition(failure == 0, "a thread can be made when a node starts")
    self.thread.withLock { $0 = thread }
  }

  func stop() {
    isEnding.store(true, ordering: .releasing)
    wake.raise()
    guard let thread = thread.withLock({ $0 }) else { return }
    pthread_join(thread, nil)
  }

  /// A stream came or went.
  func lookAgain() { wake.raise() }

  private func watch() {
    while !isEnding.load(ordering: .acquiring) {
      let streams = registry.all.compactMap { entry in
        entry.exchange.outlet.flatMap { $0.isClosed ? nil : (outlet: $0, socket: entry.socket) }
      }
      var timeout: Int32 = -1
      for stream in streams {
        let due = stream.outlet.keepAlive(every: keepAliveInterval).milliseconds
        timeout = timeout < 0 ? due : min(timeout, due)
      }
      var entries = [pollfd(fd: wake.descriptor, events: Int16(POLLIN), revents: 0)]
      entries += streams.map { pollfd(fd: $0.socket, events: Int16(PARLEY_POLL_HANGUP), revents: 0) }
      guard poll(&entries, nfds_t(entries.count), timeout) > 0 else { continue }
      if entries[0].revents != 0 { wake.lower() }
      for (stream, entry) in zip(streams, entries.dropFirst()) where entry.revents != 0 { stream.outlet.close() }
    }
  }
}
