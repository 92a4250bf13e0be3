import CUV
import Glibc

/// Tells at once when Linux adds or removes links and addresses (rtnetlink(7)). A look every 2 seconds would find a new
/// address late and would miss one that goes and comes back in between, as when DHCP is restarted: the kernel has then
/// forgotten what we joined, and the socket would be deaf.
final class InterfaceWatch: LoopHandle {
  struct Removal: Hashable {
    let index: UInt32
    /// 4 or 16 bytes; nil: the whole interface is gone, down or without a carrier.
    let host: [UInt8]?
  }

  // linux/rtnetlink.h, linux/if_addr.h; macros that Swift does not see.
  private static let groups: UInt32 = 0x1 | 0x10 | 0x100  // RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR
  private static let addressRemoved: UInt16 = 21  // RTM_DELADDR
  private static let linkChanged: UInt16 = 16  // RTM_NEWLINK
  private static let linkRemoved: UInt16 = 17  // RTM_DELLINK
  private static let addressAttributes: ClosedRange<UInt16> = 1...2  // IFA_ADDRESS, IFA_LOCAL
  private static let headerByteCount = 16
  private static let addressMessageByteCount = 8
  private static let linkMessageByteCount = 16
  private static let bufferByteCount = 32 << 10
  /// At most so many reads in one callback; what is left calls again.
  private static let readCountMax = 64

  private var descriptor: CInt
  private var changed: ((Set<Removal>) -> Void)?

  /// `changed` is called from the loop, with the addresses that were removed since the last time.
  init(_ loop: UnsafeMutablePointer<uv_loop_t>, _ changed: @escaping (Set<Removal>) -> Void) throws(SocketError) {
    self.changed = changed
    let socket = try Descriptor(AF_NETLINK, SOCK_RAW)
    descriptor = -1
    super.init(UV_POLL)
    // struct sockaddr_nl: family and padding, port (0: the kernel chooses), groups.
    let address = (UInt16(AF_NETLINK), UInt16(0), UInt32(0), Self.groups)
    let result = withUnsafeBytes(of: address) {
      Glibc.bind(socket.number, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
    }
    try SocketError.checkCall(result, "watch the network interfaces")
    let poll = memory.assumingMemoryBound(to: uv_poll_t.self)
    try SocketError.check(uv_poll_init(loop, poll, socket.number), "watch the network interfaces")
    descriptor = socket.give()
    opened()
    _ = uv_poll_start(poll, CInt(UV_READABLE.rawValue)) { poll, _, _ in
      LoopHandle.owner(of: poll, as: InterfaceWatch.self).read()
    }
  }

  override func willClose() { changed = nil }

  override func didClose() { _ = Glibc.close(descriptor) }

  private func read() {
    var removals: Set<Removal> = []
    withUnsafeTemporaryAllocation(byteCount: Self.bufferByteCount, alignment: 8) { buffer in
      for _ in 0..<Self.readCountMax {
        let count = recv(descriptor, buffer.baseAddress!, buffer.count, 0)
        if count <= 0 { return }
        Self.parse(UnsafeRawBufferPointer(rebasing: buffer[..<count]), into: &removals)
      }
    }
    changed?(removals)
  }

  /// nlmsghdr: length (4), type (2), flags (2), sequence (4), port (4). ifaddrmsg: family, prefix, flags, scope (1
  /// each), index (4). ifinfomsg: family and padding (2), type (2), index (4), flags (4), change (4). rtattr: length
  /// (2), type (2). All in the machine's byte order, each padded to 4.
  private static func parse(_ bytes: UnsafeRawBufferPointer, into removals: inout Set<Removal>) {
    let start = headerByteCount + addressMessageByteCount
    var rest = bytes
    while rest.count >= headerByteCount {
      let length = Int(rest.loadUnaligned(as: UInt32.self))
      guard length >= headerByteCount, length <= rest.count else { return }
      let type = rest.loadUnaligned(fromByteOffset: 4, as: UInt16.self)
      if type == linkChanged || type == linkRemoved, length >= headerByteCount + linkMessageByteCount {
        let index = rest.loadUnaligned(fromByteOffset: headerByteCount + 4, as: UInt32.self)
        let flags = rest.loadUnaligned(fromByteOffset: headerByteCount + 8, as: CInt.self)
        if type == linkRemoved || !NetworkInterface.isRunning(flags) {
          removals.insert(Removal(index: index, host: nil))
        }
      } else if type == addressRemoved, length >= start {
        let index = rest.loadUnaligned(fromByteOffset: headerByteCount + 4, as: UInt32.self)
        var attributes = UnsafeRawBufferPointer(rebasing: rest[start..<length])
        while attributes.count >= 4 {
          let length = Int(attributes.loadUnaligned(as: UInt16.self))
          guard length >= 4, length <= attributes.count else { break }
          if addressAttributes.contains(attributes.loadUnaligned(fromByteOffset: 2, as: UInt16.self)) {
            removals.insert(Removal(index: index, host: [UInt8](attributes[4..<length])))
          }
          attributes = UnsafeRawBufferPointer(rebasing: attributes.dropFirst((length + 3) & ~3))
        }
      }
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst((length + 3) & ~3))
    }
  }
}
