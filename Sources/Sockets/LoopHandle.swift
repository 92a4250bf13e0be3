import CUV
import Glibc
import ParleyVocabulary

/// What the system refused, and why.
struct SocketError: Error, CustomStringConvertible {
  /// "bind 127.0.0.1:45800"
  let action: String
  /// Negative errno, as libuv writes it.
  let code: CInt

  var reason: String { String(cString: uv_strerror(code)) }
  var description: String { "cannot \(action): \(reason)" }

  /// For libuv's results.
  static func check(_ result: CInt, _ action: @autoclosure () -> String) throws(SocketError) {
    if result < 0 { throw SocketError(action: action(), code: result) }
  }

  /// For results of system calls, which leave their error in `errno`.
  static func checkCall(_ result: CInt, _ action: @autoclosure () -> String) throws(SocketError) {
    if result < 0 {
      let code = -errno
      throw SocketError(action: action(), code: code)
    }
  }
}

/// Owns the memory of one libuv handle. From `opened()` until the loop has closed it, the handle keeps its owner alive;
/// C callbacks find the owner through the handle's data. Used on the loop's thread only.
class LoopHandle {
  let memory: UnsafeMutableRawPointer
  private(set) var isClosing = false

  init(_ type: uv_handle_type) {
    memory = .allocate(byteCount: uv_handle_size(type), alignment: 16)
  }

  deinit { memory.deallocate() }

  final var handle: UnsafeMutablePointer<uv_handle_t> { memory.assumingMemoryBound(to: uv_handle_t.self) }

  /// Called right after `uv_…_init`; from then on only `close()` lets go of the handle.
  final func opened() {
    uv_handle_set_data(handle, Unmanaged.passRetained(self).toOpaque())
  }

  final func close() {
    guard !isClosing else { return }
    isClosing = true
    willClose()
    uv_close(handle) { handle in
      let owner = Unmanaged<LoopHandle>.fromOpaque(uv_handle_get_data(handle)!).takeRetainedValue()
      owner.didClose()
    }
  }

  func willClose() {}
  /// The loop has let go of the handle; called from the loop, never from within `close()`.
  func didClose() {}

  static func owner<Owner: LoopHandle>(
    of handle: UnsafeMutableRawPointer?, as type: Owner.Type = Owner.self
  ) -> Owner {
    let data = uv_handle_get_data(handle!.assumingMemoryBound(to: uv_handle_t.self))
    return unsafeDowncast(Unmanaged<LoopHandle>.fromOpaque(data!).takeUnretainedValue(), to: type)
  }
}

final class LoopTimer: LoopHandle {
  private var action: (() -> Void)?

  init(_ loop: UnsafeMutablePointer<uv_loop_t>, _ action: @escaping () -> Void) {
    self.action = action
    super.init(UV_TIMER)
    _ = uv_timer_init(loop, timer)
    opened()
  }

  private var timer: UnsafeMutablePointer<uv_timer_t> { memory.assumingMemoryBound(to: uv_timer_t.self) }

  var isRunning: Bool { uv_is_active(handle) != 0 }

  /// Replaces what was set before.
  func start(milliseconds: UInt64, repeating: UInt64 = 0) {
    _ = uv_timer_start(
      timer,
      { timer in
        let owner = LoopHandle.owner(of: timer, as: LoopTimer.self)
        owner.action?()
      }, milliseconds, repeating)
  }

  func stop() { _ = uv_timer_stop(timer) }

  override func willClose() { action = nil }
}

/// Memory that every read on a loop lends for the time of one callback. libuv's `recvmmsg` puts each datagram into a
/// chunk of 64 KiB and takes at most 20; only pages that are written to become real.
final class ReadBuffer {
  static let datagramByteCount = 20 * 65_536
  static let streamByteCount = 128 * 1_024
  let memory = UnsafeMutablePointer<CChar>.allocate(capacity: ReadBuffer.datagramByteCount)
  deinit { memory.deallocate() }

  var forDatagrams: uv_buf_t { uv_buf_t(base: memory, len: Self.datagramByteCount) }
  var forStreams: uv_buf_t { uv_buf_t(base: memory, len: Self.streamByteCount) }
}

extension Address {
  init?(_ pointer: UnsafePointer<sockaddr>) {
    let raw = UnsafeRawPointer(pointer)
    switch CInt(pointer.pointee.sa_family) {
    case AF_INET:
      let value = raw.loadUnaligned(as: sockaddr_in.self)
      self.init(host: withUnsafeBytes(of: value.sin_addr) { [UInt8]($0) }, port: UInt16(bigEndian: value.sin_port))
    case AF_INET6:
      let value = raw.loadUnaligned(as: sockaddr_in6.self)
      let host = withUnsafeBytes(of: value.sin6_addr) { [UInt8]($0) }
      self.init(
        host: host, port: UInt16(bigEndian: value.sin6_port), scope: host.needsScope ? value.sin6_scope_id : 0)
    default:
      return nil
    }
  }

  /// The name a bound descriptor has.
  init?(ofSocket descriptor: CInt) {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let address: Address? = withUnsafeMutableBytes(of: &storage) { bytes in
      let pointer = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
      return getsockname(descriptor, pointer, &length) == 0 ? Address(pointer) : nil
    }
    guard let address else { return nil }
    self = address
  }

  var family: CInt { isIPv6 ? AF_INET6 : AF_INET }

  func withSocketAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    func call<Value>(_ value: Value) -> Result {
      withUnsafeBytes(of: value) { bytes in
        body(bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
      }
    }
    if isIPv6 {
      var value = sockaddr_in6()
      value.sin6_family = sa_family_t(AF_INET6)
      value.sin6_port = port.bigEndian
      value.sin6_scope_id = scope
      withUnsafeMutableBytes(of: &value.sin6_addr) { $0.copyBytes(from: host) }
      return call(value)
    }
    var value = sockaddr_in()
    value.sin_family = sa_family_t(AF_INET)
    value.sin_port = port.bigEndian
    withUnsafeMutableBytes(of: &value.sin_addr) { $0.copyBytes(from: host) }
    return call(value)
  }
}

extension [UInt8] {
  /// fe80::/10 and link-local multicast ff?2::/16 mean something on one link only (RFC 4007).
  var needsScope: Bool {
    count == 16 && ((self[0] == 0xfe && self[1] & 0xc0 == 0x80) || (self[0] == 0xff && self[1] & 0x0f == 2))
  }
}

/// A socket that closes itself unless it is given away.
struct Descriptor: ~Copyable {
  private let value: CInt

  init(_ family: CInt, _ type: __socket_type) throws(SocketError) {
    value = socket(family, CInt(type.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
    try SocketError.checkCall(value, "open a socket")
  }

  deinit { _ = Glibc.close(value) }

  var number: CInt { value }

  consuming func give() -> CInt {
    let value = value
    discard self
    return value
  }

  func set(_ level: CInt, _ option: CInt, _ on: CInt, _ name: StaticString) throws(SocketError) {
    try set(level, option, raw: on, name)
  }

  func set<Value>(_ level: CInt, _ option: CInt, raw: Value, _ name: StaticString) throws(SocketError) {
    let result = withUnsafeBytes(of: raw) {
      setsockopt(value, level, option, $0.baseAddress!, socklen_t($0.count))
    }
    try SocketError.checkCall(result, "set \(name)")
  }

  func bind(_ address: Address) throws(SocketError) {
    let result = address.withSocketAddress { Glibc.bind(value, $0, $1) }
    try SocketError.checkCall(result, "bind \(address)")
  }
}

/// The protocol levels, whose C types differ from what `setsockopt` takes.
enum Level {
  static let ipv4 = CInt(IPPROTO_IP)
  static let ipv6 = CInt(IPPROTO_IPV6)
  static let tcp = CInt(IPPROTO_TCP)
}
