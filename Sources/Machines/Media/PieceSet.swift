/// A set of pieces, one bit each, as long as the file has pieces. Its bytes are the bitmap of the wire: the highest bit
/// of the first byte is piece 0.
package struct PieceSet: Equatable, Sendable {
  package let pieceCount: Int
  /// How many are in the set.
  package private(set) var count: Int
  package private(set) var bytes: [UInt8]

  package init(pieceCount: Int) {
    precondition(pieceCount >= 0, "a file has no negative number of pieces")
    self.pieceCount = pieceCount
    count = 0
    bytes = [UInt8](repeating: 0, count: (pieceCount + 7) / 8)
  }

  /// Nil when the bytes are not as many as the pieces need. Bits past the last piece are dropped.
  package init?(pieceCount: Int, bytes: [UInt8]) {
    self.init(pieceCount: pieceCount)
    guard bytes.count == self.bytes.count else { return nil }
    insert(contentsOf: bytes[...], from: 0)
  }

  package var isFull: Bool { count == pieceCount }

  package func contains(_ piece: Int) -> Bool { bytes[piece >> 3] & (0x80 >> UInt8(piece & 7)) != 0 }

  package mutating func insert(_ piece: Int) {
    guard !contains(piece) else { return }
    bytes[piece >> 3] |= 0x80 >> UInt8(piece & 7)
    count += 1
  }

  package mutating func remove(_ piece: Int) {
    guard contains(piece) else { return }
    bytes[piece >> 3] &= ~(0x80 >> UInt8(piece & 7))
    count -= 1
  }

  /// Adds a bitmap that begins at piece `first`, a multiple of 8. What lies past the end is ignored.
  package mutating func insert(contentsOf bitmap: ArraySlice<UInt8>, from first: Int) {
    precondition(first % 8 == 0, "bitmaps begin at whole bytes")
    for (index, byte) in zip(first / 8..<bytes.count, bitmap) {
      let isLast = index == bytes.count - 1 && pieceCount % 8 != 0
      let added = byte & ~bytes[index] & (isLast ? ~(0xFF >> UInt8(pieceCount % 8)) : 0xFF)
      bytes[index] |= added
      count += added.nonzeroBitCount
    }
  }

  package mutating func insertAll() {
    insert(contentsOf: [UInt8](repeating: 0xFF, count: bytes.count)[...], from: 0)
  }

  /// The pieces of a bitmap that begins at piece `first`, a multiple of 8, that are not in this set.
  package func missing(of bitmap: ArraySlice<UInt8>, from first: Int) -> PieceSet {
    precondition(first % 8 == 0, "bitmaps begin at whole bytes")
    var new = PieceSet(pieceCount: pieceCount)
    new.insert(contentsOf: bitmap, from: first)
    for index in new.bytes.indices { new.bytes[index] &= ~bytes[index] }
    new.count = new.bytes.reduce(0) { $0 + $1.nonzeroBitCount }
    return new
  }

  /// Calls with each piece of the set, that is also in `offered` where that is given, until told to stop: those from
  /// `start` on, then those before.
  package func visit(from start: Int = 0, offered: PieceSet? = nil, _ isToGoOn: (Int) -> Bool) {
    guard count > 0 else { return }
    let first = start >> 3
    let early = 0xFF >> UInt8(start & 7) as UInt8
    for step in 0...bytes.count {
      let index = first + step < bytes.count ? first + step : first + step - bytes.count
      var bits = bytes[index]
      if let offered { bits &= offered.bytes[index] }
      // The byte at the start is looked at twice: its later bits first, the others in the end.
      if step == 0 { bits &= early } else if step == bytes.count { bits &= ~early }
      while bits != 0 {
        let bit = bits.leadingZeroBitCount
        bits &= ~(0x80 >> UInt8(bit))
        guard isToGoOn(index << 3 + bit) else { return }
      }
    }
  }

  package var first: Int? {
    var found: Int?
    visit { piece in
      found = piece
      return false
    }
    return found
  }
}

extension PieceSet: Sequence {
  package func makeIterator() -> [Int].Iterator {
    var all: [Int] = []
    all.reserveCapacity(count)
    visit { piece in
      all.append(piece)
      return true
    }
    return all.makeIterator()
  }
}
