import Glibc
import ParleyActors
import ParleyDisk
import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

extension Node: NodeServing {
  /// Reads and hashes the file, announces it in the channel and serves it from where it lies, for as long as it stays
  /// as it is. `kind` nil: a photo when its first bytes are those of a picture, else a file. `path`: absolute, or
  /// relative to the working directory. Throws `.noSuchFile`, `.notAFile`, `.fileTrouble`, `.sourceChanged`.
  public func share(
    path: String, as kind: ShareKind? = nil, in name: ChannelName
  ) async throws(ParleyError) -> MediaReference {
    let engine = try await running()
    let joined = try channel(name)
    let (file, head) = try await scan(path)
    let scanned = file.scanned
    let mimeType = FileKindGuess.mimeType(head: head, name: scanned.name)
    let manifest: MediaManifest
    do { manifest = try scanned.manifest(mimeType: mimeType) } catch {
      throw .fileTrouble(path: path, reason: error.description)
    }
    let isPhoto = kind.map { $0 == .photo } ?? (FileKindGuess.picture(head) != nil)
    let media = MediaMembers(
      id: manifest.id, fileName: scanned.name, byteCount: scanned.byteCount, mimeType: mimeType)
    let held = HeldFile(
      path: file.absolutePath, facts: scanned.facts, manifest: manifest, pieceHashes: scanned.pieceHashes)
    try await keep(held, in: joined, kind: isPhoto ? "photo" : "file", engine)
    await engine.media.hold(held, in: joined.id)
    let content: any MessageKind = isPhoto ? PhotoKind(file: media) : FileKind(file: media)
    _ = try await say(content, in: name, waiting: nil)
    return MediaReference(
      id: manifest.id, fileName: scanned.name, byteCount: scanned.byteCount, mimeType: mimeType)
  }

  /// On a thread of its own: a large file takes a second a gigabyte.
  private func scan(_ path: String) async throws(ParleyError) -> (file: Scan, head: [UInt8]) {
    let thread = ThreadExecutor()
    defer { thread.stop() }
    let disk = DiskActor(executor: thread)
    do {
      let scanned = try await disk.scan(path)
      return (Scan(scanned: scanned, absolutePath: Self.absolute(path)), try await disk.head(of: path))
    } catch {
      throw ParleyError(error)
    }
  }

  private struct Scan {
    let scanned: ScannedFile
    let absolutePath: String
  }

  static func absolute(_ path: String) -> String {
    guard let resolved = realpath(path, nil) else { return path }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  private func keep(
    _ file: HeldFile, in joined: Hub.Joined, kind: String, _ engine: Engine
  ) async throws(ParleyError) {
    let share = StoredShare(
      id: file.manifest.id, channel: joined.id, path: file.path, byteCount: file.facts.byteCount,
      modifiedNanoseconds: file.facts.modifiedNanoseconds, inode: file.facts.inode, kind: kind,
      manifest: file.manifest.encoded, pieceHashes: file.pieceHashes.flatMap(\.bytes))
    do { try await engine.store.apply([.share(share)]) } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
  }

  /// Files shared or downloaded in earlier runs that are still as they were are served again.
  func restoreShares(_ engine: Engine, in joined: Hub.Joined) async {
    guard let shares = try? await engine.store.shares(in: joined.id) else { return }
    for share in shares {
      guard let manifest = try? MediaManifest(decoding: share.manifest), let facts = try? FileFacts(path: share.path),
        facts.byteCount == share.byteCount, facts.modifiedNanoseconds == share.modifiedNanoseconds,
        facts.inode == share.inode
      else { continue }
      let hashes = stride(from: 0, to: share.pieceHashes.count, by: 32).compactMap {
        Hash32(bytes: share.pieceHashes[$0..<min($0 + 32, share.pieceHashes.count)])
      }
      guard manifest.files.count == 1, manifest.files[0].pieceCount == UInt64(hashes.count) else { continue }
      await engine.media.hold(
        HeldFile(path: share.path, facts: facts, manifest: manifest, pieceHashes: hashes), in: joined.id)
    }
  }

  /// Stops serving; the file itself stays where it is. Throws `.noSuchMedia` when it is not served from here.
  public func unshare(_ id: MediaID) async throws(ParleyError) {
    let engine = try await running()
    guard await engine.media.heldFile(id) != nil else { throw .noSuchMedia(id) }
    do { try await engine.store.apply([.unshare(id, nil)]) } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
    await engine.media.release(id, in: hub.channels.map(\.id))
  }

  /// What messages of this channel announce, oldest first, and who present has it: members have a third of a second to
  /// answer.
  public func media(of name: ChannelName) async throws(ParleyError) -> [MediaSummary] {
    let engine = try await running()
    let joined = try channel(name)
    let announced = hub.announcements(in: joined.id)
    let ids = announced.compactMap { $0.media?.id }
    hub.forgetHolders(of: ids)
    await engine.media.askHolders(joined.id, ids)
    if !ids.isEmpty { try? await Task.sleep(nanoseconds: 330_000_000) }
    var summaries: [MediaSummary] = []
    for message in announced {
      guard let media = message.media else { continue }
      let isHeld = await engine.media.heldFile(media.id) != nil
      summaries.append(
        MediaSummary(
          media: media, kind: message.kindName, sender: message.sender, senderName: message.senderName,
          holderCount: hub.holders(of: media.id).count + (isHeld ? 1 : 0), isHeldHere: isHeld))
    }
    return summaries
  }

  /// Starts a download from everybody present who has it. Nothing is written before it is verified; the file appears
  /// under its name only when it is whole. Throws `.noSuchMedia` when no message known here announces it.
  public func download(
    _ id: MediaID, to target: DownloadTarget
  ) async throws(ParleyError) -> (DownloadID, AsyncStream<DownloadEvent>) {
    let engine = try await running()
    guard let (joined, message) = hub.announcement(of: id) else { throw .noSuchMedia(id) }
    let place: DownloadPlace =
      switch target {
      case .folder(let path): .folder(path, SafeFileName(received: message.media?.fileName ?? ""))
      case .file(let path, let replacing): .file(path, mayReplace: replacing)
      }
    let present = await engine.membership.presentPeers(in: joined.id)
    let (tag, news) = await engine.media.download(
      id, in: joined.id, to: place, likely: present.filter { $0 == message.sender })
    let (stream, continuation) = AsyncStream.makeStream(
      of: DownloadEvent.self, bufferingPolicy: .bufferingNewest(16))
    let relay = Task {
      for await item in news {
        switch item {
        case .progress(let progress):
          continuation.yield(
            .progress(
              receivedByteCount: progress.doneByteCount, byteCount: progress.byteCount,
              sourceCount: progress.sourceCount))
        case .finished(let path):
          await self.keepLanded(id, joined, message.kindName, engine)
          continuation.yield(.finished(path: path))
        case .failed(let end): continuation.yield(.failed(ParleyError(end, id)))
        }
      }
      continuation.finish()
    }
    continuation.onTermination = { reason in
      if case .cancelled = reason {
        relay.cancel()
        Task { await engine.media.cancel(tag) }
      }
    }
    return (DownloadID(UInt64(tag)), stream)
  }

  private func keepLanded(_ id: MediaID, _ joined: Hub.Joined, _ kind: String, _ engine: Engine) async {
    guard let held = await engine.media.heldFile(id) else { return }
    do { try await keep(held, in: joined, kind: kind, engine) } catch { hub.take(.trouble(error.description)) }
  }

  public func cancel(_ download: DownloadID) async {
    guard let tag = UInt32(exactly: download.value) else { return }
    await engine?.media.cancel(tag)
  }
}

extension ParleyError {
  init(_ error: DiskError) {
    switch error {
    case .noSuchFile(let path): self = .noSuchFile(path: path)
    case .notARegularFile(let path, _): self = .notAFile(path: path)
    case .exists(let path): self = .alreadyExists(path: path)
    case .noSpace(let path, let need, let have):
      self = .noSpace(path: path, needByteCount: need, haveByteCount: have)
    case .changed(let path): self = .sourceChanged(path: path)
    case .stopped: self = .cancelled
    case .notAFolder(let path), .notPermitted(let path, _), .tooLarge(let path, _, _), .failed(let path, _, _):
      self = .fileTrouble(path: path, reason: error.description)
    }
  }

  init(_ end: DownloadEnd, _ id: MediaID) {
    switch end {
    case .disk(let error): self = .init(error)
    case .media(let failure): self = .network("\(id.text) cannot be downloaded: \(failure)")
    case .noSource: self = .noSource(id)
    case .cancelled: self = .cancelled
    case .stopped: self = .stopped
    }
  }
}
