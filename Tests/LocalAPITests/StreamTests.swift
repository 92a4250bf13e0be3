import Glibc
import Parley
import Testing

@testable import ParleyLocalAPI

extension HTTPTests.StreamTests {
  private static let team = try! ChannelName("team")

  /// An open event stream: the head is read, and from here on nothing is missed.
  private func listen(
    _ server: LocalServer, query: String = "", lastEventID: String? = nil, cursor: UInt64 = 4_711
  ) throws -> TestClient {
    let client = TestClient(server.socketPath)
    client.request("GET", "/v1/events\(query)", headers: lastEventID.map { ["Last-Event-ID: \($0)"] } ?? [])
    let head = try #require(client.head())
    #expect(head.status == 200)
    #expect(head.headers["content-type"] == "text/event-stream")
    #expect(client.chunk() == ":listening\nid: \(cursor)\n\n")
    return client
  }

  @Test func eventsComeAsTheyHappen() async throws {
    try await withServer { server, node in
      let client = try listen(server)
      node.emit(.message(FakeNode.message("hello", cursor: 7, channel: Self.team)))
      let message = try #require(client.chunk())
      #expect(message.hasPrefix("id: 7\nevent: message\ndata: {\"sender\":{"))
      #expect(message.contains("\"delivered_to\":[],\"recognition\":{\"verified\":false,"))
      #expect(message.hasSuffix("}\n\n"))
      #expect(message.split(separator: "\n").count == 3)
      node.emit(.memberChanged(Self.team, FakeNode.members[1]))
      #expect(client.chunk()?.hasPrefix("event: member\ndata: {\"peer_id\":\"\(FakeNode.ben.text)\"") == true)
      node.emit(.impostor(Self.team, FakeNode.members[1], of: FakeNode.ana))
      let impostor = try #require(client.chunk())
      #expect(impostor.hasPrefix("event: impostor\ndata: {\"peer_id\":\"\(FakeNode.ben.text)\""))
      #expect(impostor.hasSuffix("\"channel\":\"team\",\"poses_as\":\"\(FakeNode.ana.text)\"}\n\n"))
      let word = OrganiserWord(name: "Ben Roe", role: nil, expires: Timestamp(milliseconds: 0))
      node.emit(.tokenAccepted(Self.team, FakeNode.ben, word))
      #expect(client.chunk()?.contains("\"organiser_name\":\"Ben Roe\",\"organiser_role\":null,") == true)
      node.emit(.tokenRefused(Self.team, FakeNode.ben, .expired(at: word.expires), isSelf: false))
      #expect(client.chunk()?.contains("\"self\":false,\"reason\":\"expired\",\"detail\":\"the login") == true)
      node.emit(.dropped(4, since: 7))
      #expect(client.chunk() == "event: dropped\ndata: {\"count\":4,\"since\":7}\n\n")
      #expect(node.calls == ["events - -"])
    }
  }

  @Test func aStreamGoesOnAfterACursor() async throws {
    try await withServer { server, node in
      _ = try listen(server, query: "?channel=team&since=12", cursor: 12)
      _ = try listen(server, query: "?since=12", lastEventID: "13", cursor: 13)
      _ = try listen(server, query: "?since=0", cursor: 0)
      #expect(node.calls == ["events 12 team", "events 13 -", "events 0 -"])
      for query in ["?since=x", "?since=-1", "?since="] {
        let answer = try #require(TestClient(server.socketPath).call("GET", "/v1/events\(query)"))
        #expect(answer.status == 400)
      }
      let client = TestClient(server.socketPath)
      client.request("GET", "/v1/events", headers: ["Last-Event-ID: seven"])
      #expect(client.head()?.status == 400)
      node.fail(with: .unknownCursor(99, last: 7))
      let refused = try #require(TestClient(server.socketPath).call("GET", "/v1/events?since=99"))
      #expect(refused.status == 409)
      #expect(refused.json?["code"]?.string == "unknown_cursor")
    }
  }

  @Test func aSilentStreamIsKeptAlive() async throws {
    try await withServer(keepAlive: .milliseconds(150)) { server, _ in
      let client = try listen(server)
      #expect(client.chunk() == ":\n\n")
      #expect(client.chunk() == ":\n\n")
    }
  }

  @Test func nothingComesBeforeWhatAStreamBeginsWith() async {
    let outlet = EventOutlet()
    // Due at once, however late the first write is.
    _ = outlet.keepAlive(every: .zero)
    #expect(await outlet.write(Array("first".utf8)))
    var buffer = [UInt8](repeating: 0, count: 64)
    // Looked at only when there is nothing to read.
    let connection = ConnectionReference(pointer: OpaquePointer(bitPattern: 1)!)
    var count = buffer.withUnsafeMutableBytes { outlet.read(into: $0, for: connection) }
    #expect(String(decoding: buffer[..<count], as: UTF8.self) == "first")
    _ = outlet.keepAlive(every: .zero)
    count = buffer.withUnsafeMutableBytes { outlet.read(into: $0, for: connection) }
    #expect(String(decoding: buffer[..<count], as: UTF8.self) == ":\n\n")
  }

  @Test func fiftyStreamsAtOnceAllGetEverything() async throws {
    try await withServer { server, node in
      let clients = try (0..<50).map { _ in try listen(server) }
      for cursor in 1...20 { node.emit(.message(FakeNode.message("x", cursor: UInt64(cursor), channel: Self.team))) }
      for client in clients {
        var text = ""
        while !text.contains("id: 20\n") { text += try #require(client.chunk()) }
        #expect(text.components(of: "event: message") == 20)
      }
      #expect(TestClient(server.socketPath).call("GET", "/v1/id")?.status == 200)
    }
  }

  /// The node's own buffer of events bounds what waits: the server takes no more from it than a socket and about 64 KiB
  /// hold. So with a buffer of 256, of 5,000 events most are gone, and the stream still works.
  @Test func aClientThatDoesNotReadCostsBoundedMemory() async throws {
    try await withServer { server, node in
      let client = try listen(server)
      let body = String(repeating: "x", count: 20_000)
      let count = 5_000
      for cursor in 1...count {
        node.emit(.message(FakeNode.message(body, cursor: UInt64(cursor), channel: Self.team)))
      }
      #expect(node.state.withLock { $0.bufferingCounts } == [256])
      var seen = 0
      var text = ""
      while !text.contains("id: \(count)\n") {
        // Keeps the tail only: an ID may be cut between two chunks.
        text = String(text.suffix(32)) + (try #require(client.chunk()))
        if text.contains("event: message") { seen += 1 }
      }
      #expect(seen < 1_000)
    }
  }

  @Test func sharingTellsItsProgressAndEnd() async throws {
    try await withServer { server, _ in
      let client = TestClient(server.socketPath)
      client.request("POST", "/v1/channels/team/media", body: #"{"path":"/tmp/folder","progress":true}"#)
      #expect(client.head()?.status == 200)
      var text = ""
      while let chunk = client.chunk(), !chunk.isEmpty { text += chunk }
      #expect(text.hasPrefix("event: progress\ndata: {\"hashed\":5,\"size\":10,\"files\":2}\n\nevent: shared\n"))
      #expect(text.contains("\"media_id\":\"\(FakeNode.mediaID.text)\""))
      #expect(
        text.hasSuffix(
          #""files":2,"skipped_count":1,"skipped":[{"path":"a/link","reason":"is a symbolic link"}],"notes":[]}"#
            + "\n\n"))
    }
  }

  @Test func downloadsTellTheirProgressAndEnd() async throws {
    try await withServer { server, node in
      node.state.withLock {
        $0.downloadEvents = [
          .progress(receivedByteCount: 10, byteCount: 42, sourceCount: 2, bytesPerSecond: 5),
          .finished(path: "/tmp/plan.pdf"),
        ]
      }
      let client = TestClient(server.socketPath)
      client.request("POST", "/v1/downloads", body: #"{"media_id":"\#(FakeNode.mediaID.text)","folder":"/tmp"}"#)
      #expect(client.head()?.status == 200)
      var text = ""
      while let chunk = client.chunk(), !chunk.isEmpty { text += chunk }
      #expect(text.contains("event: progress\ndata: {\"received\":10,\"size\":42,\"sources\":2,\"rate\":5}\n\n"))
      #expect(text.hasSuffix("\"path\":\"/tmp/plan.pdf\"}\n\n"))
      #expect(node.state.withLock { $0.paused }.isEmpty)
    }
  }

  @Test func aDownloadThatFailsSaysWhyAsAProblem() async throws {
    try await withServer { server, node in
      node.state.withLock { $0.downloadEvents = [.failed(.noSource(FakeNode.mediaID))] }
      let client = TestClient(server.socketPath)
      client.request(
        "POST", "/v1/downloads",
        body: #"{"media_id":"\#(FakeNode.mediaID.text)","path":"/tmp/x","replace":true}"#)
      #expect(client.head()?.status == 200)
      var text = ""
      while let chunk = client.chunk(), !chunk.isEmpty { text += chunk }
      #expect(text.contains("event: failed\n") && text.contains("\"code\":\"no_source\""))
      #expect(node.calls == ["download \(FakeNode.mediaID.text) file(\"/tmp/x\", replacing: true)"])
    }
  }

  @Test func aClientThatGoesAwayPausesItsDownload() async throws {
    try await withServer { server, node in
      node.state.withLock { $0.isDownloadEndless = true }
      do {
        let client = TestClient(server.socketPath)
        client.request("POST", "/v1/downloads", body: #"{"media_id":"\#(FakeNode.mediaID.text)","folder":"/tmp"}"#)
        #expect(client.head()?.status == 200)
        #expect(client.chunk()?.hasPrefix("event: started\n") == true)
        shutdown(client.socket, Int32(SHUT_RDWR))
      }
      var paused: DownloadID?
      for await download in node.pauses.stream {
        paused = download
        break
      }
      #expect(paused == DownloadID(9))
    }
  }

  @Test func mediaComesInOrderAndInRanges() async throws {
    try await withServer { server, node in
      let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 7) }
      node.state.withLock { $0.bytes = bytes }
      let target = "/v1/media/\(FakeNode.mediaID.text)/bytes"
      func get(_ range: String?) throws -> TestClient.Response {
        let client = TestClient(server.socketPath)
        client.request("GET", target, headers: range.map { ["Range: \($0)"] } ?? [])
        return try #require(client.response())
      }
      let whole = try get(nil)
      #expect(whole.status == 200 && whole.body == bytes)
      #expect(whole.headers["content-length"] == "3000000" && whole.headers["accept-ranges"] == "bytes")
      #expect(whole.headers["x-content-type-options"] == "nosniff")
      #expect(whole.headers["content-security-policy"] == "sandbox; default-src 'none'")
      #expect(whole.headers["content-disposition"]?.hasPrefix("attachment; filename*=UTF-8''") == true)
      #expect(whole.headers["parley-download"] == "9" && whole.headers["content-range"] == nil)
      let part = try get("bytes=1000000-2000000")
      #expect(part.status == 206 && part.body == Array(bytes[1_000_000...2_000_000]))
      #expect(part.headers["content-range"] == "bytes 1000000-2000000/3000000")
      #expect(try get("bytes=2999999-").body == [bytes[2_999_999]])
      #expect(try get("bytes=-5").body == Array(bytes.suffix(5)))
      // Not of one range of bytes: ignored.
      for header in ["bytes=5-4", "bytes=0-1,4-5", "lines=1-2", "bytes=", "bytes=-", "bytes=x-1"] {
        #expect(try get(header).status == 200)
      }
      node.fail(with: .outOfRange(FakeNode.mediaID, byteCount: 3_000_000))
      let refused = try get("bytes=3000000-")
      #expect(refused.status == 416 && refused.json?["code"]?.string == "out_of_range")
    }
  }

  @Test func onlyPicturesSoundAndFilmKeepTheirType() {
    #expect(Router.contentType("image/png") == "image/png" && Router.contentType("video/mp4") == "video/mp4")
    for type in ["text/html", "image/", "image/png; x", "image/\r\nX: y", "video/mp4/x", "IMAGE/png", ""] {
      #expect(Router.contentType(type) == "application/octet-stream")
    }
    #expect(Router.contentType(nil) == "application/octet-stream")
  }

  @Test func streamsEndWhenTheNodeStops() async throws {
    try await withServer { server, _ in
      let client = try listen(server)
      server.stop()
      #expect(client.isClosedByPeer())
    }
  }
}

extension String {
  fileprivate func components(of part: String) -> Int {
    var count = 0
    var rest = self[...]
    while let index = rest.firstIndex(of: part.first!) {
      if rest[index...].hasPrefix(part) { count += 1 }
      rest = rest[rest.index(after: index)...]
    }
    return count
  }
}
