import ParleyActors
import ParleyMachines
import ParleyVocabulary
import ParleyWire

extension Node {
  /// Of UTF-8. Each word costs a pass over what has it.
  private static let searchByteCountMax = 1_024

  /// The newest messages in which every word of `text` occurs, in texts and in names of files: of one channel, or of
  /// all this node is in (nil). At most `limit` (1 to 1,000), newest first: of a channel in the order that its members
  /// share; channels among each other by their authors' clocks.
  ///
  /// Words are what spaces part, in any script; case, accents and vowel signs do not count. Each is found as it stands,
  /// the last one also as the beginning of a longer word. Languages written without spaces, Korean and emoji are found
  /// from any place. Quotes and operators have no meaning. A text without a letter, digit or symbol finds nothing.
  ///
  /// Everything stored before the call is looked at. Throws `.searchTooLong` (1,024 bytes), `.notInChannel`, and
  /// `.profileDamaged` when the store can not be read or the index not be brought up to date.
  public func search(
    _ text: String, in name: ChannelName?, limit: Int
  ) async throws(ParleyError) -> [Message] {
    let engine = try await running()
    guard text.utf8.count <= Self.searchByteCountMax else {
      throw .searchTooLong(byteCount: text.utf8.count, byteCountMax: Self.searchByteCountMax)
    }
    let places = if let name { [try channel(name)] } else { hub.channels }
    let count = max(1, min(limit, 1_000))
    var byChannel: [[(time: UInt64, message: Message)]] = []
    do {
      for place in places {
        let found = try await engine.store.search(text, in: place.id, limit: count)
        let all = found.reversed().flatMap { messages($0.entry, $0.cursor, $0.places, in: place) }
        let now = try await after(all.map(\.message), in: place, engine)
        byChannel.append(zip(all, now).map { ($0.time, $1) }.filter { $0.1.state.recalled == nil })
      }
    } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
    // Each list ends with its newest message.
    var newest: [Message] = []
    while newest.count < count {
      let lasts = byChannel.indices.filter { !byChannel[$0].isEmpty }
      guard let next = lasts.max(by: { byChannel[$0].last!.time < byChannel[$1].last!.time }) else { break }
      newest.append(byChannel[next].removeLast().message)
    }
    return newest
  }

  /// Those in these places, oldest first.
  private func messages(
    _ entry: Entry, _ cursor: UInt64, _ places: [Int], in joined: Hub.Joined
  ) -> [(time: UInt64, message: Message)] {
    let cursors = Set(places.map { cursor << 8 | UInt64($0) })
    let messages = hub.messages(entry, channel: joined.id, name: joined.name, cursor: cursor)
      .filter { cursors.contains($0.cursor) }
    return messages.map { (entry.timestamp, $0) }
  }
}
