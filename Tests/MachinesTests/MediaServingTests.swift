import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

private let film = MediaFixture.film
private let block = Limit.mediaBlockByteCount
private let t0 = Instant(microseconds: 1)

private func sharing() -> ServingMachine {
  var machine = ServingMachine()
  _ = machine.handle(.shared(film.served), at: t0)
  return machine
}

private func want(_ peer: PeerID, _ number: UInt64, _ index: Int, count: Int = 1) -> ServingEvent {
  .requested(peer, number, .block(film.id, file: 0, index: index, count: count), isMember: true)
}

/// Of files with one piece each.
private func folder(of byteCounts: Int...) -> ServedMedia {
  let fixtures = byteCounts.map { MediaFixture(byteCount: $0) }
  let files = fixtures.enumerated().map { index, fixture in
    MediaManifest.File(
      path: ["\(index)"], byteCount: UInt64(fixture.bytes.count), root: fixture.served.manifest.files[0].root)
  }
  return ServedMedia(
    manifest: try! MediaManifest(files: files, mimeType: "inode/directory"),
    pieceHashes: fixtures.map(\.hashes))
}

extension [ServingEffect] {
  fileprivate var reads: [ServedRead] { compactMap { if case .read(let read) = $0 { read } else { nil } } }
  fileprivate var blocks: [UInt64] {
    compactMap { if case .reply(_, let number, .block) = $0 { number } else { nil } }
  }
}

private func bytes(_ read: ServedRead) -> [UInt8] {
  Array(film.bytes[Int(read.offset)..<Int(read.offset) + read.byteCount])
}

@Suite struct MediaServingTests {
  @Test func whatIsInMemoryIsAnsweredAtOnce() {
    var machine = sharing()
    let encoded = film.served.manifest.encoded
    #expect(
      machine.handle(.requested(ana, 1, .manifest(film.id, offset: 0), isMember: true), at: t0)
        == [.reply(ana, 1, .manifestPart(total: encoded.count, offset: 0, encoded[...]))])
    #expect(
      machine.handle(.requested(ana, 2, .pieceHashes(film.id, file: 0, first: 0, count: 8), isMember: true), at: t0)
        == [.reply(ana, 2, .pieceHashes(film.hashes.flatMap(\.bytes)[...]))])
    #expect(
      machine.handle(.requested(ana, 3, .have(film.id, first: 0), isMember: true), at: t0) == [
        .reply(ana, 3, .holdingAll)
      ])
  }

  @Test func whatIsOutOfRangeOrNotSharedIsUnknown() {
    var machine = sharing()
    let requests: [MediaRequest] = [
      .manifest(film.id, offset: film.served.manifest.encoded.count), .block(film.id, file: 1, index: 0),
      .block(film.id, file: 0, index: (film.bytes.count + block - 1) / block), .block(film.id, file: 0, index: 1 << 32),
      .pieceHashes(film.id, file: 0, first: 8, count: 8), .pieceHashes(film.id, file: 0, first: 4, count: 4),
      .pieceHashes(film.id, file: 0, first: 1, count: 8), .pieceHashes(film.id, file: 9, first: 0, count: 1),
      .pieceHashes(film.id, file: 0, first: 1 << 26, count: 700),
      .block(MediaID(film.hashes[0].value), file: 0, index: 0), .block(film.id, file: 0, index: 63, count: 2),
      .block(film.id, file: 0, index: film.bytes.count / block, count: 2),
    ]
    for request in requests {
      #expect(
        machine.handle(.requested(ana, 1, request, isMember: true), at: t0) == [.reply(ana, 1, .refused(.unknown))],
        "\(request)")
    }
    _ = machine.handle(.unshared(film.id), at: t0)
    #expect(
      machine.handle(.requested(ana, 1, .have(film.id, first: 0), isMember: true), at: t0)
        == [.reply(ana, 1, .refused(.unknown))])
  }

  @Test func othersThanMembersLearnNothing() {
    var machine = sharing()
    for id in [film.id, MediaID(film.hashes[0].value)] {
      #expect(
        machine.handle(.requested(eva, 1, .have(id, first: 0), isMember: false), at: t0)
          == [.reply(eva, 1, .refused(.notAMember))])
    }
  }

  @Test func neighbouringBlocksAreReadTogetherAndAnsweredEach() {
    var machine = sharing()
    // Reads are free for the first four. Blocks asked for together are read together, up to sixteen.
    var reads = (0..<4).flatMap { machine.handle(want(ana, UInt64($0), $0), at: t0).reads }
    #expect(reads.map(\.byteCount) == [block, block, block, block])
    #expect(machine.handle(want(ana, 4, 4, count: 26), at: t0) == [] && machine.requestCount(of: ana) == 30)
    let effects = machine.handle(.readDone(reads[0].id, bytes(reads[0])), at: t0)
    #expect(effects.blocks == [0])
    reads = effects.reads
    #expect(reads.map(\.byteCount) == [16 * block] && reads[0].offset == UInt64(4 * block))
    let done = machine.handle(.readDone(reads[0].id, bytes(reads[0])), at: t0)
    #expect(done.blocks == Array(4..<20) && done.reads.map(\.byteCount) == [10 * block])
    for case .reply(_, let number, .block(let slice)) in done {
      #expect(Array(slice) == Array(film.bytes[Int(number) * block..<Int(number + 1) * block]))
    }
  }

  @Test func theLastBlockIsShort() {
    var machine = sharing()
    let last = film.bytes.count / block
    #expect(machine.handle(want(ana, 1, last), at: t0).reads.first?.byteCount == film.bytes.count % block)
  }

  @Test func peersTakeTurnsPieceByPiece() {
    var machine = sharing()
    var running = (0..<4).flatMap { machine.handle(want(eva, UInt64($0), $0 * 2), at: t0).reads }
    for (peer, pieces) in [(ana, [1, 2]), (ben, [3, 4])] {
      for (number, piece) in pieces.enumerated() {
        for index in [0, 2] {
          _ = machine.handle(want(peer, UInt64(number * 2 + index), piece * 64 + index), at: t0)
        }
      }
    }
    var served: [PeerID] = []
    while !running.isEmpty {
      let read = running.removeFirst()
      served.append(read.peer)
      running += machine.handle(.readDone(read.id, bytes(read)), at: t0).reads
    }
    #expect(served.dropFirst(4) == [ana, ana, ben, ben, ana, ana, ben, ben])
  }

  @Test func moreThanEnoughRequestsAreRefused() {
    var machine = sharing()
    for index in 0..<1_024 { #expect(machine.handle(want(ana, UInt64(index), 0), at: t0).blocks == []) }
    #expect(machine.requestCount(of: ana) == 1_024)
    for index in 0..<15 { #expect(machine.handle(want(ben, UInt64(index * 64), 0, count: 64), at: t0) == []) }
    #expect(machine.handle(want(ben, 960, 0, count: 60), at: t0) == [] && machine.requestCount(of: ben) == 1_020)
    #expect(machine.handle(want(ben, 1_020, 0, count: 5), at: t0) == [.reply(ben, 1_020, .refused(.busy))])
    #expect(machine.handle(want(ana, 1_024, 0), at: t0) == [.reply(ana, 1_024, .refused(.busy))])
    #expect(machine.readingCount == 4)
  }

  @Test func nothingIsReadForAConnectionThatIsFull() {
    var machine = sharing()
    var running = (0..<2).flatMap { machine.handle(want(ana, UInt64($0 * 64), $0 * 64, count: 64), at: t0).reads }
    var count = 0
    while !running.isEmpty {
      let read = running.removeFirst()
      count += read.byteCount
      running += machine.handle(.readDone(read.id, bytes(read)), at: t0).reads
      #expect(machine.pendingByteCount(of: ana) <= ServingMachine.queuedByteCountMax)
    }
    #expect(count <= 1 << 20 && count > (1 << 20) - 32_000)
    #expect(
      machine.handle(.requested(ben, 0, .block(film.id, file: 0, index: 0), isMember: true), at: t0).reads.count == 1
    )
    #expect(
      machine.handle(.drained(ana, queuedByteCount: 500_000), at: t0).reads.map(\.byteCount) == [
        16 * block, 16 * block,
      ])
  }

  @Test func cancelledRequestsGetNothing() {
    var machine = sharing()
    let reads = (0..<6).flatMap { machine.handle(want(ana, UInt64($0), $0 * 2), at: t0).reads }
    #expect(machine.handle(.cancelled(ana, 0), at: t0) == [])
    #expect(machine.handle(.cancelled(ana, 4), at: t0) == [])
    let effects = machine.handle(.readDone(reads[0].id, bytes(reads[0])), at: t0)
    #expect(effects.blocks == [] && effects.reads.map(\.offset) == [UInt64(10 * block)])
  }

  @Test func ofBlocksAskedForTogetherSomeMayBeCancelled() {
    var machine = sharing()
    var running = machine.handle(want(ana, 100, 0, count: 40), at: t0).reads
    #expect(running.map(\.byteCount) == [16 * block, 16 * block, 8 * block])
    _ = machine.handle(.cancelled(ana, 103), at: t0)
    running += machine.handle(want(ana, 200, 64, count: 64), at: t0).reads
    for index in 1...3 { _ = machine.handle(want(ben, UInt64(index), 128), at: t0) }
    // Sixteen are being read; of the rest four in the middle, the last, and whatever has other numbers.
    for (number, count) in [(UInt64(230), 4), (263, 1), (264, 9), (1, 99)] {
      _ = machine.handle(.cancelled(ana, number, count: count), at: t0)
    }
    var numbers: [UInt64] = []
    var rounds = 0
    while !running.isEmpty, rounds < 50 {
      let read = running.removeFirst()
      let effects = machine.handle(.readDone(read.id, bytes(read)), at: t0)
      for case .reply(ana, let number, .block) in effects { numbers.append(number) }
      running += effects.reads + machine.handle(.drained(read.peer, queuedByteCount: 0), at: t0).reads
      rounds += 1
    }
    #expect(numbers.count == Set(numbers).count)
    #expect(numbers.allSatisfy { $0 != 103 && !(230..<234).contains($0) && $0 != 263 })
    #expect(machine.requestCount(of: ana) == 0)
  }

  @Test func aChangedSourceIsToldOnceAndRefusedFromThenOn() {
    var machine = sharing()
    let reads = (0..<2).flatMap { machine.handle(want(ana, UInt64($0), $0 * 2), at: t0).reads }
    #expect(
      machine.handle(.readFailed(reads[0].id, .changed), at: t0)
        == [.sourceChanged(film.id), .reply(ana, 0, .refused(.changed))])
    #expect(machine.handle(.readDone(reads[1].id, bytes(reads[1])), at: t0) == [.reply(ana, 1, .refused(.changed))])
    #expect(machine.handle(want(ana, 2, 0), at: t0) == [.reply(ana, 2, .refused(.changed))])
    _ = machine.handle(.shared(film.served), at: t0)
    #expect(machine.handle(want(ana, 3, 0), at: t0).reads.count == 1)
  }

  /// A folder in use: what was edited goes, the rest stays.
  @Test func aChangedFileOfAFolderEndsOnlyItsOwnServing() {
    let files = folder(of: 3 * block, 2 * block, block)
    var machine = ServingMachine()
    _ = machine.handle(.shared(files), at: t0)
    func ask(_ number: UInt64, file: Int) -> [ServingEffect] {
      machine.handle(
        .requested(ana, number, .block(files.manifest.id, file: file, index: 0, count: 1), isMember: true), at: t0)
    }
    let first = ask(0, file: 1).reads
    #expect(
      machine.handle(.readFailed(first[0].id, .changed), at: t0)
        == [.fileChanged(files.manifest.id, file: 1), .reply(ana, 0, .refused(.changed))])
    #expect(ask(1, file: 1) == [.reply(ana, 1, .refused(.unknown))])
    #expect(ask(2, file: 0).reads.count == 1 && ask(3, file: 2).reads.count == 1)
    var holding = PieceSet(pieceCount: 3)
    holding.insert(0)
    holding.insert(2)
    #expect(
      machine.handle(.requested(ben, 0, .have(files.manifest.id, first: 0), isMember: true), at: t0)
        == [.reply(ben, 0, .holding(count: 3, first: 0, bitmap: holding.bytes[...]))])
  }

  @Test func aFolderOfWhichEveryFileChangedIsRefused() {
    let files = folder(of: block, block)
    var machine = ServingMachine()
    _ = machine.handle(.shared(files), at: t0)
    var told: [ServingEffect] = []
    for file in 0..<2 {
      let read = machine.handle(
        .requested(ana, UInt64(file), .block(files.manifest.id, file: file, index: 0, count: 1), isMember: true), at: t0
      ).reads[0]
      told += machine.handle(.readFailed(read.id, .changed), at: t0)
    }
    #expect(told.contains(.fileChanged(files.manifest.id, file: 0)) && told.contains(.sourceChanged(files.manifest.id)))
    #expect(
      machine.handle(.requested(ana, 9, .have(files.manifest.id, first: 0), isMember: true), at: t0)
        == [.reply(ana, 9, .refused(.changed))])
  }

  @Test func aLostPeerGetsNothingAndOwesNothingWhenItComesBack() {
    var machine = sharing()
    let reads = (0..<8).flatMap { machine.handle(want(ana, UInt64($0), $0 * 2), at: t0).reads }
    #expect(machine.handle(.peerLost(ana), at: t0) == [] && machine.requestCount(of: ana) == 0)
    #expect(machine.handle(want(ana, 9, 0), at: t0) == [], "all reads are taken")
    #expect(machine.handle(.readDone(reads[0].id, bytes(reads[0])), at: t0).blocks == [])
    for read in reads.dropFirst() { #expect(machine.handle(.readDone(read.id, bytes(read)), at: t0) == []) }
    #expect(machine.requestCount(of: ana) == 1 && machine.pendingByteCount(of: ana) == block)
  }

  private func partial(_ pieces: [Int]) -> ServingMachine {
    var machine = ServingMachine()
    var holding = PieceSet(pieceCount: film.hashes.count)
    for piece in pieces { holding.insert(piece) }
    _ = machine.handle(.partShared(film.served, holding: holding), at: t0)
    return machine
  }

  private func ask(_ peer: PeerID, _ number: UInt64) -> ServingEvent {
    .requested(peer, number, .have(film.id, first: 0), isMember: true)
  }

  @Test func aPartialHolderServesWhatItHoldsAndNothingElse() {
    var machine = partial([2])
    #expect(machine.handle(want(ana, 1, 64), at: t0) == [.reply(ana, 1, .refused(.unknown))])
    #expect(machine.handle(want(ana, 2, 128), at: t0).reads.count == 1)
    _ = machine.handle(.gained(film.id, piece: 1), at: t0)
    #expect(machine.handle(want(ana, 3, 64), at: t0).reads.count == 1)
    _ = machine.handle(.shared(film.served), at: t0)
    #expect(machine.handle(want(ana, 4, 0), at: t0).reads.count == 1)
  }

  @Test func whoAskedIsToldOfNewPiecesTenTimesASecondUntilAllAreThere() {
    var machine = partial([2])
    func some(_ bitmap: UInt8) -> MediaReply { .holding(count: 7, first: 0, bitmap: [bitmap]) }
    #expect(machine.handle(ask(ana, 9), at: t0) == [.reply(ana, 9, some(0b0010_0000))])
    let soon = t0 + .milliseconds(100)
    #expect(machine.handle(.gained(film.id, piece: 0), at: t0) == [.wake(at: soon)])
    #expect(machine.handle(.gained(film.id, piece: 1), at: t0 + .milliseconds(50)) == [])
    #expect(machine.handle(.woke, at: soon) == [.reply(ana, 9, some(0b1110_0000))])
    let later = soon + .milliseconds(200)
    #expect(machine.handle(.gained(film.id, piece: 3), at: later) == [.reply(ana, 9, some(0b1111_0000))])
    #expect(machine.handle(.gained(film.id, piece: 3), at: later + .seconds(1)) == [], "it is known")
    #expect(machine.handle(.shared(film.served), at: later + .seconds(1)) == [.reply(ana, 9, .holdingAll)])
    #expect(machine.handle(.unshared(film.id), at: later + .seconds(1)) == [], "nobody listens any more")
  }

  @Test func listenersAreToldOfTheEndAndMayLeave() {
    var machine = partial([2])
    for peer in [ana, ben, eva] { _ = machine.handle(ask(peer, 9), at: t0) }
    _ = machine.handle(.cancelled(ben, 9), at: t0)
    _ = machine.handle(.peerLost(eva), at: t0)
    #expect(machine.handle(.unshared(film.id), at: t0) == [.reply(ana, 9, .refused(.unknown))])
  }

  @Test func listenersAreFewAndOneThatDoesNotReadIsToldNothing() {
    var machine = partial([2])
    for number in 0..<200 { _ = machine.handle(ask(ana, UInt64(number)), at: t0) }
    let later = t0 + .seconds(1)
    let news = machine.handle(.gained(film.id, piece: 0), at: later)
    #expect(news.count == 1, "the same question again replaces the earlier one")
    _ = machine.handle(.drained(ana, queuedByteCount: ServingMachine.queuedByteCountMax), at: later)
    let held = machine.handle(.gained(film.id, piece: 1), at: later + .seconds(1))
    #expect(held == [.wake(at: later + .seconds(1) + .milliseconds(100))])
    _ = machine.handle(.drained(ana, queuedByteCount: 0), at: later + .seconds(1))
    #expect(machine.handle(.woke, at: later + .seconds(2)).count == 1)
  }

  /// Whoever got it passes it on; only when nobody has done so for a while it goes out again.
  @Test func aPieceThatWentOutIsHeldBackFromOthersForAWhile() {
    var machine = sharing()
    // Ana is sent piece 0; then Ben wants it too, and Eva wants another.
    var running = machine.handle(want(ana, 0, 0, count: 64), at: t0).reads
    running += machine.handle(want(ben, 0, 0, count: 64), at: t0).reads
    running += machine.handle(want(eva, 0, 64, count: 64), at: t0).reads
    var served: [PeerID] = []
    func drain(_ now: Instant) {
      while !running.isEmpty {
        let read = running.removeFirst()
        served.append(read.peer)
        running += machine.handle(.readDone(read.id, bytes(read)), at: now).reads
        running += machine.handle(.drained(read.peer, queuedByteCount: 0), at: now).reads
      }
    }
    drain(t0)
    #expect(served.lastIndex(of: ana)! < served.firstIndex(of: eva)!, "a piece that is being sent is sent to its end")
    #expect(!served.contains(ben))
    let free = t0 + ServingMachine.heldBackForEach * 3
    running = machine.handle(.woke, at: free).reads
    drain(free)
    #expect(served.contains(ben))
  }

  @Test func twoMebibytesAreUnderWayToPeersThatMoveAndWhoTakesNothingHoldsNobodyUp() {
    var machine = sharing()
    let peers = (10..<20).map { mediaPeer(UInt8($0)) }
    var running: [ServedRead] = []
    for (piece, peer) in peers.enumerated() {
      for index in 0..<64 {
        running += machine.handle(want(peer, UInt64(index), (piece % 6) * 64 + index), at: t0).reads
      }
    }
    func drain(_ now: Instant) {
      while !running.isEmpty {
        let read = running.removeFirst()
        running += machine.handle(.readDone(read.id, bytes(read)), at: now).reads
      }
    }
    drain(t0)
    let pending = peers.reduce(0) { $0 + machine.pendingByteCount(of: $1) }
    #expect(pending >= 2 << 20 && pending < 2 << 20 + 4 * 16 * block)
    // Nothing left: after half a second others are served beside them.
    running = machine.handle(.woke, at: t0 + .milliseconds(500)).reads
    #expect(!running.isEmpty)
    drain(t0 + .milliseconds(500))
    #expect(peers.reduce(0) { $0 + machine.pendingByteCount(of: $1) } > pending)
  }
}
