import ParleyVocabulary

/// How fast a number of bytes has grown over the last seconds.
package struct RateMeter: Sendable {
  package static let window = Span.seconds(5)
  /// Of what comes closer together only the last counts, so that few are kept.
  static let resolution = Span.milliseconds(100)

  private var samples: [(at: Instant, byteCount: UInt64)] = []

  package init() {}

  /// So many bytes are there now. Fewer than before: it begins anew.
  package mutating func note(_ byteCount: UInt64, at now: Instant) {
    if let last = samples.last, last.byteCount > byteCount { samples = [] }
    if samples.count > 1, now - samples[samples.count - 2].at < Self.resolution { samples.removeLast() }
    samples.append((now, byteCount))
    while samples.count > 2, now - samples[1].at >= Self.window { samples.removeFirst() }
  }

  /// 0 when nothing came within the window.
  package func bytesPerSecond(at now: Instant) -> UInt64 {
    guard let last = samples.last, now - last.at < Self.window,
      let first = samples.first(where: { now - $0.at <= Self.window }) ?? samples.first
    else { return 0 }
    let microseconds = UInt64(clamping: (now - first.at).microseconds)
    guard microseconds >= 1_000 else { return 0 }
    let (product, overflow) = (last.byteCount - first.byteCount).multipliedReportingOverflow(by: 1_000_000)
    return overflow ? (last.byteCount - first.byteCount) / microseconds * 1_000_000 : product / microseconds
  }
}
