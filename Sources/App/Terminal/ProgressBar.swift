import Parley
import ParleyLocalAPI

/// One line at the bottom of a terminal that says how far a download is, or the reading of what is shared.
final class ProgressBar {
  /// What was there when, over the last five seconds.
  private var samples: [(at: ContinuousClock.Instant, received: Double)] = []
  private var isShown = false

  func show(_ progress: JSON) {
    guard Terminal.isErrorTerminal else { return }
    let received = (progress["received"] ?? progress["hashed"])?.number ?? 0
    let ownRate = rate(received)
    let line = Self.line(
      received: received, size: progress["size"]?.number ?? 0, sourceCount: progress["sources"]?.integer,
      rate: progress["rate"]?.number ?? ownRate, width: Terminal.columnCount)
    Terminal.rawError("\r\(line)\u{1B}[K")
    isShown = true
  }

  /// What an earlier try left is not this one's speed.
  private func rate(_ received: Double) -> Double {
    let now = ContinuousClock.now
    if samples.count < 2 || now - samples[samples.count - 1].at >= .milliseconds(100) {
      samples.append((now, received))
    }
    while samples.count > 2, now - samples[1].at >= .seconds(5) { samples.removeFirst() }
    return (received - samples[0].received) / max(0.001, Double((now - samples[0].at).milliseconds) / 1_000)
  }

  /// Takes the line away.
  func clear() {
    if isShown { Terminal.rawError("\r\u{1B}[K") }
    isShown = false
  }

  static func line(received: Double, size: Double, sourceCount: Int64?, rate: Double, width: Int) -> String {
    let share = size > 0 ? min(1, max(0, received / size)) : 0
    let percent = Help.padded("", to: 3 - "\(Int(share * 100))".count) + "\(Int(share * 100))%"
    let text =
      " \(percent)  \(Presenter.byteCount(received)) of \(Presenter.byteCount(size))  "
      + "\(Presenter.byteCount(rate))/s" + (sourceCount.map { "  from \($0)" } ?? "")
      + (rate >= 1 && share < 1 ? "  \(Presenter.duration((size - received) / rate)) left" : "")
    let barWidth = min(30, width - text.count - 3)
    guard barWidth >= 5 else { return String(text.dropFirst().prefix(max(0, width - 1))) }
    let fullCount = Int(share * Double(barWidth))
    return "[" + String(repeating: "#", count: fullCount) + String(repeating: ".", count: barWidth - fullCount) + "]"
      + text
  }
}
