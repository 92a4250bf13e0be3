import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// A message as a simulated node shows it.
package struct SimulatedMessage: Equatable, Sendable {
  package let key: MessageKey
  package let order: OrderKey
  /// What it said first.
  package let body: String
  package let state: MessageState
  package let isPinned: Bool
}

// What is done to messages.
extension SimulatedNetwork {
  /// Does something to a message that this node shows, one of the last. `number` says what to which: half of it may be
  /// forbidden, and all of it is said past the checks of an honest program.
  package func deed(_ id: SimulatedNodeID, _ channel: String, _ number: UInt64) {
    let node = nodes[id.index]
    let recent = node.store.history(self.channel(named: Self.name(channel))).filter { !$0.isHidden }.suffix(12)
    let keys = recent.flatMap { entry in
      entry.items.compactMap { item -> MessageKey? in
        let message = item.body.flatMap { try? SchemaMessage(decoding: $0, author: entry.key.author) }
        return message?.messageID.map { MessageKey(sender: entry.key.author, id: $0) }
      }
    }.suffix(12)
    guard !keys.isEmpty else { return }
    let target = keys[keys.startIndex + Int(number >> 8 % UInt64(keys.count))]
    switch number % 16 {
    case 0...1: submit(id, channel, RecallKind(target: target), isHidden: true)
    case 2...6:
      let body = EditKind.Content.body("edit \(number % 9_973)")
      let ext = [JSONMember("n", .integer(Int64(number % 97)))]
      submit(
        id, channel, EditKind(target: target, content: number >> 4 & 3 == 0 ? nil : body, ext: ext), isHidden: true)
    case 7...10:
      let emoji = "e\(number >> 32 % 26)"
      submit(id, channel, ReactKind(target: target, emoji: emoji, isOn: number >> 4 & 3 != 0), isHidden: true)
    case 11...12: submit(id, channel, PinKind(target: target, isOn: number >> 4 & 3 != 0), isHidden: true)
    case 13: submit(id, channel, ReadKind(targets: Array(Set(keys)).sorted { $0.id < $1.id }), isHidden: true)
    default:
      // On a message that may never come.
      let other = MessageKey(sender: target.sender, id: self.node(of: target.sender)?.nextMessageID ?? target.id)
      submit(id, channel, ReactKind(target: other, emoji: "early", isOn: true), isHidden: true)
    }
  }

  /// What a node's disk says of a channel, folded: as it is, whenever it is asked.
  package func conversation(_ id: SimulatedNodeID, _ channel: String) -> [SimulatedMessage] {
    conversation(nodes[id.index], self.channel(named: Self.name(channel)))
  }

  func conversation(_ node: SimulatedNode, _ channel: ChannelID) -> [SimulatedMessage] {
    let governance = node.process?.messaging.governances[channel]
    var acts: [MessageKey: [MessageAct]] = [:]
    var pins: [MessageAct] = []
    var messages: [(message: SchemaMessage, entry: Entry)] = []
    for entry in node.store.history(channel) {
      for var act in MessageAct.acts(of: entry) {
        if act.content == .recall { act.isBackdated = node.store.isBackdated(entry, in: channel) }
        acts[act.target, default: []].append(act)
        if case .pin = act.content { pins.append(act) }
      }
      if entry.isHidden || governance?.voidReason(EntryFacts(entry)) != nil { continue }
      for item in entry.items {
        guard let body = item.body, let message = try? SchemaMessage(decoding: body, author: entry.key.author)
        else { continue }
        messages.append((message, entry))
      }
    }
    let board = PinBoard(pins, governance)
    return messages.map { message, entry in
      let key = MessageKey(sender: entry.key.author, id: message.messageID ?? MessageID("none")!)
      let facts = MessageFacts(key: key, type: message.content.type, timestamp: entry.timestamp)
      return SimulatedMessage(
        key: key, order: entry.order, body: (message.content as? TextKind)?.body ?? "",
        state: MessageState(of: facts, acts[key] ?? [], ConversationRule(), governance),
        isPinned: board.pin(of: key) != nil)
    }
  }

  /// In what two conversations differ; nil when they do not.
  func difference(_ one: [SimulatedMessage], _ other: [SimulatedMessage]) -> String? {
    guard one.count == other.count else { return "they show \(one.count) and \(other.count) messages" }
    return zip(one, other).first { $0 != $1 }.map { "they show \($0.0.key.id) differently" }
  }
}

extension SimulatedStore {
  /// Whether an entry before it in its log has a later time.
  func isBackdated(_ entry: Entry, in channel: ChannelID) -> Bool {
    (logs[channel]?[entry.key] ?? [:]).values.contains {
      $0.entry.number < entry.number && $0.entry.timestamp > entry.timestamp
    }
  }
}
