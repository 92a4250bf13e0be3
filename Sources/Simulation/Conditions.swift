import ParleyVocabulary

/// How bad the simulated network is. Probabilities are from 0 to 1 and hold for each datagram on each way.
public struct SimulatedConditions: Sendable {
  public var loss: Double
  public var duplication: Double
  /// How likely a datagram is overtaken by those sent up to 200 ms after it.
  public var reordering: Double
  /// How likely a datagram is heard once more up to 30 s later.
  public var replay: Double
  /// Whether ways differ: each one's loss is then between half and one and a half of `loss`.
  public var differsByWay: Bool
  /// One way, at least and at most.
  public var delay: ClosedRange<Span>
  /// Whether sessions are spared: no dial and no segment is lost.
  public var datagramsOnly = false
  /// From a write to its commit, at least and at most.
  public var diskDelay: ClosedRange<Span>

  public init(
    loss: Double = 0, duplication: Double = 0, reordering: Double = 0, replay: Double = 0,
    differsByWay: Bool = false, delay: ClosedRange<Span> = .milliseconds(1) ... .milliseconds(3),
    diskDelay: ClosedRange<Span> = .milliseconds(1) ... .milliseconds(12)
  ) {
    self.loss = loss
    self.duplication = duplication
    self.reordering = reordering
    self.replay = replay
    self.differsByWay = differsByWay
    self.delay = delay
    self.diskDelay = diskDelay
  }
}

/// Names a node of a simulated network.
public struct SimulatedNodeID: Hashable, Comparable, Sendable {
  let index: Int
  public static func < (a: Self, b: Self) -> Bool { a.index < b.index }
}

/// How a node's clock of the day goes; the protocol must not care.
public enum SimulatedClock: Sendable, CaseIterable {
  case right, in1970, aYearAhead

  /// Milliseconds since 1970 when the simulated time is `now`.
  func milliseconds(at now: Instant) -> UInt64 {
    let base: UInt64 =
      switch self {
      case .right: 1_780_000_000_000
      case .in1970: 0
      case .aYearAhead: 1_780_000_000_000 + 365 * 86_400_000
      }
    return base + now.microseconds / 1_000
  }
}

/// A mistake made on purpose, to see that the checks notice it.
public enum SimulatedFault: String, Sendable, CaseIterable {
  /// The machines are told that a batch is on the disk before it is.
  case acknowledgesBeforePersisting
  /// The disk says that it has a batch and forgets the last one in a crash.
  case losesLastBatch
  /// A restarted node tells its application again what it was told before.
  case notifiesAgain
  /// The disk does not recognise what it has: duplicates become new.
  case storesWhatItHas
  /// The history is shown as it arrived.
  case ordersByArrival
  /// A restarted node goes on in the log, and under the incarnation, of its last run.
  case keepsItsInstance
}

/// A member as a simulated node shows it.
public struct SimulatedMember: Equatable, Sendable {
  public let node: SimulatedNodeID
  public let name: String
  public let isOnline: Bool
  public let isHandRaised: Bool
}

/// What a node sent and heard.
public struct SimulatedTraffic: Sendable {
  /// UDP payloads.
  public var datagramByteCountSent = 0
  public var datagramByteCountHeard = 0
  /// Sealed session payloads and their length prefixes, without TCP's own.
  public var sessionByteCountSent = 0
  public var sessionByteCountHeard = 0
}
