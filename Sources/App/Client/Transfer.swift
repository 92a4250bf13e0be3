import CCurl
import ParleyLocalAPI

/// One call to the node, under way or ended. Used by the thread that made it.
final class Transfer {
  let handle: UnsafeMutableRawPointer
  private let headers: UnsafeMutablePointer<curl_slist>?
  private(set) var received: [UInt8] = []
  private var parser = EventStreamParser()
  private var events: [StreamEvent] = []
  /// Set once it ended.
  var outcome: CURLcode?

  private let sink: (([UInt8], Double?) -> Bool)?

  init(
    method: String, url: String, socketPath: String, body: JSON?, headers more: [String],
    sink: (([UInt8], Double?) -> Bool)?
  ) {
    self.sink = sink
    handle = parley_curl_easy()!
    var list = parley_curl_header(nil, "Expect:")
    list = parley_curl_header(list, "Content-Type: application/json")
    for line in more { list = parley_curl_header(list, line) }
    headers = list
    _ = parley_curl_set_text(handle, CURLOPT_URL, url)
    _ = parley_curl_set_text(handle, CURLOPT_UNIX_SOCKET_PATH, socketPath)
    _ = parley_curl_set_text(handle, CURLOPT_CUSTOMREQUEST, method)
    // A proxy of the environment has no business here.
    _ = parley_curl_set_text(handle, CURLOPT_PROXY, "")
    _ = parley_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
    _ = parley_curl_set_headers(handle, headers)
    if let body {
      let bytes = body.bytes
      _ = parley_curl_set_body(handle, bytes, bytes.count)
    }
    _ = parley_curl_set_head_receiver(
      handle,
      { bytes, size, count, context in
        let transfer = Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue()
        transfer.take(headLine: UnsafeRawBufferPointer(start: bytes, count: size * count))
        return size * count
      }, Unmanaged.passUnretained(self).toOpaque())
    _ = parley_curl_set_receiver(
      handle,
      { bytes, size, count, context in
        let transfer = Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue()
        let isTaken = transfer.take(UnsafeRawBufferPointer(start: bytes, count: size * count))
        return isTaken ? size * count : 0
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  deinit {
    parley_curl_end_easy(handle)
    parley_curl_end_headers(headers)
  }

  var status: Int { parley_curl_status(handle) }
  var systemError: Int32 { Int32(truncatingIfNeeded: parley_curl_system_error(handle)) }
  var isListening: Bool { parser.isListening }
  var lastEventID: String? { parser.lastID }

  /// False to end the transfer.
  private func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    if let sink, status == 200 || status == 206 { return sink(Array(bytes), size) }
    if status == 200, let type = contentType, type.hasPrefix("text/event-stream") {
      events += parser.take(bytes)
    } else {
      received += bytes
    }
    return true
  }

  /// What the answer says it brings.
  private var size: Double? {
    let size = parley_curl_content_length(handle)
    return size < 0 ? nil : Double(size)
  }

  /// The number under which the node lists it.
  private(set) var downloadID: String?

  private func take(headLine bytes: UnsafeRawBufferPointer) {
    let line = String(decoding: bytes, as: UTF8.self)
    guard line.lowercased().hasPrefix("parley-download:") else { return }
    downloadID = String(line.dropFirst(16).filter { $0.isNumber })
  }

  private var contentType: String? { parley_curl_content_type(handle).map { String(cString: $0) } }

  func takeEvents() -> [StreamEvent] {
    defer { events = [] }
    return events
  }
}
