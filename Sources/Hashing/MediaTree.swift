import ParleyVocabulary

/// The hash tree of one file, which is BitTorrent v2's (BEP 52, "pieces root" and "piece layers"): SHA-256, leaves of
/// 16 KiB of which the last may be short and is hashed as it is, two children to a node. Leaves beyond the end of the
/// file, needed only to balance the tree, are 32 zero bytes. A file of at most one piece is balanced to the next power
/// of two of its own leaves; a longer one has whole pieces of 64 leaves, and pieces to the next power of two.
package enum MediaTree {
  private static let hashByteCount = 32

  /// How many pieces a file of so many bytes has; none when it is empty.
  package static func pieceCount(byteCount: UInt64) -> UInt64 {
    let piece = UInt64(Limit.mediaPieceByteCount)
    return byteCount / piece + (byteCount % piece == 0 ? 0 : 1)
  }

  package static func sha256(_ bytes: [UInt8]) -> Hash32 { bytes.withUnsafeBytes { sha256($0) } }

  package static func sha256(_ bytes: UnsafeRawBufferPointer) -> Hash32 { SHA256().hash(bytes) }

  /// The hash of one leaf: 1 to 16,384 bytes.
  package static func leafHash(_ leaf: UnsafeRawBufferPointer) -> Hash32 {
    precondition((1...Limit.mediaBlockByteCount).contains(leaf.count), "a leaf holds 1 to 16,384 bytes")
    return sha256(leaf)
  }

  /// The hashes of the leaves of one piece, in their order.
  package static func leafHashes(of data: UnsafeRawBufferPointer) -> [Hash32] {
    let sha256 = SHA256()
    return stride(from: 0, to: data.count, by: Limit.mediaBlockByteCount).map { start in
      let end = min(start + Limit.mediaBlockByteCount, data.count)
      return sha256.hash(UnsafeRawBufferPointer(rebasing: data[start..<end]))
    }
  }

  /// The root over one piece: 1 to 1,048,576 bytes. `isOnlyPiece` says that the whole file is this piece; the result
  /// is then the file's root.
  package static func pieceHash(of data: UnsafeRawBufferPointer, isOnlyPiece: Bool) -> Hash32 {
    precondition((1...Limit.mediaPieceByteCount).contains(data.count), "a piece holds 1 to 1,048,576 bytes")
    let leafCount = (data.count + Limit.mediaBlockByteCount - 1) / Limit.mediaBlockByteCount
    let width = isOnlyPiece ? leafCount.roundedUpToPowerOfTwo : Limit.blocksPerPiece
    let sha256 = SHA256()
    return withUnsafeTemporaryAllocation(byteCount: width * hashByteCount, alignment: 8) { level in
      for leaf in 0..<leafCount {
        let start = leaf * Limit.mediaBlockByteCount
        let end = min(start + Limit.mediaBlockByteCount, data.count)
        sha256.hash(
          UnsafeRawBufferPointer(rebasing: data[start..<end]), to: level.baseAddress! + leaf * hashByteCount)
      }
      for index in leafCount * hashByteCount..<level.count { level[index] = 0 }
      return reduce(level, by: sha256)
    }
  }

  /// The same from leaf hashes that came from somebody else: 1 to 64 of them.
  package static func pieceHash(leafHashes: [Hash32], isOnlyPiece: Bool) -> Hash32 {
    precondition((1...Limit.blocksPerPiece).contains(leafHashes.count), "a piece has 1 to 64 leaves")
    let width = isOnlyPiece ? leafHashes.count.roundedUpToPowerOfTwo : Limit.blocksPerPiece
    return root(of: leafHashes, width: width, filler: Hash32(bytes: [UInt8](repeating: 0, count: hashByteCount))!)
  }

  /// The root of a file, given one hash for each of its pieces: `pieceCount(byteCount:)` of them. An empty file has no
  /// tree in BEP 52; here its root is 32 zero bytes.
  package static func root(pieceHashes: [Hash32], byteCount: UInt64) -> Hash32 {
    precondition(UInt64(pieceHashes.count) == pieceCount(byteCount: byteCount), "one hash for each piece of the file")
    guard let first = pieceHashes.first else { return Hash32(bytes: [UInt8](repeating: 0, count: hashByteCount))! }
    if pieceHashes.count == 1 { return first }
    return root(of: pieceHashes, width: pieceHashes.count.roundedUpToPowerOfTwo, filler: emptyPieceHash)
  }

  /// The root over 64 leaves of 32 zero bytes: a piece wholly beyond the end of its file.
  package static let emptyPieceHash: Hash32 = {
    let zero = Hash32(bytes: [UInt8](repeating: 0, count: hashByteCount))!
    return root(of: [zero], width: Limit.blocksPerPiece, filler: zero)
  }()

  /// The hash of a whole piece of zero bytes, as holes in files are, where it is not the only piece of its file.
  package static let zeroPieceHash: Hash32 = {
    let zeros = [UInt8](repeating: 0, count: Limit.mediaPieceByteCount)
    return zeros.withUnsafeBytes { pieceHash(of: $0, isOnlyPiece: false) }
  }()

  static func root(of hashes: [Hash32], width: Int, filler: Hash32) -> Hash32 {
    var level: [UInt8] = []
    level.reserveCapacity(width * hashByteCount)
    for hash in hashes { level += hash.bytes }
    let filling = filler.bytes
    for _ in hashes.count..<width { level += filling }
    return level.withUnsafeMutableBytes { reduce($0, by: SHA256()) }
  }

  /// Hashes a level of a power of two nodes up to its root, each level over the start of the one below.
  private static func reduce(_ level: UnsafeMutableRawBufferPointer, by sha256: borrowing SHA256) -> Hash32 {
    var count = level.count / hashByteCount
    while count > 1 {
      count /= 2
      for node in 0..<count {
        let start = node * 2 * hashByteCount
        let pair = UnsafeRawBufferPointer(rebasing: level[start..<start + 2 * hashByteCount])
        sha256.hash(pair, to: level.baseAddress! + node * hashByteCount)
      }
    }
    return Hash32(bytes: level[0..<hashByteCount])!
  }
}

extension Int {
  /// For 1 and more.
  var roundedUpToPowerOfTwo: Int { self <= 1 ? 1 : 1 << (Int.bitWidth - (self - 1).leadingZeroBitCount) }
}
