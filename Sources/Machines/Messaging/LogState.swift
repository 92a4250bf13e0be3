import ParleyVocabulary
import ParleyWire

/// How far one log is here.
struct LogState: Equatable, Sendable {
  /// Every number up to this was here and is gone, or is to be had from nobody.
  var floor: UInt64
  /// Every number up to this is on the disk, or below the floor.
  private(set) var stored: UInt64
  /// Every number up to this is on the disk or on its way there, or below the floor.
  private(set) var queued: UInt64
  /// On the disk or on its way, above `queued`.
  private(set) var beyond: RangeSet<UInt64>
  /// On the disk above `stored`.
  private(set) var storedBeyond: RangeSet<UInt64>
  /// Genuine, waiting for what comes before.
  private(set) var held: [UInt64: Entry] = [:]
  /// The highest number that somebody said exists.
  private(set) var announced: UInt64
  /// Since when something is held without what comes before it.
  var holeSince: Instant?
  /// What members said of where their copies begin, while that is above what is here.
  var floors: [PeerID: UInt64] = [:]
  /// Since when one of them is above what is here.
  var flooredSince: Instant?
  /// Who, since then, was asked for what is missing and gave all that it has of it, and up to which number.
  var gaveAll: [PeerID: UInt64] = [:]

  init(floor: UInt64 = 0, contiguous: UInt64 = 0, beyond: RangeSet<UInt64> = RangeSet()) {
    self.floor = floor
    stored = contiguous
    queued = contiguous
    self.beyond = beyond
    storedBeyond = beyond
    announced = max(contiguous, beyond.last ?? 0)
  }

  /// The highest number that is on the disk.
  var highestStored: UInt64 { max(stored, storedBeyond.last ?? 0) }
  var isLacking: Bool { announced > queued }
  var isInFlight: Bool { stored < queued }

  /// The highest number above `queued` of which a genuine entry was seen.
  var highestGenuine: UInt64? {
    let highest = max(beyond.last ?? 0, held.keys.max() ?? 0)
    return highest > queued ? highest : nil
  }

  /// Whether a member has nothing of what is missing up to this number.
  func gave(_ peer: PeerID, through floor: UInt64) -> Bool {
    guard let end = gaveAll[peer] else { return false }
    return missing(countMax: .max).allSatisfy { min($0.upperBound - 1, floor) <= end || $0.lowerBound > floor }
  }

  mutating func forgetFloors() {
    floors = [:]
    flooredSince = nil
    gaveAll = [:]
  }

  func has(_ number: UInt64) -> Bool { number <= queued || beyond.contains(number) || held[number] != nil }

  mutating func announce(_ number: UInt64) { announced = max(announced, number) }

  /// Nobody has what was said to exist beyond what was seen.
  mutating func forgetAnnounced() { announced = max(queued, highestGenuine ?? 0) }

  /// Whether anything of it was ever here.
  var isKnown: Bool { queued > 0 || !beyond.isEmpty || !held.isEmpty }
  /// Whether the number just before is here, though it has a hole below.
  func isNextBeyond(_ number: UInt64) -> Bool { number > 1 && beyond.contains(number - 1) }

  /// The next number is on its way to the disk.
  mutating func takeNext() {
    queued += 1
    announced = max(announced, queued)
    advance()
  }

  /// A number above a hole is on its way to the disk.
  mutating func takeBeyond(_ number: UInt64) {
    beyond.insert(contentsOf: number..<number + 1)
    announced = max(announced, number)
    advance()
  }

  mutating func hold(_ entry: Entry, since now: Instant) {
    held[entry.number] = entry
    holeSince = holeSince ?? now
  }

  mutating func release(_ number: UInt64) -> Entry? { held.removeValue(forKey: number) }

  mutating func releaseAll(through number: UInt64) -> [Entry] {
    let numbers = held.keys.filter { $0 <= number }.sorted()
    return numbers.map { held.removeValue(forKey: $0)! }
  }

  /// The number is on the disk.
  mutating func store(_ number: UInt64) {
    guard number > stored else { return }
    storedBeyond.insert(contentsOf: number..<number + 1)
    advanceStored()
    queued = max(queued, stored)
    announced = max(announced, queued)
    advance()
  }

  /// What is not here up to this number is to be had from nobody: it counts as if it had come. True when that changes
  /// anything.
  mutating func skip(through number: UInt64) -> Bool {
    guard number > queued else { return false }
    queued = number
    announced = max(announced, number)
    advance()
    return true
  }

  /// The disk knows of a floor.
  mutating func raiseFloor(_ number: UInt64) {
    floor = max(floor, number)
    guard number > stored else { return }
    stored = number
    queued = max(queued, number)
    announced = max(announced, number)
    advance()
    advanceStored()
  }

  /// Numbers that another state of the same log has given are given here too.
  mutating func merge(_ other: LogState) {
    stored = max(stored, other.stored)
    queued = max(stored, queued, other.queued)
    announced = max(announced, queued)
  }

  private mutating func advance() {
    while let first = beyond.ranges.first, first.lowerBound <= queued + 1 {
      queued = max(queued, first.upperBound - 1)
      beyond.remove(contentsOf: 0..<queued + 1)
    }
  }

  private mutating func advanceStored() {
    while let first = storedBeyond.ranges.first, first.lowerBound <= stored + 1 {
      stored = max(stored, first.upperBound - 1)
      storedBeyond.remove(contentsOf: 0..<stored + 1)
    }
  }

  /// What is missing, lowest first, at most `countMax` runs.
  func missing(countMax: Int) -> [Range<UInt64>] {
    guard isLacking else { return [] }
    var here = beyond
    for number in held.keys { here.insert(contentsOf: number..<number + 1) }
    var runs: [Range<UInt64>] = []
    var from = queued + 1
    for run in here.ranges where run.upperBound > from {
      if run.lowerBound > from { runs.append(from..<run.lowerBound) }
      from = run.upperBound
      if runs.count == countMax { return runs }
    }
    if from <= announced { runs.append(from..<announced + 1) }
    return runs
  }
}

extension RangeSet where Bound == UInt64 {
  fileprivate var last: UInt64? { ranges.last.map { $0.upperBound - 1 } }
}
