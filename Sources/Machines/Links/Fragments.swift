import ParleyHashing
import ParleyVocabulary
import ParleyWire

/// How an encoded entry that does not fit one datagram is split.
enum FragmentRule {
  /// Datagram less header (44), tag (16) and frame head (3).
  static let wholeByteCountMax = Limit.datagramByteCountMax - 44 - 16 - 3
  /// …less what a fragment says of itself (10).
  static let partByteCount = wholeByteCountMax - 10

  static func split(_ entry: [UInt8]) -> [EntryFragment] {
    let group = BLAKE2b.hash256(entry).words.0
    let count = (entry.count + partByteCount - 1) / partByteCount
    return (0..<count).map { index in
      let start = index * partByteCount
      let end = min(start + partByteCount, entry.count)
      return EntryFragment(group: group, index: index, count: count, bytes: Array(entry[start..<end]))
    }
  }
}

/// Parts of entries that are not whole yet. Bounded: the oldest group goes when there are too many; what is lost here
/// is asked for again by whoever lacks it.
struct FragmentPool: Equatable, Sendable {
  static let groupCountMax = 64

  struct Group: Equatable, Sendable {
    var parts: [[UInt8]?]
    var missing: Int
  }

  struct Key: Hashable, Sendable {
    let channel: ChannelID
    let instance: Instance
    let group: UInt64
  }

  private var groups: [Key: Group] = [:]
  private var order: [Key] = []

  /// The whole entry once its last part is there and its hash is that which named the group.
  mutating func add(_ fragment: EntryFragment, _ channel: ChannelID, _ instance: Instance) -> [UInt8]? {
    let key = Key(channel: channel, instance: instance, group: fragment.group)
    if groups[key] == nil {
      if order.count == Self.groupCountMax { groups[order.removeFirst()] = nil }
      order.append(key)
      groups[key] = Group(parts: Array(repeating: nil, count: fragment.count), missing: fragment.count)
    }
    guard groups[key]!.parts.count == fragment.count, groups[key]!.parts[fragment.index] == nil else { return nil }
    groups[key]!.parts[fragment.index] = fragment.bytes
    groups[key]!.missing -= 1
    guard groups[key]!.missing == 0 else { return nil }
    let whole = groups.removeValue(forKey: key)!.parts.flatMap { $0! }
    order.removeAll { $0 == key }
    return BLAKE2b.hash256(whole).words.0 == fragment.group ? whole : nil
  }
}
