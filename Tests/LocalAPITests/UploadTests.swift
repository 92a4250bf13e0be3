import Glibc
import Parley
import Testing

@testable import ParleyLocalAPI

extension HTTPTests {
  @Suite struct UploadTests {
    private func withHome(
      _ node: FakeNode, _ body: @Sendable (LocalServer, String) async throws -> Void
    ) async throws {
      let home = try temporaryHome()
      defer { remove(home) }
      let server = try LocalServer(node: node, home: home)
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

    private func files(below path: String) -> [String] {
      guard let listing = opendir(path) else { return [path] }
      defer { closedir(listing) }
      var found: [String] = []
      while let entry = readdir(listing) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { found += files(below: "\(path)/\(name)") }
      }
      return found
    }

    @Test func aFileLargerThanABodyMayBeIsSharedFromTheDisk() async throws {
      let node = FakeNode()
      try await withHome(node) { server, home in
        let client = TestClient(server.socketPath)
        let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        client.write(
          Array(
            """
            POST /v1/channels/team/uploads?name=..%2F..%2Fa%20b.bin&as=file HTTP/1.1\r\nHost: parley\r
            Content-Length: \(bytes.count)\r\n\r\n
            """.utf8) + bytes)
        let answer = try #require(client.response())
        #expect(answer.status == 201)
        #expect(answer.json?["media_id"]?.string == FakeNode.mediaID.text)
        let path = try #require(files(below: "\(home)/uploads").first { $0.hasSuffix("/a b.bin") })
        #expect(node.calls == ["share \(path) file team"])
        #expect(content(of: path) == bytes)
      }
    }

    @Test func nothingIsLeftOfWhatIsNotShared() async throws {
      let node = FakeNode()
      try await withHome(node) { server, home in
        node.fail(with: .notInChannel(try ChannelName("team")))
        let refused = TestClient(server.socketPath).call("POST", "/v1/channels/team/uploads?name=a", body: "abc")
        #expect(refused?.json?["code"]?.string == "not_in_channel")
        let wrong = TestClient(server.socketPath).call("POST", "/v1/channels/team/uploads?name=a&as=x", body: "abc")
        #expect(wrong?.json?["code"]?.string == "bad_request")
        #expect(files(below: "\(home)/uploads").isEmpty)
      }
    }

    @Test func whatIsCutOffIsRemoved() async throws {
      let node = FakeNode()
      let home = try temporaryHome()
      defer { remove(home) }
      mkdir("\(home)/uploads", 0o700)
      // Of a run that was killed.
      close(open("\(home)/uploads/old.part", O_CREAT | O_WRONLY, 0o600))
      let server = try LocalServer(node: node, home: home)
      #expect(files(below: "\(home)/uploads").isEmpty)
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await server.run() }
        do {
          let client = TestClient(server.socketPath)
          client.write(
            Array(
              "POST /v1/channels/team/uploads?name=a HTTP/1.1\r\nHost: p\r\nContent-Length: 900000\r\n\r\nabc".utf8))
          // Answered after it on the same thread, so that the beginning has come.
          #expect(TestClient(server.socketPath).call("GET", "/v1/id")?.status == 200)
        }
        server.stop()
      }
      #expect(files(below: "\(home)/uploads").isEmpty)
      #expect(node.calls.isEmpty)
    }

    private func content(of path: String) -> [UInt8] {
      let descriptor = open(path, O_RDONLY)
      defer { close(descriptor) }
      var bytes = [UInt8](repeating: 0, count: 4_000_000)
      let count = read(descriptor, &bytes, bytes.count)
      return Array(bytes.prefix(max(0, count)))
    }
  }
}
