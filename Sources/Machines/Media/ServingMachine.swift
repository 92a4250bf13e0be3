import ParleyHashing
import ParleyVocabulary
import ParleyWire

/// Serves everybody's requests: peers in turn, few reads at once, and nothing read for a connection that cannot take
/// it.
///
/// Of blocks, those of the piece being sent go first, then of pieces that went out less often than others: so each
/// piece soon is with somebody who passes it on. Whoever was passed over eight times as often as others wait is next.
package struct ServingMachine: Sendable {
  package static let requestsPerPeerMax = 1_024
  package static let readsMax = 4
  package static let blocksPerReadMax = 16
  /// Read or waiting on one connection.
  package static let queuedByteCountMax = 1 << 20
  /// Read or waiting on the connections that move: pieces go out one after another, not all of them slowly at once.
  package static let movingByteCountMax = 2 << 20
  /// A connection moves while it takes so many bytes in such a time; one that does not holds nobody else up.
  static let movingByteCount = 128 << 10
  static let movingFor = Span.milliseconds(500)
  /// Who listens is told of new pieces ten times a second, and less often when the bitmap is long: 25,000 bytes/s.
  static let newsAfter = Span.milliseconds(100)
  static let newsByteRate = 25_000
  package static let listenersPerPeerMax = 64
  private static let patienceFactor = 8
  /// Of what is all here, a piece that went to one peer goes to none other for so long times the peers, at most a
  /// second: that one passes it on. Only where so many ask that it can.
  package static let heldBackForEach = Span.milliseconds(60)
  static let heldBackMax = Span.seconds(1)
  static let heldBackAmong = 3

  private struct Reading {
    let read: ServedRead
    let account: UInt64
    /// Nil when cancelled meanwhile.
    var numbers: [UInt64?]
  }

  private var shelves: [MediaID: Shelf] = [:]
  /// Blocks that went out of each piece.
  private var sentBlockCounts: [MediaID: [UInt32]] = [:]
  /// Whom pieces went to lately, and when their last block did.
  private var given: [MediaID: [Int: (peer: PeerID, at: Instant)]] = [:]
  private var changed: Set<MediaID> = []
  private var peers: [PeerID: ServedPeer] = [:]
  private var order: [PeerID] = []
  private var turn = 0
  /// Whom the last block went to, and of which piece it was.
  private var lastServed: (peer: PeerID, media: MediaID, piece: Int)?
  private var readings: [UInt64: Reading] = [:]
  private var nextRead: UInt64 = 0
  private var nextAccount: UInt64 = 0
  private var now = Instant(microseconds: 0)
  private var wakeAt: Instant?
  private var effects: [ServingEffect] = []

  private var limit: RateLimit?

  /// `limit`: of the bytes read for all together.
  package init(limit: RateLimit? = nil) { self.limit = limit }

  package mutating func handle(_ event: ServingEvent, at now: Instant) -> [ServingEffect] { handle([event], at: now) }

  /// What came together is taken in whole before anything is served: neighbouring blocks are then read at once.
  package mutating func handle(_ events: [ServingEvent], at now: Instant) -> [ServingEffect] {
    self.now = now
    for event in events { take(event) }
    serve()
    defer { effects = [] }
    return effects
  }

  private mutating func take(_ event: ServingEvent) {
    switch event {
    case .shared(let served): share(served, holding: nil)
    case .partShared(let served, let holding): share(served, holding: holding)
    case .gained(let media, let piece): gained(media, piece)
    case .unshared(let id): unshare(id)
    case .requested(let peer, let number, let request, let isMember): requested(peer, number, request, isMember)
    case .cancelled(let peer, let number, let count): cancelled(peer, number..<number + UInt64(count))
    case .peerLost(let peer): lose(peer)
    case .readDone(let id, let bytes): readDone(id, bytes)
    case .readFailed(let id, let reason): readFailed(id, reason)
    case .drained(let peer, let byteCount): peers[peer]?.drained(to: byteCount, at: now)
    case .woke:
      wakeAt = nil
      for peer in order { sendNews(to: peer) }
    }
  }

  package var readingCount: Int { readings.count }
  /// Requests waiting or being read for a peer.
  package func requestCount(of peer: PeerID) -> Int {
    peers[peer].map { $0.waitingCount + $0.readingCount } ?? 0
  }
  /// What this machine believes to wait on the peer's connection, reads included.
  package func pendingByteCount(of peer: PeerID) -> Int { peers[peer]?.pendingByteCount ?? 0 }

  private mutating func requested(_ peer: PeerID, _ number: UInt64, _ request: MediaRequest, _ isMember: Bool) {
    if peers[peer] == nil {
      peers[peer] = ServedPeer(account: nextAccount, at: now)
      nextAccount += 1
      order.append(peer)
    }
    // Refused before anything is looked up: whether it is held is not for them to know.
    guard isMember else { return reply(peer, number, .refused(.notAMember)) }
    guard requestCount(of: peer) + request.answerCount <= Self.requestsPerPeerMax else {
      return reply(peer, number, .refused(.busy))
    }
    // What needs no disk waits for nobody.
    if peers[peer]!.room >= MediaMessage.byteCountMax, let answer = answer(request) {
      reply(peer, number, answer)
      if case .have(let media, let first) = request { listen(peer, number, media, first, answer) }
    } else {
      peers[peer]!.wait(number, request)
    }
  }

  private mutating func cancelled(_ peer: PeerID, _ numbers: Range<UInt64>) {
    guard peers[peer] != nil else { return }
    peers[peer]!.cancel(numbers)
    peers[peer]!.listeners.removeAll { numbers.contains($0.number) }
    for id in readings.keys where readings[id]!.read.peer == peer {
      readings[id]!.numbers = readings[id]!.numbers.map { $0.flatMap { numbers.contains($0) ? nil : $0 } }
    }
  }

  private mutating func lose(_ peer: PeerID) {
    peers[peer] = nil
    order.removeAll { $0 == peer }
    // The reads end in their time and count until then.
    for id in readings.keys where readings[id]!.read.peer == peer {
      readings[id]!.numbers = readings[id]!.numbers.map { _ in nil }
    }
  }

  private mutating func reply(_ peer: PeerID, _ number: UInt64, _ reply: MediaReply) {
    peers[peer]?.queue(reply.payloadByteCount, at: now)
    effects.append(.reply(peer, number, reply))
  }

  private mutating func wake(at instant: Instant) {
    if let wakeAt, wakeAt <= instant { return }
    wakeAt = instant
    effects.append(.wake(at: instant))
  }
}

// MARK: - What is held

extension ServingMachine {
  private mutating func share(_ served: ServedMedia, holding: PieceSet?) {
    let id = served.manifest.id
    shelves[id] = Shelf(served: served, holding: holding)
    if sentBlockCounts[id] == nil {
      sentBlockCounts[id] = [UInt32](repeating: 0, count: served.layout.pieceCount)
    }
    changed.remove(id)
    tellListeners(of: id) { _ in true }
  }

  private mutating func gained(_ media: MediaID, _ piece: Int) {
    guard shelves[media]?.holding?.contains(piece) == false else { return }
    shelves[media]!.holding!.insert(piece)
    let end = MediaMessage.bitmapByteCountMax * 8
    tellListeners(of: media) { piece >= $0 && piece < $0 + end }
  }

  private mutating func unshare(_ id: MediaID) {
    shelves[id] = nil
    sentBlockCounts[id] = nil
    given[id] = nil
    changed.remove(id)
    for peer in order {
      for listener in peers[peer]!.listeners where listener.media == id {
        reply(peer, listener.number, .refused(.unknown))
      }
      peers[peer]!.listeners.removeAll { $0.media == id }
    }
  }

  /// `reaches`: whether the bitmap that begins at this piece has changed.
  private mutating func tellListeners(of media: MediaID, _ reaches: (Int) -> Bool) {
    for peer in order {
      var isTold = false
      for index in peers[peer]!.listeners.indices where peers[peer]!.listeners[index].media == media {
        guard reaches(peers[peer]!.listeners[index].first) else { continue }
        peers[peer]!.listeners[index].isBehind = true
        isTold = true
      }
      if isTold { sendNews(to: peer) }
    }
  }

  /// What a listener should know by now. One that does not read is told nothing until it does.
  private mutating func sendNews(to peer: PeerID) {
    for listener in peers[peer]!.listeners where listener.isBehind {
      guard listener.nextAt <= now, peers[peer]!.room > MediaMessage.byteCountMax else {
        wake(at: max(listener.nextAt, now + Self.newsAfter))
        continue
      }
      guard let shelf = shelves[listener.media],
        case .reply(let answer) = shelf.served.answer(
          .have(listener.media, first: listener.first), holding: shelf.holding)
      else { continue }
      reply(peer, listener.number, answer)
      listen(peer, listener.number, listener.media, listener.first, answer)
    }
  }

  /// Whoever was told a part hears of the rest; a question replaces the same one asked before.
  private mutating func listen(
    _ peer: PeerID, _ number: UInt64, _ media: MediaID, _ first: Int, _ answer: MediaReply
  ) {
    peers[peer]!.listeners.removeAll { $0.media == media && $0.first == first }
    guard case .holding = answer, peers[peer]!.listeners.count < Self.listenersPerPeerMax else { return }
    let long = Span(microseconds: Int64(answer.payloadByteCount) * 1_000_000 / Int64(Self.newsByteRate))
    peers[peer]!.listeners.append(
      .init(number: number, media: media, first: first, nextAt: now + max(Self.newsAfter, long)))
  }
}

// MARK: - Reads

extension ServingMachine {
  private mutating func endReading(_ id: UInt64) -> Reading? {
    guard let reading = readings.removeValue(forKey: id) else { return nil }
    if peers[reading.read.peer]?.account == reading.account {
      peers[reading.read.peer]!.readingByteCount -= reading.read.byteCount
      peers[reading.read.peer]!.readingCount -= reading.numbers.count
    }
    return reading
  }

  private mutating func readDone(_ id: UInt64, _ bytes: [UInt8]) {
    guard let reading = endReading(id) else { return }
    precondition(bytes.count == reading.read.byteCount, "a read gives what was asked for, or fails")
    // Unshared, or found changed, while it was read.
    guard shelves[reading.read.media] != nil, !changed.contains(reading.read.media) else {
      return refuse(reading, changed.contains(reading.read.media) ? .changed : .unknown)
    }
    var queuedByteCount = 0
    for (index, number) in reading.numbers.enumerated() {
      guard let number else { continue }
      let start = index * Limit.mediaBlockByteCount
      let block = bytes[start..<min(start + Limit.mediaBlockByteCount, bytes.count)]
      queuedByteCount += block.count
      effects.append(.reply(reading.read.peer, number, .block(block)))
    }
    peers[reading.read.peer]?.queue(queuedByteCount, at: now)
  }

  private mutating func readFailed(_ id: UInt64, _ reason: MediaRefusal) {
    guard let reading = endReading(id) else { return }
    let (media, file) = (reading.read.media, reading.read.file)
    guard reason == .changed, let shelf = shelves[media], !changed.contains(media) else {
      return refuse(reading, reason)
    }
    guard let holding = shelf.holding(without: file) else {
      changed.insert(media)
      effects.append(.sourceChanged(media))
      return refuse(reading, reason)
    }
    if holding != shelf.holding {
      shelves[media]!.holding = holding
      effects.append(.fileChanged(media, file: file))
      tellListeners(of: media) { _ in true }
    }
    refuse(reading, reason)
  }

  private mutating func refuse(_ reading: Reading, _ reason: MediaRefusal) {
    for case let number? in reading.numbers { reply(reading.read.peer, number, .refused(reason)) }
  }

  /// Begins a read of the first blocks that the peer asks for.
  private mutating func read(_ first: Candidate) {
    let (peer, piece, file, offset) = (first.peer, first.piece, first.file, first.offset)
    let media = first.shelf.served.manifest.id
    // Little at once when little may go: nobody waits long for their turn.
    let room = min(peers[peer]!.room, limit.map { Int($0.burst) } ?? .max)
    let block = Limit.mediaBlockByteCount
    let blockCount = min(max(1, room / block), Self.blocksPerReadMax, (first.byteCount + block - 1) / block)
    var byteCount = min(blockCount * block, first.byteCount)
    var numbers = peers[peer]!.takeBlocks(blockCount)
    // Those right behind in the same piece go with them, whichever request asks for them.
    let start = Int(offset / UInt64(block))
    while byteCount == numbers.count * block, let request = peers[peer]!.requests.first?.request,
      case .block(media, file, start + numbers.count, _) = request,
      first.shelf.served.piece(file, start + numbers.count) == piece,
      case .read(_, _, let more) = first.shelf.served.answer(request, holding: first.shelf.holding)
    {
      let free = min(Self.blocksPerReadMax - numbers.count, (room - byteCount) / block, (more + block - 1) / block)
      guard free > 0 else { break }
      numbers += peers[peer]!.takeBlocks(free)
      byteCount += min(free * block, more)
    }
    let read = ServedRead(id: nextRead, peer: peer, media: media, file: file, offset: offset, byteCount: byteCount)
    nextRead += 1
    peers[peer]!.read(byteCount, at: now)
    limit?.take(byteCount)
    peers[peer]!.readingCount += numbers.count
    readings[read.id] = Reading(read: read, account: peers[peer]!.account, numbers: numbers)
    sentBlockCounts[media]![piece] &+= UInt32(numbers.count)
    lastServed = (peer, media, piece)
    given[media, default: [:]][piece] = (peer, now)
    effects.append(.read(read))
  }
}

// MARK: - Whose turn it is

extension ServingMachine {
  /// One answer or read after another, until nothing more may go.
  private mutating func serve() {
    answerFromMemory()
    while readings.count < Self.readsMax, mayReadMore(), let next = nextToRead() {
      for peer in next.waiting { peers[peer]!.passedOver += 1 }
      peers[next.peer]!.passedOver = 0
      turn = (next.index + 1) % order.count
      read(next)
      answerFromMemory()
    }
  }

  /// Whether the limit allows it now.
  private mutating func mayReadMore() -> Bool {
    guard limit != nil, peers.values.contains(where: { !$0.requests.isEmpty }) else { return true }
    if limit!.available(at: now) > 0 { return true }
    wake(at: limit!.opens(after: now))
    return false
  }

  /// What needs no disk waits for nobody.
  private mutating func answerFromMemory() {
    for peer in order {
      while let (number, request) = peers[peer]!.requests.first,
        peers[peer]!.room >= MediaMessage.byteCountMax, let answer = answer(request)
      {
        peers[peer]!.takeFirst()
        reply(peer, number, answer)
        if case .have(let media, let first) = request { listen(peer, number, media, first, answer) }
      }
    }
  }

  /// Nil when it has to be read.
  private func answer(_ request: MediaRequest) -> MediaReply? {
    guard !changed.contains(request.media) else { return .refused(.changed) }
    guard let shelf = shelves[request.media] else { return .refused(.unknown) }
    if case .reply(let reply) = shelf.served.answer(request, holding: shelf.holding) { return reply }
    return nil
  }

  private struct Candidate {
    let peer: PeerID
    let index: Int
    let shelf: Shelf
    let piece: Int
    let file: Int
    let offset: UInt64
    let byteCount: Int
    var waiting: [PeerID] = []
  }

  private mutating func nextToRead() -> Candidate? {
    var waiting: [PeerID] = []
    var best: (rank: Int, candidate: Candidate)?
    let overdue = order.count * Self.patienceFactor
    var free: Instant?
    for step in order.indices {
      let index = (turn + step) % order.count
      let peer = order[index]
      guard let candidate = candidate(peer, index) else { continue }
      if let until = heldBack(candidate) {
        free = min(free ?? until, until)
        continue
      }
      waiting.append(peer)
      let media = candidate.shelf.served.manifest.id
      let isGoingOn = lastServed.map { $0 == (peer, media, candidate.piece) } ?? false
      let isOverdue = peers[peer]!.passedOver >= overdue
      let rank = isOverdue ? -2 : isGoingOn ? -1 : copyCount(candidate)
      if best.map({ rank < $0.rank }) ?? true { best = (rank, candidate) }
    }
    if best == nil, let free { wake(at: free) }
    guard var next = best?.candidate, mayMove() else { return nil }
    next.waiting = waiting
    return next
  }

  /// Until when this piece is left to the one who has just got it; nil when it may go out.
  private func heldBack(_ candidate: Candidate) -> Instant? {
    let media = candidate.shelf.served.manifest.id
    guard candidate.shelf.holding == nil, order.count >= Self.heldBackAmong,
      let (peer, at) = given[media]?[candidate.piece], peer != candidate.peer
    else { return nil }
    let until = at + min(Self.heldBackMax, Self.heldBackForEach * order.count)
    return until > now ? until : nil
  }

  /// Whole copies of its piece that went out.
  private func copyCount(_ candidate: Candidate) -> Int {
    let sent = sentBlockCounts[candidate.shelf.served.manifest.id]![candidate.piece]
    return Int(sent) / candidate.shelf.served.layout.place(of: candidate.piece).blockCount
  }

  private func candidate(_ peer: PeerID, _ index: Int) -> Candidate? {
    guard let request = peers[peer]!.requests.first?.request, peers[peer]!.room >= MediaMessage.byteCountMax,
      let shelf = shelves[request.media], case .block(_, let file, let block, _) = request,
      let piece = shelf.served.piece(file, block),
      case .read(_, let offset, let byteCount) = shelf.served.answer(request, holding: shelf.holding)
    else { return nil }
    return Candidate(
      peer: peer, index: index, shelf: shelf, piece: piece, file: file, offset: offset, byteCount: byteCount)
  }

  /// Whether more may be under way. A peer that takes nothing does not count.
  private mutating func mayMove() -> Bool {
    var byteCount = 0
    var until: Instant?
    for peer in order {
      let account = peers[peer]!
      guard account.pendingByteCount > 0, account.movingUntil > now else { continue }
      byteCount += account.pendingByteCount
      until = min(until ?? account.movingUntil, account.movingUntil)
    }
    if byteCount < Self.movingByteCountMax { return true }
    if let until { wake(at: until) }
    return false
  }
}
