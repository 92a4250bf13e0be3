import ParleyActors
import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// Own messages to some members of a channel, the last ones: which channel, and who is known to have them.
struct DirectedMessages: Sendable {
  private static let countMax = 1_024
  private var channels: [MessageID: ChannelName] = [:]
  private var order: [MessageID] = []

  mutating func note(_ id: MessageID, in channel: ChannelName) {
    guard channels.updateValue(channel, forKey: id) == nil else { return }
    order.append(id)
    if order.count > Self.countMax { channels[order.removeFirst()] = nil }
  }

  func channel(of id: MessageID) -> ChannelName? { channels[id] }
}

// What is no entry.
extension Hub {
  func stored(_ local: LocalMessage, _ cursor: UInt64) {
    guard let name = state.withLock({ $0.channels[local.channel]?.name }) else { return }
    let entry = local.entry(cursor: cursor)
    if case .failure(let refusal) = tokens.word(of: entry, in: local.channel) {
      tell(refusal, of: local.author, in: local.channel, name)
    }
    let messages = allMessages(entry, channel: local.channel, name: name, cursor: cursor)
    for message in messages { note(message, in: local.channel) }
    emit(messages.map { .message($0) })
  }

  /// Of a kind that is never kept.
  func heardLive(_ json: [UInt8], from peer: PeerID, in channel: ChannelID?) {
    guard !people.isBlocked(peer), let message = try? SchemaMessage(decoding: json, author: peer),
      let id = message.messageID
    else { return }
    var name: ChannelName?
    if let channel {
      name = state.withLock { $0.channels[channel]?.name }
      guard name != nil else { return }
    }
    var recognition = people.recognition(of: peer, named: message.sender.displayName.text, in: channel)
    if let channel {
      let word = tokens.word(for: peer, in: channel, at: .now)
      if case .failure = word { return }
      recognition.add(word)
    }
    guard let command = message.content as? CmdKind else { return }
    emit(
      .command(
        Command(
          channel: name, id: id, sender: peer, senderName: message.sender.displayName.text,
          timestamp: message.timestamp ?? "", content: CommandContent(command),
          ext: message.options.ext.map { String(decoding: JSONValue.object($0).encoded, as: UTF8.self) },
          recognition: recognition, json: String(decoding: message.encoded, as: UTF8.self))))
  }

  func noteDirected(_ id: MessageID, in channel: ChannelName) {
    state.withLock { $0.directed.note(id, in: channel) }
  }

  /// The channel in which it was said to some.
  func noteDelivered(_ id: MessageID, to peer: PeerID) -> ChannelName? {
    state.withLock { $0.directed.channel(of: id) }
  }
}
