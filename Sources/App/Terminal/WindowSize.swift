import Glibc
import ParleyLocalAPI
import Synchronization

/// SIGWINCH, turned into something that can be polled.
enum WindowSize {
  /// Kept as long as the process.
  private static let signal = Signal()
  private static let wakeDescriptor = Atomic<Int32>(-1)

  /// Becomes readable when the window's size changed, until `changed` is called. -1 before `watch`.
  static var descriptor: Int32 { wakeDescriptor.load(ordering: .acquiring) }

  static func watch() {
    guard descriptor < 0 else { return }
    wakeDescriptor.store(signal.descriptor, ordering: .releasing)
    var action = sigaction()
    // Only async-signal-safe calls: an atomic that exists by now, write.
    action.__sigaction_handler.sa_handler = { _ in
      var one: UInt64 = 1
      _ = write(WindowSize.wakeDescriptor.load(ordering: .acquiring), &one, 8)
    }
    action.sa_flags = SA_RESTART
    sigaction(SIGWINCH, &action, nil)
  }

  static func seen() {
    var count: UInt64 = 0
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    if poll(&entry, 1, 0) == 1 { _ = read(descriptor, &count, 8) }
  }
}
