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
  /// A batch is acknowledged when it is committed, before it is synced.
  case takesCommittedForSynced
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
  /// A presence that is heard a second time is passed on a second time: the replay window has no memory.
  case passesOnReplays
  /// What was said to a peer is taken for stored there and leaves the outbox.
  case takesSaidForStored
  /// A crash costs the newest message in the outbox.
  case losesOutboxItem
  /// An acknowledgement now and then names a number below the one before it.
  case lowersAcknowledgements
}

/// A member as a simulated node shows it.
public struct SimulatedMember: Equatable, Sendable {
  public let node: SimulatedNodeID
  public let name: String
  public let isOnline: Bool
  public let isHandRaised: Bool
}

/// What a node sent and heard, as IPv4 packets: their headers are counted, those of Ethernet (18 bytes) are not.
public struct SimulatedTraffic: Sendable {
  /// IPv4 and UDP.
  private static let datagramHeaderByteCount = 20 + 8
  /// IPv4 and TCP with time stamps (RFC 7323), as Linux sends it.
  private static let segmentHeaderByteCount = 20 + 32
  private static let segmentPayloadByteCountMax = 1_448
  /// SYN, its acknowledgement, hello and offer, introduction (Wire.docc, Sessions): what a dialler sends, one channel.
  private static let dialByteCount = 60 + 52 + 52 + 40 + 52 + 51 + 52 + 122
  /// SYN-ACK, answer, acceptance, and acknowledgements of what came.
  private static let acceptByteCount = 60 + 52 + 56 + 52 + 155 + 52

  public private(set) var datagramCountSent = 0
  public private(set) var datagramCountHeard = 0
  public private(set) var datagramByteCountSent = 0
  public private(set) var datagramByteCountHeard = 0
  /// What Linux adds to a quiet session, an acknowledgement for each message, is counted in full, though some travel
  /// with an answer. What is sent again is not.
  public private(set) var sessionByteCountSent = 0
  public private(set) var sessionByteCountHeard = 0

  public var byteCountSent: Int { datagramByteCountSent + sessionByteCountSent }
  public var byteCountHeard: Int { datagramByteCountHeard + sessionByteCountHeard }

  mutating func sentDatagram(_ byteCount: Int) {
    datagramCountSent += 1
    datagramByteCountSent += byteCount + Self.datagramHeaderByteCount
  }

  mutating func heardDatagram(_ byteCount: Int) {
    datagramCountHeard += 1
    datagramByteCountHeard += byteCount + Self.datagramHeaderByteCount
  }

  private static func segments(_ byteCount: Int) -> Int {
    let count = (byteCount + segmentPayloadByteCountMax - 1) / segmentPayloadByteCountMax
    return byteCount + count * segmentHeaderByteCount
  }

  mutating func sentSegment(_ byteCount: Int) { sessionByteCountSent += Self.segments(byteCount) }

  mutating func heardSegment(_ byteCount: Int) {
    sessionByteCountHeard += Self.segments(byteCount)
    sessionByteCountSent += Self.segmentHeaderByteCount
  }

  mutating func heardAcknowledgement() { sessionByteCountHeard += Self.segmentHeaderByteCount }

  mutating func dialled() {
    sessionByteCountSent += Self.dialByteCount
    sessionByteCountHeard += Self.acceptByteCount
  }

  mutating func accepted() {
    sessionByteCountSent += Self.acceptByteCount
    sessionByteCountHeard += Self.dialByteCount
  }
}
