extension Timestamp {
  /// A date and time as RFC 3339 section 5.6 has it, years 0000 to 9999: upper-case `T` and `Z`, days that there are,
  /// an offset of less than a day. Nil for anything else, leap seconds included, which cannot be counted in
  /// milliseconds since 1970. What a fraction has beyond milliseconds is cut off.
  public init?(rfc3339 text: String) {
    let bytes = Array(text.utf8)
    guard (20...40).contains(bytes.count) else { return nil }
    var reader = DigitReader(bytes: bytes)
    guard let year = reader.number(4), reader.take("-"), let month = reader.number(2), reader.take("-"),
      let day = reader.number(2), reader.take("T"), let hour = reader.number(2), reader.take(":"),
      let minute = reader.number(2), reader.take(":"), let second = reader.number(2)
    else { return nil }
    guard (1...12).contains(month), (1...Self.dayCount(year, month)).contains(day), hour < 24, minute < 60, second < 60
    else { return nil }
    guard let fraction = reader.milliseconds(), let offset = reader.offsetMinutes(), reader.isAtEnd else { return nil }
    let seconds = Self.days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset * 60
    self.init(milliseconds: seconds * 1_000 + fraction)
  }

  private static func dayCount(_ year: Int64, _ month: Int64) -> Int64 {
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    return [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Int(month) - 1]
  }

  /// Days since 1970-01-01 of a proleptic Gregorian date; Howard Hinnant, "chrono-Compatible Low-Level Date
  /// Algorithms". The year is not negative.
  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    // Years begin in March; that of January 0000 began in -1, which the era before year 0 covers.
    let shifted = year - (month <= 2 ? 1 : 0) + 400
    let yearOfEra = shifted % 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return (shifted / 400 - 1) * 146_097 + dayOfEra - 719_468
  }
}

private struct DigitReader {
  let bytes: [UInt8]
  var position = 0

  init(bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { position == bytes.count }

  private mutating func digit() -> Int64? {
    guard position < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[position]) else { return nil }
    defer { position += 1 }
    return Int64(bytes[position] - UInt8(ascii: "0"))
  }

  mutating func number(_ count: Int) -> Int64? {
    var value: Int64 = 0
    for _ in 0..<count {
      guard let digit = digit() else { return nil }
      value = value * 10 + digit
    }
    return value
  }

  mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard position < bytes.count, bytes[position] == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  /// 0 when there is no fraction; nil for a point without digits.
  mutating func milliseconds() -> Int64? {
    guard take(".") else { return 0 }
    guard var value = digit() else { return nil }
    var count = 1
    while let digit = digit() {
      if count < 3 { value = value * 10 + digit }
      count += 1
    }
    for _ in count..<max(count, 3) { value *= 10 }
    return value
  }

  mutating func offsetMinutes() -> Int64? {
    if take("Z") { return 0 }
    let isBehind = take("-")
    guard isBehind || take("+") else { return nil }
    guard let hours = number(2), take(":"), let minutes = number(2), hours < 24, minutes < 60 else { return nil }
    return (hours * 60 + minutes) * (isBehind ? -1 : 1)
  }
}
