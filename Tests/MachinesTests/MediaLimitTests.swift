import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

private let film = MediaFixture.film

/// A download whose questions are all answered at once and truly; pieces are kept until `accept`.
private struct Reading {
  let file: MediaFixture
  var machine: DownloadMachine
  var now = Instant(microseconds: 1)
  var blockCount = 0
  /// Verified and not taken.
  var given: [Int] = []
  var isFinished = false

  init(_ file: MediaFixture, inOrder: Bool = false, limited: Bool = false) {
    self.file = file
    machine = DownloadMachine(id: file.id, tag: 5, seed: 1, DownloadOptions(isInOrder: inOrder))
    if limited { tell(.limited) }
    tell(.started)
    tell(.sourceFound(ana))
  }

  mutating func tell(_ event: DownloadEvent) {
    var events = [event]
    while !events.isEmpty {
      for effect in machine.handle(events.removeFirst(), at: now) {
        switch effect {
        case .request(let peer, let number, let request):
          if case .block = request { blockCount += request.answerCount }
          for (index, one) in request.single.enumerated() {
            events.append(.replied(peer, number + UInt64(index), file.answer(one)))
          }
        case .prepare: events.append(.prepared(holding: PieceSet(pieceCount: file.hashes.count)))
        case .verify(let check, let bytes):
          events.append(.pieceVerified(check.piece, isGood: check.accepts(bytes)))
        case .write(let piece, _, _, _): given.append(piece)
        case .finished: isFinished = true
        case .cancel, .progress, .dropSource, .wake, .failed: continue
        }
      }
    }
  }
}

@Suite struct MediaLimitTests {
  @Test func aReaderGetsTheLowestPiecesAndNoMoreThanAWindowAheadOfIt() {
    let file = MediaFixture(byteCount: 19 << 20 | 5)
    var reading = Reading(file, inOrder: true)
    #expect(Set(reading.given) == Set(0..<16))
    // The lowest is not taken, and so nothing comes.
    reading.tell(.pieceWritten(3))
    #expect(!reading.given.contains(17))
    var next = 0
    while !reading.isFinished {
      guard reading.given.contains(next) else {
        Issue.record("piece \(next) does not come")
        return
      }
      reading.tell(.pieceWritten(next))
      next += 1
    }
    #expect(next == 20)
  }

  @Test func aLimitedDownloadAsksForNoMoreThanItMay() {
    var reading = Reading(film, limited: true)
    #expect(reading.blockCount == 0)
    var allowed = 0
    while !reading.isFinished, allowed < 10 << 20 {
      allowed += 100_000
      reading.tell(.allowed(byteCount: 100_000))
      #expect(reading.blockCount * Limit.mediaBlockByteCount < allowed + Limit.mediaBlockByteCount)
      while let piece = reading.given.popLast() { reading.tell(.pieceWritten(piece)) }
    }
    #expect(reading.isFinished)
    #expect(allowed < film.bytes.count + 200_000)
  }

  @Test func everybodyTogetherIsServedNoFasterThanTheLimit() {
    var machine = ServingMachine(limit: RateLimit(bytesPerSecond: 1_000_000))
    var now = Instant(microseconds: 1)
    let start = now
    _ = machine.handle(.shared(film.served), at: now)
    let blockCount = film.bytes.count / Limit.mediaBlockByteCount + 1
    var asked: [PeerID: Int] = [ana: 0, ben: 0]
    var byteCounts: [PeerID: Int] = [:]
    var number: UInt64 = 0
    var effects: [ServingEffect] = []
    // Ten seconds of simulated time.
    while now - start < .seconds(10) {
      for peer in [ana, ben] {
        while machine.requestCount(of: peer) < 64 {
          let index = asked[peer]! % blockCount
          asked[peer]! += 1
          number += 1
          effects += machine.handle(
            .requested(peer, number, .block(film.id, file: 0, index: index), isMember: true), at: now)
        }
      }
      var wake: Instant?
      while !effects.isEmpty {
        let effect = effects.removeFirst()
        switch effect {
        case .read(let read):
          byteCounts[read.peer, default: 0] += read.byteCount
          let bytes = Array(film.bytes[Int(read.offset)..<Int(read.offset) + read.byteCount])
          effects += machine.handle(.readDone(read.id, bytes), at: now)
          effects += machine.handle(.drained(read.peer, queuedByteCount: 0), at: now)
        case .wake(let instant): wake = instant
        case .reply, .sourceChanged, .fileChanged: continue
        }
      }
      now = max(wake ?? now, now + .milliseconds(1))
      effects += machine.handle(.woke, at: now)
    }
    let total = byteCounts.values.reduce(0, +)
    #expect((9_500_000...10_600_000).contains(total))
    // In turn, by pieces.
    #expect(byteCounts.values.allSatisfy { $0 > 3_000_000 })
  }
}
