import Glibc
import ParleyVocabulary

/// One address of an interface that a node binds: IPv4, or link-local IPv6.
struct LocalAddress: Hashable {
  let interface: String
  let index: UInt32
  /// 4 or 16 bytes.
  let host: [UInt8]
  let mask: [UInt8]

  var isIPv6: Bool { host.count == 16 }
  var scope: UInt32 { isIPv6 ? index : 0 }
  func address(port: UInt16) -> Address { Address(host: host, port: port, scope: scope) }

  func subnetContains(_ address: Address) -> Bool {
    guard address.host.count == host.count, mask.count == host.count else { return false }
    return host.indices.allSatisfy { host[$0] & mask[$0] == address.host[$0] & mask[$0] }
  }
}

/// An interface as the system describes it.
struct NetworkInterface {
  let name: String
  let index: UInt32
  let flags: CInt
  private(set) var ipv4: [LocalAddress] = []
  private(set) var linkLocal: [LocalAddress] = []

  var isUp: Bool { flags & CInt(IFF_UP) != 0 }
  /// IFF_RUNNING (netdevice(7)): up, and with a carrier where there is such a thing.
  static func isRunning(_ flags: CInt) -> Bool { flags & CInt(IFF_UP) != 0 && flags & CInt(IFF_RUNNING) != 0 }
  var whyUnused: String {
    if !isUp { return "it is down" }
    return Self.isRunning(flags) ? "it has no address" : "it has no carrier: no cable or no network"
  }
  var isLoopback: Bool { flags & CInt(IFF_LOOPBACK) != 0 }

  /// The addresses to use: the first of each family; on the loopback interface IPv4 only.
  var locals: [LocalAddress] {
    guard Self.isRunning(flags) else { return [] }
    return Array(ipv4.prefix(1)) + (isLoopback ? [] : Array(linkLocal.prefix(1)))
  }

  /// Virtual machines, containers and private networks of others: no LAN with people on it, and some refuse multicast.
  /// Whoever wants one names it.
  private static let foreignPrefixes = [
    "docker", "br-", "veth", "virbr", "vnet", "vboxnet", "vmnet", "lxc", "lxdbr", "podman", "cni", "flannel", "cali",
    "tun", "tap", "utun", "wg", "tailscale", "zt", "ppp", "ham", "nordlynx", "proton", "ifb", "dummy",
  ]

  /// Whether a node that names no interface uses this one.
  var isChosenUnnamed: Bool {
    let refused = CInt(IFF_LOOPBACK) | CInt(IFF_POINTOPOINT)
    return isUp && flags & CInt(IFF_MULTICAST) != 0 && flags & refused == 0
      && !Self.foreignPrefixes.contains { name.hasPrefix($0) }
  }

  /// All interfaces in the system's order; one entry each, also for those without an address.
  static func all() throws(SocketError) -> [NetworkInterface] {
    var first: UnsafeMutablePointer<ifaddrs>?
    try SocketError.checkCall(getifaddrs(&first), "list the network interfaces")
    defer { freeifaddrs(first) }
    var found: [NetworkInterface] = []
    var next = first
    while let entry = next?.pointee {
      next = entry.ifa_next
      let name = String(cString: entry.ifa_name)
      let position: Int
      if let known = found.firstIndex(where: { $0.name == name }) {
        position = known
      } else {
        // 0: it went away while we looked.
        let index = if_nametoindex(entry.ifa_name)
        if index == 0 { continue }
        found.append(NetworkInterface(name: name, index: index, flags: CInt(bitPattern: entry.ifa_flags)))
        position = found.count - 1
      }
      found[position].add(entry)
    }
    return found
  }

  private mutating func add(_ entry: ifaddrs) {
    guard let pointer = entry.ifa_addr, let address = Address(pointer) else { return }
    let mask = entry.ifa_netmask.flatMap { Address($0)?.host } ?? []
    let local = LocalAddress(interface: name, index: index, host: address.host, mask: mask)
    if !address.isIPv6 {
      ipv4.append(local)
    } else if address.host.needsScope {
      linkLocal.append(local)
    }
  }
}
