import ParleyHashing
import ParleyVocabulary

/// What a member holds of a channel, in 16 bytes: equal when two members hold the same. In two levels, so that members
/// who differ compare 256 buckets of logs before they name a log.
package struct HeadsDigest: Hashable, Sendable {
  package static let byteCount = 16
  package let bytes: [UInt8]
  package init(_ bytes: [UInt8]) {
    precondition(bytes.count == Self.byteCount, "a digest is 16 bytes")
    self.bytes = bytes
  }

  /// What is held of one log.
  package struct Holding: Equatable, Sendable {
    package let key: LogKey
    /// The highest number up to which nothing is missing.
    package let head: UInt64
    /// What is held above a gap.
    package let beyond: RangeSet<UInt64>
    package init(key: LogKey, head: UInt64, beyond: RangeSet<UInt64> = RangeSet()) {
      self.key = key
      self.head = head
      self.beyond = beyond
    }
  }

  /// Which bucket a log is in: the first byte of its instance, which its author drew at random.
  package static func bucket(of key: LogKey) -> UInt8 { UInt8(key.log.value >> 56) }

  /// BLAKE2b-128 over (author, log, head), each 48 bytes, sorted by author and log; heads of 0 are left out. After
  /// them, likewise sorted, one (author, log, first, last), 56 bytes, for each run of numbers held above a gap: two
  /// members who lack the same, of whom only one has what comes after it, differ.
  package init(ofBucket holdings: [Holding]) {
    var out = ByteWriter(reserving: holdings.count * 48)
    let sorted = holdings.sorted { $0.key < $1.key }
    for holding in sorted where holding.head > 0 {
      out.bytes32(holding.key.author.value)
      out.uint64(holding.key.log.value)
      out.uint64(holding.head)
    }
    for holding in sorted {
      for run in holding.beyond.ranges {
        out.bytes32(holding.key.author.value)
        out.uint64(holding.key.log.value)
        out.uint64(run.lowerBound)
        out.uint64(run.upperBound - 1)
      }
    }
    bytes = BLAKE2b.hash(out.bytes, byteCount: Self.byteCount, key: nil)
  }

  /// BLAKE2b-128 over (bucket, its digest), 17 bytes each, of the buckets that hold something, by number.
  package init(ofBuckets digests: [UInt8: HeadsDigest]) {
    var out = ByteWriter(reserving: digests.count * 17)
    for (bucket, digest) in digests.sorted(by: { $0.key < $1.key }) {
      out.uint8(bucket)
      out.raw(digest.bytes)
    }
    bytes = BLAKE2b.hash(out.bytes, byteCount: Self.byteCount, key: nil)
  }

  /// Of a whole channel.
  package init(of holdings: [Holding]) {
    let held = holdings.filter { $0.head > 0 || !$0.beyond.isEmpty }
    let buckets = Dictionary(grouping: held) { Self.bucket(of: $0.key) }
    self.init(ofBuckets: buckets.mapValues { HeadsDigest(ofBucket: $0) })
  }

  /// Of a channel without gaps.
  package init(of heads: [LogKey: UInt64]) {
    self.init(of: heads.map { Holding(key: $0.key, head: $0.value) })
  }
}
