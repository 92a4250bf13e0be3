import ParleyHashing
import ParleyVocabulary
import ParleyWire

// MARK: - Which piece of whom

extension DownloadMachine {
  /// Gives every source work, another one first each time.
  mutating func pumpAll() {
    guard isPrepared, !order.isEmpty else { return }
    turn = (turn + 1) % order.count
    // A source that is dropped on the way changes the order.
    for peer in order[turn...] + order[..<turn] where sources[peer] != nil { pump(peer) }
  }

  mutating func pump(_ peer: PeerID) {
    guard isPrepared, !isEnded, sources[peer]?.mayBeAsked(at: now) == true else { return }
    while sources[peer]!.blocksInFlight < sources[peer]!.window, allowance ?? 1 > 0 {
      guard let piece = sources[peer]!.requesting ?? assign(to: peer) ?? help(with: peer) else { return }
      let room = sources[peer]!.window - sources[peer]!.blocksInFlight
      let count = min(room, max(1, (allowance ?? .max) / Limit.mediaBlockByteCount))
      if let blocks = incoming[piece]!.takeNext(for: peer, atMost: count) {
        sources[peer]!.requesting = piece
        ask(peer, .blocks(.init(piece: piece, blocks: blocks, askedAt: now)))
      } else {
        sources[peer]!.requesting = nil
      }
    }
  }

  private mutating func assign(to peer: PeerID) -> Int? {
    guard mayTakeMore(peer), let piece = freePiece(of: peer) else { return nil }
    // The last pieces are not for who is known to be slow.
    let isKnown = sources[peer]!.isProven || sources[peer]!.slowCount > 0
    guard picker.free.count > order.count || !isKnown || !isFarBehind(peer, with: piece) else { return nil }
    let byteCount = layout!.byteCount(of: piece)
    guard byteCountInMemory + byteCount <= Self.byteCountInMemoryMax else { return nil }
    take(piece, byteCount, from: peer)
    return piece
  }

  private mutating func take(_ piece: Int, _ byteCount: Int, from peer: PeerID) {
    picker.take(piece)
    incoming[piece] = sparePieces.piece(from: peer, byteCount: byteCount, at: now)
    byteCountInMemory += byteCount
    sources[peer]!.pieceCount += 1
  }

  /// A source that has given nothing yet gets one piece, and half of the memory is for those that have.
  private func mayTakeMore(_ peer: PeerID) -> Bool {
    guard piecesInMemoryCount < Self.piecesInMemoryMax else { return false }
    guard !sources[peer]!.isProven else { return true }
    return sources[peer]!.pieceCount == 0
      && (byteCountInMemory < Self.byteCountInMemoryMax / 2 || !order.contains { sources[$0]!.isProven })
  }

  private mutating func freePiece(of peer: PeerID) -> Int? {
    let source = sources[peer]!
    guard source.isHoldingKnown, !source.hasNothing else { return nil }
    if options.isInOrder {
      guard let first = missing.first else { return nil }
      return picker.first(from: source.part, below: first + Self.inOrderWindow)
    }
    // Somebody hungry takes what there is.
    let isSpared = isSpared(source) && blocksInFlight >= DownloadSource.windowMin
    guard !isSpared || !source.hasNothingUnheld else { return nil }
    let piece = picker.choose(from: source.part, unheldOnly: isSpared, using: &jitter)
    if piece == nil {
      if isSpared { sources[peer]!.hasNothingUnheld = true } else { sources[peer]!.hasNothing = true }
    }
    return piece
  }

  /// While fewer hold all than hold some, those who hold all are asked only for what nobody else holds: they have it to
  /// give to everybody.
  func isSpared(_ source: DownloadSource) -> Bool {
    guard source.holdsAll else { return false }
    var (whole, part) = (0, 0)
    for peer in order where sources[peer]!.isReady(at: now) {
      if sources[peer]!.holdsAll { whole += 1 } else if sources[peer]!.isPartial { part += 1 }
    }
    return whole < part
  }

  /// Pieces that wait at a spared source and have not begun to come are left to partial holders that have them now,
  /// this one first. Somebody who would then wait for too little keeps them.
  mutating func spare(for peer: PeerID) {
    guard isPrepared, !options.isInOrder, sources[peer]!.isReady(at: now) else { return }
    var spared: [PeerID] = []
    for piece in incoming.keys.sorted() where picker.holderCount(of: piece) > 0 {
      let waiting = incoming[piece]!
      guard waiting.receivedCount == 0, !waiting.isBeingHelped, waiting.source != peer,
        isSpared(sources[waiting.source]!)
      else { continue }
      let hasRoom =
        sources[peer]!.holds(piece) && sources[peer]!.requesting == nil && sources[peer]!.hasRoom && mayTakeMore(peer)
      guard hasRoom || blocksInFlight - waiting.blockCount >= DownloadSource.windowMin else { continue }
      cancel(piece, of: waiting.source)
      free(piece)
      spared.append(waiting.source)
      guard hasRoom else { continue }
      take(piece, layout!.byteCount(of: piece), from: peer)
      sources[peer]!.requesting = piece
      pump(peer)
    }
    for source in spared { pump(source) }
  }

  /// When nothing more is free: a piece that is late at another source is fetched from this one as well, from its end.
  private mutating func help(with peer: PeerID) -> Int? {
    let source = sources[peer]!
    guard picker.free.count == 0, runs!.areComplete, source.isHoldingKnown, source.blocksInFlight == 0 else {
      return nil
    }
    var oldest: (piece: Int, at: Instant)?
    for (piece, incoming) in incoming where incoming.source != peer && source.holds(piece) {
      guard incoming.helper == nil, suspects[piece] == nil, isLate(incoming, source) else { continue }
      guard !isFarBehind(peer, with: piece) else { continue }
      if let known = oldest, (known.at, known.piece) < (incoming.assignedAt, piece) { continue }
      oldest = (piece, incoming.assignedAt)
    }
    guard let piece = oldest?.piece else { return nil }
    incoming[piece]!.help(from: peer)
    sources[peer]!.pieceCount += 1
    return piece
  }

  /// Somebody else who could be asked for the piece has given others in a quarter of the time, or this one none.
  private func isFarBehind(_ peer: PeerID, with piece: Int) -> Bool {
    let own = sources[peer]!.pieceDuration
    return order.contains { other in
      guard other != peer, let source = sources[other], source.isReady(at: now), source.holds(piece),
        let duration = source.pieceDuration
      else { return false }
      return own.map { $0.microseconds > 4 * duration.microseconds } ?? true
    }
  }

  private func isLate(_ piece: IncomingPiece, _ helper: DownloadSource) -> Bool {
    now - piece.assignedAt > (isSpared(helper) ? Self.slowAfter : Self.lateAfter)
  }
}

// MARK: - From the first block to the disk

extension DownloadMachine {
  mutating func blockArrived(_ peer: PeerID, _ piece: Int, _ block: Int, _ bytes: ArraySlice<UInt8>) {
    switch incoming[piece]!.put(bytes, at: block, from: peer) {
    case .misfit: drop(peer, .misbehaved)
    case .put(let isWhole, let other):
      // Who is later need not send it any more.
      if let other { cancel(piece, block: block, of: other) }
      if isWhole { arrived(piece) }
      pump(peer)
    }
  }

  private mutating func arrived(_ piece: Int) {
    let whole = incoming.removeValue(forKey: piece)!
    if whole.fromHelper == 0 {
      sources[whole.source]!.pieceDuration = now - whole.assignedAt
    } else if whole.fromHelper.nonzeroBitCount * 4 > whole.blockCount * 3 {
      // Somebody else had to bring nearly all of it.
      rest(whole.source)
    }
    sources[whole.source]!.pieceCount -= 1
    if sources[whole.source]!.requesting == piece { sources[whole.source]!.requesting = nil }
    if whole.isBeingHelped, let helper = whole.helper {
      sources[helper]!.pieceCount -= 1
      if sources[helper]!.requesting == piece { sources[helper]!.requesting = nil }
    }
    inHand[piece] = PieceInHand(
      source: whole.source, helper: whole.fromHelper == 0 ? nil : whole.helper, fromHelper: whole.fromHelper,
      bytes: whole.bytes)
    effects.append(.verify(check(piece), whole.bytes))
  }

  private func check(_ piece: Int) -> PieceCheck {
    let place = layout!.place(of: piece)
    let hashes = runs!.hashes[place.file]
    return PieceCheck(
      piece: piece, place, expected: hashes[place.indexInFile], isOnlyPiece: hashes.count == 1)
  }

  mutating func verified(_ piece: Int, _ isGood: Bool) {
    guard let held = inHand[piece] else { return }
    guard isGood else {
      inHand[piece] = nil
      byteCountInMemory -= held.bytes.count
      picker.release(piece)
      lookAgain()
      guard let helper = held.helper else { return drop(held.source, .badPiece(piece)) }
      // One of the two: whole from one, it will show.
      suspects[piece] = SuspectPiece(held, helper: helper)
      return pumpAll()
    }
    // What it holds may change many times: of a folder in use one file after the other.
    if held.helper == nil { sources[held.source]?.falseClaimCount = 0 }
    let place = layout!.place(of: piece)
    effects.append(.write(piece: piece, file: place.file, offset: place.offset, held.bytes))
    for liar in suspects.removeValue(forKey: piece)?.liars(against: held.bytes) ?? [] {
      drop(liar, .badPiece(piece))
    }
  }

  mutating func written(_ piece: Int) {
    guard let held = inHand.removeValue(forKey: piece) else { return }
    byteCountInMemory -= held.bytes.count
    sparePieces.keep(held.bytes)
    done.insert(piece)
    missing.remove(piece)
    doneByteCount += UInt64(held.bytes.count)
    report()
    if missing.count == 0 { finish() } else { pumpAll() }
  }
}

// MARK: - Time

extension DownloadMachine {
  mutating func woke() {
    for peer in order where sources[peer] != nil { checkSilence(of: peer) }
    for peer in order where sources[peer]!.isReady(at: now) {
      for first in sources[peer]!.haveToAsk.sorted() { ask(peer, .have(first: first)) }
      sources[peer]!.haveToAsk = []
    }
    replaceDrippingManifest()
    for piece in incoming.keys.sorted() where incoming[piece] != nil { takeFromSlow(piece) }
    fetchManifest()
    fetchHashes()
    pumpAll()
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
    ask(peer, manifest != nil ? .have(first: 0) : .probe)
    sources[peer]!.lastProgress = source.lastProgress
  }

  /// Under 48,000 bytes a second, and somebody else could be asked.
  private mutating func replaceDrippingManifest() {
    guard let parts = assembly, now - parts.startedAt >= Self.slowAfter else { return }
    let rate = Int64(parts.receivedByteCount) * 1_000_000 / (now - parts.startedAt).microseconds
    guard rate < 2 * Int64(MediaMessage.manifestPartByteCountMax),
      order.contains(where: { $0 != parts.source && sources[$0]!.isReady(at: now) })
    else { return }
    release(parts.source, cancelling: true)
    rest(parts.source)
    manifestAskedOf = []
  }

  /// A source that would need far longer for the rest of a piece than others need for a whole one loses it, and rests.
  private mutating func takeFromSlow(_ piece: Int) {
    let late = incoming[piece]!
    let age = now - late.assignedAt
    guard age >= Self.slowAfter else { return }
    let others = order.filter {
      $0 != late.source && sources[$0]!.isReady(at: now) && sources[$0]!.isProven && sources[$0]!.holds(piece)
    }
    guard let fastest = others.compactMap({ sources[$0]!.pieceDuration }).min() else { return }
    let left = late.blockCount - late.receivedCount
    let rest = age.microseconds * Int64(left) / Int64(max(1, late.receivedCount))
    guard rest > max(Self.slowAfter.microseconds, fastest.microseconds * 4) else { return }
    cancel(piece, of: late.source)
    free(piece)
    self.rest(late.source)
  }

  private mutating func rest(_ peer: PeerID) {
    sources[peer]!.pausedUntil = now + Self.restsFor * (1 << min(sources[peer]!.slowCount, 6))
    sources[peer]!.slowCount += 1
    sources[peer]!.shrinkWindow()
  }
}
