import ParleyDisk
import ParleyHashing
import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

/// One download, from its request to its end. Owned by the media actor; a class, so that looking at it or changing it
/// for every block copies nothing.
final class Download {
  enum Way {
    /// Until others have ended. → `network`, `copying`
    case waiting
    case network
    /// From a file held here, up to that piece. → `network`: that file has changed.
    case copying(HeldFile, nextPiece: Int)
  }

  var machine: DownloadMachine
  let order: DownloadOrder
  var way = Way.waiting
  /// The part file that it goes on with.
  var kept: KeptDownload?
  /// Pieces of the kept part that are still to be checked, and those found good.
  var unchecked: ArraySlice<PieceCheck> = []
  /// Of `copying`, those in hand included.
  var copiedByteCount: UInt64 = 0
  /// Of `copying`.
  var wantedByteCount: UInt64 = 0
  var good: PieceSet?
  var partName: String?
  /// The disk is giving it its name: too late to give it up.
  var isLanding = false
  /// What others want read meanwhile.
  var readsWhileLanding: [ServedRead] = []
  /// Whether the store is told of it: of several downloads of one media ID, only of one.
  var isRecorded: Bool
  /// Pieces that the store knows of.
  var recordedCount = 0
  var recordAt = Instant(microseconds: 0)
  /// Members whose media session is open or being opened for this.
  var wanted: Set<PeerID> = []
  /// Never asked again.
  var banned: Set<PeerID> = []
  var lastFault: SourceFault?
  var wakeAt: Instant?
  /// Until then holders are asked for; without any source at that time it fails.
  var patienceEnd = Instant(microseconds: 0)
  /// What was there when patience was last given.
  var patienceCount = 0
  var askAgainAt = Instant(microseconds: 0)

  init(machine: DownloadMachine, order: DownloadOrder, isRecorded: Bool) {
    self.machine = machine
    self.order = order
    self.isRecorded = isRecorded
  }

  var id: MediaID { order.id }
  var channel: ChannelID { order.channel }
  var isWaiting: Bool { if case .waiting = way { true } else { false } }
  var isOnNetwork: Bool { if case .network = way { true } else { false } }
  var hashes: [[Hash32]]? { machine.pieceHashes ?? kept?.hashes }
}

/// Bounds and times of downloads.
enum DownloadRule {
  /// Each takes up to 16 MiB; others wait their turn.
  static let runningMax = 4
  /// Holders are asked for again this often, and so long.
  static let askAgain = Span.milliseconds(400)
  static let patience = Span.seconds(4)
  /// With a limit downloads are allowed more this often.
  static let grantAgain = Span.milliseconds(50)
  /// The store is told of progress this often: so much at most is fetched again after a crash.
  static let record = Span.seconds(3)
  /// Pieces of 1 MiB checked or copied at once, so that other downloads have their turn on the disk.
  static let piecesAtOnce = 16
}

// MARK: - From the request to the end

extension MediaActor {
  /// Starts a download from whoever present in the channel has it, or from the file held here. Goes on where an earlier
  /// one to the same folder broke off.
  ///
  /// Returns its number.
  package func download(_ order: DownloadOrder) -> UInt32 {
    let tag = newTag()
    if !order.isForContents { enlist(order, tag, as: tag) }
    queue(order, tag)
    return tag
  }

  func queue(_ order: DownloadOrder, _ tag: UInt32) {
    let isOnly = !downloads.values.contains { $0.id == order.id && $0.isRecorded }
    downloads[tag] = Download(
      machine: Self.machine(order.id, tag, DownloadOptions(manifest: order.manifest, selected: order.selected)),
      order: order, isRecorded: isOnly && !order.isForContents)
    startNext()
    flush()
  }

  static func machine(
    _ id: MediaID, _ tag: UInt32, _ options: DownloadOptions = DownloadOptions()
  ) -> DownloadMachine {
    DownloadMachine(id: id, tag: tag, seed: .random(in: 0 ... .max), options)
  }

  /// What is there so far is kept. Nothing happens when it has ended, or takes its name at this moment.
  func cancel(_ tag: UInt32) { if downloads[tag]?.isLanding == false { fail(tag, .cancelled) } }

  /// Nobody listens to it any more: it can be gone on with.
  func leave(_ number: UInt32) { if listed[number] == nil { cancel(number) } else { _ = pauseDownload(number) } }

  func startNext() {
    while downloads.values.count(where: { !$0.isWaiting && $0.order.target != nil }) < DownloadRule.runningMax,
      let tag = downloads.keys.filter({ downloads[$0]!.isWaiting }).min()
    {
      start(tag)
    }
  }

  private func start(_ tag: UInt32) {
    let order = downloads[tag]!.order
    if let number = number(of: tag) { listed[number]!.state = .running }
    if let file = held[order.id] {
      if order.isForContents { return tell(tag, file.manifest) }
      downloads[tag]!.way = .copying(file, nextPiece: 0)
      guard let target = order.target else { return }
      downloads[tag]!.wantedByteCount = order.wantedByteCount(file.manifest)
      landDisk.post(.land(tag, target, order.content(file.manifest, holding: nil), resuming: nil))
      return
    }
    if downloads[tag]!.isRecorded, let found = kept.removeValue(forKey: order.id) {
      supersede(order.id, by: tag)
      if found.folder == order.folder {
        downloads[tag]!.kept = found
        downloads[tag]!.recordedCount = found.holding.count
        downloads[tag]!.machine = Self.machine(
          order.id, tag,
          DownloadOptions(
            manifest: found.manifest, pieceHashes: found.knowsHashes(of: order.selected) ? found.hashes : nil,
            selected: order.selected))
      } else {
        // It goes elsewhere this time; the old part would lie there for ever.
        discard(found)
      }
    }
    startOnNetwork(tag)
  }

  func startOnNetwork(_ tag: UInt32) {
    let now = SystemClock.now()
    downloads[tag]!.way = .network
    downloads[tag]!.patienceEnd = now + DownloadRule.patience
    downloads[tag]!.askAgainAt = now + DownloadRule.askAgain
    if downloadLimit != nil { download(tag, .limited) }
    download(tag, .started)
    guard let order = downloads[tag]?.order else { return }
    for peer in order.likely { want(tag, peer) }
    askHolders(order.channel, [order.id])
    grant(now)
    wake(now + DownloadRule.askAgain)
  }

  func discard(_ found: KeptDownload) {
    landDisk.post(.discard(found))
    switchboard.store.post(.apply([.downloadRemove(found.manifest.id)]))
  }

  /// Ends an order for contents alone.
  private func tell(_ tag: UInt32, _ manifest: MediaManifest) {
    download(tag, .stopped)
    guard let done = downloads.removeValue(forKey: tag) else { return }
    done.order.report(.contents(manifest))
    flush()
    closeIdle(done.wanted)
    startNext()
  }

  /// Ends it. What is verified and written is kept unless the disk refused, so that the next one goes on from there.
  func fail(_ tag: UInt32, _ end: DownloadEnd, keepingPart: Bool = true) {
    download(tag, .stopped)
    guard let failed = downloads.removeValue(forKey: tag) else { return }
    readers[tag]?.end = end
    readers[tag]?.wake()
    withdraw(tag, failed)
    let byteCount = failed.machine.manifest.map(failed.order.wantedByteCount) ?? 0
    var keptByteCount: UInt64 = 0
    if keepingPart, let record = toKeep(failed, end) {
      keep(record)
      keptByteCount = record.heldByteCount
      // Without an open part file what the store has still holds.
      if failed.partName != nil { landDisk.post(.keep(tag, [.download(record.stored)])) }
    } else {
      landDisk.post(.abort(tag))
      if failed.isRecorded, failed.recordedCount > 0 { switchboard.store.post(.apply([.downloadRemove(failed.id)])) }
    }
    report(tag, failed.order, .failed(end, keptByteCount: keptByteCount, byteCount: byteCount))
    limitParts()
    flush()
    closeIdle(failed.wanted)
    startNext()
  }

  private func toKeep(_ failed: Download, _ end: DownloadEnd) -> KeptDownload? {
    guard failed.isRecorded else { return nil }
    if case .disk(let error) = end, !error.leavesPart { return nil }
    // Not opened yet, or not checked to the end: as it was.
    guard let partName = failed.partName, failed.unchecked.isEmpty, failed.good == nil else { return failed.kept }
    return record(failed, partName)
  }

  private func record(_ download: Download, _ partName: String) -> KeptDownload? {
    guard download.machine.holding.count > 0, let manifest = download.machine.manifest,
      let hashes = download.hashes
    else { return nil }
    return KeptDownload(
      channel: download.channel, folder: download.order.folder, fileName: download.order.fileName,
      mayReplace: download.order.mayReplace, partName: partName, manifest: manifest, hashes: hashes,
      holding: download.machine.holding)
  }

  /// Whole and in place: served from there from now on.
  private func landed(_ tag: UInt32, _ path: String, _ sources: [FileSource?]) {
    guard let done = downloads.removeValue(forKey: tag) else { return }
    let isOffered = offered[done.id] == tag
    if isOffered { offered[done.id] = nil }
    var writes: [StoreWrite] = done.isRecorded ? [.downloadRemove(done.id)] : []
    let places = sources.compactMap(\.self)
    // A part of a folder is not served once it has landed: what is shared is shared whole.
    if done.isOnNetwork, let manifest = done.machine.manifest, let hashes = done.hashes,
      let root = places.first?.root, places.count == manifest.files.count, hashes.count == places.count
    {
      let file = HeldFile(path: root, manifest: manifest, hashes: hashes, sources: places)
      hold(file, in: done.channel)
      writes.append(.share(file.stored(in: done.channel, kind: done.order.kind)))
      for read in done.readsWhileLanding { self.read(read) }
    } else if isOffered {
      offered[done.id] = tag
      withdraw(tag, done)
    }
    if !writes.isEmpty { switchboard.store.post(.apply(writes)) }
    report(tag, done.order, .finished(path: path))
    closeIdle(done.wanted)
    startNext()
  }
}

// MARK: - Sources

extension MediaActor {
  func holderFound(_ media: MediaID, _ peer: PeerID) {
    for tag in downloads.keys.sorted() where downloads[tag]!.id == media { want(tag, peer) }
  }

  func want(_ tag: UInt32, _ peer: PeerID) {
    guard let current = downloads[tag], current.isOnNetwork, !current.banned.contains(peer), !blocked.contains(peer),
      downloads[tag]!.wanted.insert(peer).inserted
    else { return }
    if let link = outbound[peer] {
      if sessions[link] != nil { download(tag, .sourceFound(peer)) }
      return
    }
    let link = LinkID(nextLink)
    nextLink += 1
    outbound[peer] = link
    switchboard.links.post(.openMedia(link, peer))
  }

  /// The session with this source ended.
  func sourceLost(_ peer: PeerID) {
    for tag in downloads.keys.sorted() where downloads[tag]!.wanted.remove(peer) != nil {
      download(tag, .sourceLost(peer))
      givePatience(tag)
    }
  }

  /// When the last source is gone: somebody else may have it, or it may come back. Only as long as something came.
  private func givePatience(_ tag: UInt32) {
    guard let current = downloads[tag], current.wanted.isEmpty else { return }
    let now = SystemClock.now()
    if current.machine.holding.count > current.patienceCount {
      downloads[tag]!.patienceCount = current.machine.holding.count
      downloads[tag]!.patienceEnd = now + DownloadRule.patience
      downloads[tag]!.askAgainAt = now
    }
    wake(now)
  }

  func woke() {
    let now = SystemClock.now()
    grant(now)
    for tag in downloads.keys.sorted() where downloads[tag]?.isOnNetwork == true {
      if let at = downloads[tag]?.wakeAt, at <= now {
        downloads[tag]!.wakeAt = nil
        download(tag, .woke)
      }
      recordProgress(tag, now)
      guard let current = downloads[tag] else { continue }
      if current.patienceEnd > now {
        if current.askAgainAt <= now {
          downloads[tag]!.askAgainAt = now + DownloadRule.askAgain
          askHolders(current.channel, [current.id])
        }
        wake(now + DownloadRule.askAgain)
      } else if current.machine.isFinished {
        continue
      } else if current.wanted.isEmpty {
        fail(tag, .noSource(current.lastFault))
      } else if case .refused(.changed)? = current.lastFault {
        // The rest of a folder was fetched: of what changed nobody will have more.
        if current.machine.lacksSource {
          fail(tag, .noSource(current.lastFault))
        } else {
          wake(now + DownloadRule.askAgain)
        }
      }
    }
  }

  /// Sessions that no download needs any more.
  func closeIdle(_ peers: Set<PeerID>) {
    for peer in peers where !downloads.values.contains(where: { $0.wanted.contains(peer) }) {
      guard let link = outbound.removeValue(forKey: peer) else { continue }
      switchboard.links.post(.closeMedia(link))
    }
  }
}

// MARK: - The machine

extension MediaActor {
  func download(_ tag: UInt32, _ event: DownloadEvent) {
    act(tag, event)
    offer(tag)
  }

  func act(_ tag: UInt32, _ event: DownloadEvent) {
    guard let effects = downloads[tag]?.machine.handle(event, at: SystemClock.now()) else { return }
    for effect in effects { carryOut(effect, tag) }
  }

  private func carryOut(_ effect: DownloadEffect, _ tag: UInt32) {
    guard let current = downloads[tag] else { return }
    switch effect {
    case .request(let peer, let number, let request):
      if let link = outbound[peer] { send(.request(number, request), link) }
    case .cancel(let peer, let number, let count):
      if let link = outbound[peer] { send(.cancel(number, count: count), link) }
    case .prepare(let manifest):
      if current.order.isForContents { return tell(tag, manifest) }
      guard let target = current.order.target else { return prepareReader(tag, manifest) }
      landDisk.post(
        .land(
          tag, target, current.order.content(manifest, holding: current.kept?.holding),
          resuming: current.kept?.partName))
    case .verify(let check, let bytes): landDisk.post(.verify(tag, check, bytes))
    case .write(let piece, _, _, let bytes) where current.order.target == nil: give(tag, piece, bytes)
    case .write(let piece, let file, let offset, let bytes):
      landDisk.post(.write(tag, piece: piece, file: file, offset: offset, bytes))
    case .progress(let progress): report(tag, current.order, .progress(progress))
    case .dropSource(let peer, let fault): dropped(tag, peer, fault)
    case .wake(let instant):
      downloads[tag]!.wakeAt = instant
      wake(instant)
    case .finished: land(tag)
    case .failed(let failure): fail(tag, .media(failure))
    }
  }

  private func land(_ tag: UInt32) {
    if downloads[tag]!.order.target == nil { return endOfReading(tag) }
    downloads[tag]!.isLanding = true
    landDisk.post(.finish(tag))
  }

  private func dropped(_ tag: UInt32, _ peer: PeerID, _ fault: SourceFault) {
    downloads[tag]!.wanted.remove(peer)
    downloads[tag]!.lastFault = fault
    if fault.isForGood {
      downloads[tag]!.banned.insert(peer)
      switchboard.notices(.trouble("\(peer.fingerprint) is no longer asked for \(downloads[tag]!.id.text): \(fault)"))
    }
    flush()
    closeIdle([peer])
    givePatience(tag)
  }

  private func recordProgress(_ tag: UInt32, _ now: Instant) {
    guard let current = downloads[tag], current.isRecorded, current.recordAt <= now,
      current.machine.holding.count > current.recordedCount, !current.machine.isFinished,
      let partName = current.partName, let record = record(current, partName)
    else { return }
    let isFirst = current.recordedCount == 0 || current.kept?.partName != partName
    downloads[tag]!.recordAt = now + DownloadRule.record
    downloads[tag]!.recordedCount = record.holding.count
    downloads[tag]!.kept = record
    let write =
      isFirst
      ? StoreWrite.download(record.stored)
      : .downloadProgress(current.id, bitmap: record.holding.bytes)
    landDisk.post(.synchronize(tag, [write]))
  }
}

// MARK: - The disk

extension MediaActor {
  func happened(_ news: DiskNews) {
    switch news {
    case .readDone(let read, let bytes): serve(.readDone(read, bytes))
    case .readFailed(let read, let refusal): serve(.readFailed(read, refusal))
    case .prepared(let tag, let partName, let asLeft): prepared(tag, partName, asLeft)
    case .rechecked(let tag, let good):
      for piece in good { downloads[tag]?.good?.insert(piece) }
      recheckMore(tag)
    case .verified(let tag, let piece, let isGood): download(tag, .pieceVerified(piece, isGood: isGood))
    case .written(let tag, let piece):
      if let id = downloads[tag]?.id, offered[id] == tag { serve(.gained(id, piece: piece)) }
      download(tag, .pieceWritten(piece))
      // From the first piece on a crash leaves something to go on with.
      if downloads[tag]?.recordedCount == 0 { recordProgress(tag, SystemClock.now()) }
    case .copied(let tag): copyMore(tag)
    case .pieceRead(let tag, let piece, let bytes): give(tag, piece, bytes)
    case .copyFailed(let tag, _):
      guard let id = downloads[tag]?.id, case .copying? = downloads[tag]?.way else { return }
      landDisk.post(.abort(tag))
      downloads[tag]!.partName = nil
      // Of a folder the rest may still be what it was; whoever asks for what is not is told so then.
      if held[id]?.manifest.isFolder != true { sourceChanged(id) }
      startOnNetwork(tag)
    case .landed(let tag, let path, let sources): landed(tag, path, sources)
    case .failed(let tag, let error): fail(tag, .disk(error))
    }
  }

  /// Held here already: no network.
  func copyMore(_ tag: UInt32) {
    guard case .copying(let file, let nextPiece)? = downloads[tag]?.way, let order = downloads[tag]?.order else {
      return
    }
    let layout = file.layout
    var checks: [PieceCheck] = []
    var next = nextPiece
    while next < layout.pieceCount, checks.count < DownloadRule.piecesAtOnce {
      let place = layout.place(of: next)
      let pieces = layout.pieces(of: place.file)
      guard order.isSelected(place.file) else {
        next = pieces.upperBound
        continue
      }
      checks.append(
        PieceCheck(
          piece: next, place, expected: file.hashes[place.file][place.indexInFile], isOnlyPiece: pieces.count == 1))
      next += 1
    }
    report(
      tag, order,
      .progress(
        DownloadProgress(
          doneByteCount: downloads[tag]!.copiedByteCount, byteCount: downloads[tag]!.wantedByteCount, sourceCount: 0)))
    guard !checks.isEmpty else { return land(tag) }
    downloads[tag]!.copiedByteCount += checks.reduce(0) { $0 + UInt64($1.place.byteCount) }
    downloads[tag]!.way = .copying(file, nextPiece: next)
    landDisk.post(.copy(tag, file, checks))
  }
}
