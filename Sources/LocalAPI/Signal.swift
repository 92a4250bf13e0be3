import CMicroHTTPD
import Glibc

/// Wakes a thread: an eventfd(2), so that it can be polled together with sockets.
package final class Signal: Sendable {
  package let descriptor: Int32

  package init() {
    descriptor = parley_eventfd()
    precondition(descriptor >= 0, "no descriptor is left for an eventfd")
  }

  deinit { close(descriptor) }

  package func raise() {
    var one: UInt64 = 1
    _ = write(descriptor, &one, 8)
  }

  func lower() {
    var count: UInt64 = 0
    _ = read(descriptor, &count, 8)
  }

  func wait(milliseconds: Int32) {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    _ = poll(&entry, 1, milliseconds)
    lower()
  }
}
