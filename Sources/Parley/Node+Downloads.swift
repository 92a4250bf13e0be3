import ParleyActors
import ParleyDisk
import ParleyMachines
import ParleyVocabulary
import ParleyWire

extension Node {
  /// Starts a download from everybody present who has it, or from the file shared here. Nothing is used before it is
  /// verified; the file appears under its name only when it is whole, and is then served from there. At most four run
  /// at once; others wait their turn.
  ///
  /// When it breaks off or is paused, what was verified is kept in a hidden file in the target's folder for
  /// a week, and the next
  /// download of the same media ID to that folder goes on from there, also after a restart. The events end with
  /// `.finished` or `.failed`; ending the iteration pauses the download. Of the progress only the newest is kept for a
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
            sourceCount: progress.sourceCount, bytesPerSecond: progress.bytesPerSecond))
      case .finished(let path):
        continuation.yield(.finished(path: path))
        continuation.finish()
      case .failed(.paused, _, _): continuation.yield(.paused)
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
    let number = await engine.media.download(order)
    // Not the engine: a stream that somebody keeps must not keep the store open.
    let media = switchboard.media
    continuation.onTermination = { reason in
      if case .cancelled = reason { media.post(.left(number)) }
    }
    return (DownloadID(UInt64(number)), stream)
  }

  private static func place(_ target: DownloadTarget, _ name: String) -> (Landing.Target, folder: String) {
    switch target {
    case .folder(let path): return (.folder(path, SafeFileName(received: name)), path.isEmpty ? "." : path)
    case .file(let path, let replacing):
      let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
      return (.file(path, mayReplace: replacing), folder)
    }
  }

  /// Downloads that run, wait or are paused, those an earlier run left that can be gone on with, and the last 64 that
  /// ended in this run; in the order in which they were asked for. What is being read to memory or to a pipe is among
  /// them.
  public func downloads() async throws(ParleyError) -> [DownloadSummary] {
    let engine = try await running()
    let list = await engine.media.listDownloads()
    return list.map {
      DownloadSummary($0, announced: Self.announced($0.order.id, hub.announcement(of: $0.order.id)?.1))
    }
  }

  /// A preview is announced with what it shows.
  private static func announced(_ id: MediaID, _ message: Message?) -> MediaReference? {
    guard let message, let media = message.media ?? message.bundle else { return nil }
    if media.id == id { return media }
    return MediaReference(id: id, fileName: message.fileName(of: id), byteCount: nil, mimeType: nil)
  }

  /// Stops asking for more and lets the next that waits have its turn; what is verified is kept, and `resume` goes on
  /// from there, also after a restart. Nothing happens when it is paused already, or just takes its name. Throws
  /// `.noSuchDownload` when it has ended or is unknown.
  public func pause(_ download: DownloadID) async throws(ParleyError) {
    try await act(on: download) { await $0.pauseDownload($1) }
  }

  /// Goes on with a download that is paused, that an earlier run left, or that failed; it waits its turn. Nothing
  /// happens when it runs or waits. Throws `.noSuchDownload` when it has finished or is unknown.
  public func resume(_ download: DownloadID) async throws(ParleyError) {
    let engine = try await running()
    let id = await engine.media.listDownloads().first { UInt64($0.number) == download.value }?.order.id
    let name = id.flatMap { id in hub.announcement(of: id)?.1.fileName(of: id) }
    try await act(on: download) { await $0.resumeDownload($1, name: name) }
  }

  /// Ends a download for good. Nothing of it is left on the disk, unless `keepingPart`: then the next download of the
  /// same media ID to the same folder goes on from there. Nothing happens when it just takes its name. Throws
  /// `.noSuchDownload` when it has finished or is unknown.
  public func cancel(_ download: DownloadID, keepingPart: Bool = false) async throws(ParleyError) {
    try await act(on: download) { await $0.cancelDownload($1, keepingPart: keepingPart) }
  }

  private func act(
    on download: DownloadID, _ action: (MediaActor, UInt32) async -> Bool
  ) async throws(ParleyError) {
    let engine = try await running()
    guard let number = UInt32(exactly: download.value), await action(engine.media, number) else {
      throw .noSuchDownload(download)
    }
  }
}

// MARK: - Reading

extension Node {
  /// The bytes of a file as they arrive, in order, each piece verified before it is given: from everybody present who
  /// has it, or from the file held here. Nothing is written to the disk. At most 16 MiB wait for the reader; no more is
  /// asked for until it takes some. Returns once it is known how long the file is.
  ///
  /// `range`: which bytes, for players that seek; only the pieces (1 MiB) that it touches are fetched.
  ///
  /// Throws `.noSuchMedia` when no message known here announces it, `.noSource` when nobody present has it,
  /// `.outOfRange` when the range begins past the end, `.queueFull` when eight are being read already.
  public func bytes(of id: MediaID, range: ByteRange = .all) async throws(ParleyError) -> MediaBytes {
    let engine = try await running()
    guard let (joined, message) = hub.announcement(of: id), let media = Self.announced(id, message) else {
      throw .noSuchMedia(id)
    }
    let present = await engine.membership.presentPeers(in: joined.id)
    let tag = await engine.media.read(
      DownloadOrder(
        id: id, channel: joined.id, target: nil, folder: "", kind: message.kindName,
        likely: present.filter { $0 == message.sender }, selection: ByteSelection(range), report: { _ in }))
    guard let tag else {
      throw .queueFull(
        "\(MediaActor.readersMax) media are being read at once, which is as many as may be: end one and try again")
    }
    let source = ReadSource(id: id, tag: tag, actor: engine.media)
    let opened = try await source.opened()
    return MediaBytes(
      media: media, download: DownloadID(UInt64(tag)), byteCount: opened.byteCount, range: opened.range, source: source)
  }

  /// The whole file, verified, in memory. Throws what `bytes(of:)` throws, and `.tooLargeForMemory` when it is longer
  /// than `byteCountMax`; then nothing but its manifest was fetched.
  public func data(of id: MediaID, byteCountMax: Int) async throws(ParleyError) -> [UInt8] {
    let bytes = try await bytes(of: id)
    guard bytes.byteCount <= UInt64(clamping: byteCountMax) else {
      throw .tooLargeForMemory(id, byteCount: bytes.byteCount, byteCountMax: byteCountMax)
    }
    var data: [UInt8] = []
    data.reserveCapacity(Int(bytes.byteCount))
    for try await chunk in bytes { data += chunk }
    return data
  }
}

/// Ends the reading with the last reference to it. Holds the media actor, which holds no store.
final class ReadSource: MediaByteSource {
  private let id: MediaID
  private let tag: UInt32
  private let actor: MediaActor

  init(id: MediaID, tag: UInt32, actor: MediaActor) {
    self.id = id
    self.tag = tag
    self.actor = actor
  }

  deinit { actor.leaveReading(tag) }

  func opened() async throws(ParleyError) -> (byteCount: UInt64, range: Range<UInt64>) {
    let (actor, tag) = (actor, tag)
    let result = await withTaskCancellationHandler {
      do throws(DownloadEnd) {
        return Result<(byteCount: UInt64, range: Range<UInt64>), DownloadEnd>.success(try await actor.opened(tag))
      } catch {
        return .failure(error)
      }
    } onCancel: {
      actor.leaveReading(tag)
    }
    switch result {
    case .success(let opened): return opened
    case .failure(let end): throw ParleyError(end, id, 0, 0)
    }
  }

  func next() async throws(ParleyError) -> [UInt8]? {
    let (actor, tag) = (actor, tag)
    let result = await withTaskCancellationHandler {
      do throws(DownloadEnd) { return Result<[UInt8]?, DownloadEnd>.success(try await actor.nextBytes(tag)) } catch {
        return .failure(error)
      }
    } onCancel: {
      actor.leaveReading(tag)
    }
    switch result {
    case .success(let bytes): return bytes
    case .failure(let end): throw ParleyError(end, id, 0, 0)
    }
  }
}

extension ByteSelection {
  init(_ range: ByteRange) {
    switch range {
    case .all: self = .all
    case .bytes(let range): self = .bytes(range)
    case .from(let start): self = .from(start)
    case .last(let count): self = .last(count)
    }
  }
}

extension DownloadSummary {
  init(_ item: ListedDownload, announced: MediaReference?) {
    let target: String?
    var name = announced?.fileName
    switch item.order.target {
    case .folder(let path, let safe):
      target = path
      name = name ?? safe.text
    case .file(let path, _):
      target = path
      name = name ?? path
    case nil: target = nil
    }
    let state: DownloadState =
      switch item.state {
      case .queued: .queued
      case .running: .running
      case .paused: .paused
      case .finished(let path): .finished(path: path)
      case .failed(let end, let kept): .failed(ParleyError(end, item.order.id, kept, item.byteCount ?? 0))
      }
    self.init(
      id: DownloadID(UInt64(item.number)), media: item.order.id, fileName: name ?? "", target: target,
      byteCount: item.byteCount ?? announced?.byteCount, doneByteCount: item.doneByteCount,
      bytesPerSecond: item.bytesPerSecond, sourceCount: item.sourceCount, state: state)
  }
}

extension ParleyError {
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
    case .outOfRange(let byteCount):
      self = .outOfRange(id, byteCount: byteCount)
      return
    case .media(let failure): reason = "\(failure)"
    case .noSource(nil), .noSource(.refused(.unknown)), .noSource(.refused(.notAMember)):
      if keptByteCount == 0 {
        self = .noSource(id)
        return
      }
      reason = "nobody present has it any more"
    case .noSource(let fault?): reason = "the last one present who has it is no source: \(fault)"
    case .cancelled, .paused, .stopped:
      if keptByteCount == 0 {
        if case .stopped = end { self = .stopped } else { self = .cancelled }
        return
      }
      if case .stopped = end { reason = "the node is stopping" } else { reason = "cancelled" }
    }
    self = .downloadBroken(id, reason: reason, keptByteCount: keptByteCount, byteCount: byteCount)
  }
}
