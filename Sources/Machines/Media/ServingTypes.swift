import ParleyHashing
import ParleyVocabulary
import ParleyWire

package enum ServingEvent: Equatable, Sendable {
  /// All of it is here.
  case shared(ServedMedia)
  /// A download under way: these pieces are verified and written, more follow with `.gained`.
  case partShared(ServedMedia, holding: PieceSet)
  case gained(MediaID, piece: Int)
  case unshared(MediaID)
  case requested(PeerID, UInt64, MediaRequest, isMember: Bool)
  case cancelled(PeerID, UInt64, count: Int = 1)
  case peerLost(PeerID)
  /// The bytes of a read, exactly as many as were asked for.
  case readDone(UInt64, [UInt8])
  case readFailed(UInt64, MediaRefusal)
  /// So many bytes wait on the peer's connection now.
  case drained(PeerID, queuedByteCount: Int)
  case woke
}

package enum ServingEffect: Equatable, Sendable {
  case reply(PeerID, UInt64, MediaReply)
  /// Read from the disk; `.readDone` or `.readFailed` with its ID answers.
  case read(ServedRead)
  /// The source file is no longer what was shared: tell its sharer. It is refused from now on.
  case sourceChanged(MediaID)
  /// One file of several: the others are served.
  case fileChanged(MediaID, file: Int)
  case wake(at: Instant)
}

/// Neighbouring blocks that one peer asked for, read at once.
package struct ServedRead: Equatable, Sendable {
  package let id: UInt64
  package let peer: PeerID
  package let media: MediaID
  package let file: Int
  package let offset: UInt64
  package let byteCount: Int
}

/// Something that is served.
struct Shelf {
  let served: ServedMedia
  /// Nil: all of it.
  var holding: PieceSet?

  /// Nil when nothing is left.
  func holding(without file: Int) -> PieceSet? {
    var left = holding ?? PieceSet(pieceCount: served.layout.pieceCount)
    if holding == nil { left.insertAll() }
    served.layout.pieces(of: file).forEach { left.remove($0) }
    return left.count > 0 ? left : nil
  }
}

/// A peer that asks, and what is on the way to it.
struct ServedPeer {
  /// Somebody who asked what we hold and is told of more as it comes.
  struct Listener {
    let number: UInt64
    let media: MediaID
    let first: Int
    var nextAt: Instant
    var isBehind = false
  }

  /// A peer that was lost and came back has a new account, in which reads for the old one do not stand.
  let account: UInt64
  private(set) var requests: [(number: UInt64, request: MediaRequest)] = []
  /// Answers that those get.
  private(set) var waitingCount = 0
  var listeners: [Listener] = []
  /// Being read.
  var readingByteCount = 0
  var readingCount = 0
  /// How often in a row another was served though this one waited.
  var passedOver = 0
  /// Replied and not yet known to have left.
  private(set) var queuedByteCount = 0
  private var movedAt: Instant
  private var movedByteCount = 0

  init(account: UInt64, at now: Instant) {
    self.account = account
    movedAt = now
  }

  var pendingByteCount: Int { queuedByteCount + readingByteCount }
  var room: Int { ServingMachine.queuedByteCountMax - pendingByteCount }
  /// Until then it counts as one that takes what it is given.
  var movingUntil: Instant { movedAt + ServingMachine.movingFor }

  mutating func wait(_ number: UInt64, _ request: MediaRequest) {
    requests.append((number, request))
    waitingCount += request.answerCount
  }

  mutating func takeFirst() { waitingCount -= requests.removeFirst().request.answerCount }

  /// So many blocks off the first request; their numbers.
  mutating func takeBlocks(_ taken: Int) -> [UInt64?] {
    guard case (let number, .block(let media, let file, let index, let count))? = requests.first, taken <= count else {
      preconditionFailure("blocks are taken of a request for as many")
    }
    if taken == count {
      requests.removeFirst()
    } else {
      requests[0] = (number + UInt64(taken), .block(media, file: file, index: index + taken, count: count - taken))
    }
    waitingCount -= taken
    return (0..<taken).map { number + UInt64($0) }
  }

  /// Of a request for several blocks some may stay.
  mutating func cancel(_ numbers: Range<UInt64>) {
    var left: [(number: UInt64, request: MediaRequest)] = []
    left.reserveCapacity(requests.count)
    for (number, request) in requests {
      let own = number..<number + UInt64(request.answerCount)
      guard own.overlaps(numbers) else {
        left.append((number, request))
        continue
      }
      guard case .block(let media, let file, let index, _) = request else { continue }
      let before = own.lowerBound..<max(own.lowerBound, numbers.lowerBound)
      let behind = min(own.upperBound, numbers.upperBound)..<own.upperBound
      for part in [before, behind] where !part.isEmpty {
        let first = index + Int(part.lowerBound - number)
        left.append((part.lowerBound, .block(media, file: file, index: first, count: part.count)))
      }
    }
    requests = left
    waitingCount = left.reduce(0) { $0 + $1.request.answerCount }
  }

  mutating func queue(_ byteCount: Int, at now: Instant) {
    if pendingByteCount == 0 { movedAt = now }
    queuedByteCount += byteCount
  }

  mutating func read(_ byteCount: Int, at now: Instant) {
    if pendingByteCount == 0 { movedAt = now }
    readingByteCount += byteCount
  }

  mutating func drained(to byteCount: Int, at now: Instant) {
    movedByteCount += max(0, queuedByteCount - byteCount)
    queuedByteCount = byteCount
    guard movedByteCount >= ServingMachine.movingByteCount || byteCount == 0 else { return }
    movedByteCount = 0
    movedAt = now
  }
}
