/// How long something took, counted in steps, as graphs want it: bounded memory whatever is measured.
public struct Histogram: Sendable, Equatable {
  /// Seconds; what took longer is in no step, but in `count`.
  public static let bounds = [0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

  /// How many took at most the bound at this place, those of the places before included.
  public private(set) var counts = [UInt64](repeating: 0, count: Histogram.bounds.count)
  /// How many were measured.
  public private(set) var count: UInt64 = 0
  /// Seconds, all together.
  public private(set) var sum = 0.0

  public init() {}

  public mutating func note(seconds: Double) {
    guard seconds.isFinite, seconds >= 0 else { return }
    count += 1
    sum += seconds
    for (place, bound) in Self.bounds.enumerated() where seconds <= bound { counts[place] += 1 }
  }
}
