import ParleyHashing
import ParleyVocabulary
import ParleyWire

/// A media ID that is served: what can be answered from memory, and where on the disk the rest is.
package struct ServedMedia: Equatable, Sendable {
  package let manifest: MediaManifest
  /// One list for each file of the manifest, in its order.
  package let pieceHashes: [[Hash32]]

  package init(manifest: MediaManifest, pieceHashes: [[Hash32]]) {
    precondition(
      manifest.files.count == pieceHashes.count
        && zip(manifest.files, pieceHashes).allSatisfy { $0.pieceCount == UInt64($1.count) },
      "each file has a hash for each of its pieces")
    self.manifest = manifest
    self.pieceHashes = pieceHashes
  }

  package enum Answer: Equatable, Sendable {
    case reply(MediaReply)
    case read(file: Int, offset: UInt64, byteCount: Int)
  }

  /// Numbers in requests are anybody's; what is out of range is unknown.
  package func answer(_ request: MediaRequest) -> Answer {
    switch request {
    case .manifest(_, let offset):
      let bytes = manifest.encoded
      guard bytes.indices.contains(offset) else { return .reply(.refused(.unknown)) }
      let end = min(offset + MediaMessage.manifestPartByteCountMax, bytes.count)
      return .reply(.manifestPart(total: bytes.count, offset: offset, bytes[offset..<end]))
    case .pieceHashes(_, let file, let first, let count):
      guard pieceHashes.indices.contains(file), count > 0, pieceHashes[file].count - count >= first, first >= 0 else {
        return .reply(.refused(.unknown))
      }
      return .reply(.pieceHashes(pieceHashes[file][first..<first + count].flatMap(\.bytes)[...]))
    case .block(_, let file, let index):
      guard manifest.files.indices.contains(file), index >= 0, UInt64(index) < manifest.files[file].blockCount else {
        return .reply(.refused(.unknown))
      }
      let block = UInt64(Limit.mediaBlockByteCount)
      let offset = UInt64(index) * block
      let byteCount = Int(min(block, manifest.files[file].byteCount - offset))
      return .read(file: file, offset: offset, byteCount: byteCount)
    case .have: return .reply(.holdingAll)
    }
  }
}
