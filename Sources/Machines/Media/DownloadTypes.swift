import ParleyHashing
import ParleyVocabulary
import ParleyWire

/// What happened to a download.
package enum DownloadEvent: Equatable, Sendable {
  /// First of all.
  case started
  /// A media session with a member that may hold it is open.
  case sourceFound(PeerID)
  /// That session ended, or the member left.
  case sourceLost(PeerID)
  /// The answer to the request of this number, or to one of the blocks of a request that begins before it.
  case replied(PeerID, UInt64, MediaReply)
  /// The target is open and its space reserved. `holding`: the pieces verified and written by an earlier run.
  case prepared(holding: PieceSet)
  case pieceVerified(Int, isGood: Bool)
  case pieceWritten(Int)
  /// Blocks are asked for only as `.allowed` says.
  case limited
  /// So many bytes more.
  case allowed(byteCount: Int)
  /// Somebody gave it up, or the disk refused.
  case stopped
  case woke
}

/// What a download wants done.
package enum DownloadEffect: Equatable, Sendable {
  case request(PeerID, UInt64, MediaRequest)
  /// What was asked under `count` numbers from this one on.
  case cancel(PeerID, UInt64, count: Int = 1)
  /// Open the target and reserve its space; `.prepared` answers. The manifest is verified: keep it for resuming.
  case prepare(MediaManifest)
  /// Hash the piece away from the pool; `.pieceVerified` answers.
  case verify(PieceCheck, [UInt8])
  /// `.pieceWritten` answers.
  case write(piece: Int, file: Int, offset: UInt64, [UInt8])
  case progress(DownloadProgress)
  /// Ask nothing more of it for this media; one that lied is refused for good.
  case dropSource(PeerID, SourceFault)
  case wake(at: Instant)
  /// Every piece is verified and written: land it.
  case finished
  case failed(DownloadFailure)
}

/// What somebody wants of a media ID, and what is known of it from an earlier run.
package struct DownloadOptions: Sendable {
  package var manifest: MediaManifest?
  /// All of them, verified: one list for each file of the manifest.
  package var pieceHashes: [[Hash32]]?
  /// Files by their place in the manifest; nil: all.
  package var selected: [Int]?
  /// Pieces come in the order of the files, for players and pipes: none is asked for that lies more than 16 pieces
  /// behind the first that is missing.
  package var isInOrder: Bool

  package init(
    manifest: MediaManifest? = nil, pieceHashes: [[Hash32]]? = nil, selected: [Int]? = nil, isInOrder: Bool = false
  ) {
    precondition(
      pieceHashes == nil || pieceHashes?.count == manifest?.files.count, "the hashes are those of the manifest's files")
    self.manifest = manifest
    self.pieceHashes = pieceHashes
    self.selected = selected
    self.isInOrder = isInOrder
  }
}

/// What a piece must hash to, and where it lies.
package struct PieceCheck: Equatable, Sendable {
  /// Counted through all files.
  package let piece: Int
  package let place: PiecePlace
  package let expected: Hash32
  /// Of its file.
  package let isOnlyPiece: Bool

  package init(piece: Int, _ place: PiecePlace, expected: Hash32, isOnlyPiece: Bool) {
    self.piece = piece
    self.place = place
    self.expected = expected
    self.isOnlyPiece = isOnlyPiece
  }

  /// Takes about 0.7 ms for a whole piece.
  package func accepts(_ bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBytes { MediaTree.pieceHash(of: $0, isOnlyPiece: isOnlyPiece) } == expected
  }
}

package struct DownloadProgress: Equatable, Sendable {
  /// Bytes in pieces that are verified and written.
  package var doneByteCount: UInt64
  package var byteCount: UInt64
  package var sourceCount: Int
  /// Over the last seconds; filled in by who has a clock for it.
  package var bytesPerSecond: UInt64 = 0

  package init(doneByteCount: UInt64, byteCount: UInt64, sourceCount: Int) {
    self.doneByteCount = doneByteCount
    self.byteCount = byteCount
    self.sourceCount = sourceCount
  }
}

package enum SourceFault: Equatable, Sendable, CustomStringConvertible {
  case refused(MediaRefusal)
  /// Nothing came for eight seconds while something was asked for.
  case silent
  /// The parts it gave do not make the manifest of this media ID.
  case badManifest
  /// The hashes it gave do not make the root of the file.
  case badPieceHashes
  case badPiece(Int)
  /// It said again and again that it holds what it then refused.
  case falseClaim(Int)
  /// An answer that does not fit the request, or to none.
  case misbehaved

  /// Whether it is never asked again for this media.
  package var isForGood: Bool {
    switch self {
    case .refused, .silent: false
    case .badManifest, .badPieceHashes, .badPiece, .falseClaim, .misbehaved: true
    }
  }

  package var description: String {
    switch self {
    case .refused(let reason): "\(reason)"
    case .silent: "it sent nothing for 8 seconds"
    case .badManifest: "its manifest is not that of this media ID"
    case .badPieceHashes: "its piece hashes do not belong to this file"
    case .badPiece(let piece): "its piece \(piece) has other bytes than were shared"
    case .falseClaim(let piece): "it says that it holds piece \(piece) and others, and does not give them"
    case .misbehaved: "it answered what was not asked"
    }
  }
}

package enum DownloadFailure: Error, Equatable, Sendable, CustomStringConvertible {
  /// It has the right hash, so whoever shared it made it so.
  case manifest(WireError)
  case severalFiles(count: Int)
  case tooLarge(byteCount: UInt64, byteCountMax: UInt64)

  package var description: String {
    switch self {
    case .manifest(let error): "the manifest is malformed: \(error)"
    case .severalFiles(let count):
      "it is a folder of \(count) files, which cannot be read in one piece: download it to a folder"
    case .tooLarge(let byteCount, let byteCountMax):
      "the file has \(byteCount) bytes, at most \(byteCountMax) can be downloaded"
    }
  }
}
