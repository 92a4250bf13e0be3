import Glibc
import Parley

/// Who is let in at the TCP port that browsers use: the page's files go to everybody on this machine, everything else
/// to who has the cookie, from the page itself.
struct PageDoor: Sendable {
  /// What one request is, before its body is read.
  enum Admission: Sendable {
    case file(PageFile)
    /// The token comes in the body; the cookie goes back.
    case session
    /// An address of the API, without the page's own beginning.
    case api(path: String)
    case refused(Problem)
  }

  /// What of a request's head matters here.
  struct Head: Sendable {
    let method: String
    let path: String
    let host: String?
    let origin: String?
    /// `Sec-Fetch-Site`: what the browser says of where the request comes from.
    let site: String?
    let cookie: String?
  }

  let secret: PageSecret
  var port: UInt16 { secret.port }
  /// What a person opens. The token stands behind the `#`, which browsers send to nobody.
  var address: String { "http://127.0.0.1:\(port)/#\(secret.token)" }
  /// Of this port alone, so that the pages of two nodes do not overwrite each other's.
  var cookieName: String { "parley-\(port)" }

  /// With every answer. No script but the page's own files; nothing from elsewhere; no page may frame this one.
  static let headers: [(name: String, value: String)] = [
    (
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self'; "
        + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        + "require-trusted-types-for 'script'"
    ),
    ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"), ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Resource-Policy", "same-origin"), ("Cross-Origin-Opener-Policy", "same-origin"),
  ]

  func admit(_ head: Head) -> Admission {
    // A name that an attacker let point to this machine (DNS rebinding) is not this host.
    guard let host = head.host, ["127.0.0.1:\(port)", "localhost:\(port)"].contains(host) else {
      return .refused(.foreignHost)
    }
    if let origin = head.origin, origin != "http://\(host)" { return .refused(.foreignOrigin) }
    if head.method == "GET", let file = PageFile.at(head.path) { return .file(file) }
    guard head.site == nil || head.site == "same-origin" || head.site == "none" && head.method == "GET" else {
      return .refused(.foreignOrigin)
    }
    // Browsers name the origin of whatever is no GET.
    guard head.method == "GET" || head.origin != nil else { return .refused(.foreignOrigin) }
    if head.path == "/session" { return head.method == "POST" ? .session : .refused(.wrongMethod(allowed: ["POST"])) }
    guard head.path.hasPrefix("/"), let end = head.path.dropFirst().firstIndex(of: "/"),
      PageSecret.isSame(String(head.path[..<end]), secret.base), let cookie = head.cookie,
      PageSecret.isSame(cookie, secret.cookie)
    else { return .refused(.notLoggedIn) }
    return .api(path: String(head.path[end...]))
  }

  /// The answer to the token.
  func session(_ body: [UInt8]) -> Answer {
    guard let token = (try? JSON(parsing: body))?["token"]?.string, PageSecret.isSame(token, secret.token) else {
      return .problem(.notLoggedIn)
    }
    let cookie = "\(cookieName)=\(secret.cookie); Path=\(secret.base)/; HttpOnly; SameSite=Strict"
    return .json(["base": .string(secret.base)], headers: [(name: "Set-Cookie", value: cookie)])
  }

  /// Listens on loopback: at `port`, or, for nil, at the one of last time or else a free one.
  static func open(home: String, port: UInt16?) throws(LocalAPIError) -> (door: PageDoor, descriptor: Int32) {
    var secret = PageSecret(home: home)
    var reason = ""
    for candidate in port.map({ [$0] }) ?? (secret.port > 0 ? [secret.port, 0] : [0]) {
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
      if descriptor >= 0, let bound = listen(descriptor, at: candidate) {
        secret.port = bound
        secret.keep(inHome: home)
        return (PageDoor(secret: secret), descriptor)
      }
      reason = String(cString: strerror(errno))
      if descriptor >= 0 { close(descriptor) }
    }
    throw .cannotListen(path: "127.0.0.1:\(port ?? 0)", reason: reason)
  }

  private static func listen(_ descriptor: Int32, at port: UInt16) -> UInt16? {
    // A connection of the last run that still lingers must not keep the port from the next.
    var isOn: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 && Glibc.listen(descriptor, 128) == 0
          && getsockname(descriptor, $0, &length) == 0
      }
    }
    return isListening ? UInt16(bigEndian: address.sin_port) : nil
  }
}

extension Problem {
  static let foreignHost = Problem(
    status: 403, code: "foreign_host", title: "Not permitted",
    detail: "this address is served as 127.0.0.1 or localhost only: see parley page")
  static let foreignOrigin = Problem(
    status: 403, code: "foreign_origin", title: "Not permitted", detail: "only the node's own page may ask for this")
  static let notLoggedIn = Problem(
    status: 401, code: "not_logged_in", title: "Not logged in",
    detail: "open the address that parley page prints: it lets this browser in")
  static let notFromPage = Problem(
    status: 403, code: "not_from_page", title: "Not from the page",
    detail: "the page cannot name places of this machine's disk, nor end the node: use the command line")
}
