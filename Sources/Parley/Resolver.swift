import Glibc
import ParleyVocabulary
import Synchronization

/// Addresses from what a person typed.
enum Resolver {
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

/// Set once.
final class Flag: Sendable {
  private let value = Mutex(false)
  var isSet: Bool { value.withLock { $0 } }
  func set() { value.withLock { $0 = true } }
}
