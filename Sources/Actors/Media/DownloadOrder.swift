import ParleyDisk
import ParleyHashing
import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

/// What somebody wants downloaded.
package struct DownloadOrder: Sendable {
  package let id: MediaID
  package let channel: ChannelID
  package let target: Landing.Target
  /// The target's folder, absolute, to know it again after a restart.
  package let folder: String
  /// What the announcement calls it, "photo" or "file".
  package let kind: String
  /// Members to ask first.
  package let likely: [PeerID]
  /// Called in order, the end last; must not block.
  package let report: @Sendable (DownloadNews) -> Void

  package init(
    id: MediaID, channel: ChannelID, target: Landing.Target, folder: String, kind: String, likely: [PeerID],
    report: @escaping @Sendable (DownloadNews) -> Void
  ) {
    self.id = id
    self.channel = channel
    self.target = target
    self.folder = folder
    self.kind = kind
    self.likely = likely
    self.report = report
  }
}

/// A download that broke off: what it takes to go on.
package struct KeptDownload: Sendable {
  let folder: String
  let partName: String
  let manifest: MediaManifest
  let pieceHashes: [Hash32]
  let holding: PieceSet

  init(folder: String, partName: String, manifest: MediaManifest, pieceHashes: [Hash32], holding: PieceSet) {
    self.folder = folder
    self.partName = partName
    self.manifest = manifest
    self.pieceHashes = pieceHashes
    self.holding = holding
  }

  /// Nil when it does not hang together.
  package init?(_ stored: StoredDownload) {
    guard let manifest = try? MediaManifest(decoding: stored.manifest), manifest.id == stored.id,
      manifest.files.count == 1, let file = manifest.files.first, stored.pieceHashes.count % 32 == 0,
      stored.partPath.hasPrefix(stored.targetPath + "/"),
      let holding = PieceSet(pieceCount: Int(clamping: file.pieceCount), bytes: stored.bitmap)
    else { return nil }
    let hashes = stride(from: 0, to: stored.pieceHashes.count, by: 32).compactMap {
      Hash32(bytes: stored.pieceHashes[$0..<$0 + 32])
    }
    guard hashes.count == holding.pieceCount,
      MediaTree.root(pieceHashes: hashes, byteCount: file.byteCount) == file.root
    else { return nil }
    self.init(
      folder: stored.targetPath, partName: String(stored.partPath.dropFirst(stored.targetPath.count + 1)),
      manifest: manifest, pieceHashes: hashes, holding: holding)
  }

  /// Blocks.
  package func removePart() {
    let target = Landing.Target.folder(folder, SafeFileName(received: partName))
    let landing = try? Landing(target, byteCount: manifest.files[0].byteCount, resuming: partName)
    landing?.abort(keepingPart: false)
  }

  func stored(_ channel: ChannelID) -> StoredDownload {
    StoredDownload(
      id: manifest.id, channel: channel, targetPath: folder, partPath: folder + "/" + partName,
      manifest: manifest.encoded, pieceHashes: pieceHashes.flatMap(\.bytes), bitmap: holding.bytes, replacing: false)
  }
}
