import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleyMachines

/// What others sign is kept as they signed it, whatever it says; our own clock is not theirs to use up.
@Suite struct LamportTests {
  private let me = PeerID(Bytes32(words: (1, 0, 0, 0)))
  private let other = PeerID(Bytes32(words: (2, 0, 0, 0)))
  private let channel = ChannelID(Bytes32(words: (3, 0, 0, 0)))

  @Test func aHostileTimeOnTheDiskDoesNotMoveTheClockOfTheNextRun() {
    let ahead = Limit.lamportAheadMax
    #expect(LamportRule.restored([], me: me) == 0)
    #expect(LamportRule.restored([(other, Limit.counterMax)], me: me) == 0)
    #expect(LamportRule.restored([(other, 7), (other, Limit.counterMax), (me, 5)], me: me) == 7)
    #expect(LamportRule.restored([(other, ahead), (other, 2 * ahead)], me: me) == 2 * ahead)
    #expect(LamportRule.restored([(other, ahead + 1)], me: me) == 0)
    // What we said ourselves stays before what we say next, however far it is.
    #expect(LamportRule.restored([(me, 9 * ahead), (other, 3)], me: me) == 9 * ahead)
    #expect(LamportRule.restored([(me, Limit.counterMax)], me: me) == Limit.counterMax / 2)
  }

  @Test(arguments: [0, 1, Limit.counterMax / 2, Limit.counterMax - 1, Limit.counterMax])
  func afterAnyRestoredTimeThereIsANextOne(_ lamport: UInt64) throws {
    var machine = MessagingMachine(me: me, instance: Instance(1), seed: 1)
    let now = Instant(microseconds: 1)
    _ = machine.handle(.joined(channel, logs: [], lamport: lamport), at: now)
    let facts = PresenceFacts(digest: HeadsDigest(of: [:]), head: Limit.counterMax, lamport: lamport)
    _ = machine.handle(.memberPresent(channel, other, Instance(2), facts), at: now)
    let submission = Submission(request: RequestID(1), kind: 3, isHidden: false, json: [1], timestamp: 1)
    var entry: Entry?
    for case .sign(_, let asked) in machine.handle(.submitted(channel, submission), at: now) { entry = asked }
    var signed = try #require(entry)
    signed.signature = [UInt8](repeating: 0, count: 64)
    #expect(signed.lamport > 0 && signed.lamport <= Limit.counterMax / 2 + 1)
    #expect(try Entry(decoding: signed.encoded[...]) == signed)
  }
}
