import ParleyVocabulary

/// Parts of a file's piece layer that can be verified by themselves: a run of 512 pieces (or of all, when the tree is
/// narrower), aligned, and the hashes beside the way from there up to the root (BEP 52's "uncle hashes").
extension MediaTree {
  private static let runCountMax = 512

  /// Pieces in a run of a file with so many, 2 or more; the last run may be cut short.
  package static func runCount(pieceCount: Int) -> Int { min(runCountMax, pieceCount.roundedUpToPowerOfTwo) }

  /// Hashes beside the way from a run up to the root.
  package static func uncleCount(pieceCount: Int) -> Int {
    let runs = pieceCount.roundedUpToPowerOfTwo / runCount(pieceCount: pieceCount)
    return runs.trailingZeroBitCount
  }

  /// The root of each run.
  package static func runRoots(pieceHashes: [Hash32]) -> [Hash32] {
    let width = runCount(pieceCount: pieceHashes.count)
    return stride(from: 0, to: pieceHashes.count, by: width).map { start in
      let run = Array(pieceHashes[start..<min(start + width, pieceHashes.count)])
      return root(of: run, width: width, filler: emptyPieceHash)
    }
  }

  /// The hashes beside the way from run `run` up to the root, the lowest first.
  package static func uncles(of run: Int, runRoots: [Hash32], pieceCount: Int) -> [Hash32] {
    let filler = emptyRunHash(pieceCount)
    return (0..<uncleCount(pieceCount: pieceCount)).map { level in
      let start = (run >> level ^ 1) << level
      let known = runRoots[min(start, runRoots.count)..<min(start + 1 << level, runRoots.count)]
      return root(of: Array(known), width: 1 << level, filler: filler)
    }
  }

  /// Whether the run that begins at piece `first` belongs to the file with this root.
  package static func accepts(_ run: [Hash32], uncles: [Hash32], first: Int, pieceCount: Int, root: Hash32) -> Bool {
    let width = runCount(pieceCount: pieceCount)
    guard uncles.count == uncleCount(pieceCount: pieceCount), first % width == 0 else { return false }
    var node = self.root(of: run, width: width, filler: emptyPieceHash)
    var index = first / width
    for uncle in uncles {
      node = self.root(of: index & 1 == 0 ? [node, uncle] : [uncle, node], width: 2, filler: uncle)
      index >>= 1
    }
    return node == root
  }

  private static func emptyRunHash(_ pieceCount: Int) -> Hash32 {
    root(of: [], width: runCount(pieceCount: pieceCount), filler: emptyPieceHash)
  }
}
