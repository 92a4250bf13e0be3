import Glibc
import ParleyActors
import ParleyVocabulary
import Synchronization

/// Addresses from what a person typed.
enum Resolver {
  /// Asking for a name can take seconds: on a thread of its own.
  static func addresses(of texts: [String]) async throws(ParleyError) -> [Address] {
    if texts.isEmpty { return [] }
    let thread = ThreadExecutor()
    defer { thread.stop() }
    return try await Asker(executor: thread).addresses(of: texts)
  }

  private actor Asker {
    private let executor: ThreadExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    init(executor: ThreadExecutor) { self.executor = executor }
    func addresses(of texts: [String]) throws(ParleyError) -> [Address] {
      var addresses: [Address] = []
      for text in texts { addresses.append(try Resolver.address(of: text)) }
      return addresses
    }
  }

  /// `HOST:PORT`, `[IPv6]:PORT`; names are looked up.
  static func address(of text: String) throws(ParleyError) -> Address {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
      throw .network("\(text.escapedLine) is not HOST:PORT, such as 192.168.1.20:4000 or [fe80::1%eth0]:4000")
    }
    var host = String(text[..<colon])
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(host, String(port), &hints, &found)
    guard status == 0, let found else {
      throw .network("\(host.escapedLine) cannot be found: \(String(cString: gai_strerror(status)))")
    }
    defer { freeaddrinfo(found) }
    // The first is the system's preference.
    switch Int32(found.pointee.ai_family) {
    case AF_INET:
      return found.pointee.ai_addr.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { address in
        Address(host: withUnsafeBytes(of: address.pointee.sin_addr) { Array($0) }, port: port)
      }
    case AF_INET6:
      return found.pointee.ai_addr.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { address in
        Address(
          host: withUnsafeBytes(of: address.pointee.sin6_addr) { Array($0) }, port: port,
          scope: address.pointee.sin6_scope_id)
      }
    default: throw .network("\(host.escapedLine) has neither an IPv4 nor an IPv6 address")
    }
  }
}

/// Waits for an alarm, whatever becomes of the task that waits: `Task.sleep` would end at once in a cancelled one.
final class Pause: Sendable {
  private let waiting = Mutex<CheckedContinuation<Void, Never>?>(nil)

  /// One task at a time. `start` sees to it that `end` is called.
  func wait(_ start: () -> Void) async {
    await withCheckedContinuation { continuation in
      waiting.withLock { waiting in
        precondition(waiting == nil, "one task waits at a time")
        waiting = continuation
      }
      start()
    }
  }

  func end() {
    let continuation = waiting.withLock { waiting in
      defer { waiting = nil }
      return waiting
    }
    continuation?.resume()
  }
}
