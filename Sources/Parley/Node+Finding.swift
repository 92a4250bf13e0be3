import ParleyActors
import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// Messages by what names them.
extension Node {
  /// Who sent the messages with these IDs. Throws `.unknownMessageID` for the first that is not here, and
  /// `.ambiguousMessage` where several people chose one ID.
  public func references(
    to ids: [MessageID], in name: ChannelName
  ) async throws(ParleyError) -> [MessageReference] {
    let engine = try await running()
    let joined = try channel(name)
    let wanted = Set(ids)
    var found: [MessageID: Set<PeerID>] = [:]
    try await look(in: joined, engine) { message in
      if wanted.contains(message.id) { found[message.id, default: []].insert(message.sender) }
      return true
    }
    var references: [MessageReference] = []
    for id in ids {
      guard let senders = found[id], let sender = senders.first else { throw .unknownMessageID(id, name) }
      guard senders.count == 1 else { throw .ambiguousMessage(id, senders: senders.sorted()) }
      references.append(MessageReference(sender: sender, id: id))
    }
    return references
  }

  /// The messages as they are now, in the order asked for. Throws `.noSuchMessage` for the first
  /// that is not here, `.refusedDeed` for one that was taken back.
  func messages(_ references: [MessageReference], in joined: Hub.Joined) async throws(ParleyError) -> [Message] {
    let engine = try await running()
    var messages: [Message] = []
    for reference in references {
      guard let message = try await find(reference, in: joined, engine) else { throw .noSuchMessage(reference) }
      if message.state.recalled != nil { throw .refusedDeed(reference, .recalled) }
      messages.append(message)
    }
    return messages
  }

  /// The newest first, until `isGoingOn` says no; of so many entries at most.
  private func look(
    in joined: Hub.Joined, _ engine: Engine, _ isGoingOn: (Message) -> Bool
  ) async throws(ParleyError) {
    do {
      var next: OrderKey?
      for _ in 0..<Self.foundEntryCountMax / Self.foundPage {
        let page = try await engine.store.history(of: joined.id, before: next, limit: Self.foundPage)
        for (entry, cursor) in page.entries {
          for message in hub.messages(entry, channel: joined.id, name: joined.name, cursor: cursor).reversed()
          where !isGoingOn(message) {
            return
          }
        }
        next = page.next
        if next == nil { return }
      }
    } catch { throw .profileDamaged(path: settings.home, reason: "\(error)") }
  }

  private static let foundPage = 256
  private static let foundEntryCountMax = 100_000
}
