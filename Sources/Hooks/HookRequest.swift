import CCurl
import Glibc
import ParleyVocabulary

/// A POST of one question to an address.
struct HookRequest {
  private let call: HookCall

  init(_ call: HookCall) { self.call = call }

  /// What the answer brings, up to its bound.
  private final class Received {
    var bytes: [UInt8] = []
    var isTooMuch = false
  }

  func run(_ url: String) throws(HookError) -> [UInt8] {
    guard parley_curl_is_available() else {
      throw .notStarted(reason: "libcurl is not installed: apt-get install libcurl4")
    }
    guard let handle = parley_curl_easy() else { throw .notStarted(reason: "libcurl has no memory") }
    defer { parley_curl_end_easy(handle) }
    var headers = parley_curl_header(nil, "Content-Type: application/json")
    headers = parley_curl_header(headers, "Expect:")
    defer { parley_curl_end_headers(headers) }
    let received = Received()
    _ = parley_curl_set_text(handle, CURLOPT_URL, url)
    _ = parley_curl_set_text(handle, CURLOPT_PROXY, "")
    _ = parley_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
    _ = parley_curl_set_headers(handle, headers)
    _ = parley_curl_set_body(handle, call.question, call.question.count)
    _ = parley_curl_set_receiver(
      handle,
      { bytes, size, count, context in
        let received = Unmanaged<Received>.fromOpaque(context!).takeUnretainedValue()
        let part = UnsafeRawBufferPointer(start: bytes, count: size * count)
        received.isTooMuch = received.bytes.count + part.count > HookCall.answerByteCountMax
        if received.isTooMuch { return 0 }
        received.bytes += part
        return part.count
      }, Unmanaged.passUnretained(received).toOpaque())
    let outcome = try withExtendedLifetime(received) { () throws(HookError) in try perform(handle) }
    if received.isTooMuch { throw .tooMuch(byteCountMax: HookCall.answerByteCountMax) }
    guard outcome == CURLE_OK else {
      throw .failed(reason: outcome == CURLE_COULDNT_CONNECT ? "nobody answers there" : "the call broke off")
    }
    let status = parley_curl_status(handle)
    guard (200...299).contains(status) else { throw .failed(reason: "it answered with status \(status)") }
    return received.bytes
  }

  /// Until it ends, or its time does.
  private func perform(_ handle: UnsafeMutableRawPointer) throws(HookError) -> CURLcode {
    guard let multi = parley_curl_multi() else { throw .notStarted(reason: "libcurl has no memory") }
    defer { parley_curl_end_multi(multi) }
    parley_curl_add(multi, handle)
    defer { parley_curl_remove(multi, handle) }
    let end = Self.milliseconds() + Int64(call.milliseconds)
    while true {
      parley_curl_advance(multi)
      var outcome = CURLE_OK
      if parley_curl_next_finished(multi, &outcome) != nil { return outcome }
      let left = end - Self.milliseconds()
      guard left > 0 else { throw .tooSlow(milliseconds: call.milliseconds) }
      parley_curl_wait(multi, nil, 0, Int32(clamping: left))
    }
  }

  private static func milliseconds() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000
  }
}
