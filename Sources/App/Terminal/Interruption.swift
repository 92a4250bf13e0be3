import Glibc
import ParleyLocalAPI
import Synchronization

/// SIGINT and SIGTERM, turned into something that can be polled.
enum Interruption {
  /// Kept as long as the process: its descriptor must stay open.
  private static let signal = Signal()
  private static let received = Atomic<Int>(0)
  private static let wakeDescriptor = Atomic<Int32>(-1)

  /// How many have arrived.
  static var count: Int { received.load(ordering: .acquiring) }

  /// Becomes readable with the first, and stays so.
  static var descriptor: Int32 { wakeDescriptor.load(ordering: .acquiring) }

  /// From the second on, the process ends at once.
  static func catchSignals() {
    guard descriptor < 0 else { return }
    wakeDescriptor.store(signal.descriptor, ordering: .releasing)
    for number in [SIGINT, SIGTERM] {
      var action = sigaction()
      // Only async-signal-safe calls (signal-safety(7)): atomics, write, _exit. Both atomics exist by now.
      action.__sigaction_handler.sa_handler = { number in
        let before = Interruption.received.wrappingAdd(1, ordering: .acquiringAndReleasing).oldValue
        guard before == 0 else { _exit(128 + number) }
        var one: UInt64 = 1
        _ = write(Interruption.wakeDescriptor.load(ordering: .acquiring), &one, 8)
      }
      sigaction(number, &action, nil)
    }
  }
}
