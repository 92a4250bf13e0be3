import Glibc
import ParleyActors
import ParleyDisk
import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

extension Node: NodeServing {
  /// Stops serving in every channel; the file itself stays where it is. Throws `.noSuchMedia` when it is not shared
  /// from here, and `.profileDamaged` when that cannot be written down.
  public func unshare(_ id: MediaID) async throws(ParleyError) {
    let engine = try await running()
    let isKnown: Bool
    do {
      isKnown = try await engine.store.isShared(id)
      if isKnown { try await engine.store.apply([.unshare(id, nil)]) }
    } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
    // One whose file has changed is not held any more, and can be unshared all the same.
    let isHeld = await engine.media.release(id)
    await forgetPictures(of: id, engine)
    guard isKnown || isHeld else { throw .noSuchMedia(id) }
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

  /// Starts a download from everybody present who has it, or from the file shared here. Nothing is used before it is
  /// verified; the file appears under its name only when it is whole, and is then served from there. At most four run
  /// at once; others wait their turn.
  ///
  /// When it breaks off, what was verified is kept in a hidden file in the target's folder for a week, and the next
  /// download of the same media ID to that folder goes on from there, also after a restart. The events end with
  /// `.finished` or `.failed`; ending the iteration cancels the download. Of the progress only the newest is kept for a
  /// slow reader.
  ///
  /// A folder comes down beside the target in a hidden folder and takes its name when everything wanted of it is whole;
  /// a folder is never replaced. The names of its files are made safe one by one. A part of a folder is not served to
  /// others once it has landed.
  ///
  /// Throws `.noSuchMedia` when no message known here announces it, and `.fileTrouble` when a path of the choice is not
  /// in it.
  public func download(
    _ id: MediaID, to target: DownloadTarget, _ choice: DownloadChoice = .all
  ) async throws(ParleyError) -> (DownloadID, AsyncStream<DownloadEvent>) {
    let engine = try await running()
    guard let (joined, message) = hub.announcement(of: id) else { throw .noSuchMedia(id) }
    let (place, folder) = Self.place(target, message.fileName(of: id))
    let present = await engine.membership.presentPeers(in: joined.id)
    let (stream, continuation) = AsyncStream.makeStream(
      of: DownloadEvent.self, bufferingPolicy: .bufferingNewest(16))
    var order = DownloadOrder(
      id: id, channel: joined.id, target: place, folder: SharedFile.absolute(folder),
      kind: message.kindName, likely: present.filter { $0 == message.sender }
    ) { news in
      switch news {
      case .contents: return
      case .progress(let progress):
        continuation.yield(
          .progress(
            receivedByteCount: progress.doneByteCount, byteCount: progress.byteCount,
            sourceCount: progress.sourceCount))
      case .finished(let path):
        continuation.yield(.finished(path: path))
        continuation.finish()
      case .failed(let end, let kept, let byteCount):
        continuation.yield(.failed(ParleyError(end, id, kept, byteCount)))
        continuation.finish()
      }
    }
    order.isApplyingExecutable = choice.isApplyingExecutable
    if !choice.paths.isEmpty {
      let manifest = try await manifest(of: id)
      order.manifest = manifest
      order.selected = try Self.selection(choice.paths, in: manifest)
    }
    let tag = await engine.media.download(order)
    // Not the engine: a stream that somebody keeps must not keep the store open.
    let media = switchboard.media
    continuation.onTermination = { reason in
      if case .cancelled = reason { media.post(.cancel(tag)) }
    }
    return (DownloadID(UInt64(tag)), stream)
  }

  private static func place(_ target: DownloadTarget, _ name: String) -> (Landing.Target, folder: String) {
    switch target {
    case .folder(let path): return (.folder(path, SafeFileName(received: name)), path.isEmpty ? "." : path)
    case .file(let path, let replacing):
      let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
      return (.file(path, mayReplace: replacing), folder)
    }
  }

  /// Ends a download; what is there so far is kept. Nothing happens when it has ended already.
  public func cancel(_ download: DownloadID) async {
    guard let tag = UInt32(exactly: download.value) else { return }
    switchboard.media.post(.cancel(tag))
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
    case .noFiles(let path, _), .tooManyFiles(let path, _, _): self = .fileTrouble(path: path, reason: error.reason)
    case .stopped: self = .cancelled
    case .notAFolder(let path): self = .fileTrouble(path: path, reason: "it is not a folder")
    case .notPermitted(let path, let reason): self = .fileTrouble(path: path, reason: "not permitted: \(reason)")
    case .tooLarge(let path, let byteCount, let byteCountMax):
      self = .fileTrouble(path: path, reason: "it has \(byteCount) bytes, at most \(byteCountMax) can be shared")
    case .failed(let path, let operation, let reason):
      self = .fileTrouble(path: path, reason: "\(operation): \(reason)")
    }
  }

  /// Of a download, whose paths are those of its target.
  init(landing error: DiskError) {
    switch error {
    case .noSuchFile(let path): self = .fileTrouble(path: path, reason: "there is no such folder: make it first")
    case .notARegularFile(let path, let kind):
      self = .fileTrouble(path: path, reason: "it is a \(kind): choose another name")
    case .changed(let path):
      self = .fileTrouble(
        path: path, reason: "it was changed or replaced by somebody else while it was written: download it again")
    default: self.init(error)
    }
  }

  init(_ end: DownloadEnd, _ id: MediaID, _ keptByteCount: UInt64, _ byteCount: UInt64) {
    let reason: String
    switch end {
    case .disk(let error):
      self = .init(landing: error)
      return
    case .media(let failure): reason = "\(failure)"
    case .noSource(nil), .noSource(.refused(.unknown)), .noSource(.refused(.notAMember)):
      if keptByteCount == 0 {
        self = .noSource(id)
        return
      }
      reason = "nobody present has it any more"
    case .noSource(let fault?): reason = "the last one present who has it is no source: \(fault)"
    case .cancelled, .stopped:
      if keptByteCount == 0 {
        if case .stopped = end { self = .stopped } else { self = .cancelled }
        return
      }
      if case .stopped = end { reason = "the node is stopping" } else { reason = "cancelled" }
    }
    self = .downloadBroken(id, reason: reason, keptByteCount: keptByteCount, byteCount: byteCount)
  }
}
