import Glibc
import Parley
import Testing

@testable import ParleyLocalAPI

extension HTTPTests {
  @Suite struct DescriptionTests {
    /// OpenAPI writes `{name}` where the table of routes has `*`.
    private func described() throws -> Set<String> {
      let document = try JSON(parsing: Array(PageFile.openAPI.utf8))
      var operations: Set<String> = []
      for path in document["paths"]?.members ?? [] {
        let pattern = path.name.split(separator: "/").map { $0.hasPrefix("{") ? "*" : String($0) }
        for method in path.value.members ?? [] {
          operations.insert("\(method.name.uppercased()) \(pattern.joined(separator: "/"))")
        }
      }
      return operations
    }

    @Test func everyAddressIsDescribedAndNoOther() throws {
      let (described, routes) = (try described(), Set(Router.addresses))
      #expect(described.count > 60)
      #expect(described.subtracting(routes).sorted() == [], "described, and not there")
      #expect(routes.subtracting(described).sorted() == [], "there, and not described")
    }

    @Test func theDescriptionIsServed() async throws {
      try await withServer { server, _ in
        let answer = try #require(TestClient(server.socketPath).call("GET", "/v1/openapi.json"))
        #expect(answer.headers["content-type"] == "application/json")
        #expect(answer.json?["openapi"]?.string == "3.1.0")
      }
    }

    @Test func metricsAreInPrometheusFormat() async throws {
      try await withServer { server, _ in
        #expect(TestClient(server.socketPath).call("GET", "/v1/id")?.status == 200)
        let answer = try #require(TestClient(server.socketPath).call("GET", "/metrics"))
        let text = String(decoding: answer.body, as: UTF8.self)
        #expect(answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
        #expect(text.contains("# TYPE parley_members gauge\nparley_members{channel=\"a\\\"b\\\\c\\nd\"} 2\n"))
        #expect(text.contains("parley_store_commit_seconds_bucket{le=\"0.0025\"} 0\n"))
        #expect(text.contains("parley_store_commit_seconds_bucket{le=\"0.005\"} 1\n"))
        #expect(text.contains("parley_store_commit_seconds_bucket{le=\"+Inf\"} 1\n"))
        #expect(text.contains("parley_store_commit_seconds_sum 0.003\nparley_store_commit_seconds_count 1\n"))
        #expect(text.contains("parley_request_seconds_count{route=\"GET /v1/id\"} 1\n"))
        #expect(text.contains("parley_event_streams 0\n"))
      }
    }

    @Test func doctorTellsWhatToTry() async throws {
      try await withServer { server, _ in
        let answer = try #require(TestClient(server.socketPath).call("GET", "/v1/doctor")?.json)
        #expect(answer["well"]?.bool == false)
        #expect(answer["interfaces"]?.array?.first?["came_back"]?.integer == 4)
        #expect(answer["findings"]?.array?.first?["advice"]?.string == "make room")
        #expect(answer["reached"]?.array?.first?["fingerprint"]?.string == FakeNode.ben.fingerprint)
      }
    }

    @Test func anUploadGoesWhenItIsSharedNoMore() async throws {
      try await withServer { server, home in
        let shared = TestClient(server.socketPath).call("POST", "/v1/channels/team/uploads?name=a.txt", body: "abc")
        #expect(shared?.status == 201)
        // Somebody else's file in the same folder stays.
        mkdir("\(home)/uploads/other", 0o700)
        #expect(names(in: "\(home)/uploads").count == 3)
        let target = "/v1/media/\(FakeNode.mediaID.text)"
        #expect(TestClient(server.socketPath).call("DELETE", target)?.status == 200)
        #expect(names(in: "\(home)/uploads") == ["other"])
      }
    }

    @Test func onlyWhatNothingRunsIsOpened() throws {
      let folder = try temporaryHome()
      defer { remove(folder) }
      for (name, mode, opens) in [
        ("a.pdf", 0o644, true), ("a.PNG", 0o600, true), ("a.desktop", 0o644, false), ("a.html", 0o644, false),
        ("a.svg", 0o644, false), ("a.sh", 0o644, false), ("a.jar", 0o644, false), ("a.docm", 0o644, false),
        ("tool.txt", 0o755, false), (".pdf", 0o644, false), ("pdf", 0o644, false), ("a.pdf.exe", 0o644, false),
      ] {
        close(open("\(folder)/\(name)", O_CREAT | O_WRONLY, mode_t(mode)))
        #expect(Desktop.opens("\(folder)/\(name)") == opens, "\(name)")
      }
      symlink("/etc/passwd", "\(folder)/link.txt")
      #expect(Desktop.opens("\(folder)/link.txt") == false)
      #expect(Desktop.opens("\(folder)/gone.pdf") == false)
      #expect(Desktop.opens(folder))
    }

    @Test func whatIsNotFinishedIsNotOpened() async throws {
      try await withServer { server, _ in
        for action in ["open", "reveal"] {
          let answer = TestClient(server.socketPath).call("POST", "/v1/downloads/7/\(action)")
          #expect(answer?.status == 404)
          #expect(answer?.json?["code"]?.string == "no_such_download")
        }
      }
    }

    private func names(in folder: String) -> [String] {
      guard let listing = opendir(folder) else { return [] }
      defer { closedir(listing) }
      var names: [String] = []
      while let entry = readdir(listing) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
      }
      return names.sorted()
    }

    private func withServer(_ body: @Sendable (LocalServer, String) async throws -> Void) async throws {
      let home = try temporaryHome()
      defer { remove(home) }
      let server = try LocalServer(node: FakeNode(), home: home)
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { await server.run() }
        do { try await body(server, home) } catch {
          server.stop()
          throw error
        }
        server.stop()
        try await group.waitForAll()
      }
    }
  }
}
