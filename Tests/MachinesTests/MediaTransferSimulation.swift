import ParleyHashing
import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// How a source behaves. All but `honest` and `partial` are a hindrance.
enum SourceBehaviour: Equatable, Sendable {
  case honest
  /// Holds a part of the pieces, more with time.
  case partial
  /// Every twentieth block has a wrong bit.
  case corrupt
  case wrongHashes
  case wrongManifest
  /// Takes requests and answers none.
  case silent
  /// One answer every 1.9 s: never silent long enough to be dropped.
  case dripping
  /// Its file changes after some reads.
  case changing
  case busy
}

/// One downloader and several sources on virtual time: the real machines, the real messages, links with delay and rate.
struct MediaTransferSimulation {
  struct Source {
    let behaviour: SourceBehaviour
    let latency: Span
    /// Bytes a second.
    let rate: Int
    var serving: ServingMachine
    var isThere = false
    /// Counts departures, so that what was under way when it left is lost.
    var epoch = 0
    var lineFreeAt = Instant(microseconds: 0)
    var queuedByteCount = 0
    var readCount = 0
  }

  private enum Happening {
    case appears(PeerID)
    case gains(PeerID, Int)
    case servingWoke(PeerID)
    case leaves(PeerID)
    case atSource(PeerID, epoch: Int, [UInt8])
    case atDownload(PeerID, epoch: Int, [UInt8])
    case left(PeerID, epoch: Int, Int)
    case read(PeerID, epoch: Int, ServedRead)
    case tell(DownloadEvent)
    case write(piece: Int, offset: UInt64, [UInt8])
  }

  let file: MediaFixture
  private(set) var now = Instant(microseconds: 0)
  private(set) var sources: [PeerID: Source] = [:]
  private(set) var written: [UInt8]
  private(set) var faults: [PeerID: SourceFault] = [:]
  private(set) var blockCount = 0
  private(set) var isFinished = false
  /// What must never be, and was.
  private(set) var violations: [String] = []
  private var download: DownloadMachine
  private var agenda: [(at: Instant, order: Int, Happening)] = []
  private var orderCounter = 0
  private var dice: MediaDice
  private var writtenPieces = PieceSet(pieceCount: 0)

  init(_ file: MediaFixture, seed: UInt64) {
    self.file = file
    dice = MediaDice(state: seed)
    download = DownloadMachine(id: file.id, tag: 9, seed: seed)
    written = [UInt8](repeating: 0, count: file.bytes.count)
    writtenPieces = PieceSet(pieceCount: file.hashes.count)
    carryOut(download.handle(.started, at: now))
  }

  mutating func add(
    _ peer: PeerID, _ behaviour: SourceBehaviour, latency: Span, rate: Int, from: Span = .seconds(0), until: Span? = nil
  ) {
    var serving = ServingMachine()
    if behaviour == .partial {
      _ = serving.handle(.partShared(file.served, holding: PieceSet(pieceCount: file.hashes.count)), at: now)
      for piece in file.hashes.indices {
        plan(.init(microseconds: from.microseconds + Int64(piece + 1) * 300_000), .gains(peer, piece))
      }
    } else {
      _ = serving.handle(.shared(file.served), at: now)
    }
    sources[peer] = Source(behaviour: behaviour, latency: latency, rate: rate, serving: serving)
    plan(from, .appears(peer))
    if let until { plan(until, .leaves(peer)) }
  }

  /// What matters of the outcome; a failing expectation would print the whole simulation otherwise.
  var outcome: Outcome {
    Outcome(
      isFinished: isFinished, isRight: written == file.bytes, violations: violations, faults: faults,
      milliseconds: Int(now.microseconds / 1_000), blockCount: blockCount)
  }

  struct Outcome: Equatable {
    let isFinished: Bool
    let isRight: Bool
    let violations: [String]
    let faults: [PeerID: SourceFault]
    let milliseconds: Int
    let blockCount: Int
    var isGood: Bool { isFinished && isRight && violations.isEmpty }
  }

  /// Until it has finished or `span` is over.
  mutating func run(atMost span: Span) {
    let end = now + span
    while !isFinished, let index = agenda.indices.min(by: { isBefore($0, $1) }) {
      let (at, _, happening) = agenda[index]
      guard at <= end else { return }
      agenda.swapAt(index, agenda.count - 1)
      agenda.removeLast()
      now = at
      happen(happening)
    }
  }

  private func isBefore(_ a: Int, _ b: Int) -> Bool {
    (agenda[a].at, agenda[a].order) < (agenda[b].at, agenda[b].order)
  }

  private mutating func plan(_ delay: Span, _ happening: Happening) {
    agenda.append((now + delay, orderCounter, happening))
    orderCounter += 1
  }

  private mutating func tell(_ event: DownloadEvent) {
    carryOut(download.handle(event, at: now))
    if download.piecesInMemoryCount > DownloadMachine.piecesInMemoryMax { violations.append("too many pieces") }
  }

  private mutating func happen(_ happening: Happening) {
    switch happening {
    case .appears(let peer):
      sources[peer]!.isThere = true
      tell(.sourceFound(peer))
    case .gains(let peer, let piece): serve(peer, .gained(file.id, piece: piece))
    case .servingWoke(let peer): serve(peer, .woke)
    case .leaves(let peer):
      guard sources[peer]!.isThere else { return }
      leave(peer)
      tell(.sourceLost(peer))
    case .atSource(let peer, let epoch, let bytes):
      guard sources[peer]!.epoch == epoch else { return }
      arrive(bytes, at: peer)
    case .atDownload(let peer, let epoch, let bytes):
      guard sources[peer]!.epoch == epoch else { return }
      guard case .reply(let number, let reply)? = try? MediaMessage(decoding: bytes), number >> 32 == 9 else {
        return violations.append("an answer that cannot be read")
      }
      if case .block = reply { blockCount += 1 }
      tell(.replied(peer, number, reply))
    case .left(let peer, let epoch, let byteCount):
      guard sources[peer]!.epoch == epoch else { return }
      sources[peer]!.queuedByteCount -= byteCount
      serve(peer, .drained(ana, queuedByteCount: sources[peer]!.queuedByteCount))
    case .read(let peer, let epoch, let read):
      guard sources[peer]!.epoch == epoch else { return }
      finishReading(peer, read)
    case .tell(let event): tell(event)
    case .write(let piece, let offset, let bytes):
      written.replaceSubrange(Int(offset)..<Int(offset) + bytes.count, with: bytes)
      if writtenPieces.contains(piece) { violations.append("piece \(piece) was written twice") }
      writtenPieces.insert(piece)
      tell(.pieceWritten(piece))
    }
  }

  private mutating func leave(_ peer: PeerID) {
    sources[peer]!.isThere = false
    sources[peer]!.epoch += 1
    sources[peer]!.queuedByteCount = 0
    _ = sources[peer]!.serving.handle(.peerLost(ana), at: now)
  }
}

// MARK: - The downloader's side

extension MediaTransferSimulation {
  private mutating func carryOut(_ effects: [DownloadEffect]) {
    for effect in effects {
      switch effect {
      case .request(let peer, let number, let request): send(.request(number, request), to: peer)
      case .cancel(let peer, let number, let count): send(.cancel(number, count: count), to: peer)
      case .prepare: plan(.milliseconds(3), .tell(.prepared(holding: PieceSet(pieceCount: file.hashes.count))))
      case .verify(let check, let bytes):
        plan(.milliseconds(1), .tell(.pieceVerified(check.piece, isGood: check.accepts(bytes))))
      case .write(let piece, _, let offset, let bytes):
        plan(.milliseconds(2 + dice.below(5)), .write(piece: piece, offset: offset, bytes))
      case .dropSource(let peer, let fault):
        faults[peer] = fault
        leave(peer)
        // Members stay members: the node finds them again, and the machine says no where it must.
        plan(.seconds(1), .appears(peer))
      case .wake(let at): plan(at - now, .tell(.woke))
      case .finished: isFinished = true
      case .failed(let reason): violations.append("\(reason)")
      case .progress: break
      }
    }
  }

  private mutating func send(_ message: MediaMessage, to peer: PeerID) {
    guard let source = sources[peer], source.isThere else { return }
    plan(source.latency, .atSource(peer, epoch: source.epoch, message.encoded))
  }
}

// MARK: - The sources' side

extension MediaTransferSimulation {
  private mutating func arrive(_ bytes: [UInt8], at peer: PeerID) {
    switch try? MediaMessage(decoding: bytes) {
    case .request(let number, let request)?:
      if sources[peer]!.behaviour == .silent { return }
      if sources[peer]!.behaviour == .busy, dice.chance(40) { return answer(peer, number, .refused(.busy)) }
      serve(peer, .requested(ana, number, request, isMember: true))
    case .cancel(let number, let count)?: serve(peer, .cancelled(ana, number, count: count))
    default: violations.append("a request that cannot be read")
    }
  }

  private mutating func serve(_ peer: PeerID, _ event: ServingEvent) {
    let effects = sources[peer]!.serving.handle(event, at: now)
    let serving = sources[peer]!.serving
    if serving.pendingByteCount(of: ana) > ServingMachine.queuedByteCountMax { violations.append("too much queued") }
    if serving.readingCount > ServingMachine.readsMax { violations.append("too many reads") }
    for effect in effects {
      switch effect {
      case .reply(_, let number, let reply): answer(peer, number, reply)
      case .read(let read):
        plan(.init(microseconds: Int64(100 + dice.below(400))), .read(peer, epoch: sources[peer]!.epoch, read))
      case .sourceChanged, .fileChanged: break
      case .wake(let at): plan(at - now, .servingWoke(peer))
      }
    }
  }

  private mutating func finishReading(_ peer: PeerID, _ read: ServedRead) {
    sources[peer]!.readCount += 1
    if sources[peer]!.behaviour == .changing, sources[peer]!.readCount > 12 {
      return serve(peer, .readFailed(read.id, .changed))
    }
    serve(peer, .readDone(read.id, Array(file.bytes[Int(read.offset)..<Int(read.offset) + read.byteCount])))
  }

  private mutating func answer(_ peer: PeerID, _ number: UInt64, _ reply: MediaReply) {
    let source = sources[peer]!
    let bytes = MediaMessage.reply(number, falsified(reply, source.behaviour)).encoded
    var start = max(now, source.lineFreeAt)
    if source.behaviour == .dripping { start = max(now, source.lineFreeAt + .milliseconds(1_900)) }
    let gone = start + Span(microseconds: Int64(bytes.count) * 1_000_000 / Int64(source.rate))
    sources[peer]!.lineFreeAt = gone
    sources[peer]!.queuedByteCount += reply.payloadByteCount
    plan(gone - now, .left(peer, epoch: source.epoch, reply.payloadByteCount))
    plan((gone + source.latency) - now, .atDownload(peer, epoch: source.epoch, bytes))
  }

  private mutating func falsified(_ reply: MediaReply, _ behaviour: SourceBehaviour) -> MediaReply {
    switch (behaviour, reply) {
    case (.corrupt, .block(var bytes)) where dice.chance(5):
      bytes[bytes.startIndex + dice.below(bytes.count)] ^= 1 << UInt8(dice.below(8))
      return .block(bytes)
    case (.wrongHashes, .pieceHashes(var bytes)):
      bytes[bytes.startIndex + dice.below(bytes.count)] ^= 1
      return .pieceHashes(bytes)
    case (.wrongManifest, .manifestPart(let total, let offset, var bytes)):
      bytes[bytes.startIndex + dice.below(bytes.count)] ^= 1
      return .manifestPart(total: total, offset: offset, bytes)
    default: return reply
    }
  }
}
