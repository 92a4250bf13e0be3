/// Where a datagram came from or a connection goes: an IPv4 or IPv6 address and a port.
public struct Address: Hashable, Sendable, CustomStringConvertible {
  /// 4 or 16 bytes, network order.
  public let host: [UInt8]
  public let port: UInt16
  /// The interface's index for link-local IPv6 addresses; 0 otherwise.
  public let scope: UInt32

  public init(host: [UInt8], port: UInt16, scope: UInt32 = 0) {
    precondition(host.count == 4 || host.count == 16, "IPv4 has 4 bytes, IPv6 16")
    self.host = host
    self.port = port
    self.scope = scope
  }

  public func with(port: UInt16) -> Address { Address(host: host, port: port, scope: scope) }

  public var isIPv6: Bool { host.count == 16 }

  public var description: String {
    if host.count == 4 { return host.map { "\($0)" }.joined(separator: ".") + ":\(port)" }
    let groups = stride(from: 0, to: 16, by: 2).map { String(UInt16(host[$0]) << 8 | UInt16(host[$0 + 1]), radix: 16) }
    return "[" + groups.joined(separator: ":") + (scope == 0 ? "" : "%\(scope)") + "]:\(port)"
  }
}
