import Glibc
import ParleyActors
import ParleyDisk
import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire
import Synchronization

extension Node {
  /// Reads and hashes the file or folder, announces it in the channel and serves it from where it lies, for as long as
  /// it stays as it is. `kind` nil: a photo or video when its first bytes are those of one, else a file. A photo is
  /// shared without what it says of its place, from a copy in the home where it says any. `path`: absolute, or relative
  /// to the working directory. Throws `.noSuchFile`, `.notAFile`, `.fileTrouble`, `.sourceChanged`.
  public func share(
    path: String, as kind: ShareKind? = nil, in name: ChannelName
  ) async throws(ParleyError) -> MediaReference {
    try await share(path: path, as: kind, in: name) { _ in }.media
  }

  /// The same, telling how it goes. What was hashed before and has the same size, time of change and inode is not read
  /// again, also after a restart.
  ///
  /// Of a folder all regular files are shared under one media ID, with their paths below it; what is something else, a
  /// link, or cannot be read is left out and told in the result. A folder is one in all: when one of its files changes,
  /// it is no longer served. Its message says `inode/directory` as MIME type and the sum of the sizes.
  /// Cancelling the task ends it with `.cancelled`.
  public func share(
    path: String, as kind: ShareKind? = nil, in name: ChannelName,
    progress: @escaping @Sendable (ShareProgress) -> Void
  ) async throws(ParleyError) -> SharedMedia {
    try await share(path: path, ShareOptions(as: kind), in: name, progress: progress)
  }

  /// The same with all that can be said of the file, and beside it. Throws `.badField` too, before anything is read.
  public func share(
    path: String, _ options: ShareOptions, in name: ChannelName,
    progress: @escaping @Sendable (ShareProgress) -> Void
  ) async throws(ParleyError) -> SharedMedia {
    let said = try options.said()
    if let picture = try await sharePicture(path: path, options, said, in: name, progress) { return picture }
    let engine = try await running()
    let joined = try channel(name)
    let (scanned, head) = try await scan(path, engine, progress)
    let mimeType = scanned.isFolder ? MediaManifest.folderType : FileKindGuess.mimeType(head: head, name: scanned.name)
    let manifest: MediaManifest
    do { manifest = try scanned.manifest(mimeType: mimeType) } catch {
      throw .fileTrouble(path: path, reason: error.description)
    }
    let media = MediaMembers(
      id: manifest.id, fileName: scanned.name, byteCount: scanned.byteCount, mimeType: mimeType)
    let held = HeldFile(scanned, manifest: manifest)
    try await keep(held, in: joined, kind: "file", engine)
    await engine.media.hold(held, in: joined.id)
    _ = try await say(FileKind(file: media), said, in: name, waiting: nil)
    return SharedMedia(
      media: MediaReference(
        id: manifest.id, fileName: scanned.name, byteCount: scanned.byteCount, mimeType: mimeType),
      fileCount: scanned.files.count, skippedCount: scanned.skipped.count,
      skipped: scanned.skipped.first.map { SkippedFile(path: $0.path, reason: $0.reason) })
  }

  /// On a thread of its own: a large file takes a second a gigabyte.
  func scan(
    _ path: String, _ engine: Engine, _ progress: @escaping @Sendable (ShareProgress) -> Void
  ) async throws(ParleyError) -> (ScannedShare, head: [UInt8]) {
    let thread = ThreadExecutor()
    defer { thread.stop() }
    let disk = DiskActor(executor: thread)
    let steps = ProgressSteps(progress)
    do {
      return try await withTaskCancellationHandler {
        let startedAt = Int64(clamping: SystemClock.wallMilliseconds()) &* 1_000_000
        let listing = try await disk.list(path) { _ in !steps.isCancelled }
        let known = await known(listing, engine)
        let fileCount = listing.files.count
        let scanned = try await disk.scan(listing, known: known) { done, total in
          steps.tell(ShareProgress(hashedByteCount: done, byteCount: total, fileCount: fileCount))
        }
        await remember(scanned, since: startedAt, known: known.count, engine)
        return (scanned, scanned.isFolder ? [] : try await disk.head(of: scanned.files[0].source))
      } onCancel: {
        steps.cancel()
      }
    } catch let error as DiskError {
      throw ParleyError(error)
    } catch {
      throw .fileTrouble(path: path, reason: "\(error)")
    }
  }

  /// Asked for in parts, so that messages are stored in between. Without a usable store everything is read.
  private func known(_ listing: SharedListing, _ engine: Engine) async -> [Int: [Hash32]] {
    let sources = listing.files.map(\.source)
    var known: [Int: [Hash32]] = [:]
    for start in stride(from: 0, to: sources.count, by: Self.scansAtOnce) {
      let part = sources[start..<min(start + Self.scansAtOnce, sources.count)]
      guard let found = try? await engine.store.hashes(of: part) else { return known }
      known.merge(found) { _, new in new }
    }
    return known
  }

  private func remember(_ scanned: ScannedShare, since startedAt: Int64, known: Int, _ engine: Engine) async {
    guard known < scanned.files.count else { return }
    let scans = scanned.files.lazy.filter { $0.source.facts.isSettled(at: startedAt) }.map {
      StoredScan(
        path: $0.source.path, byteCount: $0.byteCount, modifiedNanoseconds: $0.source.facts.modifiedNanoseconds,
        inode: $0.source.facts.inode, pieceHashes: $0.pieceHashes.flatMap(\.bytes))
    }
    let all = Array(scans)
    for start in stride(from: 0, to: all.count, by: Self.scansAtOnce) {
      let part = Array(all[start..<min(start + Self.scansAtOnce, all.count)])
      // Without it the next sharing takes as long as this one.
      _ = try? await engine.store.apply([.scans(part)])
    }
  }

  private static let scansAtOnce = 1_000

  func keep(
    _ file: HeldFile, in joined: Hub.Joined, kind: String, _ engine: Engine
  ) async throws(ParleyError) {
    do { try await engine.store.apply([.share(file.stored(in: joined.id, kind: kind))]) } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
  }

  /// Files and folders shared or downloaded in earlier runs that are still as they were are served again, of folders
  /// those files; of others people are told.
  func restoreShares(_ engine: Engine, in joined: Hub.Joined) async {
    guard let shares = try? await engine.store.shares(in: joined.id), !shares.isEmpty else { return }
    let thread = ThreadExecutor()
    defer { thread.stop() }
    let disk = DiskActor(executor: thread)
    for share in shares {
      do throws(DiskError) {
        guard let file = try await disk.restore(share) else { continue }
        switchboard.media.post(.hold(file, joined.id))
        for path in file.changedPaths { hub.take(.trouble(ParleyError.sourceChanged(path: path).description)) }
      } catch {
        hub.take(.trouble(ParleyError.sourceChanged(path: error.path).description))
      }
    }
  }
}

extension ShareOptions {
  /// What the message carries beside its kind's own members. Throws `.badField` for what cannot be.
  func said() throws(ParleyError) -> MessageOptions {
    if let seconds, !Self.secondsRange.contains(seconds) {
      throw .badField("duration", value: "\(seconds)", allowed: "0 to \(Self.secondsRange.upperBound) seconds")
    }
    if seconds != nil, kind != .voice, kind != .video {
      throw .badField("duration", value: "\(seconds!)", allowed: "of a voice or video only")
    }
    if let thumbnailPath, kind != .video {
      throw .badField("thumbnail", value: thumbnailPath, allowed: "of a video only")
    }
    var said = MessageOptions.none
    if let ext { said.ext = try MessageDraft.ext(ext) }
    said.replyTo = replyTo.map { MessageKey(sender: $0.sender, id: $0.id) }
    return said
  }
}

/// Passes progress on in at most some 200 steps.
private final class ProgressSteps: Sendable {
  private struct State {
    var told: UInt64?
    var isCancelled = false
  }

  private let state = Mutex(State())
  private let report: @Sendable (ShareProgress) -> Void

  init(_ report: @escaping @Sendable (ShareProgress) -> Void) { self.report = report }

  func cancel() { state.withLock { $0.isCancelled = true } }
  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// False when it is to stop.
  func tell(_ progress: ShareProgress) -> Bool {
    let (isNews, isCancelled) = state.withLock { state in
      let isLast = progress.hashedByteCount == progress.byteCount
      let isNews = isLast || progress.hashedByteCount >= (state.told ?? 0) + max(1, progress.byteCount / 200)
      if isNews { state.told = progress.hashedByteCount }
      return (isNews, state.isCancelled)
    }
    if isNews { report(progress) }
    return !isCancelled
  }
}
