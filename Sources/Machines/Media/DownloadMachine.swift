import ParleyHashing
import ParleyVocabulary
import ParleyWire

/// One download: the wanted files of a manifest, from every source that holds some of them. Nothing is used before it
/// is verified: the manifest against the media ID, each run of piece hashes against the root of its file, the pieces
/// against their hash.
///
/// In memory: pieces on their way or in hand, at most 16 MiB and 128 of them; the manifest; 32 bytes a piece.
package struct DownloadMachine: Sendable {
  package static let piecesInMemoryMax = 128
  package static let byteCountInMemoryMax = 16 << 20
  /// 1 TiB, whose piece hashes take 32 MiB of memory.
  package static let pieceCountMax = 1 << 20
  /// In the order of the files, so far ahead of the first piece that is missing.
  /// As many as always fit in memory: the first has its place whatever came before it.
  static let inOrderWindow = 16
  static let partsInFlightMax = 16
  static let manifestsAskedMax = 4
  static let hashRunsInFlightMax = 16
  static let hashRunsPerSourceMax = 4
  static let tick = Span.milliseconds(500)
  static let slowAfter = Span.seconds(2)
  static let silentAfter = Span.seconds(8)
  /// At the end of a download a piece that takes so long is asked of another, too.
  static let lateAfter = Span.milliseconds(200)
  /// A source that lost a piece for being slow rests so long, twice as long each time.
  static let restsFor = Span.seconds(4)
  static let falseClaimsMax = 3

  package let id: MediaID
  package private(set) var manifest: MediaManifest?
  /// Of the manifest, once it is known.
  package private(set) var layout: MediaLayout?

  let options: DownloadOptions
  private let tag: UInt64
  /// Rises by as many numbers as a request may have answers.
  private var counter: UInt32 = 0
  var jitter: Jitter
  var isEnded = false
  var now = Instant(microseconds: 0)
  var effects: [DownloadEffect] = []
  private var isWaking = false

  var sources: [PeerID: DownloadSource] = [:]
  /// In the order of arrival; dictionaries have none, and what a machine does must not depend on it.
  var order: [PeerID] = []
  var turn = 0
  private var banned: Set<PeerID> = []
  var blocksInFlight = 0

  var assembly: PartAssembly?
  var manifestAskedOf: Set<PeerID> = []
  var runs: HashRuns?

  var isPrepared = false
  var done = PieceSet(pieceCount: 0)
  var picker = PiecePicker(pieceCount: 0)
  /// Wanted and not done.
  var missing = PieceSet(pieceCount: 0)
  var incoming: [Int: IncomingPiece] = [:]
  var inHand: [Int: PieceInHand] = [:]
  var suspects: [Int: SuspectPiece] = [:]
  package internal(set) var byteCountInMemory = 0
  var sparePieces = SparePieces()
  var doneByteCount: UInt64 = 0
  var wantedByteCount: UInt64 = 0
  /// Bytes of blocks that may still be asked for; nil: as many as there are.
  package internal(set) var allowance: Int?

  /// `tag`, below 2³⁰, is the upper half of the request numbers, so that downloads sharing a session do not mix their
  /// answers: an answer belongs to the download with tag `number >> 32`. `seed` steers which pieces are asked for
  /// first.
  package init(id: MediaID, tag: UInt32, seed: UInt64, _ options: DownloadOptions = DownloadOptions()) {
    precondition(tag < 1 << 30, "request numbers are below 2^62")
    precondition(options.manifest == nil || options.manifest?.id == id, "a manifest's hash is its media ID")
    self.id = id
    self.tag = UInt64(tag) << 32
    self.options = options
    jitter = Jitter(seed: seed)
    manifest = options.manifest
  }

  package mutating func handle(_ event: DownloadEvent, at now: Instant) -> [DownloadEffect] {
    guard !isEnded else { return [] }
    self.now = now
    switch event {
    case .started: if let manifest { begin(manifest) }
    case .sourceFound(let peer): found(peer)
    case .sourceLost(let peer): lose(peer)
    case .replied(let peer, let number, let reply): replied(peer, number, reply)
    case .prepared(let holding): prepared(holding)
    case .pieceVerified(let piece, let isGood): verified(piece, isGood)
    case .pieceWritten(let piece): written(piece)
    case .limited: allowance = 0
    case .allowed(let byteCount): allowed(byteCount)
    case .stopped: stop()
    case .woke:
      isWaking = false
      woke()
    }
    if !isEnded { keepWaking() }
    defer { effects = [] }
    return effects
  }

  /// Pieces held in memory at this moment.
  package var piecesInMemoryCount: Int { incoming.count + inHand.count }
  package var isFinished: Bool { isEnded && isPrepared && missing.count == 0 }
  /// What may be remembered for resuming, once the disk has synchronized.
  package var holding: PieceSet { done }

  /// One list for each file, empty for those not wanted, once all are known.
  package var pieceHashes: [[Hash32]]? { runs?.areComplete == true ? runs?.hashes : nil }

  /// What can be served, once all piece hashes of the wanted files are known.
  package var served: ServedMedia? {
    guard let manifest, let pieceHashes else { return nil }
    return ServedMedia(manifest: manifest, pieceHashes: pieceHashes)
  }

  private mutating func keepWaking() {
    guard !isWaking, !sources.isEmpty else { return }
    isWaking = true
    effects.append(.wake(at: now + Self.tick))
  }

  mutating func stop() {
    for peer in order { cancelAll(peer, listening: true) }
    isEnded = true
  }

  private mutating func fail(_ failure: DownloadFailure) {
    stop()
    effects.append(.failed(failure))
  }

  mutating func report() {
    guard manifest != nil else { return }
    effects.append(
      .progress(.init(doneByteCount: doneByteCount, byteCount: wantedByteCount, sourceCount: sources.count)))
  }
}

// MARK: - Sources

extension DownloadMachine {
  private mutating func found(_ peer: PeerID) {
    guard sources[peer] == nil, !banned.contains(peer) else { return }
    sources[peer] = DownloadSource(at: now)
    order.append(peer)
    if manifest != nil { ask(peer, .have(first: 0)) }
    report()
    fetchManifest()
  }

  private mutating func lose(_ peer: PeerID) {
    guard sources[peer] != nil else { return }
    release(peer, cancelling: false)
    if let part = sources[peer]!.part { picker.count(part, by: -1) }
    sources[peer] = nil
    order.removeAll { $0 == peer }
    lookAgain()
    report()
    fetchManifest()
    // What it was asked for is asked of others now, not at the next tick.
    fetchHashes()
    pumpAll()
  }

  mutating func drop(_ peer: PeerID, _ fault: SourceFault) {
    if fault.isForGood { banned.insert(peer) }
    if sources[peer] != nil { cancelAll(peer, listening: true) }
    effects.append(.dropSource(peer, fault))
    lose(peer)
  }

  /// Sends the request and remembers it. The clock of silence starts when there was nothing to wait for.
  mutating func ask(_ peer: PeerID, _ pending: DownloadSource.Pending) {
    let number = tag | UInt64(counter)
    counter &+= UInt32(DownloadSource.numbersPerRequest)
    let request: MediaRequest
    switch pending {
    case .manifest(let offset): request = .manifest(id, offset: offset)
    case .probe: request = .manifest(id, offset: 0)
    case .pieceHashes(let run):
      let (file, first) = (runs!.runs[run].file, runs!.runs[run].first)
      let width = MediaTree.runCount(pieceCount: layout!.pieces(of: file).count)
      request = .pieceHashes(id, file: file, first: first, count: width)
    case .have(let first): request = .have(id, first: first)
    case .blocks(let run):
      let place = layout!.place(of: run.piece)
      let index = place.indexInFile * Limit.blocksPerPiece + run.first
      request = .block(id, file: place.file, index: index, count: run.count)
      sources[peer]!.blocksInFlight += run.count
      if let left = allowance { allowance = left - run.count * Limit.mediaBlockByteCount }
      blocksInFlight += run.count
    }
    if sources[peer]!.pending.isEmpty { sources[peer]!.lastProgress = now }
    sources[peer]!.pending[number] = pending
    effects.append(.request(peer, number, request))
  }

  /// Takes from a source all it was asked for, so that others can be asked.
  mutating func release(_ peer: PeerID, cancelling: Bool) {
    if cancelling {
      cancelAll(peer)
    } else {
      blocksInFlight -= sources[peer]!.blocksInFlight
      sources[peer]!.blocksInFlight = 0
    }
    manifestAskedOf.remove(peer)
    if assembly?.source == peer { assembly = nil }
    runs?.giveBack(from: peer)
    for piece in incoming.keys.sorted() {
      if incoming[piece]!.source == peer {
        free(piece)
      } else if incoming[piece]!.helper == peer, incoming[piece]!.isBeingHelped {
        incoming[piece]!.loseHelper()
        sources[peer]!.pieceCount -= 1
      }
    }
    sources[peer]!.requesting = nil
  }

  /// Cancels what was asked of a source for one piece, or one block of it.
  mutating func cancel(_ piece: Int, block: Int? = nil, of peer: PeerID) {
    guard let source = sources[peer] else { return }
    var count = 0
    for number in source.pending.keys.sorted() {
      guard case .blocks(var run) = source.pending[number]!, run.piece == piece else { continue }
      guard let block else {
        sources[peer]!.pending[number] = nil
        effects.append(.cancel(peer, number, count: run.count))
        count += run.missingCount
        continue
      }
      let index = block - run.first
      guard (0..<run.count).contains(index), run.lacks(index) else { continue }
      run.take(index)
      sources[peer]!.pending[number] = run.missing == 0 ? nil : .blocks(run)
      effects.append(.cancel(peer, number + UInt64(index)))
      count += 1
    }
    sources[peer]!.cancelledCount += count
    sources[peer]!.blocksInFlight -= count
    blocksInFlight -= count
    if block == nil, sources[peer]!.requesting == piece { sources[peer]!.requesting = nil }
  }

  /// A piece on its way is given up; it may be asked for anew.
  mutating func free(_ piece: Int) {
    let given = incoming.removeValue(forKey: piece)!
    sources[given.source]?.pieceCount -= 1
    if given.isBeingHelped, let helper = given.helper {
      cancel(piece, of: helper)
      sources[helper]?.pieceCount -= 1
    }
    byteCountInMemory -= given.bytes.count
    picker.release(piece)
    lookAgain()
  }

  /// Something may be free of which a source was known to have nothing.
  mutating func lookAgain() {
    for peer in order {
      sources[peer]!.hasNothing = false
      sources[peer]!.hasNothingUnheld = false
    }
  }
}

// MARK: - Answers

extension DownloadMachine {
  private mutating func replied(_ peer: PeerID, _ number: UInt64, _ reply: MediaReply) {
    // One look at the source for all that every block changes.
    guard let pending = sources[peer]?.take(number, reply, at: now) else {
      guard let source = sources[peer] else { return }
      if let first = source.listening[number] { return heldMore(peer, first, reply) }
      if source.cancelledCount > 0 { sources[peer]!.cancelledCount -= 1 } else { drop(peer, .misbehaved) }
      return
    }
    if case .blocks = pending { blocksInFlight -= 1 }
    switch (pending, reply) {
    case (.have(let first), .refused(.busy)):
      sources[peer]!.haveToAsk.insert(first)
      pause(peer)
    case (_, .refused(.busy)): pause(peer)
    case (.blocks(let run), .refused(.unknown)): lacks(peer, run.piece)
    case (_, .refused(let reason)): drop(peer, .refused(reason))
    case (.manifest(let asked), .manifestPart(let total, let offset, let bytes)) where asked == offset:
      manifestPart(peer, total, offset, bytes)
    case (.probe, .manifestPart): break
    case (.pieceHashes(let run), .pieceHashes(let bytes)): pieceHashes(peer, run, bytes)
    case (.have, .holdingAll): holdsAll(peer)
    case (.have(let asked), .holding(let count, let first, let bitmap)) where asked == first:
      sources[peer]!.listens(number, from: first)
      holds(peer, count, first, bitmap)
    case (.blocks(let run), .block(let bytes)):
      blockArrived(peer, run.piece, run.first + Int(number % DownloadSource.numbersPerRequest), bytes)
    default: drop(peer, .misbehaved)
    }
  }

  private mutating func pause(_ peer: PeerID) {
    for case .have(let first) in sources[peer]!.pending.values { sources[peer]!.haveToAsk.insert(first) }
    release(peer, cancelling: true)
    sources[peer]!.shrinkWindow()
    sources[peer]!.pausedUntil = now + Self.tick
    fetchManifest()
    fetchHashes()
    pumpAll()
  }

  /// It said that it holds this piece. What it holds may have changed, so it is asked again; if that goes on, it lies.
  private mutating func lacks(_ peer: PeerID, _ piece: Int) {
    sources[peer]!.falseClaimCount += 1
    guard sources[peer]!.falseClaimCount < Self.falseClaimsMax else { return drop(peer, .falseClaim(piece)) }
    if let part = sources[peer]!.part { picker.count(part, by: -1) }
    sources[peer]!.forgetHolding()
    release(peer, cancelling: true)
    ask(peer, .have(first: 0))
    pumpAll()
  }

  /// News, for which nothing was pending: it says nothing of how fast the source serves.
  private mutating func heldMore(_ peer: PeerID, _ asked: Int, _ reply: MediaReply) {
    switch reply {
    case .holdingAll: holdsAll(peer)
    case .holding(let count, let first, let bitmap) where asked == first: holds(peer, count, first, bitmap)
    case .refused(let reason): drop(peer, .refused(reason))
    default: drop(peer, .misbehaved)
    }
  }

  private mutating func holdsAll(_ peer: PeerID) {
    if let part = sources[peer]!.part {
      picker.count(part, by: -1)
      lookAgain()
    }
    sources[peer]!.holds(.all)
    fetchHashes()
    pump(peer)
  }

  /// What it said it held before is not forgotten: it may say it in parts.
  private mutating func holds(_ peer: PeerID, _ count: Int, _ first: Int, _ bitmap: ArraySlice<UInt8>) {
    guard count == done.pieceCount else { return drop(peer, .misbehaved) }
    let known = sources[peer]!.part ?? PieceSet(pieceCount: count)
    let new = known.missing(of: bitmap, from: first)
    var pieces = known
    pieces.insert(contentsOf: bitmap, from: first)
    picker.count(new, by: 1)
    sources[peer]!.holds(.some(pieces))
    let next = first + bitmap.count * 8
    if next < count, !sources[peer]!.hasAsked(from: next) { ask(peer, .have(first: next)) }
    fetchHashes()
    spare(for: peer)
    pump(peer)
  }
}

// MARK: - The manifest and the piece hashes

extension DownloadMachine {
  /// Several are asked for its first part, so that one who answers slowly, or with a longer one than there is, holds
  /// nobody up: the shortest is fetched first.
  mutating func fetchManifest() {
    guard manifest == nil, !isEnded else { return }
    // All have answered, and what they gave was not it.
    if assembly == nil, !order.contains(where: { sources[$0]!.isAskedForManifest }) { manifestAskedOf = [] }
    for peer in order where manifestAskedOf.count < Self.manifestsAskedMax {
      guard sources[peer]!.isReady(at: now), !manifestAskedOf.contains(peer), assembly?.source != peer,
        sources[peer]!.pending.isEmpty
      else { continue }
      manifestAskedOf.insert(peer)
      ask(peer, .manifest(offset: 0))
    }
    fetchParts()
  }

  private mutating func fetchParts() {
    guard let peer = assembly?.source else { return }
    while sources[peer]!.pending.count < Self.partsInFlightMax, let part = assembly!.takeNext() {
      ask(peer, .manifest(offset: part.lowerBound))
    }
  }

  private mutating func manifestPart(_ peer: PeerID, _ total: Int, _ offset: Int, _ bytes: ArraySlice<UInt8>) {
    guard manifest == nil else { return }
    if assembly?.source != peer {
      // A first part. Its source stays among those asked, so that it is not asked again while another's is fetched.
      if let assembly, assembly.bytes.count <= total { return }
      if let slower = assembly?.source {
        release(slower, cancelling: true)
        manifestAskedOf.insert(slower)
      }
      assembly = PartAssembly(
        source: peer, byteCount: total, partByteCount: MediaMessage.manifestPartByteCountMax, at: now)
      // The part at hand was the first.
      _ = assembly!.takeNext()
    }
    guard total == assembly!.bytes.count, assembly!.put(bytes, at: offset) else { return drop(peer, .misbehaved) }
    guard assembly!.isWhole else { return fetchParts() }
    let whole = assembly!.bytes
    assembly = nil
    manifestAskedOf = []
    guard MediaTree.sha256(whole).value == id.value else { return drop(peer, .badManifest) }
    do throws(WireError) {
      let manifest = try MediaManifest(decoding: whole)
      self.manifest = manifest
      for peer in order { cancelAll(peer) }
      begin(manifest)
    } catch {
      fail(.manifest(error))
    }
  }

  private mutating func begin(_ manifest: MediaManifest) {
    let layout = MediaLayout(manifest)
    guard layout.pieceCount <= Self.pieceCountMax else {
      let byteCountMax = UInt64(Self.pieceCountMax) * UInt64(Limit.mediaPieceByteCount)
      return fail(.tooLarge(byteCount: manifest.byteCount, byteCountMax: byteCountMax))
    }
    self.layout = layout
    var wanted = [Bool](repeating: options.selected == nil, count: manifest.files.count)
    for file in options.selected ?? [] where wanted.indices.contains(file) { wanted[file] = true }
    done = PieceSet(pieceCount: layout.pieceCount)
    missing = done
    picker = PiecePicker(pieceCount: layout.pieceCount)
    for file in wanted.indices where wanted[file] {
      wantedByteCount += manifest.files[file].byteCount
      for piece in layout.pieces(of: file) { missing.insert(piece) }
    }
    runs = HashRuns(
      manifest, wanted: wanted, known: options.pieceHashes, isShuffled: !options.isInOrder, &jitter)
    effects.append(.prepare(manifest))
    for peer in order { ask(peer, .have(first: 0)) }
    report()
  }

  /// Runs from several sources at once, so that no slow one holds up the rest.
  mutating func fetchHashes() {
    guard isPrepared, runs?.unasked.isEmpty == false else { return }
    for peer in order {
      let asked = runs!.asked.values.count { $0 == peer }
      guard sources[peer]!.isReady(at: now), sources[peer]!.isHoldingKnown else { continue }
      for _ in 0..<max(0, Self.hashRunsPerSourceMax - asked) where runs!.asked.count < Self.hashRunsInFlightMax {
        guard let run = runs!.takeNext(for: peer) else { return }
        ask(peer, .pieceHashes(run: run))
      }
    }
  }

  private mutating func pieceHashes(_ peer: PeerID, _ run: Int, _ bytes: ArraySlice<UInt8>) {
    let file = runs!.runs[run].file
    let pieceCount = layout!.pieces(of: file).count
    let count = runs!.count(of: run)
    guard bytes.count == 32 * (count + MediaTree.uncleCount(pieceCount: pieceCount)) else {
      return drop(peer, .misbehaved)
    }
    guard runs!.put(bytes, of: run, root: manifest!.files[file].root) else { return drop(peer, .badPieceHashes) }
    let first = layout!.pieces(of: file).lowerBound + runs!.runs[run].first
    for piece in first..<first + count where missing.contains(piece) { picker.release(piece) }
    lookAgain()
    fetchHashes()
    pumpAll()
  }

  private mutating func prepared(_ holding: PieceSet) {
    guard let layout, let runs, !isPrepared else { return }
    precondition(holding.pieceCount == layout.pieceCount, "a bitmap of this media has its number of pieces")
    isPrepared = true
    done = holding
    for piece in holding where missing.contains(piece) {
      missing.remove(piece)
      doneByteCount += UInt64(layout.byteCount(of: piece))
    }
    // What is fetched in runs is free once its hashes are there.
    var waiting = [Bool](repeating: false, count: layout.fileCount)
    for run in runs.runs { waiting[run.file] = true }
    for file in waiting.indices where !waiting[file] {
      for piece in layout.pieces(of: file) where missing.contains(piece) { picker.release(piece) }
    }
    report()
    if missing.count == 0 { return finish() }
    fetchHashes()
    pumpAll()
  }

  mutating func finish() {
    stop()
    effects.append(.finished)
  }
}
