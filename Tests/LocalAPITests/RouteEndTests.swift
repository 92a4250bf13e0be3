import Parley
import Testing

@testable import ParleyLocalAPI

/// What calls are told when the node ends.
extension HTTPTests.RouteTests {
  @Test func aNodeThatStopsAnswersWhoWaits() async throws {
    let gate = AsyncStream<Void>.makeStream()
    let node = FakeNode(gate: gate.stream)
    try await withServer(node) { server, _ in
      let client = TestClient(server.socketPath)
      client.request("POST", "/v1/channels/team/messages", body: #"{"body":"x","wait":60}"#)
      // A second request is answered while the first waits: no thread is held.
      #expect(TestClient(server.socketPath).call("GET", "/v1/id")?.status == 200)
      server.stop()
      #expect(client.response()?.json?["code"]?.string == "stopped")
      gate.continuation.finish()
    }
  }

  @Test func downIsAnsweredBeforeTheEnd() async throws {
    try await withServer { server, node in
      let client = TestClient(server.socketPath)
      client.request("POST", "/v1/down", body: "{}")
      for await _ in node.stopping.stream {}
      server.stop()
      #expect(client.response()?.status == 200)
    }
  }
}
