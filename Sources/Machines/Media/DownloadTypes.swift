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
  /// The answer to the request of this number.
  case replied(PeerID, UInt64, MediaReply)
  /// The target is open and its space reserved. `holding`: the pieces verified and written by an earlier run.
  case prepared(holding: PieceSet)
  case pieceVerified(Int, isGood: Bool)
  case pieceWritten(Int)
  /// Somebody gave it up, or the disk refused.
  case stopped
  case woke
}

/// What a download wants done.
package enum DownloadEffect: Equatable, Sendable {
  case request(PeerID, UInt64, MediaRequest)
  case cancel(PeerID, UInt64)
  /// Open the target and reserve its space; `.prepared` answers. The manifest is verified: keep it for resuming.
  case prepare(MediaManifest)
  /// Hash the piece away from the pool; `.pieceVerified` answers.
  case verify(PieceCheck, [UInt8])
  /// `.pieceWritten` answers.
  case write(piece: Int, offset: UInt64, [UInt8])
  case progress(DownloadProgress)
  /// Ask nothing more of it for this media; one that lied is refused for good.
  case dropSource(PeerID, SourceFault)
  case wake(at: Instant)
  /// Every piece is verified and written: land it.
  case finished
  case failed(DownloadFailure)
}

/// What a piece must hash to.
package struct PieceCheck: Equatable, Sendable {
  package let piece: Int
  package let expected: Hash32
  package let isOnlyPiece: Bool

  package init(piece: Int, expected: Hash32, isOnlyPiece: Bool) {
    self.piece = piece
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
  /// An answer that does not fit the request, or to none.
  case misbehaved

  /// Whether it is never asked again for this media.
  package var isForGood: Bool {
    switch self {
    case .refused, .silent: false
    case .badManifest, .badPieceHashes, .badPiece, .misbehaved: true
    }
  }

  package var description: String {
    switch self {
    case .refused(let reason): "\(reason)"
    case .silent: "it sent nothing for 8 seconds"
    case .badManifest: "its manifest is not that of this media ID"
    case .badPieceHashes: "its piece hashes do not belong to this file"
    case .badPiece(let piece): "its piece \(piece) has other bytes than were shared"
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
    case .severalFiles(let count): "this media ID stands for \(count) files; only single files can be downloaded"
    case .tooLarge(let byteCount, let byteCountMax):
      "the file has \(byteCount) bytes, at most \(byteCountMax) can be downloaded"
    }
  }
}
