import ParleyHashing
import ParleyVocabulary

/// A piece on its way. Its blocks come from one source, so that a wrong one has one culprit; only one that is late at
/// the end of a download gets a helper, who begins with the last block.
struct IncomingPiece: Sendable {
  let source: PeerID
  let assignedAt: Instant
  /// Who helped, even when it no longer does.
  private(set) var helper: PeerID?
  private(set) var isBeingHelped = false
  private(set) var bytes: [UInt8]
  private(set) var next = 0
  private var helperNext = 0
  private var received: UInt64 = 0
  private(set) var fromHelper: UInt64 = 0

  /// `memory`: as long, and of any content.
  init(source: PeerID, byteCount: Int, at now: Instant, memory: [UInt8]? = nil) {
    self.source = source
    assignedAt = now
    bytes = memory ?? [UInt8](repeating: 0, count: byteCount)
  }

  var blockCount: Int { (bytes.count + Limit.mediaBlockByteCount - 1) / Limit.mediaBlockByteCount }
  var receivedCount: Int { received.nonzeroBitCount }
  var isWhole: Bool { receivedCount == blockCount }

  mutating func help(from peer: PeerID) {
    helper = peer
    isBeingHelped = true
    helperNext = blockCount - 1
  }

  /// What it gave stays.
  mutating func loseHelper() { isBeingHelped = false }

  /// The next blocks in a row to ask of its source, at most so many, or the next one to ask of its helper.
  mutating func takeNext(for peer: PeerID, atMost count: Int) -> Range<Int>? {
    if peer == source {
      while next < blockCount, received & 1 << UInt64(next) != 0 { next += 1 }
      let first = next
      while next < blockCount, next - first < count, received & 1 << UInt64(next) == 0 { next += 1 }
      return first < next ? first..<next : nil
    }
    while helperNext >= 0, received & 1 << UInt64(helperNext) != 0 { helperNext -= 1 }
    guard helperNext >= 0 else { return nil }
    defer { helperNext -= 1 }
    return helperNext..<helperNext + 1
  }

  enum Put {
    /// The block is not as long as it must be.
    case misfit
    /// `other`: who was asked for it, too.
    case put(isWhole: Bool, other: PeerID?)
  }

  mutating func put(_ block: ArraySlice<UInt8>, at index: Int, from peer: PeerID) -> Put {
    let start = index * Limit.mediaBlockByteCount
    guard block.count == min(Limit.mediaBlockByteCount, bytes.count - start) else { return .misfit }
    let other = isBeingHelped ? helper.map { peer == $0 ? source : $0 } : nil
    guard received & 1 << UInt64(index) == 0 else { return .put(isWhole: isWhole, other: other) }
    bytes.withUnsafeMutableBytes { buffer in
      block.withUnsafeBytes {
        buffer.baseAddress!.advanced(by: start).copyMemory(from: $0.baseAddress!, byteCount: $0.count)
      }
    }
    received |= 1 << UInt64(index)
    if peer != source { fromHelper |= 1 << UInt64(index) }
    return .put(isWhole: isWhole, other: other)
  }
}

/// A whole piece that is being verified or written, and whom it came from.
struct PieceInHand: Sendable {
  let source: PeerID
  /// Nil when all came from the source.
  let helper: PeerID?
  let fromHelper: UInt64
  let bytes: [UInt8]
}

/// A piece of two sources that was wrong. Once the right one is there its blocks say who lied.
struct SuspectPiece: Sendable {
  let source: PeerID
  let helper: PeerID
  let fromHelper: UInt64
  let leafHashes: [Hash32]

  init(_ piece: PieceInHand, helper: PeerID) {
    source = piece.source
    self.helper = helper
    fromHelper = piece.fromHelper
    leafHashes = piece.bytes.withUnsafeBytes { MediaTree.leafHashes(of: $0) }
  }

  /// Whoever sent other bytes than these.
  func liars(against bytes: [UInt8]) -> [PeerID] {
    let right = bytes.withUnsafeBytes { MediaTree.leafHashes(of: $0) }
    let wrong = leafHashes.indices.filter { leafHashes[$0] != right[$0] }
    return [source, helper].filter { peer in
      wrong.contains { (fromHelper & 1 << UInt64($0) != 0) == (peer == helper) }
    }
  }
}

/// A manifest fetched in parts of one size from one source.
struct PartAssembly: Sendable {
  let source: PeerID
  let startedAt: Instant
  private(set) var bytes: [UInt8]
  private let partByteCount: Int
  private var nextOffset = 0
  private var missingByteCount: Int

  init(source: PeerID, byteCount: Int, partByteCount: Int, at now: Instant) {
    self.source = source
    self.partByteCount = partByteCount
    startedAt = now
    bytes = [UInt8](repeating: 0, count: byteCount)
    missingByteCount = byteCount
  }

  var isWhole: Bool { missingByteCount == 0 }
  var receivedByteCount: Int { bytes.count - missingByteCount }

  /// The next part to ask for.
  mutating func takeNext() -> Range<Int>? {
    guard nextOffset < bytes.count else { return nil }
    defer { nextOffset += partByteCount }
    return nextOffset..<min(nextOffset + partByteCount, bytes.count)
  }

  /// False when it is not as long as the part at that offset.
  mutating func put(_ part: ArraySlice<UInt8>, at offset: Int) -> Bool {
    guard part.count == min(partByteCount, bytes.count - offset) else { return false }
    bytes.replaceSubrange(offset..<offset + part.count, with: part)
    missingByteCount -= part.count
    return true
  }
}

/// Memory of whole pieces that were written, for those to come: fresh memory costs a fault every page.
struct SparePieces: Sendable {
  private var memory: [[UInt8]] = []

  mutating func keep(_ bytes: [UInt8]) { if bytes.count == Limit.mediaPieceByteCount { memory.append(bytes) } }

  mutating func piece(from source: PeerID, byteCount: Int, at now: Instant) -> IncomingPiece {
    let bytes = byteCount == Limit.mediaPieceByteCount ? memory.popLast() : nil
    return IncomingPiece(source: source, byteCount: byteCount, at: now, memory: bytes)
  }
}
