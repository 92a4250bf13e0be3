import ParleyStore
import ParleyVocabulary
import ParleyWire

/// Searching, and indexing for it: when nobody waits for the store, and before a search.
extension StoreActor {
  /// A step is a commit like that of a batch: between batches that follow one another it would cost what they do.
  static let indexRest = Span.milliseconds(100)
  /// So many wait for a rest at most, and then for a moment without mail: nobody's search has much more to make up for.
  static let unindexedCountMax: UInt64 = 20_000

  /// What is written from now on rests before it is indexed.
  func noteWrite() {
    indexFrom = SystemClock.now() + Self.indexRest
    askForIndexing()
  }

  /// One alarm at a time: it looks for itself whether more was written meanwhile.
  private func askForIndexing() {
    guard !isIndexingAsked else { return }
    isIndexingAsked = true
    wakeIndexing(indexFrom)
  }

  /// Once writes rest, or too much waits: goes on while nothing else waits and enough is left. A write that comes
  /// meanwhile waits for one step at most.
  func indexBehind() async {
    switchboard.store.handled()
    while switchboard.store.isIdle, !isIndexingBroken {
      guard SystemClock.now() >= indexFrom || isIndexFarBehind else { return askForIndexing() }
      guard indexStep() else { return }
      // Lets calls in that do not go through the mailbox.
      await Task.yield()
    }
  }

  private var isIndexFarBehind: Bool {
    guard let store = try? store else { return false }
    return store.lastCursor - store.indexedCursor > Self.unindexedCountMax
  }

  /// False when nothing is worth a step, or it failed.
  private func indexStep() -> Bool {
    do {
      if try store.isIndexingWorthwhile() {
        let reader = EntryReader()
        try store.index(reader.texts, names: reader.names)
        return true
      }
      guard try store.isNamingWorthwhile else { return false }
      try store.name(EntryReader().names)
      return true
    } catch {
      // Told once: the next search tries again and has the error as its own.
      isIndexingBroken = true
      switchboard.notices(.trouble("search is not kept up to date for now: \(error.description)"))
      return false
    }
  }

  /// The newest messages of the channel in which every word occurs, newest first in its order: entries with the places
  /// of such messages in them, falling. `StoreSearch` says what a word is. All that was stored before the call is
  /// looked at.
  package func search(
    _ text: String, in channel: ChannelID, limit: Int
  ) async throws(StoreError) -> [(entry: Entry, cursor: UInt64, places: [Int])] {
    let last = try store.lastCursor
    while try store.isIndexBehind, try store.indexedCursor < last {
      let reader = EntryReader()
      try store.index(reader.texts, names: reader.names)
      // Writes go first.
      await Task.yield()
    }
    isIndexingBroken = false
    var search = StoreSearch(text, in: channel, limit: limit)
    while !search.isOver {
      try store.goOn(&search)
      await Task.yield()
    }
    return try store.found(search).compactMap { found in
      (try? Entry(decoding: found.entry.bytes[...])).map { ($0, found.entry.cursor, found.places) }
    }
  }
}
