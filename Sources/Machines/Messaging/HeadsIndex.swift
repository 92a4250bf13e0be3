import ParleyVocabulary
import ParleyWire

/// The logs of a channel by bucket, with each bucket's digest: an entry costs the hashing of one bucket and of 256
/// digests, however many logs there are.
struct HeadsIndex: Sendable {
  private var keys: [UInt8: [LogKey]] = [:]
  private(set) var digests: [UInt8: HeadsDigest] = [:]
  private var stale: Set<UInt8> = []

  /// Something of this log has been stored.
  mutating func changed(_ key: LogKey) { stale.insert(HeadsDigest.bucket(of: key)) }

  mutating func add(_ key: LogKey) {
    keys[HeadsDigest.bucket(of: key), default: []].append(key)
    changed(key)
  }

  mutating func remove(_ key: LogKey) {
    keys[HeadsDigest.bucket(of: key)]?.removeAll { $0 == key }
    changed(key)
  }

  func keys(in bucket: UInt8) -> [LogKey] { keys[bucket] ?? [] }

  mutating func digest(_ logs: [LogKey: LogState]) -> HeadsDigest {
    for bucket in stale {
      let holdings = keys(in: bucket).compactMap { key -> HeadsDigest.Holding? in
        guard let log = logs[key], log.highestStored > log.floor else { return nil }
        return HeadsDigest.Holding(key: key, head: log.stored, beyond: log.storedBeyond)
      }
      digests[bucket] = holdings.isEmpty ? nil : HeadsDigest(ofBucket: holdings)
    }
    stale = []
    return HeadsDigest(ofBuckets: digests)
  }
}
