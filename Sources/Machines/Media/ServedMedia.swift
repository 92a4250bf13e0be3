import ParleyHashing
import ParleyVocabulary
import ParleyWire

/// A media ID that is served: what can be answered from memory, and where on the disk the rest is.
package struct ServedMedia: Equatable, Sendable {
  package let manifest: MediaManifest
  package let layout: MediaLayout
  /// One list for each file of the manifest, in its order; empty for a file of which nothing is held.
  package let pieceHashes: [[Hash32]]
  /// Of files with more than one run of piece hashes, by file: the roots of the runs.
  private let runRoots: [Int: [Hash32]]

  package init(manifest: MediaManifest, pieceHashes: [[Hash32]]) {
    precondition(
      manifest.files.count == pieceHashes.count
        && zip(manifest.files, pieceHashes).allSatisfy { $1.isEmpty || $0.pieceCount == UInt64($1.count) },
      "each file has a hash for each of its pieces")
    self.manifest = manifest
    layout = MediaLayout(manifest)
    self.pieceHashes = pieceHashes
    var runRoots: [Int: [Hash32]] = [:]
    for (file, hashes) in pieceHashes.enumerated() where hashes.count > 1 {
      guard MediaTree.uncleCount(pieceCount: hashes.count) > 0 else { continue }
      runRoots[file] = MediaTree.runRoots(pieceHashes: hashes)
    }
    self.runRoots = runRoots
  }

  package enum Answer: Equatable, Sendable {
    case reply(MediaReply)
    case read(file: Int, offset: UInt64, byteCount: Int)
  }

  /// Numbers in requests are anybody's; what is out of range is unknown, and so is what is not in `holding` (nil: it is
  /// all held), and several blocks of more than one piece.
  package func answer(_ request: MediaRequest, holding: PieceSet? = nil) -> Answer {
    switch request {
    case .manifest(_, let offset):
      let bytes = manifest.encoded
      guard bytes.indices.contains(offset) else { return .reply(.refused(.unknown)) }
      let end = min(offset + MediaMessage.manifestPartByteCountMax, bytes.count)
      return .reply(.manifestPart(total: bytes.count, offset: offset, bytes[offset..<end]))
    case .pieceHashes(_, let file, let first, let count):
      return .reply(run(file, first, count).map { .pieceHashes($0[...]) } ?? .refused(.unknown))
    case .block(_, let file, let index, let count):
      guard let piece = piece(file, index), self.piece(file, index + count - 1) == piece,
        holding?.contains(piece) != false
      else { return .reply(.refused(.unknown)) }
      let offset = UInt64(index) * UInt64(Limit.mediaBlockByteCount)
      let byteCount = Int(min(UInt64(count * Limit.mediaBlockByteCount), manifest.files[file].byteCount - offset))
      return .read(file: file, offset: offset, byteCount: byteCount)
    case .have(_, let first):
      guard let holding, !holding.isFull else { return .reply(.holdingAll) }
      guard first <= holding.pieceCount else { return .reply(.refused(.unknown)) }
      let bitmap = holding.bytes[(first / 8)...].prefix(MediaMessage.bitmapByteCountMax)
      return .reply(.holding(count: holding.pieceCount, first: first, bitmap: bitmap))
    }
  }

  /// The hashes of an aligned run of pieces and those beside the way from there to the root.
  private func run(_ file: Int, _ first: Int, _ count: Int) -> [UInt8]? {
    guard pieceHashes.indices.contains(file), pieceHashes[file].count > 1 else { return nil }
    let hashes = pieceHashes[file]
    guard count == MediaTree.runCount(pieceCount: hashes.count), hashes.indices.contains(first), first % count == 0
    else { return nil }
    let uncles = runRoots[file].map {
      MediaTree.uncles(of: first / count, runRoots: $0, pieceCount: hashes.count)
    }
    return hashes[first..<min(first + count, hashes.count)].flatMap(\.bytes) + (uncles ?? []).flatMap(\.bytes)
  }

  /// The piece that a block belongs to; nil when there is no such block.
  package func piece(_ file: Int, _ block: Int) -> Int? {
    guard manifest.files.indices.contains(file), block >= 0, UInt64(block) < manifest.files[file].blockCount else {
      return nil
    }
    return layout.pieces(of: file).lowerBound + block / Limit.blocksPerPiece
  }
}
