import ParleyDisk
import ParleyHashing
import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// Why a download ended without its file.
package enum DownloadEnd: Error, Sendable {
  case disk(DiskError)
  case media(DownloadFailure)
  case noSource
  case cancelled
  case stopped
}

package enum DownloadNews: Sendable {
  case progress(DownloadProgress)
  case finished(path: String)
  case failed(DownloadEnd)
}

/// One download that runs.
struct Download {
  var machine: DownloadMachine
  let id: MediaID
  let channel: ChannelID
  let target: DownloadPlace
  let continuation: AsyncStream<DownloadNews>.Continuation
  /// Members whose media session is open or being opened for this.
  var wanted: Set<PeerID> = []
  var wakeAt: Instant?
  /// Until then holders are asked for; without any source at that time it fails.
  let patienceEnd: Instant
  var askAgainAt: Instant
}

/// Where a download goes.
package enum DownloadPlace: Sendable {
  case folder(String, SafeFileName)
  case file(String, mayReplace: Bool)

  var landing: Landing.Target {
    switch self {
    case .folder(let path, let name): .folder(path, name)
    case .file(let path, let mayReplace): .file(path, mayReplace: mayReplace)
    }
  }
}

extension MediaActor {
  /// Holders are asked for again this often, and so long.
  private static let askAgain = Span.milliseconds(400)
  private static let patience = Span.seconds(4)

  /// Starts a download from whoever present in the channel has it. `likely`: members to ask first.
  package func download(
    _ id: MediaID, in channel: ChannelID, to target: DownloadPlace, likely: [PeerID]
  ) -> (UInt32, AsyncStream<DownloadNews>) {
    let (stream, continuation) = AsyncStream.makeStream(of: DownloadNews.self, bufferingPolicy: .bufferingNewest(16))
    let tag = nextTag
    nextTag = nextTag % ((1 << 30) - 1) + 1
    guard !isClosed else {
      continuation.yield(.failed(.stopped))
      continuation.finish()
      return (tag, stream)
    }
    let now = SystemClock.now()
    downloads[tag] = Download(
      machine: DownloadMachine(id: id, tag: tag), id: id, channel: channel, target: target,
      continuation: continuation, patienceEnd: now + Self.patience, askAgainAt: now + Self.askAgain)
    if let file = held[id] {
      _ = Task { await self.copy(tag, file) }
      return (tag, stream)
    }
    download(tag, .started)
    for peer in likely { want(tag, peer) }
    askHolders(channel, [id])
    wake(now + Self.askAgain)
    return (tag, stream)
  }

  package func cancel(_ tag: UInt32) { fail(tag, .cancelled) }

  func holderFound(_ media: MediaID, _ peer: PeerID) {
    for tag in downloads.keys.sorted() where downloads[tag]!.id == media { want(tag, peer) }
  }

  private func want(_ tag: UInt32, _ peer: PeerID) {
    guard downloads[tag]?.wanted.insert(peer).inserted == true else { return }
    if let link = outbound[peer] {
      if sessions[link] != nil { download(tag, .sourceFound(peer)) }
      return
    }
    let link = LinkID(nextLink)
    nextLink += 1
    outbound[peer] = link
    switchboard.links.post(.openMedia(link, peer))
  }

  func download(_ tag: UInt32, _ event: DownloadEvent) {
    guard let effects = downloads[tag]?.machine.handle(event, at: SystemClock.now()) else { return }
    for effect in effects { carryOut(effect, tag) }
  }

  private func carryOut(_ effect: DownloadEffect, _ tag: UInt32) {
    switch effect {
    case .request(let peer, let number, let request):
      if let link = outbound[peer] { send(.request(number, request), link) }
    case .cancel(let peer, let number): if let link = outbound[peer] { send(.cancel(number), link) }
    case .prepare(let manifest): _ = Task { await self.prepare(tag, manifest) }
    case .verify(let check, let bytes): _ = Task { await self.verify(tag, check, bytes) }
    case .write(let piece, let offset, let bytes): _ = Task { await self.write(tag, piece, offset, bytes) }
    case .progress(let progress): downloads[tag]?.continuation.yield(.progress(progress))
    case .dropSource(let peer, let fault):
      downloads[tag]?.wanted.remove(peer)
      if fault.isWorthTelling {
        switchboard.notices(.trouble("\(peer.fingerprint) is no longer asked for \(downloads[tag]!.id.text): \(fault)"))
      }
    case .wake(let instant):
      downloads[tag]?.wakeAt = instant
      wake(instant)
    case .finished: _ = Task { await self.finish(tag) }
    case .failed(let failure): fail(tag, .media(failure))
    }
  }

  func woke() {
    let now = SystemClock.now()
    for tag in downloads.keys.sorted() {
      if let at = downloads[tag]?.wakeAt, at <= now {
        downloads[tag]!.wakeAt = nil
        download(tag, .woke)
      }
      guard let current = downloads[tag] else { continue }
      if current.wanted.isEmpty || current.askAgainAt <= now, current.patienceEnd > now, held[current.id] == nil {
        downloads[tag]!.askAgainAt = now + Self.askAgain
        askHolders(current.channel, [current.id])
      }
      failWithoutSource(tag)
      if let current = downloads[tag], current.patienceEnd > now { wake(now + Self.askAgain) }
    }
  }

  func failWithoutSource(_ tag: UInt32) {
    guard let current = downloads[tag], held[current.id] == nil, current.wanted.isEmpty,
      current.patienceEnd <= SystemClock.now()
    else { return }
    fail(tag, .noSource)
  }

  func fail(_ tag: UInt32, _ end: DownloadEnd) {
    download(tag, .stopped)
    guard let failed = downloads.removeValue(forKey: tag) else { return }
    failed.continuation.yield(.failed(end))
    failed.continuation.finish()
    flush()
    _ = Task { await self.landDisk.abort(tag) }
    closeIdle(failed.wanted)
  }

  /// Sessions that no download needs any more.
  private func closeIdle(_ peers: Set<PeerID>) {
    for peer in peers where !downloads.values.contains(where: { $0.wanted.contains(peer) }) {
      guard let link = outbound.removeValue(forKey: peer) else { continue }
      switchboard.links.post(.closeMedia(link))
    }
  }

  // MARK: The disk

  private func prepare(_ tag: UInt32, _ manifest: MediaManifest) async {
    guard let current = downloads[tag], let file = manifest.files.first else { return }
    do {
      try await landDisk.land(tag, current.target.landing, byteCount: file.byteCount)
      download(tag, .prepared(holding: PieceSet(pieceCount: Int(file.pieceCount))))
      flush()
    } catch {
      fail(tag, .disk(error))
    }
  }

  private func verify(_ tag: UInt32, _ check: PieceCheck, _ bytes: [UInt8]) async {
    let isGood = await landDisk.accepts(check, bytes)
    download(tag, .pieceVerified(check.piece, isGood: isGood))
    flush()
  }

  private func write(_ tag: UInt32, _ piece: Int, _ offset: UInt64, _ bytes: [UInt8]) async {
    do {
      try await landDisk.write(tag, bytes, at: offset)
      download(tag, .pieceWritten(piece))
      flush()
    } catch {
      fail(tag, .disk(error))
    }
  }

  private func finish(_ tag: UInt32) async {
    do {
      guard let path = try await landDisk.finish(tag) else { return }
      guard let done = downloads.removeValue(forKey: tag) else { return }
      if let served = done.machine.served, let facts = try? await landDisk.facts(of: path) {
        let file = HeldFile(
          path: path, facts: facts, manifest: served.manifest, pieceHashes: served.pieceHashes[0])
        hold(file, in: done.channel)
        switchboard.notices(.landed(done.channel, path: path, file.manifest.id))
      }
      done.continuation.yield(.finished(path: path))
      done.continuation.finish()
      closeIdle(done.wanted)
    } catch {
      fail(tag, .disk(error))
    }
  }

  /// Held here already: no network.
  private func copy(_ tag: UInt32, _ file: HeldFile) async {
    guard let current = downloads[tag] else { return }
    do {
      try await landDisk.land(tag, current.target.landing, byteCount: file.facts.byteCount)
      let continuation = current.continuation
      let total = file.facts.byteCount
      try await landDisk.copy(tag, from: file.path, facts: file.facts, hashes: file.pieceHashes) { done in
        continuation.yield(.progress(DownloadProgress(doneByteCount: done, byteCount: total, sourceCount: 0)))
      }
      guard downloads[tag] != nil, let path = try await landDisk.finish(tag) else { return }
      downloads[tag] = nil
      continuation.yield(.finished(path: path))
      continuation.finish()
    } catch {
      fail(tag, .disk(error))
    }
  }
}

extension SourceFault {
  /// A fault of the other side, not of the network.
  fileprivate var isWorthTelling: Bool {
    switch self {
    case .refused, .silent: false
    case .badManifest, .badPieceHashes, .badPiece, .misbehaved: true
    }
  }
}
