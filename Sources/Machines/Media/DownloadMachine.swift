import ParleyHashing
import ParleyVocabulary
import ParleyWire

/// One download of one file: from every source that holds some of it, each piece from one source, nothing used before
/// it is verified: the manifest against the media ID, the piece hashes against the root, the pieces against their hash.
///
/// In memory: at most `piecesInMemoryMax` pieces, the manifest, and 32 bytes a piece.
package struct DownloadMachine: Sendable {
  package static let piecesInMemoryMax = 16
  /// 1 TiB, whose piece hashes take 32 MiB of memory.
  package static let pieceCountMax = 1 << 20
  static let partsInFlightMax = 16
  static let tick = Span.milliseconds(500)
  static let slowAfter = Span.seconds(2)
  static let silentAfter = Span.seconds(8)

  package let id: MediaID
  package private(set) var manifest: MediaManifest?

  private let tag: UInt64
  private var counter: UInt32 = 0
  private var isEnded = false
  private var now = Instant(microseconds: 0)
  private var effects: [DownloadEffect] = []
  private var isWaking = false

  private var sources: [PeerID: DownloadSource] = [:]
  /// In the order of arrival; dictionaries have none, and what a machine does must not depend on it.
  private var order: [PeerID] = []
  private var turn = 0
  private var banned: Set<PeerID> = []

  /// The manifest or the piece hashes, whichever is being fetched. A manifest's length is known from its first part.
  private var assembly: PartAssembly?
  private var manifestAskedOf: PeerID?
  private var pieceHashes: [Hash32]?

  private var isPrepared = false
  private var done = PieceSet(pieceCount: 0)
  /// Done, or on the way.
  private var claimed = PieceSet(pieceCount: 0)
  /// Below it, every piece is claimed.
  private var firstFree = 0
  private var incoming: [Int: IncomingPiece] = [:]
  /// Whole pieces being verified or written, and whom they came from.
  private var inHand: [Int: (source: PeerID, bytes: [UInt8])] = [:]
  private var doneByteCount: UInt64 = 0
  private var spare = SparePieces()

  /// `tag`, below 2³⁰, is the upper half of the request numbers, so that downloads sharing a session do not mix their
  /// answers: an answer belongs to the download with tag `number >> 32`. `manifest`: kept from an earlier run.
  package init(id: MediaID, tag: UInt32, manifest: MediaManifest? = nil) {
    precondition(tag < 1 << 30, "request numbers are below 2^62")
    precondition(manifest == nil || manifest?.id == id, "a manifest's hash is its media ID")
    self.id = id
    self.tag = UInt64(tag) << 32
    self.manifest = manifest
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
    case .stopped: stop()
    case .woke: woke()
    }
    if !isEnded { keepWaking() }
    defer { effects = [] }
    return effects
  }

  /// Pieces held in memory at this moment.
  package var piecesInMemoryCount: Int { incoming.count + inHand.count }
  package var isFinished: Bool { isEnded && isPrepared && done.isFull }
  /// What may be remembered for resuming, once the disk has synchronized.
  package var holding: PieceSet { done }

  /// What can be served once the download is finished.
  package var served: ServedMedia? {
    guard let manifest, let pieceHashes else { return nil }
    return ServedMedia(manifest: manifest, pieceHashes: [pieceHashes])
  }

  private var file: MediaManifest.File? { manifest?.files.first }

  private mutating func keepWaking() {
    guard !isWaking, !sources.isEmpty else { return }
    isWaking = true
    effects.append(.wake(at: now + Self.tick))
  }

  private mutating func stop() {
    for peer in order {
      for number in sources[peer]!.listening.keys.sorted() { effects.append(.cancel(peer, number)) }
      cancelAll(peer)
    }
    isEnded = true
  }

  private mutating func fail(_ failure: DownloadFailure) {
    stop()
    effects.append(.failed(failure))
  }

  private mutating func report() {
    guard let file else { return }
    effects.append(
      .progress(.init(doneByteCount: doneByteCount, byteCount: file.byteCount, sourceCount: sources.count)))
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
    fetchParts()
  }

  private mutating func lose(_ peer: PeerID) {
    guard sources[peer] != nil else { return }
    release(peer, cancelling: false)
    sources[peer] = nil
    order.removeAll { $0 == peer }
    report()
    fetchParts()
    pumpAll()
  }

  private mutating func drop(_ peer: PeerID, _ fault: SourceFault) {
    if fault.isForGood { banned.insert(peer) }
    if sources[peer] != nil {
      for number in sources[peer]!.listening.keys.sorted() { effects.append(.cancel(peer, number)) }
      cancelAll(peer)
    }
    effects.append(.dropSource(peer, fault))
    lose(peer)
  }

  /// Sends the request and remembers it. The clock of silence starts when there was nothing to wait for.
  private mutating func ask(_ peer: PeerID, _ pending: DownloadSource.Pending) {
    let number = tag | UInt64(counter)
    counter &+= 1
    let request: MediaRequest
    switch pending {
    case .manifest(let offset): request = .manifest(id, offset: offset)
    case .probe: request = .manifest(id, offset: 0)
    case .pieceHashes(let first, let count): request = .pieceHashes(id, file: 0, first: first, count: count)
    case .have(let first): request = .have(id, first: first)
    case .block(let piece, let block, _):
      request = .block(id, file: 0, index: piece * Limit.blocksPerPiece + block)
      sources[peer]!.blocksInFlight += 1
    }
    if sources[peer]!.pending.isEmpty { sources[peer]!.lastProgress = now }
    sources[peer]!.pending[number] = pending
    effects.append(.request(peer, number, request))
  }

  private mutating func cancelAll(_ peer: PeerID) {
    for number in sources[peer]!.pending.keys.sorted() { effects.append(.cancel(peer, number)) }
    sources[peer]!.cancelledCount += sources[peer]!.pending.count
    sources[peer]!.pending = [:]
    sources[peer]!.blocksInFlight = 0
  }

  /// Takes from a source all it was asked for, so that others can be asked.
  private mutating func release(_ peer: PeerID, cancelling: Bool) {
    if cancelling { cancelAll(peer) }
    if manifestAskedOf == peer { manifestAskedOf = nil }
    if assembly?.source == peer { assembly = nil }
    for piece in incoming.keys.filter({ incoming[$0]!.source == peer }) { free(piece) }
    sources[peer]?.requesting = nil
  }

  private mutating func free(_ piece: Int) {
    incoming[piece] = nil
    claimed.remove(piece)
    firstFree = min(firstFree, piece)
  }

  private mutating func replied(_ peer: PeerID, _ number: UInt64, _ reply: MediaReply) {
    guard sources[peer] != nil else { return }
    guard let pending = sources[peer]!.pending.removeValue(forKey: number) else {
      if let first = sources[peer]!.listening[number] { return heldMore(peer, first, reply) }
      if sources[peer]!.cancelledCount > 0 { sources[peer]!.cancelledCount -= 1 } else { drop(peer, .misbehaved) }
      return
    }
    if case .block = pending { sources[peer]!.blocksInFlight -= 1 }
    sources[peer]!.lastProgress = now
    sources[peer]!.isSlow = false
    switch (pending, reply) {
    case (.have(let first), .refused(.busy)):
      sources[peer]!.haveToAsk.insert(first)
      pause(peer)
    case (_, .refused(.busy)): pause(peer)
    case (_, .refused(let reason)): drop(peer, .refused(reason))
    case (.manifest(let asked), .manifestPart(let total, let offset, let bytes)) where asked == offset:
      manifestPart(peer, total, offset, bytes)
    case (.probe, .manifestPart): break
    case (.pieceHashes(let first, let count), .pieceHashes(let bytes)) where bytes.count == count * 32:
      pieceHashesPart(peer, first, bytes)
    case (.have, .holdingAll):
      sources[peer]!.holding = .all
      pump(peer)
    case (.have(let asked), .holding(let count, let first, let bitmap)) where asked == first:
      sources[peer]!.listens(number, from: first)
      holds(peer, count, first, bitmap)
    case (.block(let piece, let block, let askedAt), .block(let bytes)):
      blockArrived(peer, piece, block, askedAt, bytes)
    default: drop(peer, .misbehaved)
    }
  }

  private mutating func pause(_ peer: PeerID) {
    for case .have(let first) in sources[peer]!.pending.values { sources[peer]!.haveToAsk.insert(first) }
    release(peer, cancelling: true)
    sources[peer]!.shrinkWindow()
    sources[peer]!.pausedUntil = now + Self.tick
    fetchParts()
    pumpAll()
  }

  /// News, for which nothing was pending: it says nothing of how fast it serves.
  private mutating func heldMore(_ peer: PeerID, _ asked: Int, _ reply: MediaReply) {
    switch reply {
    case .holdingAll:
      sources[peer]!.holding = .all
      sources[peer]!.listening = [:]
      pump(peer)
    case .holding(let count, let first, let bitmap) where asked == first: holds(peer, count, first, bitmap)
    case .refused(let reason): drop(peer, .refused(reason))
    default: drop(peer, .misbehaved)
    }
  }

  private mutating func holds(_ peer: PeerID, _ count: Int, _ first: Int, _ bitmap: ArraySlice<UInt8>) {
    guard count == claimed.pieceCount else { return drop(peer, .misbehaved) }
    var pieces = PieceSet(pieceCount: count)
    if case .some(let known) = sources[peer]!.holding { pieces = known }
    pieces.insert(contentsOf: bitmap, from: first)
    sources[peer]!.holding = .some(pieces)
    let next = first + bitmap.count * 8
    if next < count, !sources[peer]!.hasAsked(from: next) { ask(peer, .have(first: next)) }
    pump(peer)
  }
}

// MARK: - Manifest and piece hashes

extension DownloadMachine {
  /// Asks one source for what must be known before pieces: first the manifest, then the hashes.
  private mutating func fetchParts() {
    guard pieceHashes == nil, !isEnded else { return }
    if assembly == nil, manifestAskedOf == nil {
      guard let peer = order.first(where: { sources[$0]!.isReady(at: now) }) else { return }
      guard manifest != nil else {
        manifestAskedOf = peer
        return ask(peer, .manifest(offset: 0))
      }
      assembly = PartAssembly(
        source: peer, byteCount: claimed.pieceCount * 32,
        partByteCount: MediaMessage.pieceHashesPerPartMax * 32)
    }
    pumpParts()
  }

  private mutating func pumpParts() {
    guard let peer = assembly?.source else { return }
    while sources[peer]!.pending.count < Self.partsInFlightMax, let part = assembly!.takeNext() {
      if manifest == nil {
        ask(peer, .manifest(offset: part.lowerBound))
      } else {
        ask(peer, .pieceHashes(first: part.lowerBound / 32, count: part.count / 32))
      }
    }
  }

  private mutating func manifestPart(_ peer: PeerID, _ total: Int, _ offset: Int, _ bytes: ArraySlice<UInt8>) {
    if assembly == nil {
      assembly = PartAssembly(
        source: peer, byteCount: total, partByteCount: MediaMessage.manifestPartByteCountMax)
      // The part at hand was the first.
      _ = assembly!.takeNext()
      manifestAskedOf = nil
    }
    guard total == assembly!.bytes.count, assembly!.put(bytes, at: offset) else { return drop(peer, .misbehaved) }
    guard assembly!.isWhole else { return pumpParts() }
    let whole = assembly!.bytes
    assembly = nil
    guard MediaTree.sha256(whole).value == id.value else { return drop(peer, .badManifest) }
    do throws(WireError) {
      let manifest = try MediaManifest(decoding: whole)
      self.manifest = manifest
      begin(manifest)
    } catch {
      fail(.manifest(error))
    }
  }

  private mutating func begin(_ manifest: MediaManifest) {
    guard manifest.files.count == 1 else { return fail(.severalFiles(count: manifest.files.count)) }
    let file = manifest.files[0]
    guard file.pieceCount <= UInt64(Self.pieceCountMax) else {
      let byteCountMax = UInt64(Self.pieceCountMax) * UInt64(Limit.mediaPieceByteCount)
      return fail(.tooLarge(byteCount: file.byteCount, byteCountMax: byteCountMax))
    }
    claimed = PieceSet(pieceCount: Int(file.pieceCount))
    done = claimed
    // The root of a file of one piece is the hash of that piece.
    if file.pieceCount <= 1 { pieceHashes = file.pieceCount == 1 ? [file.root] : [] }
    effects.append(.prepare(manifest))
    for peer in order { ask(peer, .have(first: 0)) }
    report()
    fetchParts()
  }

  private mutating func pieceHashesPart(_ peer: PeerID, _ first: Int, _ bytes: ArraySlice<UInt8>) {
    guard let file, assembly!.put(bytes, at: first * 32) else { return drop(peer, .misbehaved) }
    guard assembly!.isWhole else { return pumpParts() }
    let whole = assembly!.bytes
    assembly = nil
    let hashes = stride(from: 0, to: whole.count, by: 32).map { Hash32(bytes: whole[$0..<$0 + 32])! }
    guard MediaTree.root(pieceHashes: hashes, byteCount: file.byteCount) == file.root else {
      return drop(peer, .badPieceHashes)
    }
    pieceHashes = hashes
    pumpAll()
  }

  private mutating func prepared(_ holding: PieceSet) {
    guard let file, !isPrepared else { return }
    precondition(holding.pieceCount == claimed.pieceCount, "a bitmap of this file has its number of pieces")
    isPrepared = true
    done = holding
    claimed.insert(contentsOf: holding.bytes[...], from: 0)
    // Only the last piece can be short.
    doneByteCount = UInt64(holding.count) * UInt64(Limit.mediaPieceByteCount)
    if let last = holding.pieceCount > 0 ? holding.pieceCount - 1 : nil, holding.contains(last) {
      doneByteCount -= UInt64(Limit.mediaPieceByteCount - byteCount(of: last, in: file))
    }
    report()
    if done.isFull { finish() } else { pumpAll() }
  }

  private mutating func finish() {
    stop()
    effects.append(.finished)
  }
}

// MARK: - Pieces

extension DownloadMachine {
  private func byteCount(of piece: Int, in file: MediaManifest.File) -> Int {
    let start = UInt64(piece) * UInt64(Limit.mediaPieceByteCount)
    return Int(min(UInt64(Limit.mediaPieceByteCount), file.byteCount - start))
  }

  /// Gives every source work, another one first each time.
  private mutating func pumpAll() {
    guard isPrepared, pieceHashes != nil, !order.isEmpty else { return }
    turn = (turn + 1) % order.count
    for index in order.indices { pump(order[(turn + index) % order.count]) }
  }

  private mutating func pump(_ peer: PeerID) {
    guard isPrepared, pieceHashes != nil, sources[peer]!.isReady(at: now), sources[peer]!.hasRoom else { return }
    while sources[peer]!.blocksInFlight < sources[peer]!.window {
      guard let piece = sources[peer]!.requesting ?? assign(to: peer) else { return }
      let block = incoming[piece]!.takeNext()
      sources[peer]!.requesting = incoming[piece]!.isRequested ? nil : piece
      ask(peer, .block(piece: piece, block: block, askedAt: now))
    }
  }

  private mutating func assign(to peer: PeerID) -> Int? {
    guard piecesInMemoryCount < Self.piecesInMemoryMax, let piece = freePiece(of: peer) else { return nil }
    claimed.insert(piece)
    if piece == firstFree { firstFree += 1 }
    incoming[piece] = spare.piece(from: peer, byteCount: byteCount(of: piece, in: file!), at: now)
    return piece
  }

  private func freePiece(of peer: PeerID) -> Int? {
    switch sources[peer]!.holding {
    case .unknown: nil
    case .all: claimed.firstMissing(from: firstFree)
    case .some(let pieces): claimed.firstMissing(from: firstFree, offered: pieces)
    }
  }

  private mutating func blockArrived(
    _ peer: PeerID, _ piece: Int, _ block: Int, _ askedAt: Instant, _ bytes: ArraySlice<UInt8>
  ) {
    guard incoming[piece]!.put(bytes, at: block) else { return drop(peer, .misbehaved) }
    sources[peer]!.answered(after: now - askedAt)
    if incoming[piece]!.isWhole {
      let whole = incoming.removeValue(forKey: piece)!
      sources[peer]!.pieceDuration = now - whole.assignedAt
      inHand[piece] = (peer, whole.bytes)
      let check = PieceCheck(
        piece: piece, expected: pieceHashes![piece], isOnlyPiece: claimed.pieceCount == 1)
      effects.append(.verify(check, whole.bytes))
    }
    pump(peer)
  }

  private mutating func verified(_ piece: Int, _ isGood: Bool) {
    guard let (peer, bytes) = inHand[piece] else { return }
    if isGood {
      effects.append(.write(piece: piece, offset: UInt64(piece) * UInt64(Limit.mediaPieceByteCount), bytes))
    } else {
      inHand[piece] = nil
      free(piece)
      drop(peer, .badPiece(piece))
    }
  }

  private mutating func written(_ piece: Int) {
    guard let held = inHand.removeValue(forKey: piece) else { return }
    spare.keep(held.bytes)
    done.insert(piece)
    doneByteCount += UInt64(held.bytes.count)
    report()
    if done.isFull { finish() } else { pumpAll() }
  }
}

// MARK: - Time

extension DownloadMachine {
  private mutating func woke() {
    isWaking = false
    for peer in order where sources[peer] != nil { checkSilence(of: peer) }
    for peer in order where sources[peer]!.isReady(at: now) {
      for first in sources[peer]!.haveToAsk.sorted() { ask(peer, .have(first: first)) }
      sources[peer]!.haveToAsk = []
    }
    fetchParts()
    pumpAll()
    for peer in order { helpOut(peer) }
  }

  private mutating func checkSilence(of peer: PeerID) {
    let source = sources[peer]!
    guard !source.pending.isEmpty else { return }
    let silence = now - source.lastProgress
    if silence >= Self.silentAfter { return drop(peer, .silent) }
    guard silence >= Self.slowAfter, !source.isSlow else { return }
    // Without another source there is nothing better than to wait.
    guard order.contains(where: { $0 != peer && sources[$0]!.isReady(at: now) }) else { return }
    release(peer, cancelling: true)
    sources[peer]!.isSlow = true
    sources[peer]!.shrinkWindow()
    // Its answer shows that it is back; the clock of its silence goes on.
    let since = source.lastProgress
    ask(peer, manifest != nil ? .have(first: 0) : .probe)
    sources[peer]!.lastProgress = since
  }

  /// A source with nothing to do takes over a piece that another has been at for far longer than it would need itself.
  private mutating func helpOut(_ peer: PeerID) {
    guard let source = sources[peer], isPrepared, source.isReady(at: now), source.blocksInFlight == 0 else { return }
    guard pieceHashes != nil, let duration = source.pieceDuration else { return }
    let patience = max(Self.slowAfter, duration * 4)
    let late = incoming.filter { $1.source != peer && source.holds($0) && now - $1.assignedAt > patience }
    guard let piece = late.keys.min() else { return }
    cancel(piece)
    claimed.insert(piece)
    incoming[piece] = IncomingPiece(source: peer, byteCount: byteCount(of: piece, in: file!), at: now)
    sources[peer]!.requesting = piece
    pump(peer)
  }

  /// Takes one piece from its source.
  private mutating func cancel(_ piece: Int) {
    let peer = incoming[piece]!.source
    let numbers = sources[peer]!.pending.filter { if case .block(piece, _, _) = $1 { true } else { false } }.keys
    for number in numbers.sorted() {
      sources[peer]!.pending[number] = nil
      effects.append(.cancel(peer, number))
    }
    sources[peer]!.cancelledCount += numbers.count
    sources[peer]!.blocksInFlight -= numbers.count
    if sources[peer]!.requesting == piece { sources[peer]!.requesting = nil }
    free(piece)
  }
}
