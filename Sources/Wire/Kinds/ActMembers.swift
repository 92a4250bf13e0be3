import ParleyVocabulary

/// An author's logs and the last number of each that counts; of a log that is not named nothing does.
package struct ActHeads: Equatable, Sendable {
  package static let countMax = 256

  package struct Head: Equatable, Sendable {
    package let log: Instance
    package let number: UInt64
    package init(log: Instance, number: UInt64) {
      self.log = log
      self.number = number
    }
  }

  /// Rising by log.
  package let heads: [Head]

  /// Numbers of 0 are left out. Of more than 256 logs the oldest cannot be told: those with the highest numbers stay.
  package init(_ numbers: [Instance: UInt64]) {
    var heads = numbers.filter { $0.value > 0 }.map { Head(log: $0.key, number: min($0.value, Limit.counterMax)) }
    if heads.count > Self.countMax {
      heads = Array(heads.sorted { ($1.number, $1.log) < ($0.number, $0.log) }.prefix(Self.countMax))
    }
    self.heads = heads.sorted { $0.log < $1.log }
  }

  /// 0 for a log that is not named.
  package func number(of log: Instance) -> UInt64 {
    var (low, high) = (0, heads.count)
    while low < high {
      let middle = (low + high) / 2
      if heads[middle].log < log { low = middle + 1 } else { high = middle }
    }
    return low < heads.count && heads[low].log == log ? heads[low].number : 0
  }

  init(from members: [JSONMember]) throws(WireError) {
    guard case .array(let values) = members["heads"] else {
      throw .malformed(field: "heads", reason: members["heads"] == nil ? "missing" : "not an array")
    }
    guard values.count <= Self.countMax else {
      throw .tooMany(field: "heads", count: UInt64(values.count), countMax: Self.countMax)
    }
    var heads: [Head] = []
    for value in values {
      guard case .array(let pair) = value, pair.count == 2, case .string(let text) = pair[0],
        let log = Instance(hexadecimal: text), case .integer(let number) = pair[1], number > 0,
        number <= Int64(Limit.counterMax)
      else { throw .malformed(field: "heads", reason: "not pairs of a log and a number") }
      if let last = heads.last, last.log >= log { throw .malformed(field: "heads", reason: "not rising by log") }
      heads.append(Head(log: log, number: UInt64(number)))
    }
    self.heads = heads
  }

  var member: JSONMember {
    JSONMember(
      "heads", .array(heads.map { .array([.string($0.log.description), .integer(Int64($0.number))]) }))
  }
}

extension Instance {
  /// 16 hexadecimal digits, lower case.
  init?(hexadecimal text: String) {
    let isHex = text.utf8.allSatisfy {
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
    }
    guard text.utf8.count == 16, isHex, let value = UInt64(text, radix: 16) else { return nil }
    self.init(value)
  }
}

extension [JSONMember] {
  /// A PeerID in base32.
  func peer(_ name: String) throws(WireError) -> PeerID {
    guard let peer = PeerID(text: try string(name)) else { throw .malformed(field: name, reason: "not a PeerID") }
    return peer
  }

  func counter(_ name: String) throws(WireError) -> UInt64 {
    guard let value = try optionalCounter(name) else { throw .malformed(field: name, reason: "missing") }
    return value
  }

  func text(_ name: String, byteCountMax: Int) throws(WireError) -> String {
    let text = try string(name)
    guard text.utf8.count <= byteCountMax else {
      throw .tooLong(field: name, byteCount: UInt64(text.utf8.count), byteCountMax: byteCountMax)
    }
    return text
  }
}

/// What members of an owned channel say about it and about each other: hidden entries that every member folds alike.
/// Who may say what, and what counts, is not the codec's.
package protocol ActKind: MessageKind {}

extension ActKind {
  package static var isHidden: Bool { true }
}
