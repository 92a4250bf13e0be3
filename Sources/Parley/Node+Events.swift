import ParleyActors
import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

extension Node {
  /// Events from now on. A subscriber that does not keep up loses what does not fit `bufferingCount` (at least 1) or a
  /// kibibyte for each of these (1 to 64 MiB), and is told so by `.dropped`. The stream ends when the node has stopped.
  /// One task reads it.
  public func events(bufferingCount: Int = 1_024) async -> AsyncStream<NodeEvent> {
    hub.events(bufferingCount: bufferingCount)
  }

  /// Every message once, in the order in which this node stored them: first those stored after `cursor` (0: all that
  /// is kept; nil: none), of channels that this node is in and from peer to peer, then those to come, also when the
  /// subscriber is slow: what does not fit `bufferingCount` (as there) is read from the store again. Only events
  /// other than messages are lost then, and `.dropped` says how many. With `channel`, only what concerns it.
  ///
  /// A subscriber that keeps the cursor of the last message it is done with goes on from there after a crash, its own
  /// or the node's, and misses and repeats nothing but what was removed from the history meanwhile. The returned
  /// cursor is where the stream begins: to keep until the first message. The stream ends when the node has stopped or
  /// the store cannot be read. One task reads it.
  ///
  /// Throws `.unknownCursor` for one that this node's store has not given yet, `.stopped`, and `.profileDamaged` when
  /// the store cannot be read.
  public func events(
    since cursor: UInt64?, in channel: ChannelName? = nil, bufferingCount: Int = 1_024
  ) async throws(ParleyError) -> (cursor: UInt64, events: AsyncStream<NodeEvent>) {
    let engine = try await running()
    let last: UInt64
    do { last = Hub.end(of: try await engine.store.lastCursor()) } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
    if let cursor, cursor > last { throw .unknownCursor(cursor, last: last) }
    let start = cursor ?? last
    let stream = hub.events(after: start, in: channel, bufferingCount: bufferingCount, pager: pager(engine.store))
    return (start, stream)
  }

  private func pager(_ store: StoreActor) -> Subscriber.Pager {
    { [hub] cursor, name in
      let joined = hub.channels.filter { name == nil || $0.name == name }
      do throws(StoreError) {
        let page = try await store.page(
          after: cursor, in: Set(joined.map(\.id)), peerMessages: name == nil, byteCountMax: 256 << 10)
        let names = Dictionary(uniqueKeysWithValues: joined.map { ($0.id, $0.name) })
        let events = hub.echoed(try await hub.events(page.items, names, store))
        return Subscriber.Page(events: events, through: page.through, isLast: page.isLast)
      } catch {
        if error != .closed { hub.take(.trouble(error.description)) }
        return nil
      }
    }
  }
}

extension Hub {
  /// The highest cursor that a message of this entry or peer message can have.
  static func end(of cursor: UInt64) -> UInt64 { cursor << 8 | 0xFF }

  /// Messages as they are now, and what was done to messages, in the order in which it was stored.
  fileprivate func events(
    _ items: [StoredPage.Item], _ names: [ChannelID: ChannelName], _ store: StoreActor
  ) async throws(StoreError) -> [NodeEvent] {
    var events: [NodeEvent] = []
    var shown: [ChannelID: [MessageKey]] = [:]
    var messages: [(index: Int, channel: ChannelID)] = []
    for item in items {
      switch item {
      case .entry(let stored):
        guard let name = names[stored.channel], let entry = try? Entry(decoding: stored.bytes[...]) else { continue }
        if entry.isHidden {
          let acted = try await store.acted(by: entry, in: stored.channel)
          if !rulebook.isVoid(entry, in: stored.channel) {
            events += changes(entry, stored.cursor, acted, stored.channel, name)
          }
          continue
        }
        for message in self.messages(entry, channel: stored.channel, name: name, cursor: stored.cursor) {
          shown[stored.channel, default: []].append(message.key)
          messages.append((events.count, stored.channel))
          events.append(.message(message))
        }
      case .localMessage(let stored):
        guard let name = names[stored.channel] else { continue }
        let entry = LocalMessage(stored).entry(cursor: stored.cursor)
        for message in self.messages(entry, channel: stored.channel, name: name, cursor: stored.cursor) {
          shown[stored.channel, default: []].append(message.key)
          messages.append((events.count, stored.channel))
          events.append(.message(message))
        }
      case .peerMessage(let stored):
        if let message = peerMessage(stored.json, with: stored.peer, stored.cursor) { events.append(.message(message)) }
      }
    }
    var acts: [ChannelID: [MessageKey: [MessageAct]]] = [:]
    for (channel, keys) in shown { acts[channel] = try await store.acts(on: keys, in: channel) }
    for (index, channel) in messages {
      guard case .message(let message) = events[index] else { continue }
      events[index] = .message(after(acts[channel] ?? [:], [message], in: channel)[0])
    }
    return events
  }
}
