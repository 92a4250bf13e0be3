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
  /// Nil: to a reader.
  package var target: Landing.Target?
  /// The target's folder, absolute, to know it again after a restart.
  package let folder: String
  /// What the announcement calls it, "photo" or "file".
  package let kind: String
  /// What a reader wants of it.
  package let selection: ByteSelection
  /// Members to ask first.
  package let likely: [PeerID]
  /// Known already, such as from `MediaActor.contents`.
  package var manifest: MediaManifest?
  /// Files by their place in that manifest, ascending; nil: all.
  package var selected: [Int]?
  /// Whether files become executable that were so where they were shared.
  package var isApplyingExecutable = false
  /// Whether users see it among their downloads.
  package var isListed = true
  /// Nothing is landed: it ends with `.contents` once the manifest is there.
  package var isForContents = false
  /// Called in order, the end last; must not block.
  package let report: @Sendable (DownloadNews) -> Void

  package init(
    id: MediaID, channel: ChannelID, target: Landing.Target?, folder: String, kind: String, likely: [PeerID],
    selection: ByteSelection = .all, report: @escaping @Sendable (DownloadNews) -> Void
  ) {
    self.id = id
    self.channel = channel
    self.target = target
    self.folder = folder
    self.kind = kind
    self.likely = likely
    self.selection = selection
    self.report = report
  }

  func wantedByteCount(_ manifest: MediaManifest) -> UInt64 {
    guard let selected else { return manifest.byteCount }
    return selected.reduce(0) { $0 + manifest.files[$1].byteCount }
  }

  func isSelected(_ file: Int) -> Bool {
    guard let selected else { return true }
    var (low, high) = (0, selected.count)
    while low < high {
      let middle = (low + high) / 2
      if selected[middle] == file { return true }
      if selected[middle] < file { low = middle + 1 } else { high = middle }
    }
    return false
  }

  /// What comes down. `holding`: pieces that an earlier run left.
  func content(_ manifest: MediaManifest, holding: PieceSet?) -> Landing.Content {
    let wanted = selected.map(Set.init)
    let layout = MediaLayout(manifest)
    return Landing.Content(
      manifest, isWanted: { wanted?.contains($0) ?? true },
      isBegun: { file in holding.map { holding in layout.pieces(of: file).contains { holding.contains($0) } } ?? false
      },
      isApplyingExecutable: isApplyingExecutable)
  }

  /// Of the file that it is to be; nil: under the sender's name in the folder.
  var fileName: String? {
    guard case .file(let path, _) = target else { return nil }
    return path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
  }
  var mayReplace: Bool { if case .file(_, true) = target { true } else { false } }
}

/// A download that broke off: what it takes to go on.
package struct KeptDownload: Sendable {
  let channel: ChannelID
  let folder: String
  /// As in its order.
  let fileName: String?
  let mayReplace: Bool
  let partName: String
  let manifest: MediaManifest
  /// One list for each file; empty for those that were not wanted.
  let hashes: [[Hash32]]
  /// Pieces counted through all files.
  let holding: PieceSet

  init(
    channel: ChannelID, folder: String, fileName: String?, mayReplace: Bool, partName: String, manifest: MediaManifest,
    hashes: [[Hash32]], holding: PieceSet
  ) {
    self.channel = channel
    self.folder = folder
    self.fileName = fileName
    self.mayReplace = mayReplace
    self.partName = partName
    self.manifest = manifest
    self.hashes = hashes
    self.holding = holding
  }

  /// Nil when it does not hang together.
  package init?(_ stored: StoredDownload) {
    guard let manifest = try? MediaManifest(decoding: stored.manifest), manifest.id == stored.id,
      let slash = stored.partPath.lastIndex(of: "/"),
      let holding = PieceSet(pieceCount: MediaLayout(manifest).pieceCount, bytes: stored.bitmap),
      let hashes = Self.split(stored.pieceHashes, manifest, isKnown: stored.selected)
    else { return nil }
    let folder = String(stored.partPath[..<slash])
    let fileName = stored.targetPath == folder ? nil : String(stored.targetPath.dropFirst(folder.count + 1))
    guard fileName == nil || stored.targetPath == folder + "/" + fileName!, fileName != "" else { return nil }
    self.init(
      channel: stored.channel, folder: folder, fileName: fileName, mayReplace: stored.replacing,
      partName: String(stored.partPath[stored.partPath.index(after: slash)...]), manifest: manifest,
      hashes: hashes, holding: holding)
  }

  /// `isKnown`: a bit for each file, the highest of each byte first; empty: all. Checked against the roots.
  private static func split(_ bytes: [UInt8], _ manifest: MediaManifest, isKnown: [UInt8]) -> [[Hash32]]? {
    guard isKnown.isEmpty || isKnown.count == (manifest.files.count + 7) / 8 else { return nil }
    var hashes: [[Hash32]] = []
    var start = 0
    for (index, file) in manifest.files.enumerated() {
      guard isKnown.isEmpty || isKnown[index / 8] & (0x80 >> UInt8(index % 8)) != 0 else {
        hashes.append([])
        continue
      }
      let count = Int(clamping: file.pieceCount)
      guard count <= (bytes.count - start) / 32 else { return nil }
      let list = (0..<count).map { Hash32(bytes: bytes[(start + $0 * 32)..<(start + $0 * 32 + 32)])! }
      guard MediaTree.root(pieceHashes: list, byteCount: file.byteCount) == file.root else { return nil }
      hashes.append(list)
      start += count * 32
    }
    return start == bytes.count ? hashes : nil
  }

  /// Whether these hashes are all that is needed for those files (nil: all).
  func knowsHashes(of selected: [Int]?) -> Bool {
    (selected ?? Array(manifest.files.indices)).allSatisfy { UInt64(hashes[$0].count) == manifest.files[$0].pieceCount }
  }

  var heldByteCount: UInt64 {
    let layout = MediaLayout(manifest)
    return (0..<layout.pieceCount).reduce(0) { $0 + (holding.contains($1) ? UInt64(layout.byteCount(of: $1)) : 0) }
  }

  /// What may be found in the part: more may have been written than the store was told. `known`: those that are there.
  func checks(of selected: [Int]?, besides known: PieceSet) -> [PieceCheck] {
    let layout = MediaLayout(manifest)
    var checks: [PieceCheck] = []
    for file in selected ?? Array(manifest.files.indices) where !hashes[file].isEmpty {
      let pieces = layout.pieces(of: file)
      for piece in pieces where !known.contains(piece) {
        checks.append(
          PieceCheck(
            piece: piece, layout.place(of: piece), expected: hashes[file][piece - pieces.lowerBound],
            isOnlyPiece: pieces.count == 1))
      }
    }
    return checks
  }

  /// Blocks.
  package func removePart() { Landing.removePart(partName, in: folder) }

  /// The target is the folder, or the file in the part's folder.
  var stored: StoredDownload {
    let isAll = knowsHashes(of: nil)
    var known = [UInt8](repeating: 0, count: isAll ? 0 : (manifest.files.count + 7) / 8)
    if !isAll {
      for (index, list) in hashes.enumerated() where UInt64(list.count) == manifest.files[index].pieceCount {
        known[index / 8] |= 0x80 >> UInt8(index % 8)
      }
    }
    return StoredDownload(
      id: manifest.id, channel: channel, targetPath: fileName.map { folder + "/" + $0 } ?? folder,
      partPath: folder + "/" + partName,
      manifest: manifest.encoded, pieceHashes: hashes.flatMap { $0.flatMap(\.bytes) }, bitmap: holding.bytes,
      replacing: mayReplace, selected: known)
  }

  /// To go on with it.
  var order: DownloadOrder {
    let name = SafeFileName(received: manifest.files[0].path.last ?? "")
    var order = DownloadOrder(
      id: manifest.id, channel: channel,
      target: fileName.map { .file(folder + "/" + $0, mayReplace: mayReplace) } ?? .folder(folder, name),
      folder: folder, kind: "file", likely: [], report: { _ in })
    order.manifest = manifest
    if !knowsHashes(of: nil) {
      order.selected = manifest.files.indices.filter { UInt64(hashes[$0].count) == manifest.files[$0].pieceCount }
    }
    return order
  }
}

extension MediaActor {
  /// What an earlier run left.
  func enlistKept(_ download: KeptDownload) {
    let number = newTag()
    var item = ListedDownload(number: number, order: download.order)
    item.byteCount = download.order.wantedByteCount(download.manifest)
    item.doneByteCount = download.heldByteCount
    item.rest(.paused)
    listed[number] = item
  }
}
