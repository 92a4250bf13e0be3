import ParleyVocabulary

/// Whose turn is when: a binary heap with one entry for each member at most that counts. An entry may stand for a
/// moment that has moved on; whoever takes it asks the member and puts it back, so what a member says costs nothing
/// here.
struct DueQueue: Equatable, Sendable {
  struct Entry: Equatable, Sendable {
    let at: Instant
    let peer: PeerID
    func isBefore(_ other: Entry) -> Bool { at < other.at || at == other.at && peer < other.peer }
  }

  private var heap: [Entry] = []

  var first: Entry? { heap.first }
  var count: Int { heap.count }

  mutating func add(_ entry: Entry) {
    heap.append(entry)
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard entry.isBefore(heap[parent]) else { break }
      heap[child] = heap[parent]
      child = parent
    }
    heap[child] = entry
  }

  mutating func removeFirst() -> Entry {
    let first = heap[0]
    let last = heap.removeLast()
    guard !heap.isEmpty else { return first }
    var parent = 0
    while true {
      var child = 2 * parent + 1
      guard child < heap.count else { break }
      if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
      guard heap[child].isBefore(last) else { break }
      heap[parent] = heap[child]
      parent = child
    }
    heap[parent] = last
    return first
  }
}
