import ParleyHashing
import ParleyVocabulary
import ParleyWire

/// How an encoded entry, or a signed live object, that does not fit one datagram is split.
package enum FragmentRule {
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

extension FragmentRule {
  /// What one datagram carries each: all that is small together, a live object that is too large in parts.
  package static func datagrams(of frames: [DatagramFrame]) -> [[DatagramFrame]] {
    var small: [DatagramFrame] = []
    var parts: [[DatagramFrame]] = []
    for frame in frames {
      if case .live(let signed) = frame, signed.object.count > wholeByteCountMax - Signed.signatureByteCount {
        parts += split(signed.encoded).map { [.liveFragment($0)] }
      } else {
        small.append(frame)
      }
    }
    return small.isEmpty ? parts : [small] + parts
  }
}

/// Parts of entries and live objects that are not whole yet. Bounded, and shared out: when there are too many, the
/// oldest group goes of whoever has most (first of the host, then of the socket), so that one who begins many pushes
/// out only its own. What is lost here of an entry is asked for again by whoever lacks it.
struct FragmentPool: Equatable, Sendable {
  static let groupCountMax = 64

  struct Group: Equatable, Sendable {
    let source: Address
    var parts: [[UInt8]?]
    var missing: Int
  }

  /// The source is part of it: nobody spoils another's entry by parts under its name.
  struct Key: Hashable, Sendable {
    let channel: ChannelID
    let instance: Instance
    let group: UInt64
    let source: Address
  }

  private var groups: [Key: Group] = [:]
  private var order: [Key] = []

  /// The whole entry once its last part is there and its hash is that which named the group.
  mutating func add(
    _ fragment: EntryFragment, _ channel: ChannelID, _ instance: Instance, from source: Address
  ) -> [UInt8]? {
    let key = Key(channel: channel, instance: instance, group: fragment.group, source: source)
    if groups[key] == nil {
      order.append(key)
      groups[key] = Group(source: source, parts: Array(repeating: nil, count: fragment.count), missing: fragment.count)
      // A newcomer that has most itself makes room by its own oldest.
      if order.count > Self.groupCountMax { removeOne() }
    }
    guard let known = groups[key], known.parts.count == fragment.count, known.parts[fragment.index] == nil else {
      return nil
    }
    groups[key]!.parts[fragment.index] = fragment.bytes
    groups[key]!.missing -= 1
    guard groups[key]!.missing == 0 else { return nil }
    let whole = groups.removeValue(forKey: key)!.parts.flatMap { $0! }
    order.removeAll { $0 == key }
    return BLAKE2b.hash256(whole).words.0 == fragment.group ? whole : nil
  }

  private mutating func removeOne() {
    let host = most(order) { $0.source.host }
    let ofHost = order.filter { $0.source.host == host }
    let source = most(ofHost) { $0.source }
    guard let index = order.firstIndex(where: { $0.source == source }) else { return }
    groups[order.remove(at: index)] = nil
  }

  /// What most of the keys share; among equals, what came first.
  private func most<Shared: Hashable>(_ keys: [Key], by shared: (Key) -> Shared) -> Shared? {
    var counts: [Shared: Int] = [:]
    for key in keys { counts[shared(key), default: 0] += 1 }
    let highest = counts.values.max()
    return keys.lazy.map(shared).first { counts[$0] == highest }
  }
}
