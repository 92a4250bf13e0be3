import ParleyDisk
import ParleyHashing
import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

/// A file or folder of this machine that is served under a media ID.
package struct HeldFile: Sendable {
  /// Absolute.
  package let path: String
  package let manifest: MediaManifest
  /// Of each file of the manifest, in its order.
  package let hashes: [[Hash32]]
  package let sources: [FileSource]
  /// Files of a folder that are not what they were, so that nothing of them is served.
  let changed: Set<Int>
  let layout: MediaLayout

  package init(
    path: String, manifest: MediaManifest, hashes: [[Hash32]], sources: [FileSource], changed: Set<Int> = []
  ) {
    precondition(
      manifest.files.count == hashes.count && hashes.count == sources.count, "each file has hashes and a place")
    self.path = path
    self.manifest = manifest
    self.hashes = hashes
    self.sources = sources
    self.changed = changed
    layout = MediaLayout(manifest)
  }

  /// A single file.
  package init(path: String, facts: FileFacts, manifest: MediaManifest, pieceHashes: [Hash32]) {
    self.init(
      path: path, manifest: manifest, hashes: [pieceHashes], sources: [FileSource(root: path, facts: facts)])
  }

  package init(_ scanned: ScannedShare, manifest: MediaManifest) {
    self.init(
      path: scanned.path, manifest: manifest, hashes: scanned.files.map(\.pieceHashes),
      sources: scanned.files.map(\.source))
  }

  package var changedPaths: [String] { changed.sorted().map { sources[$0].path } }

  var served: ServingEvent {
    let served = ServedMedia(manifest: manifest, pieceHashes: hashes)
    guard !changed.isEmpty else { return .shared(served) }
    var holding = PieceSet(pieceCount: layout.pieceCount)
    for file in sources.indices where !changed.contains(file) { layout.pieces(of: file).forEach { holding.insert($0) } }
    return .partShared(served, holding: holding)
  }

  /// Of the first file.
  package var facts: FileFacts { sources[0].facts }
}

// How it is kept across restarts.
extension HeldFile {
  private static let membersVersion: UInt8 = 1

  /// `kind`: what the announcement calls it.
  package func stored(in channel: ChannelID, kind: String) -> StoredShare {
    let isFolder = manifest.isFolder
    return StoredShare(
      id: manifest.id, channel: channel, path: path, byteCount: manifest.byteCount,
      modifiedNanoseconds: isFolder ? 0 : facts.modifiedNanoseconds, inode: isFolder ? 0 : facts.inode, kind: kind,
      manifest: manifest.encoded, pieceHashes: hashes.flatMap { $0.flatMap(\.bytes) },
      members: isFolder ? encodedMembers : [])
  }

  /// Version, then for each file its time of change, inode and path below the folder.
  private var encodedMembers: [UInt8] {
    var writer = ByteWriter(reserving: 64 * sources.count)
    writer.uint8(Self.membersVersion)
    for source in sources {
      writer.uint64(UInt64(bitPattern: source.facts.modifiedNanoseconds))
      writer.uint64(source.facts.inode)
      writer.text(source.relative ?? "")
    }
    return writer.bytes
  }

  /// Looks at every file: throws `.changed` when none is what it was, nil when what was stored does not hang together.
  /// Blocks.
  init?(restoring stored: StoredShare) throws(DiskError) {
    guard let manifest = try? MediaManifest(decoding: stored.manifest), manifest.id == stored.id,
      let hashes = Self.split(stored.pieceHashes, manifest)
    else { return nil }
    guard manifest.isFolder else {
      let facts = try FileFacts(path: stored.path)
      guard facts.isAs(stored.byteCount, stored.modifiedNanoseconds, stored.inode) else {
        throw .changed(path: stored.path)
      }
      self.init(path: stored.path, facts: facts, manifest: manifest, pieceHashes: hashes[0])
      return
    }
    guard let members = try? Self.members(decoding: stored.members, count: manifest.files.count) else { return nil }
    let expected = zip(manifest.files, members).map { file, member in
      (member.relative, file.byteCount, member.modifiedNanoseconds, member.inode)
    }
    let restored = try FileSource.restored(in: stored.path, expected)
    guard restored.changed.count < expected.count else { throw .changed(path: stored.path) }
    self.init(
      path: stored.path, manifest: manifest, hashes: hashes, sources: restored.sources, changed: restored.changed)
  }

  /// One list a file.
  private static func split(_ bytes: [UInt8], _ manifest: MediaManifest) -> [[Hash32]]? {
    var hashes: [[Hash32]] = []
    var start = 0
    for file in manifest.files {
      let count = Int(clamping: file.pieceCount)
      guard count <= (bytes.count - start) / 32 else { return nil }
      hashes.append((0..<count).map { Hash32(bytes: bytes[(start + $0 * 32)..<(start + $0 * 32 + 32)])! })
      start += count * 32
    }
    return start == bytes.count ? hashes : nil
  }

  private struct Member {
    let modifiedNanoseconds: Int64
    let inode: UInt64
    let relative: String
  }

  private static func members(decoding bytes: [UInt8], count: Int) throws(WireError) -> [Member] {
    var reader = ByteReader(bytes)
    let version = try reader.uint8("members.version")
    guard version == membersVersion else { throw .outOfRange(field: "members.version", value: UInt64(version)) }
    var members: [Member] = []
    members.reserveCapacity(count)
    for _ in 0..<count {
      let modified = Int64(bitPattern: try reader.uint64("members.modified"))
      let inode = try reader.uint64("members.inode")
      let relative = try reader.text("members.path", byteCountMax: Limit.manifestByteCountMax)
      members.append(Member(modifiedNanoseconds: modified, inode: inode, relative: relative))
    }
    try reader.finish()
    return members
  }
}
