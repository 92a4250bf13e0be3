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
    // All who were ever seen there: messages are found by who sent them and their ID together.
    let authors = Set(await engine.membership.members(of: joined.id).map(\.peer)).union([peerID])
    var found: [MessageID: Set<PeerID>] = [:]
    for id in Set(ids) {
      for author in authors {
        let reference = MessageReference(sender: author, id: id)
        if try await find(reference, in: joined, engine) != nil { found[id, default: []].insert(author) }
      }
    }
    var references: [MessageReference] = []
    for id in ids {
      guard let senders = found[id], let sender = senders.first else { throw .unknownMessageID(id, name) }
      guard senders.count == 1 else { throw .ambiguousMessage(id, senders: senders.sorted()) }
      references.append(MessageReference(sender: sender, id: id))
    }
    return references
  }

  /// The messages as they are now, in the order asked for. Throws `.noSuchMessage` for the first that is not here,
  /// `.refusedDeed` for one that was taken back.
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
}
