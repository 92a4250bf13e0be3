import CCurl
import Glibc
import Parley
import ParleyLocalAPI

/// Calls the node of a home over its Unix socket. One thread only.
final class NodeClient {
  let home: String
  private let multi: UnsafeMutableRawPointer
  private let socketPath: String
  private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]

  init(home: String) throws(Failure) {
    guard parley_curl_is_available() else {
      throw Failure(
        .unavailable, "libcurl is not installed, which calls the node: apt-get install libcurl4, then try again")
    }
    self.home = home
    multi = parley_curl_multi()!
    socketPath = SocketFile.shortPath(inHome: SocketFile.folder(ofHome: home))
  }

  deinit {
    for handle in transfers.keys { parley_curl_remove(multi, handle) }
    parley_curl_end_multi(multi)
  }

  /// `path`: the parts after `/v1`, not encoded yet.
  /// `sink`: takes what a good answer brings, and how much that will be in all, instead of the transfer; false ends it.
  func start(
    _ method: String, _ path: [String], query: [(String, String)] = [], body: JSON? = nil, headers: [String] = [],
    sink: (([UInt8], _ size: Double?) -> Bool)? = nil
  ) -> Transfer {
    var url = "http://parley/v1/" + path.map(PercentEncoding.encoded).joined(separator: "/")
    if !query.isEmpty { url += "?" + query.map { "\($0)=\(PercentEncoding.encoded($1))" }.joined(separator: "&") }
    let transfer = Transfer(method: method, url: url, socketPath: socketPath, body: body, headers: headers, sink: sink)
    transfers[transfer.handle] = transfer
    parley_curl_add(multi, transfer.handle)
    return transfer
  }

  func end(_ transfer: Transfer) {
    guard transfers.removeValue(forKey: transfer.handle) != nil else { return }
    parley_curl_remove(multi, transfer.handle)
  }

  /// Moves all transfers as far as they go without waiting.
  func advance() {
    parley_curl_advance(multi)
    var outcome = CURLE_OK
    while let handle = parley_curl_next_finished(multi, &outcome) {
      transfers[handle]?.outcome = outcome
      if let transfer = transfers[handle] { end(transfer) }
    }
  }

  /// Waits until a transfer can go on or one of `descriptors` can be read, at most `milliseconds`. Returns those
  /// descriptors.
  func wait(for descriptors: [Int32], milliseconds: Int32 = 1_000) -> [Int32] {
    var entries = descriptors.map { curl_waitfd(fd: $0, events: Int16(CURL_WAIT_POLLIN), revents: 0) }
    parley_curl_wait(multi, &entries, UInt32(entries.count), milliseconds)
    return entries.filter { $0.revents != 0 }.map(\.fd)
  }

  /// Waits for the answer and returns it.
  func call(
    _ method: String, _ path: [String], query: [(String, String)] = [], body: JSON? = nil
  ) throws(Failure) -> JSON {
    let transfer = start(method, path, query: query, body: body)
    defer { end(transfer) }
    while transfer.outcome == nil {
      advance()
      if transfer.outcome != nil { break }
      if Interruption.count > 0 { throw .interrupted }
      _ = wait(for: [Interruption.descriptor])
    }
    try check(transfer)
    do { return try JSON(parsing: transfer.received) } catch {
      throw Failure(.unavailable, "what answers at \(home.escapedLine) is no Parley node: \(error)")
    }
  }

  /// Hands over the events as they come. Returns the one for which `onEvent` said that it is the last; nil when the
  /// stream ended before.
  func stream(
    _ method: String, _ path: [String], query: [(String, String)] = [], body: JSON? = nil,
    onEvent: (StreamEvent) -> Bool
  ) throws(Failure) -> StreamEvent? {
    let transfer = start(method, path, query: query, body: body)
    defer { end(transfer) }
    while true {
      advance()
      for event in transfer.takeEvents() where onEvent(event) { return event }
      if transfer.outcome != nil { break }
      if Interruption.count > 0 { throw .interrupted }
      _ = wait(for: [Interruption.descriptor])
    }
    try check(transfer)
    return nil
  }

  /// Throws what went wrong with a transfer that ended.
  func check(_ transfer: Transfer) throws(Failure) {
    switch transfer.outcome {
    case CURLE_OK: break
    case CURLE_COULDNT_CONNECT:
      if transfer.systemError == EACCES {
        throw Failure(.notPermitted, "the node of \(home.escapedLine) belongs to another user")
      }
      throw noNode
    default: throw Failure(.unavailable, "the node ended before it answered: see parley status")
    }
    guard transfer.status >= 400 else { return }
    guard let problem = try? JSON(parsing: transfer.received) else {
      throw Failure(.unavailable, "what answers at \(home.escapedLine) is no Parley node (status \(transfer.status))")
    }
    throw Failure(problem: problem)
  }

  private var noNode: Failure {
    Failure(.unavailable, "no node runs on \(home.escapedLine): start one with parley up, or parley chat CHANNEL")
  }

  func isNodeRunning() -> Bool { (try? call("GET", ["status"])) != nil }
}
