import Synchronization
import Testing

@testable import Parley

/// A reader of events and a store that is written to meanwhile, by notation.
@Suite struct SubscriberTests {
  /// What is committed and how much of it was told, in entries of several messages.
  private final class Model: Sendable {
    struct State {
      var dice: SeededDice
      var entries: [[UInt64]] = []
      var toldCount = 0
      var subscriber: Subscriber?
    }
    let state: Mutex<State>

    init(seed: UInt64) { state = Mutex(State(dice: SeededDice(state: seed))) }

    func random(_ range: ClosedRange<Int>) -> Int { state.withLock { .random(in: range, using: &$0.dice) } }

    func commit(_ count: Int) {
      state.withLock { state in
        for _ in 0..<count {
          let cursor = UInt64(state.entries.count + 1) << 8
          let size = Int.random(in: 1...4, using: &state.dice)
          state.entries.append((0..<UInt64(size)).map { cursor | $0 })
        }
      }
    }

    /// Tells of so many entries that are committed, in order, and of other things between them.
    func tell(_ count: Int) {
      for _ in 0..<count {
        let next = state.withLock { state -> ([UInt64], Bool)? in
          guard state.toldCount < state.entries.count else { return nil }
          defer { state.toldCount += 1 }
          return (state.entries[state.toldCount], Bool.random(using: &state.dice))
        }
        guard let (cursors, isOtherToo) = next else { return }
        let subscriber = state.withLock { $0.subscriber! }
        for cursor in cursors { subscriber.offer(.message(SubscriberTests.message(cursor))) }
        if isOtherToo { subscriber.offer(.stateChanged(.connected, reason: "")) }
      }
    }

    /// As the store would: of what is committed now, so many entries. More is committed and told around it.
    func page(after cursor: UInt64) -> Subscriber.Page {
      commit(random(0...3))
      tell(random(0...9))
      let limit = random(1...12)
      let page = state.withLock { state in
        let rest = state.entries[min(Int(cursor), state.entries.count)...]
        let taken = rest.prefix(limit)
        return Subscriber.Page(
          events: taken.joined().map { .message(SubscriberTests.message($0)) },
          through: taken.count < rest.count ? taken.last![0] >> 8 : UInt64(state.entries.count),
          isLast: taken.count == rest.count)
      }
      commit(random(0...3))
      tell(random(0...20))
      return page
    }

    var lastTold: UInt64 { state.withLock { $0.toldCount == 0 ? 0 : $0.entries[$0.toldCount - 1].last! } }
    var told: [UInt64] { state.withLock { Array($0.entries.prefix($0.toldCount).joined()) } }
  }

  fileprivate static func message(_ cursor: UInt64) -> Message {
    Message(
      channel: nil, id: MessageID("m")!, sender: PeerID(bytes: [UInt8](repeating: 1, count: 32))!, senderName: "",
      timestamp: "", body: .text(""), json: "{}", cursor: cursor, deliveredTo: [])
  }

  @Test(arguments: 1...300)
  func everyMessageComesOnceInOrder(_ seed: UInt64) async {
    let model = Model(seed: seed)
    model.commit(model.random(0...30))
    model.state.withLock { $0.toldCount = $0.entries.count }
    // From the start, or from within an entry.
    let before = model.told
    let startIndex = model.random(0...before.count)
    let start = startIndex == 0 ? 0 : before[startIndex - 1]
    let subscriber = Subscriber(after: start, in: nil, countMax: model.random(1...8)) { cursor, _ in
      model.page(after: cursor)
    }
    model.state.withLock { $0.subscriber = subscriber }
    var seen: [UInt64] = []
    for round in 0..<60 {
      model.commit(model.random(0...6))
      model.tell(model.random(0...8))
      let wanted = round == 59 ? Int.max : model.random(0...20)
      for _ in 0..<wanted {
        // What was told and not seen must come without waiting for more.
        guard (seen.last ?? start) < model.lastTold else { break }
        if case .message(let message) = await subscriber.next() { seen.append(message.cursor) }
      }
    }
    subscriber.finish()
    while let event = await subscriber.next() {
      if case .message(let message) = event { seen.append(message.cursor) }
    }
    let all = model.state.withLock { Array($0.entries.joined()) }.filter { $0 > start }
    #expect(seen == Array(all.prefix(seen.count)))
    #expect(seen.count >= model.told.count(where: { $0 > start }))
  }

  @Test func lossIsToldWhereItIs() async {
    let subscriber = Subscriber(after: 5, in: nil, countMax: 2, pager: nil)
    for cursor: UInt64 in 6...9 { subscriber.offer(.message(Self.message(cursor))) }
    #expect(await subscriber.next() == .message(Self.message(6)))
    subscriber.offer(.message(Self.message(10)))
    #expect(await subscriber.next() == .message(Self.message(7)))
    #expect(await subscriber.next() == .dropped(3, since: 7))
    for cursor: UInt64 in 11...13 { subscriber.offer(.message(Self.message(cursor))) }
    #expect(await subscriber.next() == .message(Self.message(11)))
    #expect(await subscriber.next() == .message(Self.message(12)))
    // Where it fits again, its notice comes before.
    subscriber.offer(.message(Self.message(14)))
    subscriber.finish()
    #expect(await subscriber.next() == .dropped(1, since: 12))
    #expect(await subscriber.next() == .message(Self.message(14)))
    #expect(await subscriber.next() == nil)
  }

  @Test func bytesAreBounded() async {
    let subscriber = Subscriber(after: 0, in: nil, countMax: 1_000, pager: nil)
    let json = String(repeating: "x", count: 30_000)
    for cursor: UInt64 in 1...1_000 {
      subscriber.offer(
        .message(
          Message(
            channel: nil, id: MessageID("m")!, sender: PeerID(bytes: [UInt8](repeating: 1, count: 32))!,
            senderName: "", timestamp: "", body: .text(json), json: json, cursor: cursor, deliveredTo: [])))
    }
    subscriber.finish()
    var count = 0
    while let event = await subscriber.next() {
      if case .dropped(let droppedCount, let cursor) = event {
        #expect(droppedCount + count == 1_000)
        #expect(cursor == UInt64(count))
      } else {
        count += 1
      }
    }
    #expect((10...20).contains(count))
  }

  @Test func aCancelledReaderIsLetGo() async {
    let subscriber = Subscriber(after: 0, in: nil, countMax: 4, pager: nil)
    let reader = Task { await subscriber.next() }
    reader.cancel()
    #expect(await reader.value == nil)
    // And the next one reads on.
    subscriber.offer(.stateChanged(.connected, reason: ""))
    #expect(await subscriber.next() == .stateChanged(.connected, reason: ""))
  }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers for the same seed.
struct SeededDice: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
