import ParleyVocabulary
import ParleyWire

/// The pieces of a manifest, counted through all its files in their order. An empty file has none.
package struct MediaLayout: Equatable, Sendable {
  /// The first piece of each file, and behind the last how many there are.
  private let firstPieces: [Int]
  private let byteCounts: [UInt64]

  package init(_ manifest: MediaManifest) {
    var first = 0
    var firstPieces = [0]
    firstPieces.reserveCapacity(manifest.files.count + 1)
    for file in manifest.files {
      // Sizes add up to less than 2⁶² bytes.
      first += Int(file.pieceCount)
      firstPieces.append(first)
    }
    self.firstPieces = firstPieces
    byteCounts = manifest.files.map(\.byteCount)
  }

  package var pieceCount: Int { firstPieces[firstPieces.count - 1] }
  package var fileCount: Int { byteCounts.count }

  package func pieces(of file: Int) -> Range<Int> { firstPieces[file]..<firstPieces[file + 1] }

  package func file(of piece: Int) -> Int {
    // The last file that begins at this piece or before: those before it with the same beginning are empty.
    var (low, high) = (0, byteCounts.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if firstPieces[middle] <= piece { low = middle } else { high = middle }
    }
    return low
  }

  package func place(of piece: Int) -> PiecePlace {
    let file = file(of: piece)
    let offset = UInt64(piece - firstPieces[file]) * UInt64(Limit.mediaPieceByteCount)
    let byteCount = Int(min(UInt64(Limit.mediaPieceByteCount), byteCounts[file] - offset))
    return PiecePlace(file: file, offset: offset, byteCount: byteCount)
  }

  package func byteCount(of piece: Int) -> Int { place(of: piece).byteCount }
}

/// Where a piece lies.
package struct PiecePlace: Equatable, Sendable {
  package let file: Int
  /// In that file.
  package let offset: UInt64
  package let byteCount: Int

  package init(file: Int, offset: UInt64, byteCount: Int) {
    self.file = file
    self.offset = offset
    self.byteCount = byteCount
  }

  package var indexInFile: Int { Int(offset / UInt64(Limit.mediaPieceByteCount)) }
  package var blockCount: Int { (byteCount + Limit.mediaBlockByteCount - 1) / Limit.mediaBlockByteCount }
}
