import CMicroHTTPD
import Parley
import Synchronization

/// What a call is answered with.
enum Answer: Sendable {
  case json(JSON, status: UInt32 = 200, headers: [(name: String, value: String)] = [])
  case text(String, type: String)
  case problem(Problem)
  case file(PageFile)
  /// A stream of server-sent events, or the bytes of a file.
  case stream(EventOutlet)
}

/// One request on its way through libmicrohttpd: its body is collected, the connection is suspended while the node
/// works on it, and resumed with the answer.
final class Exchange: Sendable {
  private enum Phase {
    /// → `refused`: the body is too large. → `waiting`: the body is complete.
    case receiving
    /// The rest of the body is read and thrown away; then the problem is the answer.
    case refused(Problem)
    /// Suspended. → `answered`: the node is done, or stops.
    case waiting(ConnectionReference)
    /// → `over`: libmicrohttpd took it.
    case answered(Answer)
    case over
  }

  private struct State {
    var phase = Phase.receiving
    var body: [UInt8] = []
    var discardedByteCount = 0
    var outlet: EventOutlet?
  }

  let method: String
  let path: String
  let query: [(name: String, value: String)]
  let lastEventID: String?
  let range: String?
  /// Takes the body, if it is a file.
  let upload: Upload?
  /// Whether it brings the token that lets a browser in.
  let isSession: Bool
  private let state = Mutex(State())

  init(
    method: String, path: String, query: [(name: String, value: String)], lastEventID: String?, range: String?,
    upload: Upload? = nil, isSession: Bool = false
  ) {
    self.isSession = isSession
    self.upload = upload
    self.method = method
    self.range = range
    self.lastEventID = lastEventID
    self.path = path
    self.query = query
  }

  /// False when so much came that the connection is better cut.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
    state.withLock { state in
      if let upload, case .receiving = state.phase {
        if let problem = upload.write(bytes) { state.phase = .refused(problem) }
        return true
      }
      guard case .receiving = state.phase, state.body.count + bytes.count <= LocalServer.bodyByteCountMax else {
        if case .receiving = state.phase { state.phase = .refused(.bodyTooLarge) }
        state.body = []
        state.discardedByteCount += bytes.count
        return state.discardedByteCount <= 16 * LocalServer.bodyByteCountMax
      }
      state.body += bytes
      return true
    }
  }

  enum Step {
    /// The request is complete and the connection suspended: work on it.
    case work(body: [UInt8])
    case answer(Answer)
    /// libmicrohttpd asks again about a suspended connection, which it should not.
    case none
  }

  /// The body is complete, or the connection was resumed.
  func proceed(_ connection: ConnectionReference) -> Step {
    state.withLock { state in
      switch state.phase {
      case .receiving:
        state.phase = .waiting(connection)
        MHD_suspend_connection(connection.pointer)
        defer { state.body = [] }
        return .work(body: state.body)
      case .refused(let problem):
        state.phase = .over
        return .answer(.problem(problem))
      case .answered(let answer):
        state.phase = .over
        if case .stream(let outlet) = answer { state.outlet = outlet }
        return .answer(answer)
      case .waiting, .over: return .none
      }
    }
  }

  /// The first answer counts. Returns whether it was this one.
  @discardableResult func complete(_ answer: Answer) -> Bool {
    state.withLock { state in
      guard case .waiting(let connection) = state.phase else { return false }
      state.phase = .answered(answer)
      MHD_resume_connection(connection.pointer)
      return true
    }
  }

  var outlet: EventOutlet? { state.withLock { $0.outlet } }

  /// libmicrohttpd is done with the request, one way or another.
  func end() {
    let outlet = state.withLock { state in
      let answered: EventOutlet? = if case .answered(.stream(let outlet)) = state.phase { outlet } else { nil }
      state.phase = .over
      state.body = []
      return state.outlet ?? answered
    }
    outlet?.close()
    upload?.discard()
  }

  /// The node stops: who waits is told so, and streams end.
  func stop() {
    complete(.problem(.stopping))
    outlet?.finish()
  }
}
