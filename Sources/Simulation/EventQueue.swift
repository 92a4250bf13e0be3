import ParleyVocabulary

/// What is to happen, by time; of two at one moment the one asked for first comes first. A binary heap of places: what
/// happens is large and does not move.
struct EventQueue<Happening> {
  private struct Slot {
    let at: Instant
    let order: UInt64
    let place: Int
    func isBefore(_ other: Slot) -> Bool { at < other.at || at == other.at && order < other.order }
  }

  private var heap: [Slot] = []
  private var places: [Happening?] = []
  private var freePlaces: [Int] = []
  private var nextOrder: UInt64 = 0

  var nextAt: Instant? { heap.first?.at }
  var count: Int { heap.count }

  mutating func add(_ happening: Happening, at: Instant) {
    let slot = Slot(at: at, order: nextOrder, place: place(happening))
    nextOrder += 1
    heap.append(slot)
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard slot.isBefore(heap[parent]) else { break }
      heap[child] = heap[parent]
      child = parent
    }
    heap[child] = slot
  }

  private mutating func place(_ happening: Happening) -> Int {
    guard let free = freePlaces.popLast() else {
      places.append(happening)
      return places.count - 1
    }
    places[free] = happening
    return free
  }

  mutating func takeFirst() -> (at: Instant, happening: Happening)? {
    guard let first = heap.first else { return nil }
    let last = heap.removeLast()
    if !heap.isEmpty { sink(last) }
    freePlaces.append(first.place)
    return (first.at, places[first.place].take()!)
  }

  /// Puts a slot where the first was, then where it belongs.
  private mutating func sink(_ slot: Slot) {
    var parent = 0
    while true {
      var child = 2 * parent + 1
      guard child < heap.count else { break }
      if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
      guard heap[child].isBefore(slot) else { break }
      heap[parent] = heap[child]
      parent = child
    }
    heap[parent] = slot
  }
}

/// A clock that only moves when told.
struct ManualClock {
  private(set) var now: Instant

  init(start: Instant = Instant(microseconds: 1_000_000_000)) { now = start }

  mutating func move(to instant: Instant) {
    precondition(instant >= now, "time does not run backwards")
    now = instant
  }
}
