import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleyMachines

private func message(_ number: Int, to peer: PeerID = ben) -> OutboxMessage {
  OutboxMessage(peer: peer, id: MessageID("m\(number)")!, json: text(ana, "psst", id: "m\(number)"))
}

/// Ana's machine, which expectations may ask.
private final class Waiting {
  private var machine = MessagingMachine(me: ana, instance: run(1), seed: 1)

  init(_ limits: OutboxLimits) {
    machine = MessagingMachine(me: ana, instance: run(1), seed: 1, outbox: limits)
    handle(.joined(garden, logs: [], lamport: 0), at: start)
  }

  var outbox: Outbox { machine.outbox }

  @discardableResult
  func handle(_ event: MessagingEvent, at now: Instant) -> [MessagingEffect] { machine.handle(event, at: now) }
  func noticed(_ event: MessagingEvent, at now: Instant) -> [MessagingNotice] { notices(handle(event, at: now)) }
}

private func machine(_ limits: OutboxLimits) -> Waiting { Waiting(limits) }

private func notices(_ effects: [MessagingEffect]) -> [MessagingNotice] {
  effects.compactMap { if case .notify(let notice) = $0 { notice } else { nil } }
}

@Test func atTheLimitANewMessageIsRefusedAndNoOldOneDropped() {
  let byCount = machine(OutboxLimits(countMax: 3))
  for number in 1...3 {
    #expect(byCount.noticed(.told(RequestID(UInt64(number)), message(number), queuedAt: 0), at: start) == [])
  }
  let size = message(4).json.count
  let refused = notices(byCount.handle(.told(RequestID(4), message(4), queuedAt: 0), at: start))
  #expect(
    refused == [
      .failed(
        RequestID(4), .outboxFull(count: 3, countMax: 3, byteCount: 4 * size, byteCountMax: 64 << 20))
    ])
  // One that waits already takes no second place.
  #expect(byCount.noticed(.told(RequestID(5), message(3), queuedAt: 0), at: start) == [])
  #expect(byCount.outbox.count == 3)

  let byBytes = machine(OutboxLimits(byteCountMax: size))
  byBytes.handle(.told(RequestID(1), message(1), queuedAt: 0), at: start)
  guard
    case .failed(_, .outboxFull)? = notices(byBytes.handle(.told(RequestID(2), message(2), queuedAt: 0), at: start))
      .first
  else {
    Issue.record("a message beyond the bytes was taken")
    return
  }
}

@Test func whatIsFetchedMakesRoom() {
  let machine = machine(OutboxLimits(countMax: 1))
  machine.handle(.told(RequestID(1), message(1), queuedAt: 0), at: start)
  machine.handle(.persisted(batch: 1, cursors: [1, 1]), at: start)
  machine.handle(.sessionMessage(ben, .peerStored(MessageID("m1")!)), at: start)
  #expect(machine.outbox.count == 0)
  #expect(machine.outbox.byteCount == 0)
  #expect(machine.noticed(.told(RequestID(2), message(2), queuedAt: 0), at: start) == [])
}

@Test func aMessageThatWaitedTooLongIsGivenUpWithAWord() {
  let machine = machine(OutboxLimits(lifetime: .seconds(10)))
  machine.handle(.told(RequestID(1), message(1), queuedAt: 0), at: start)
  var effects = machine.handle(.persisted(batch: 1, cursors: [1, 1]), at: start)
  #expect(effects.contains(.wake(at: start + .seconds(10))))
  effects = machine.handle(.woke, at: start.plus(9_999))
  #expect(notices(effects) == [])
  effects = machine.handle(.woke, at: start.plus(10_000))
  #expect(notices(effects) == [.peerExpired(ben, MessageID("m1")!)])
  #expect(effects.contains(.persist(batch: 2, [.outboxRemove(ben, MessageID("m1")!)])))
  #expect(machine.outbox.count == 0)
}

/// The time that it waited in earlier runs counts.
@Test func aRestartDoesNotMakeAMessageYounger() {
  let machine = machine(OutboxLimits(lifetime: .seconds(10)))
  let restored = [
    RestoredOutboxMessage(message(1), age: .seconds(100)), RestoredOutboxMessage(message(2), age: .seconds(7)),
    RestoredOutboxMessage(message(3), age: .seconds(-5)),
  ]
  machine.handle(.outboxRestored(restored), at: start)
  #expect(machine.noticed(.woke, at: start) == [.peerExpired(ben, MessageID("m1")!)])
  #expect(machine.noticed(.woke, at: start.plus(2_999)) == [])
  #expect(machine.noticed(.woke, at: start.plus(3_000)) == [.peerExpired(ben, MessageID("m2")!)])
  #expect(machine.noticed(.woke, at: start.plus(10_000)) == [.peerExpired(ben, MessageID("m3")!)])
}

/// Acknowledged in any order, everything is sent once and nothing twice.
@Test(arguments: 1...20 as ClosedRange<UInt64>)
func aQueueKeepsItsOrderWhateverIsAnsweredFirst(_ seed: UInt64) {
  var random = Jitter(seed: seed)
  var queue = PeerQueue()
  var waiting: [MessageID] = []
  var next = 0
  var sent: [MessageID] = []
  var inFlight: [MessageID] = []
  for _ in 0..<500 {
    if Bool.random(using: &random) {
      next += 1
      let isNew = queue.add(message(next), nil, expiresAt: start.plus(100_000 + next))
      #expect(isNew)
      waiting.append(message(next).id)
    } else if let answered = inFlight.randomElement(using: &random) {
      let removed = [queue.remove(answered), queue.remove(answered)]
      #expect(removed.map { $0?.message.id } == [answered, nil])
      inFlight.removeAll { $0 == answered }
      waiting.removeAll { $0 == answered }
    }
    let taken = queue.takeUnsent(start).map(\.id)
    sent += taken
    inFlight += taken
    #expect(inFlight.count == min(32, waiting.count))
    #expect(Array(queue.items.map(\.message.id)) == waiting)
  }
  #expect(sent == (1...sent.count).map { message($0).id })
}
