import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

private let film = MediaFixture.film
private let block = Limit.mediaBlockByteCount

private func sharing() -> ServingMachine {
  var machine = ServingMachine()
  _ = machine.handle(.shared(film.served))
  return machine
}

private func want(_ peer: PeerID, _ number: UInt64, _ index: Int) -> ServingEvent {
  .requested(peer, number, .block(film.id, file: 0, index: index), isMember: true)
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
      machine.handle(.requested(ana, 1, .manifest(film.id, offset: 0), isMember: true))
        == [.reply(ana, 1, .manifestPart(total: encoded.count, offset: 0, encoded[...]))])
    #expect(
      machine.handle(.requested(ana, 2, .pieceHashes(film.id, file: 0, first: 1, count: 2), isMember: true))
        == [.reply(ana, 2, .pieceHashes((film.hashes[1].bytes + film.hashes[2].bytes)[...]))])
    #expect(
      machine.handle(.requested(ana, 3, .have(film.id, first: 0), isMember: true)) == [.reply(ana, 3, .holdingAll)])
  }

  @Test func whatIsOutOfRangeOrNotSharedIsUnknown() {
    var machine = sharing()
    let requests: [MediaRequest] = [
      .manifest(film.id, offset: film.served.manifest.encoded.count), .block(film.id, file: 1, index: 0),
      .block(film.id, file: 0, index: (film.bytes.count + block - 1) / block), .block(film.id, file: 0, index: 1 << 32),
      .pieceHashes(film.id, file: 0, first: 6, count: 2), .pieceHashes(film.id, file: 9, first: 0, count: 1),
      .pieceHashes(film.id, file: 0, first: 1 << 26, count: 700),
      .block(MediaID(film.hashes[0].value), file: 0, index: 0),
    ]
    for request in requests {
      #expect(
        machine.handle(.requested(ana, 1, request, isMember: true)) == [.reply(ana, 1, .refused(.unknown))],
        "\(request)")
    }
    _ = machine.handle(.unshared(film.id))
    #expect(
      machine.handle(.requested(ana, 1, .have(film.id, first: 0), isMember: true))
        == [.reply(ana, 1, .refused(.unknown))])
  }

  @Test func othersThanMembersLearnNothing() {
    var machine = sharing()
    for id in [film.id, MediaID(film.hashes[0].value)] {
      #expect(
        machine.handle(.requested(eva, 1, .have(id, first: 0), isMember: false))
          == [.reply(eva, 1, .refused(.notAMember))])
    }
  }

  @Test func neighbouringBlocksAreReadTogetherAndAnsweredEach() {
    var machine = sharing()
    // The first four go alone: reads are free. What waits meanwhile goes together, up to sixteen.
    var reads = (0..<4).flatMap { machine.handle(want(ana, UInt64($0), $0)).reads }
    #expect(reads.map(\.byteCount) == [block, block, block, block])
    for index in 4..<30 { #expect(machine.handle(want(ana, UInt64(index), index)) == []) }
    let effects = machine.handle(.readDone(reads[0].id, bytes(reads[0])))
    #expect(effects.blocks == [0])
    reads = effects.reads
    #expect(reads.map(\.byteCount) == [16 * block] && reads[0].offset == UInt64(4 * block))
    let done = machine.handle(.readDone(reads[0].id, bytes(reads[0])))
    #expect(done.blocks == Array(4..<20) && done.reads.map(\.byteCount) == [10 * block])
    for case .reply(_, let number, .block(let slice)) in done {
      #expect(Array(slice) == Array(film.bytes[Int(number) * block..<Int(number + 1) * block]))
    }
  }

  @Test func theLastBlockIsShort() {
    var machine = sharing()
    let last = film.bytes.count / block
    #expect(machine.handle(want(ana, 1, last)).reads.first?.byteCount == film.bytes.count % block)
  }

  @Test func peersTakeTurns() {
    var machine = sharing()
    var running = (0..<4).flatMap { machine.handle(want(ana, UInt64($0), $0 * 2)).reads }
    for index in 4..<12 { _ = machine.handle(want(ana, UInt64(index), index * 2)) }
    for index in 0..<4 { _ = machine.handle(want(ben, UInt64(index), index * 2)) }
    var served: [PeerID] = []
    while !running.isEmpty {
      let read = running.removeFirst()
      served.append(read.peer)
      running += machine.handle(.readDone(read.id, bytes(read))).reads
    }
    #expect(served.count == 16)
    #expect(served[4..<12].filter { $0 == ben }.count == 4, "one each while both want something")
  }

  @Test func moreThanEnoughRequestsAreRefused() {
    var machine = sharing()
    for index in 0..<256 { #expect(machine.handle(want(ana, UInt64(index), 0)).blocks == []) }
    #expect(machine.requestCount(of: ana) == 256)
    #expect(machine.handle(want(ana, 256, 0)) == [.reply(ana, 256, .refused(.busy))])
    #expect(machine.readingCount == 4)
  }

  @Test func nothingIsReadForAConnectionThatIsFull() {
    var machine = sharing()
    var running = (0..<128).flatMap { machine.handle(want(ana, UInt64($0), $0)).reads }
    var count = 0
    while !running.isEmpty {
      let read = running.removeFirst()
      count += read.byteCount
      running += machine.handle(.readDone(read.id, bytes(read))).reads
      #expect(machine.pendingByteCount(of: ana) <= ServingMachine.queuedByteCountMax)
    }
    #expect(count <= 1 << 20 && count > (1 << 20) - 32_000)
    #expect(machine.handle(.requested(ben, 0, .block(film.id, file: 0, index: 0), isMember: true)).reads.count == 1)
    #expect(machine.handle(.drained(ana, queuedByteCount: 500_000)).reads.map(\.byteCount) == [16 * block, 16 * block])
  }

  @Test func cancelledRequestsGetNothing() {
    var machine = sharing()
    let reads = (0..<6).flatMap { machine.handle(want(ana, UInt64($0), $0 * 2)).reads }
    #expect(machine.handle(.cancelled(ana, 0)) == [])
    #expect(machine.handle(.cancelled(ana, 4)) == [])
    let effects = machine.handle(.readDone(reads[0].id, bytes(reads[0])))
    #expect(effects.blocks == [] && effects.reads.map(\.offset) == [UInt64(10 * block)])
  }

  @Test func aChangedSourceIsToldOnceAndRefusedFromThenOn() {
    var machine = sharing()
    let reads = (0..<2).flatMap { machine.handle(want(ana, UInt64($0), $0 * 2)).reads }
    #expect(
      machine.handle(.readFailed(reads[0].id, .changed))
        == [.sourceChanged(film.id), .reply(ana, 0, .refused(.changed))])
    #expect(machine.handle(.readDone(reads[1].id, bytes(reads[1]))) == [.reply(ana, 1, .refused(.changed))])
    #expect(machine.handle(want(ana, 2, 0)) == [.reply(ana, 2, .refused(.changed))])
    _ = machine.handle(.shared(film.served))
    #expect(machine.handle(want(ana, 3, 0)).reads.count == 1)
  }

  @Test func aLostPeerGetsNothingAndOwesNothingWhenItComesBack() {
    var machine = sharing()
    let reads = (0..<8).flatMap { machine.handle(want(ana, UInt64($0), $0 * 2)).reads }
    #expect(machine.handle(.peerLost(ana)) == [] && machine.requestCount(of: ana) == 0)
    #expect(machine.handle(want(ana, 9, 0)) == [], "all reads are taken")
    #expect(machine.handle(.readDone(reads[0].id, bytes(reads[0]))).blocks == [])
    for read in reads.dropFirst() { #expect(machine.handle(.readDone(read.id, bytes(read))) == []) }
    #expect(machine.requestCount(of: ana) == 1 && machine.pendingByteCount(of: ana) == block)
  }
}
