import Glibc
import Parley
import Testing

@testable import ParleyLocalAPI

extension HTTPTests {
  @Suite struct PageTests {
    /// A page's server on a home of its own, run for the time of `body`.
    func withPage(
      _ node: FakeNode = FakeNode(), _ body: @Sendable (Page) async throws -> Void
    ) async throws {
      let home = try temporaryHome()
      defer { remove(home) }
      let server = try LocalServer(pageOf: node, home: home, port: nil, downloadsFolder: "\(home)/saved")
      let page = try #require(Page(server, home: home))
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { await server.run() }
        do { try await body(page) } catch {
          server.stop()
          throw error
        }
        server.stop()
        try await group.waitForAll()
      }
    }

    struct Page: Sendable {
      let home: String
      let port: UInt16
      let token: String
      var host: String { "Host: 127.0.0.1:\(port)" }
      var origin: String { "Origin: http://127.0.0.1:\(port)" }

      init?(_ server: LocalServer, home: String) {
        guard let address = server.pageAddress, let hash = address.firstIndex(of: "#"),
          let port = UInt16(address[..<hash].dropFirst("http://127.0.0.1:".count).dropLast())
        else { return nil }
        self.home = home
        self.port = port
        token = String(address[hash...].dropFirst())
      }

      func call(_ method: String, _ target: String, body: String? = nil, headers: [String]) -> TestClient.Response? {
        let client = TestClient(port: port)
        client.request(method, target, body: body, headers: headers)
        return client.response()
      }

      /// The beginning of every address, and the cookie's header.
      func logIn() throws -> (base: String, cookie: String) {
        let body = (["token": .string(token)] as JSON).text
        let answer = try #require(call("POST", "/session", body: body, headers: [host, origin]))
        let cookie = try #require(answer.headers["set-cookie"])
        let base = try #require(answer.json?["base"]?.string)
        #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && cookie.contains("Path=\(base)/"))
        #expect(!cookie.contains(token) && !base.contains(token))
        return (base, "Cookie: " + cookie.prefix { $0 != ";" })
      }
    }

    @Test func theTokenBecomesACookieThatLetsIn() async throws {
      try await withPage { page in
        let (base, cookie) = try page.logIn()
        let answer = page.call("GET", base + "/v1/id", headers: [page.host, cookie])
        #expect(answer?.json?["peer_id"]?.string == FakeNode.ana.text)
        #expect(answer?.headers["content-security-policy"]?.contains("script-src 'self'") == true)
        #expect(answer?.headers["x-content-type-options"] == "nosniff")
        #expect(answer?.headers["referrer-policy"] == "no-referrer")
        #expect(page.call("GET", base + "/v1/id", headers: [page.host])?.status == 401)
        #expect(page.call("GET", base + "/v1/id", headers: [page.host, cookie + "0"])?.status == 401)
        #expect(page.call("GET", "/v1/id", headers: [page.host, cookie])?.status == 401)
        let wrong = (["token": .string(String(page.token.reversed()))] as JSON).text
        let refused = page.call("POST", "/session", body: wrong, headers: [page.host, page.origin])
        #expect(refused?.status == 401)
        #expect(refused?.headers["set-cookie"] == nil)
      }
    }

    @Test func thePagesFilesAreServedWithTheirTypes() async throws {
      try await withPage { page in
        for file in PageFile.all {
          let answer = try #require(page.call("GET", "/" + file.name, headers: [page.host]))
          #expect(answer.status == 200)
          #expect(answer.body == Array(file.bytes))
          #expect(answer.headers["content-type"] == file.type)
          #expect(answer.headers["content-security-policy"]?.contains("unsafe") == false)
        }
        #expect(page.call("GET", "/", headers: [page.host])?.headers["content-type"]?.hasPrefix("text/html") == true)
        #expect(page.call("GET", "/missing.js", headers: [page.host])?.status == 401)
      }
    }

    @Test func whatThePageMayNotAskForIsRefused() async throws {
      let node = FakeNode()
      try await withPage(node) { page in
        let (base, cookie) = try page.logIn()
        let headers = [page.host, page.origin, cookie]
        for (method, path, body) in [
          ("POST", "/v1/down", "{}"), ("POST", "/v1/channels/team/media", #"{"path":"/etc/passwd"}"#),
          ("GET", "/v1/page", nil),
          ("POST", "/v1/downloads", #"{"media_id":"\#(FakeNode.mediaID.text)","folder":"/etc"}"#),
        ] as [(String, String, String?)] {
          let answer = page.call(method, base + path, body: body, headers: headers)
          #expect(answer?.json?["code"]?.string == "not_from_page", "\(method) \(path)")
        }
        #expect(node.calls.isEmpty)
      }
    }

    @Test func aDetachedDownloadGoesOnWithoutItsClient() async throws {
      let node = FakeNode()
      node.state.withLock { $0.isDownloadEndless = true }
      try await withPage(node) { page in
        let (base, cookie) = try page.logIn()
        let body = #"{"media_id":"\#(FakeNode.mediaID.text)","detached":true}"#
        let answer = page.call("POST", base + "/v1/downloads", body: body, headers: [page.host, page.origin, cookie])
        #expect(answer?.status == 202)
        #expect(answer?.json?["download_id"]?.integer == 9)
        #expect(node.calls == ["download \(FakeNode.mediaID.text) folder(\"\(page.home)/saved\")"])
        #expect(node.state.withLock { $0.paused.isEmpty })
      }
    }

    @Test func whereARequestComesFromIsChecked() {
      let door = PageDoor(secret: PageSecret(home: "/nowhere/to/be/read").on(port: 4_000))
      let cookie = door.secret.cookie
      func admit(
        _ method: String = "GET", _ path: String? = nil, host: String? = "127.0.0.1:4000", origin: String? = nil,
        site: String? = nil, cookie given: String? = nil
      ) -> UInt32 {
        let path = path ?? door.secret.base + "/v1/id"
        switch door.admit(
          .init(method: method, path: path, host: host, origin: origin, site: site, cookie: given ?? cookie))
        {
        case .refused(let problem): return problem.status
        case .api(let path): return path == "/v1/id" ? 200 : 0
        case .file, .session: return 201
        }
      }
      #expect(admit() == 200)
      #expect(admit(host: "localhost:4000", origin: "http://localhost:4000") == 200)
      for host in [nil, "", "evil.example", "evil.example:4000", "127.0.0.1", "127.0.0.1:4001", "127.0.0.1:4000."] {
        #expect(admit(host: host) == 403)
        #expect(admit("GET", "/", host: host) == 403)
      }
      for origin in ["null", "http://evil.example", "https://127.0.0.1:4000", "http://localhost:4000"] {
        #expect(admit(origin: origin) == 403)
        #expect(admit("POST", origin: origin) == 403)
        #expect(admit("POST", "/session", origin: origin) == 403)
      }
      #expect(admit("POST", origin: "http://127.0.0.1:4000") == 200)
      #expect(admit("POST") == 403)
      #expect(admit(site: "same-origin") == 200)
      #expect(admit(site: "cross-site") == 403)
      #expect(admit(site: "same-site") == 403)
      #expect(admit("DELETE", origin: "http://127.0.0.1:4000", site: "none") == 403)
      #expect(admit("GET", "/", site: "cross-site") == 201)
      #expect(admit(cookie: "") == 401)
      #expect(admit("GET", door.secret.base) == 401)
      #expect(admit("GET", "") == 401)
    }

    @Test func theSecretAndThePortAreThoseOfLastTime() throws {
      let home = try temporaryHome()
      defer { remove(home) }
      let (first, one) = try PageDoor.open(home: home, port: nil)
      close(one)
      let (second, two) = try PageDoor.open(home: home, port: nil)
      #expect(first.address == second.address)
      var info = stat()
      #expect(lstat("\(home)/\(PageSecret.name)", &info) == 0)
      #expect(info.st_mode & 0o777 == 0o600)
      // Taken meanwhile: another one, but not where it was asked for.
      #expect(throws: LocalAPIError.self) { try PageDoor.open(home: home, port: first.port) }
      let (third, three) = try PageDoor.open(home: home, port: nil)
      #expect(third.port != first.port)
      #expect(third.secret.token == first.secret.token)
      close(two)
      close(three)
      // One that others could have read is not used.
      chmod("\(home)/\(PageSecret.name)", 0o644)
      #expect(PageSecret(home: home).token != first.secret.token)
    }
  }
}

func temporaryHome() throws -> String {
  var template = Array("/tmp/parley-test-XXXXXX".utf8CString)
  return try #require(mkdtemp(&template).map { String(cString: $0) })
}

/// The home and all that a server leaves in it.
func remove(_ path: String) {
  if let listing = opendir(path) {
    while let entry = readdir(listing) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { remove("\(path)/\(name)") }
    }
    closedir(listing)
    rmdir(path)
  } else {
    unlink(path)
  }
}

extension PageSecret {
  fileprivate func on(port: UInt16) -> PageSecret {
    var secret = self
    secret.port = port
    return secret
  }
}
