import ParleyVocabulary

/// What is to happen, by time; of two at one moment the one asked for first comes first. A binary heap.
struct EventQueue<Happening> {
  private struct Slot {
    let at: Instant
    let order: UInt64
    let happening: Happening
    func isBefore(_ other: Slot) -> Bool { at < other.at || at == other.at && order < other.order }
  }

  private var heap: [Slot] = []
  private var nextOrder: UInt64 = 0

  var nextAt: Instant? { heap.first?.at }
  var count: Int { heap.count }

  mutating func add(_ happening: Happening, at: Instant) {
    heap.append(Slot(at: at, order: nextOrder, happening: happening))
    nextOrder += 1
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard heap[child].isBefore(heap[parent]) else { break }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  mutating func takeFirst() -> (at: Instant, happening: Happening)? {
    guard let first = heap.first else { return nil }
    let last = heap.removeLast()
    guard !heap.isEmpty else { return (first.at, first.happening) }
    heap[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].isBefore(heap[least]) {
        least = child
      }
      if least == parent { break }
      heap.swapAt(parent, least)
      parent = least
    }
    return (first.at, first.happening)
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
