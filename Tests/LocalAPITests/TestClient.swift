import Glibc
import ParleyLocalAPI
import Testing

/// Plain HTTP over a Unix socket, written byte by byte so that malformed requests are possible too.
final class TestClient {
  let socket: Int32
  private var buffer: [UInt8] = []

  struct Response {
    let status: Int
    let headers: [String: String]
    let body: [UInt8]
    var json: JSON? { try? JSON(parsing: body) }
  }

  init(_ path: String) {
    socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    precondition(result == 0, "connect: \(String(cString: strerror(errno)))")
    // A test that waits for what does not come fails instead of hanging.
    var limit = timeval(tv_sec: 100, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  /// To a port of loopback.
  init(port: UInt16) {
    socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    precondition(result == 0, "connect: \(String(cString: strerror(errno)))")
    var limit = timeval(tv_sec: 100, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(socket) }

  /// False when the other side has closed.
  @discardableResult func write(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(socket, $0.baseAddress!, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  func request(_ method: String, _ target: String, body: String? = nil, headers: [String] = []) {
    let hasHost = headers.contains { $0.hasPrefix("Host:") }
    var text = "\(method) \(target) HTTP/1.1\r\n" + (hasHost ? "" : "Host: parley\r\n")
    for header in headers { text += header + "\r\n" }
    if let body { text += "Content-Length: \(body.utf8.count)\r\n" }
    write(Array((text + "\r\n" + (body ?? "")).utf8))
  }

  func call(_ method: String, _ target: String, body: String? = nil) -> Response? {
    request(method, target, body: body)
    return response()
  }

  private func fill() -> Bool {
    var chunk = [UInt8](repeating: 0, count: 65_536)
    let count = recv(socket, &chunk, chunk.count, 0)
    guard count > 0 else { return false }
    buffer += chunk[..<count]
    return true
  }

  /// Up to and without `separator`; nil when the connection ends before.
  func read(until separator: String) -> String? {
    let wanted = Array(separator.utf8)
    var from = 0
    while true {
      if buffer.count >= wanted.count {
        for start in from...(buffer.count - wanted.count)
        where buffer[start..<start + wanted.count].elementsEqual(wanted) {
          defer { buffer.removeFirst(start + wanted.count) }
          return String(decoding: buffer[..<start], as: UTF8.self)
        }
        from = buffer.count - wanted.count + 1
      }
      guard fill() else { return nil }
    }
  }

  private func read(count: Int) -> [UInt8]? {
    while buffer.count < count { guard fill() else { return nil } }
    defer { buffer.removeFirst(count) }
    return Array(buffer[..<count])
  }

  func head() -> (status: Int, headers: [String: String])? {
    guard let head = read(until: "\r\n\r\n") else { return nil }
    var lines = head.split(separator: "\r\n")
    guard let status = Int(lines.removeFirst().split(separator: " ")[1]) else { return nil }
    var headers: [String: String] = [:]
    for line in lines {
      let parts = line.split(separator: ":", maxSplits: 1)
      headers[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
    }
    return (status, headers)
  }

  func response() -> Response? {
    guard let head = head() else { return nil }
    let body = read(count: Int(head.headers["content-length"] ?? "") ?? 0)
    return body.map { Response(status: head.status, headers: head.headers, body: $0) }
  }

  /// One chunk of a chunked body; empty at its end.
  func chunk() -> String? {
    guard let size = read(until: "\r\n").flatMap({ Int($0, radix: 16) }), let bytes = read(count: size + 2) else {
      return nil
    }
    return String(decoding: bytes.dropLast(2), as: UTF8.self)
  }

  /// Whether the other side closes; reads and forgets what still comes.
  func isClosedByPeer() -> Bool {
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(socket, &chunk, chunk.count, 0)
      if count == 0 || count < 0 && errno == ECONNRESET { return true }
      if count < 0 { return false }
    }
  }
}

/// A server on a home of its own, run for the time of `body`.
func withServer(
  _ node: FakeNode = FakeNode(), keepAlive: Duration = .seconds(15),
  _ body: @Sendable (LocalServer, FakeNode) async throws -> Void
) async throws {
  var template = Array("/tmp/parley-test-XXXXXX".utf8CString)
  let home = try #require(mkdtemp(&template).map { String(cString: $0) })
  defer { rmdir(home) }
  let server = try LocalServer(node: node, home: home, keepAliveInterval: keepAlive)
  try await withThrowingTaskGroup(of: Void.self) { group in
    group.addTask { await server.run() }
    do { try await body(server, node) } catch {
      server.stop()
      throw error
    }
    server.stop()
    try await group.waitForAll()
  }
  #expect(access(server.socketPath, F_OK) != 0)
}
