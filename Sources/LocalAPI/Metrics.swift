import Parley
import Synchronization

/// How long requests took, by address. One for all that a node is reached by.
package final class RequestTimes: Sendable {
  private let times = Mutex<[String: Histogram]>([:])

  package init() {}

  /// Of `route`, as it stands in the table: no name that anybody chose.
  func note(_ route: String, _ time: Duration) {
    let (seconds, attoseconds) = time.components
    times.withLock { $0[route, default: Histogram()].note(seconds: Double(seconds) + Double(attoseconds) / 1e18) }
  }

  var measure: Measure {
    let samples = times.withLock { times in
      times.sorted { $0.key < $1.key }.map { Measure.Sample([("route", $0.key)], .histogram($0.value)) }
    }
    return Measure(
      "parley_request_seconds", .histogram,
      "From a request of the local API to its answer; of messages sent, until they are on the disk.", samples)
  }
}

extension Router {
  func metrics() async -> Reply {
    let own = Measure.counts(
      "parley_event_streams", .gauge, "Event streams that are open.", [([], UInt64(clamping: streamCount()))])
    return .text(
      Metrics.text(await node.measures() + [own, times.measure]), type: "text/plain; version=0.0.4; charset=utf-8")
  }
}

/// Prometheus' text format, version 0.0.4.
enum Metrics {
  static func text(_ measures: [Measure]) -> String {
    var text = ""
    for measure in measures {
      text += "# HELP \(measure.name) \(escaped(measure.help))\n# TYPE \(measure.name) \(measure.kind.rawValue)\n"
      for sample in measure.samples {
        switch sample.value {
        case .number(let number): text += "\(measure.name)\(labels(sample.labels)) \(format(number))\n"
        case .histogram(let histogram): text += lines(of: histogram, measure.name, sample.labels)
        }
      }
    }
    return text
  }

  private static func lines(
    of histogram: Histogram, _ name: String, _ given: [(name: String, value: String)]
  ) -> String {
    var text = ""
    for (bound, count) in zip(Histogram.bounds, histogram.counts) {
      text += "\(name)_bucket\(labels(given + [("le", format(bound))])) \(count)\n"
    }
    text += "\(name)_bucket\(labels(given + [("le", "+Inf")])) \(histogram.count)\n"
    text += "\(name)_sum\(labels(given)) \(format(histogram.sum))\n"
    return text + "\(name)_count\(labels(given)) \(histogram.count)\n"
  }

  private static func labels(_ labels: [(name: String, value: String)]) -> String {
    guard !labels.isEmpty else { return "" }
    let parts = labels.map { "\($0.name)=\"\(escaped($0.value).replacing("\"", with: "\\\""))\"" }
    return "{" + parts.joined(separator: ",") + "}"
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
  }

  private static func format(_ number: Double) -> String {
    number == number.rounded() && abs(number) < 9e15 ? "\(Int64(number))" : "\(number)"
  }
}
