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

  /// The lowest piece from `start` on that is not in the set and, where `offered` is given, is in that.
  package func firstMissing(from start: Int, offered: PieceSet? = nil) -> Int? {
    var index = start >> 3
    while index < bytes.count {
      var free = ~bytes[index]
      if let offered { free &= offered.bytes[index] }
      if index == start >> 3 { free &= 0xFF >> UInt8(start & 7) }
      if free != 0 {
        let piece = index << 3 + free.leadingZeroBitCount
        return piece < pieceCount ? piece : nil
      }
      index += 1
    }
    return nil
  }
}
