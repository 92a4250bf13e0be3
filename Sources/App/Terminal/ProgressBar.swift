import Parley
import ParleyLocalAPI

/// One line at the bottom of a terminal that says how far a download is, or the reading of what is shared.
final class ProgressBar {
  private let start = ContinuousClock.now
  private var firstReceived: Double?
  private var isShown = false

  func show(_ progress: JSON) {
    guard Terminal.isErrorTerminal else { return }
    let received = (progress["received"] ?? progress["hashed"])?.number ?? 0
    // What an earlier try left is not this one's speed.
    let first = firstReceived ?? received
    firstReceived = first
    let line = Self.line(
      received: received, size: progress["size"]?.number ?? 0, sourceCount: progress["sources"]?.integer,
      rate: (received - first) / max(0.001, Double((ContinuousClock.now - start).milliseconds) / 1_000),
      width: Terminal.columnCount)
    Terminal.rawError("\r\(line)\u{1B}[K")
    isShown = true
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
    let barWidth = min(30, width - text.count - 3)
    guard barWidth >= 5 else { return String(text.dropFirst().prefix(max(0, width - 1))) }
    let fullCount = Int(share * Double(barWidth))
    return "[" + String(repeating: "#", count: fullCount) + String(repeating: ".", count: barWidth - fullCount) + "]"
      + text
  }
}
