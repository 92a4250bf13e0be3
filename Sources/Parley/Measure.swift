/// One thing that a node counts or measures of itself, for graphs and alarms. Nothing in it says what was written or
/// by whom.
public struct Measure: Sendable, Equatable {
  /// How its values are to be read.
  public enum Kind: String, Sendable {
    /// Rises while the node runs.
    case counter
    /// As it is now.
    case gauge
    /// How long something took.
    case histogram
  }

  /// A value, told from others of the same measure by its labels.
  public struct Sample: Sendable, Equatable {
    public enum Value: Sendable, Equatable {
      case number(Double)
      case histogram(Histogram)
    }
    /// Names and values; values may be names that people chose.
    public let labels: [(name: String, value: String)]
    public let value: Value

    public init(_ labels: [(name: String, value: String)] = [], _ value: Value) {
      self.labels = labels
      self.value = value
    }

    public static func == (a: Self, b: Self) -> Bool {
      a.value == b.value && a.labels.elementsEqual(b.labels) { $0 == $1 }
    }
  }

  /// In snake_case, with the unit: `parley_datagram_bytes_total`.
  public let name: String
  public let kind: Kind
  /// One sentence.
  public let help: String
  public let samples: [Sample]

  public init(_ name: String, _ kind: Kind, _ help: String, _ samples: [Sample]) {
    self.name = name
    self.kind = kind
    self.help = help
    self.samples = samples
  }

  /// Of whole numbers.
  public static func counts(
    _ name: String, _ kind: Kind, _ help: String, _ values: [([(name: String, value: String)], UInt64)]
  ) -> Measure {
    Measure(name, kind, help, values.map { Sample($0, .number(Double($1))) })
  }
}
