/// A moment of a monotonic clock, in microseconds since that clock's start. Says nothing about the time of day.
public struct Instant: Hashable, Comparable, Sendable {
  public let microseconds: UInt64
  public init(microseconds: UInt64) { self.microseconds = microseconds }
  public static func < (a: Self, b: Self) -> Bool { a.microseconds < b.microseconds }
  public static func + (a: Self, b: Span) -> Self {
    let (sum, overflow) = a.microseconds.addingReportingOverflow(UInt64(clamping: b.microseconds))
    return .init(microseconds: overflow ? .max : sum)
  }
  /// Zero when `b` is later.
  public static func - (a: Self, b: Self) -> Span {
    .init(microseconds: a > b ? Int64(clamping: a.microseconds - b.microseconds) : 0)
  }
}

/// A length of time in microseconds.
public struct Span: Hashable, Comparable, Sendable {
  public let microseconds: Int64
  public init(microseconds: Int64) { self.microseconds = microseconds }
  public static func milliseconds(_ count: Int) -> Self { .init(microseconds: Int64(count) * 1_000) }
  public static func seconds(_ count: Int) -> Self { .init(microseconds: Int64(count) * 1_000_000) }
  public static func < (a: Self, b: Self) -> Bool { a.microseconds < b.microseconds }
  public static func * (a: Self, factor: Int) -> Self { .init(microseconds: a.microseconds * Int64(factor)) }
}

/// A time of day as a sender states it: milliseconds since 1970-01-01T00:00:00Z. Shown, never trusted.
public struct Timestamp: Hashable, Comparable, Sendable {
  public let milliseconds: Int64
  public init(milliseconds: Int64) { self.milliseconds = milliseconds }
  public static func < (a: Self, b: Self) -> Bool { a.milliseconds < b.milliseconds }

  /// RFC 3339 in UTC with whole seconds, as the schema writes it: `2021-03-12T09:05:16Z`.
  public var text: String {
    let seconds = milliseconds.dividing(floorBy: 1_000)
    let days = seconds.dividing(floorBy: 86_400)
    let (year, month, day) = Self.civil(fromDays: days)
    let rest = seconds - days * 86_400
    func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
    let digits = "\(abs(year))"
    let padded = (year < 0 ? "-" : "") + String(repeating: "0", count: max(0, 4 - digits.utf8.count)) + digits
    return padded + "-\(two(month))-\(two(day))T\(two(rest / 3_600)):\(two(rest / 60 % 60)):\(two(rest % 60))Z"
  }

  /// The proleptic Gregorian date of a day number; Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
  private static func civil(fromDays days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + 719_468
    let era = shifted.dividing(floorBy: 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
  }
}

extension Int64 {
  fileprivate func dividing(floorBy divisor: Int64) -> Int64 {
    let quotient = self / divisor
    return self % divisor < 0 ? quotient - 1 : quotient
  }
}
