import ParleyVocabulary

/// Which piece to ask for next: the rarest of those that a source holds, one of them at random.
///
/// Exact up to 512 candidates; of more, the rarest among the first 512 from a random one on. So a choice looks at no
/// more than 512 pieces and, at worst, each byte of a bitmap once.
struct PiecePicker: Sendable {
  static let sampleCountMax = 512

  /// Pieces that may be asked for: wanted, their hashes known, neither on the way nor done.
  private(set) var free: PieceSet
  /// How many of the known partial holders have each piece.
  private var holderCounts: [UInt16]
  /// The sum of those.
  private var heldCount = 0

  init(pieceCount: Int) {
    free = PieceSet(pieceCount: pieceCount)
    holderCounts = [UInt16](repeating: 0, count: pieceCount)
  }

  mutating func release(_ piece: Int) { free.insert(piece) }
  mutating func take(_ piece: Int) { free.remove(piece) }
  func holderCount(of piece: Int) -> Int { Int(holderCounts[piece]) }

  mutating func count(_ pieces: PieceSet, by difference: Int) {
    for piece in pieces {
      heldCount -= Int(holderCounts[piece])
      holderCounts[piece] = UInt16(clamping: Int(holderCounts[piece]) + difference)
      heldCount += Int(holderCounts[piece])
    }
  }

  /// `offered`: nil for a source that holds all. `unheldOnly`: only what no partial holder is known to have.
  func choose(from offered: PieceSet?, unheldOnly: Bool, using jitter: inout Jitter) -> Int? {
    guard free.count > 0 else { return nil }
    var chosen: Int?
    var lowest = UInt16.max
    var (tieCount, seenCount) = (0, 0)
    let start = Int.random(in: 0..<free.pieceCount, using: &jitter)
    // Among equals the first from there on is as good as any, where nobody else will have it soon.
    if heldCount == 0 {
      free.visit(from: start, offered: offered) { piece in
        chosen = piece
        return false
      }
      return chosen
    }
    free.visit(from: start, offered: offered) { piece in
      let count = holderCounts[piece]
      if unheldOnly, count > 0 { return true }
      seenCount += 1
      if chosen == nil || count < lowest {
        (chosen, lowest, tieCount) = (piece, count, 1)
      } else if count == lowest {
        // Each of so many equals is left standing with the same probability.
        tieCount += 1
        if Int.random(in: 0..<tieCount, using: &jitter) == 0 { chosen = piece }
      }
      return seenCount < Self.sampleCountMax
    }
    return chosen
  }

  /// The lowest that is offered, below `end`.
  func first(from offered: PieceSet?, below end: Int) -> Int? {
    var found: Int?
    free.visit(from: 0, offered: offered) { piece in
      found = piece < end ? piece : nil
      return false
    }
    return found
  }
}
