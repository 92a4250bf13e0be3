import ParleyHashing
import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

private let film = MediaFixture(byteCount: 7 << 20)

/// A download whose requests are answered by hand, and whose disk does at once what it is told.
private struct Bench {
  let file: MediaFixture
  var machine: DownloadMachine
  var now = Instant(microseconds: 1)
  /// Asked and not answered.
  var open: [PeerID: [(number: UInt64, request: MediaRequest)]] = [:]
  var log: [DownloadEffect] = []
  var written: [UInt8]
  var writtenPieces: [Int] = []
  var resumed: PieceSet

  init(_ file: MediaFixture, holding: [Int] = [], manifest: MediaManifest? = nil) {
    self.file = file
    machine = DownloadMachine(id: file.id, tag: 5, seed: 1, DownloadOptions(manifest: manifest))
    written = [UInt8](repeating: 0, count: file.bytes.count)
    resumed = PieceSet(pieceCount: file.hashes.count)
    for piece in holding {
      resumed.insert(piece)
      written.replaceSubrange(piece << 20..<piece << 20 + file.piece(piece).count, with: file.piece(piece))
    }
    tell(.started)
  }

  mutating func tell(_ event: DownloadEvent) {
    var events = [event]
    while !events.isEmpty {
      for effect in machine.handle(events.removeFirst(), at: now) {
        log.append(effect)
        if let next = carryOut(effect) { events.append(next) }
      }
    }
  }

  private mutating func carryOut(_ effect: DownloadEffect) -> DownloadEvent? {
    switch effect {
    case .request(let peer, let number, let request):
      for (index, one) in request.single.enumerated() { open[peer, default: []].append((number + UInt64(index), one)) }
    case .cancel(let peer, let number, let count):
      open[peer]!.removeAll { (number..<number + UInt64(count)).contains($0.number) }
    case .prepare: return .prepared(holding: resumed)
    case .verify(let check, let bytes): return .pieceVerified(check.piece, isGood: check.accepts(bytes))
    case .write(let piece, _, let offset, let bytes):
      written.replaceSubrange(Int(offset)..<Int(offset) + bytes.count, with: bytes)
      writtenPieces.append(piece)
      return .pieceWritten(piece)
    case .progress, .dropSource, .wake, .finished, .failed: break
    }
    return nil
  }

  mutating func answerOne(_ peer: PeerID, _ answer: (MediaRequest) -> MediaReply) {
    let (number, request) = open[peer]!.removeFirst()
    tell(.replied(peer, number, answer(request)))
  }

  /// Answers until nothing is asked any more, or `count` answers were given.
  mutating func answer(_ peer: PeerID, count: Int = .max, _ answer: (MediaRequest) -> MediaReply) {
    var left = count
    while left > 0, open[peer]?.isEmpty == false {
      answerOne(peer, answer)
      left -= 1
    }
  }

  mutating func honest(_ peer: PeerID, count: Int = .max) { answer(peer, count: count) { [file] in file.answer($0) } }

  mutating func pass(_ span: Span) {
    now = now + span
    tell(.woke)
  }

  var drops: [SourceFault] { log.compactMap { if case .dropSource(_, let fault) = $0 { fault } else { nil } } }
  var isFinished: Bool { log.last == .finished && written == file.bytes }
  func blocks(asked peer: PeerID) -> [Int] {
    (open[peer] ?? []).compactMap { if case .block(_, _, let index, _) = $0.request { index } else { nil } }
  }
}

@Suite struct MediaDownloadTests {
  @Test(arguments: [0, 1, 16_383, 16_384, 16_385, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
  func everySizeArrivesWhole(_ byteCount: Int) {
    var bench = Bench(MediaFixture(byteCount: byteCount))
    bench.tell(.sourceFound(ana))
    bench.honest(ana)
    #expect(bench.isFinished && bench.machine.isFinished)
    #expect(bench.writtenPieces.count == bench.file.hashes.count)
  }

  @Test func aManifestOfManyPartsIsFetchedWhole() throws {
    let long = (0..<40).map { _ in String(repeating: "x", count: 255) }
    let files = (0..<20).map {
      MediaManifest.File(path: ["\($0)"] + long, byteCount: 1, root: film.hashes[0])
    }
    let manifest = try MediaManifest(files: files)
    let served = ServedMedia(manifest: manifest, pieceHashes: files.map { _ in [film.hashes[0]] })
    var machine = DownloadMachine(id: manifest.id, tag: 0, seed: 1)
    var effects = machine.handle(.sourceFound(ana), at: Instant(microseconds: 1))
    var requestCount = 0
    while let index = effects.firstIndex(where: { if case .request = $0 { true } else { false } }) {
      guard case .request(_, let number, let request) = effects.remove(at: index),
        case .reply(let reply) = served.answer(request)
      else { break }
      requestCount += 1
      effects += machine.handle(.replied(ana, number, reply), at: Instant(microseconds: 2))
    }
    // And then what it holds.
    #expect(requestCount == (manifest.encoded.count + 23_999) / 24_000 + 1 && requestCount > 5)
    #expect(effects.contains(.prepare(manifest)))
  }

  @Test func aWrongManifestIsNotBelievedAndItsSourceNeverAskedAgain() {
    var bench = Bench(film)
    bench.tell(.sourceFound(eva))
    bench.answerOne(eva) { _ in
      var bytes = film.served.manifest.encoded
      bytes[bytes.count - 1] ^= 1
      return .manifestPart(total: bytes.count, offset: 0, bytes[...])
    }
    #expect(bench.drops == [.badManifest])
    bench.tell(.sourceFound(eva))
    #expect(bench.open[eva]!.isEmpty)
    bench.tell(.sourceFound(ana))
    bench.honest(ana)
    #expect(bench.isFinished)
  }

  @Test func wrongPieceHashesAreNotUsed() {
    var bench = Bench(film)
    bench.tell(.sourceFound(eva))
    bench.tell(.sourceFound(ana))
    bench.answer(eva) { request in
      guard case .pieceHashes(var bytes) = film.answer(request) else { return film.answer(request) }
      bytes[bytes.startIndex + 40] ^= 1
      return .pieceHashes(bytes)
    }
    #expect(bench.drops == [.badPieceHashes])
    #expect(bench.log.allSatisfy { if case .request(_, _, .block) = $0 { false } else { true } })
    bench.honest(ana)
    #expect(bench.isFinished)
  }

  @Test func aBadPieceIsFetchedAgainFromAnother() {
    var bench = Bench(film)
    bench.tell(.sourceFound(eva))
    bench.tell(.sourceFound(ana))
    var wrong: Int?
    bench.answer(eva, count: 90) { request in
      guard case .block(_, _, let index, _) = request, wrong == nil else { return film.answer(request) }
      wrong = index / 64
      return .block([UInt8](repeating: 0, count: Limit.mediaBlockByteCount)[...])
    }
    #expect(bench.drops == [.badPiece(wrong!)] && bench.open[eva]!.isEmpty)
    bench.honest(ana)
    #expect(bench.isFinished && bench.writtenPieces.filter { $0 == wrong }.count == 1)
  }

  /// What a source holds may have changed, so it is asked again; the third time it lies.
  @Test func whoClaimsWhatItLacksIsNotAskedForEver() {
    var bench = Bench(film)
    bench.tell(.sourceFound(eva))
    var refusedCount = 0
    bench.answer(eva) { request in
      guard case .block = request else { return film.answer(request) }
      refusedCount += 1
      return .refused(.unknown)
    }
    guard case .falseClaim? = bench.drops.first else {
      Issue.record("\(bench.drops)")
      return
    }
    #expect(bench.drops.count == 1 && refusedCount == 3 && bench.open[eva]!.isEmpty)
    bench.tell(.sourceFound(eva))
    #expect(bench.open[eva]!.isEmpty)
    bench.tell(.sourceFound(ana))
    bench.honest(ana)
    #expect(bench.isFinished)
  }

  @Test func resumingFetchesOnlyWhatIsMissing() {
    var bench = Bench(film, holding: [0, 2, 3, 6], manifest: film.served.manifest)
    bench.tell(.sourceFound(ana))
    bench.honest(ana)
    #expect(bench.isFinished && bench.writtenPieces.sorted() == [1, 4, 5])
    #expect(bench.log.allSatisfy { if case .request(_, _, .manifest) = $0 { false } else { true } })
    let whole = Bench(film, holding: Array(0..<7), manifest: film.served.manifest)
    #expect(whole.isFinished && whole.open.isEmpty)
    #expect(
      whole.log.contains(
        .progress(.init(doneByteCount: UInt64(film.bytes.count), byteCount: UInt64(film.bytes.count), sourceCount: 0))))
  }

  @Test func aPieceComesFromOneSourceAndPiecesFromSeveral() {
    var bench = Bench(film)
    bench.tell(.sourceFound(ana))
    bench.tell(.sourceFound(ben))
    bench.honest(ana, count: 3)
    bench.honest(ben, count: 1)
    let (fromAna, fromBen) = (
      Set(bench.blocks(asked: ana).map { $0 / 64 }), Set(bench.blocks(asked: ben).map { $0 / 64 })
    )
    #expect(!fromAna.isEmpty && !fromBen.isEmpty && fromAna.isDisjoint(with: fromBen))
    bench.honest(ben)
    bench.honest(ana)
    #expect(bench.isFinished)
  }

  @Test func aPartialHolderIsAskedOnlyForWhatItHolds() {
    var bench = Bench(film)
    bench.tell(.sourceFound(ana))
    bench.honest(ana, count: 1)
    let have = bench.open[ana]!.first { if case .have = $0.request { true } else { false } }!.number
    bench.answer(ana, count: 2) { request in
      if case .have = request { .holding(count: 7, first: 0, bitmap: [0b0010_0100]) } else { film.answer(request) }
    }
    let first = Set(bench.blocks(asked: ana).map { $0 / 64 })
    #expect(first.count == 1 && first.isSubset(of: [2, 5]))
    bench.honest(ana)
    #expect(bench.writtenPieces.sorted() == [2, 5])
    // It holds more, and says so unasked under the number of the question.
    bench.tell(.replied(ana, have, .holding(count: 7, first: 0, bitmap: [0b1010_0100])))
    #expect(Set(bench.blocks(asked: ana).map { $0 / 64 }) == [0])
    bench.honest(ana)
    bench.tell(.replied(ana, have, .holdingAll))
    bench.honest(ana)
    #expect(bench.isFinished)
    #expect(bench.log.filter { if case .request(_, _, .have) = $0 { true } else { false } }.count == 1)
  }

  @Test func aSilentSourceLosesItsPiecesAfterTwoSecondsAndIsDroppedAfterEight() {
    var bench = Bench(film)
    bench.tell(.sourceFound(eva))
    bench.tell(.sourceFound(ana))
    bench.honest(eva, count: 3)
    #expect(Set(bench.blocks(asked: eva).map { $0 / 64 }).count == 1)
    bench.pass(.milliseconds(1_900))
    #expect(bench.blocks(asked: eva).count == 64)
    bench.pass(.milliseconds(200))
    #expect(bench.blocks(asked: eva).isEmpty)
    bench.honest(ana)
    #expect(bench.isFinished && bench.drops == [])

    bench = Bench(film)
    bench.tell(.sourceFound(eva))
    bench.honest(eva, count: 3)
    bench.pass(.milliseconds(7_900))
    #expect(bench.blocks(asked: eva).count == 64, "there is no other to ask")
    bench.pass(.milliseconds(200))
    #expect(bench.drops == [.silent])
    bench.tell(.sourceFound(eva))
    bench.honest(eva)
    #expect(bench.isFinished, "silence is forgiven")
  }

  @Test func aSlowSourceThatAnswersGetsWorkAgain() {
    var bench = Bench(film)
    bench.tell(.sourceFound(eva))
    bench.tell(.sourceFound(ana))
    bench.honest(eva, count: 3)
    bench.pass(.milliseconds(2_100))
    #expect(bench.open[eva]!.map(\.request) == [.have(film.id, first: 0)])
    bench.honest(eva, count: 1)
    #expect(bench.blocks(asked: eva).count == 16, "fewer than at first")
  }

  @Test func aPieceThatDripsIsTakenOverInTheEnd() {
    var bench = Bench(film)
    bench.tell(.sourceFound(eva))
    bench.tell(.sourceFound(ana))
    bench.honest(eva, count: 3)
    bench.honest(ana)
    #expect(bench.writtenPieces.count == 6)
    for _ in 0..<3 {
      bench.pass(.seconds(1))
      bench.honest(eva, count: 1)
      bench.honest(ana)
    }
    #expect(bench.isFinished && bench.open[eva]!.isEmpty)
  }

  @Test func aBusySourceIsAskedAgainLater() {
    var bench = Bench(film)
    bench.tell(.sourceFound(ana))
    bench.honest(ana, count: 3)
    bench.answer(ana, count: 1) { _ in .refused(.busy) }
    #expect(bench.open[ana]!.isEmpty && bench.drops == [])
    bench.pass(.milliseconds(500))
    #expect(bench.blocks(asked: ana).count == 16)
    bench.honest(ana)
    #expect(bench.isFinished)
  }

  @Test(arguments: [MediaRefusal.changed, .notAMember])
  func whoRefusesIsDroppedButMayComeBack(_ reason: MediaRefusal) {
    var bench = Bench(film)
    bench.tell(.sourceFound(ana))
    bench.honest(ana, count: 10)
    bench.answerOne(ana) { _ in .refused(reason) }
    #expect(bench.drops == [.refused(reason)] && bench.open[ana]!.isEmpty)
    bench.tell(.sourceFound(ana))
    bench.honest(ana)
    #expect(bench.isFinished)
  }

  @Test(arguments: [
    MediaReply.holdingAll, .block([1]), .pieceHashes([UInt8](repeating: 0, count: 32)[...]),
    .holding(count: 7, first: 0, bitmap: [0xFE]), .manifestPart(total: 5, offset: 0, [1]),
  ])
  func anAnswerToSomethingElseEndsTheTrust(_ reply: MediaReply) {
    var bench = Bench(film)
    bench.tell(.sourceFound(eva))
    bench.honest(eva, count: 3)
    bench.answerOne(eva) { _ in reply }
    #expect(bench.drops == [.misbehaved])
    bench = Bench(film)
    bench.tell(.sourceFound(eva))
    bench.tell(.replied(eva, 5 << 32 | 1_000, reply))
    #expect(bench.drops == [.misbehaved])
  }

  @Test func aLostSourcesPiecesGoToAnother() {
    var bench = Bench(film)
    bench.tell(.sourceFound(ana))
    bench.honest(ana, count: 40)
    bench.tell(.sourceLost(ana))
    bench.tell(.sourceFound(ben))
    bench.honest(ben)
    #expect(bench.isFinished && bench.drops == [])
  }

  @Test func aSourceLostAmidTheManifestIsReplaced() {
    var bench = Bench(film)
    bench.tell(.sourceFound(ana))
    bench.tell(.sourceFound(ben))
    bench.tell(.sourceLost(ana))
    bench.honest(ben)
    #expect(bench.isFinished)
  }

  @Test func stoppingCancelsEverything() {
    var bench = Bench(film)
    bench.tell(.sourceFound(ana))
    bench.honest(ana, count: 10)
    bench.tell(.stopped)
    #expect(bench.open[ana]!.isEmpty && bench.machine.handle(.woke, at: bench.now) == [])
  }

  @Test func atMostSixteenPiecesAreInMemoryHoweverManySources() {
    let big = MediaFixture(byteCount: 20 << 20)
    var machine = DownloadMachine(
      id: big.id, tag: 0, seed: 1, DownloadOptions(manifest: big.served.manifest))
    var requests: [(PeerID, UInt64, MediaRequest)] = []
    func run(_ event: DownloadEvent) {
      for case .request(let peer, let number, let request) in machine.handle(event, at: Instant(microseconds: 1)) {
        requests.append((peer, number, request))
      }
    }
    run(.started)
    run(.prepared(holding: PieceSet(pieceCount: 20)))
    for number in 1...30 { run(.sourceFound(mediaPeer(UInt8(number)))) }
    while let next = requests.popLast() {
      if case .block = next.2 { continue }
      run(.replied(next.0, next.1, big.answer(next.2)))
      #expect(machine.piecesInMemoryCount <= 16)
    }
    #expect(machine.piecesInMemoryCount == 16)
  }
}
