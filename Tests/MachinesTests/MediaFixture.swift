import ParleyHashing
import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// A file, its tree and its manifest.
struct MediaFixture: Sendable {
  let bytes: [UInt8]
  let served: ServedMedia
  var id: MediaID { served.manifest.id }
  var hashes: [Hash32] { served.pieceHashes[0] }

  init(byteCount: Int) {
    var dice = MediaDice(state: UInt64(byteCount))
    let words = (0..<(byteCount + 7) / 8).map { _ in dice.next() }
    bytes = words.withUnsafeBytes { Array($0.prefix(byteCount)) }
    let all = bytes
    let starts = Array(stride(from: 0, to: byteCount, by: Limit.mediaPieceByteCount))
    let hashes = starts.map { start in
      all[start..<min(start + Limit.mediaPieceByteCount, byteCount)].withUnsafeBytes {
        MediaTree.pieceHash(of: $0, isOnlyPiece: starts.count == 1)
      }
    }
    let root = MediaTree.root(pieceHashes: hashes, byteCount: UInt64(byteCount))
    let file = MediaManifest.File(path: ["film.mkv"], byteCount: UInt64(byteCount), root: root)
    served = ServedMedia(manifest: try! MediaManifest(files: [file]), pieceHashes: [hashes])
  }

  func piece(_ piece: Int) -> [UInt8] {
    let start = piece * Limit.mediaPieceByteCount
    return Array(bytes[start..<min(start + Limit.mediaPieceByteCount, bytes.count)])
  }

  /// The true answer to a request.
  func answer(_ request: MediaRequest) -> MediaReply {
    switch served.answer(request) {
    case .reply(let reply): reply
    case .read(_, let offset, let byteCount): .block(bytes[Int(offset)..<Int(offset) + byteCount])
    }
  }

  static let film = MediaFixture(byteCount: 6 << 20 | 12_345)
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine.
struct MediaDice: Sendable {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
    return z ^ z >> 31
  }
  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
  mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
}

extension MediaRequest {
  /// A request for each answer that this one gets.
  var single: [MediaRequest] {
    guard case .block(let id, let file, let index, let count) = self else { return [self] }
    return (0..<count).map { .block(id, file: file, index: index + $0) }
  }
}

let eva = mediaPeer(3)

func mediaPeer(_ number: UInt8) -> PeerID { PeerID(bytes: [UInt8](repeating: number, count: 32))! }
