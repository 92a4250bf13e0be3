import ParleyActors
import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// What became of a broadcast in one room.
public struct BroadcastOutcome: Sendable, Equatable {
  public let channel: ChannelName
  /// Nil where it was not said.
  public let receipt: SendReceipt?
  /// Why it was not said there.
  public let error: ParleyError?

  public init(channel: ChannelName, receipt: SendReceipt?, error: ParleyError?) {
    self.channel = channel
    self.receipt = receipt
    self.error = error
  }
}

extension Node {
  /// Says something in every room of which this node is the owner or an admin, marked as said to all of them. By name.
  ///
  /// Throws `.notPermitted` when there is no such room; what goes wrong in one of them stands in its outcome.
  public func broadcast(_ draft: MessageDraft) async throws(ParleyError) -> [BroadcastOutcome] {
    _ = try await running()
    let rooms = hub.channels.filter { hub.mayBroadcast(peerID, in: $0.id, $0.type) }
    guard !rooms.isEmpty else {
      throw .notPermitted("only the owner and the admins of rooms speak to all of them: nothing was sent")
    }
    var outcomes: [BroadcastOutcome] = []
    for room in rooms {
      do throws(ParleyError) {
        let receipt = try await send(draft.broadcast(), to: room.name)
        outcomes.append(BroadcastOutcome(channel: room.name, receipt: receipt, error: nil))
      } catch {
        outcomes.append(BroadcastOutcome(channel: room.name, receipt: nil, error: error))
      }
    }
    return outcomes
  }

  /// What a channel of this type takes, and a room at this moment. Throws `.badField`, `.notAllowed`,
  /// `.messageDropped`.
  func admit(_ options: MessageOptions, in joined: Hub.Joined) throws(ParleyError) {
    let priority = Message.Priority(rawValue: options.priority.rawValue)!
    guard joined.type == .room else {
      if priority != .normal { throw .badField("priority", value: priority.rawValue, allowed: "in rooms only") }
      if options.isBroadcast { throw .badField("broadcast", value: "true", allowed: "in rooms only") }
      return
    }
    if options.needsReceipt {
      throw .badField("needs_receipt", value: "true", allowed: "in groups and to one person, never in rooms")
    }
    if options.isBroadcast, !hub.mayBroadcast(peerID, in: joined.id, joined.type) {
      throw .notAllowed(joined.name, hub.rulebook.governance(of: joined.id) == nil ? .noOwner : .notAdmin)
    }
    guard hub.admit(priority, in: joined) else {
      throw .messageDropped(joined.name, priority, perSecondMax: RoomRate.limit(of: priority.rank))
    }
  }
}

/// What was heard of a room lately, and what was not sent there.
struct RoomBook: Sendable {
  var rate = RoomRate()
  var droppedCount = 0
}

extension Message.Priority {
  var rank: RoomRate.Rank {
    switch self {
    case .low: .low
    case .normal: .normal
    case .high: .high
    }
  }
}

extension Hub {
  /// Owner and admins of a room speak to all rooms.
  func mayBroadcast(_ peer: PeerID, in channel: ChannelID, _ type: ChannelType) -> Bool {
    type == .room && rulebook.governance(of: channel)?.standing(of: peer).isPrivileged == true
  }

  /// Whether a message of this node's may be said in a room now. What may not is counted and told.
  func admit(_ priority: Message.Priority, in joined: Joined) -> Bool {
    let now = SystemClock.now()
    let droppedCount = state.withLock { state -> Int? in
      if state.rooms[joined.id, default: RoomBook()].rate.admit(priority.rank, at: now) { return nil }
      state.rooms[joined.id]!.droppedCount += 1
      return state.rooms[joined.id]!.droppedCount
    }
    guard let droppedCount else { return true }
    emit(.messageDropped(joined.name, priority, droppedCount: droppedCount))
    return false
  }

  func droppedCount(in channel: ChannelID) -> Int { state.withLock { $0.rooms[channel]?.droppedCount ?? 0 } }

  /// With the options that count in a channel of this type: in rooms nobody says what they have read; only there are
  /// priorities, and only whoever helps to run a room speaks to all.
  func counting(_ message: SchemaMessage, in channel: ChannelID) -> SchemaMessage {
    let type = state.withLock { $0.channels[channel]?.type ?? $0.secrets[channel]?.type ?? .group }
    var options = message.options
    if type == .room { options.needsReceipt = false } else { options.priority = .normal }
    if options.isBroadcast, !mayBroadcast(message.sender.peer, in: channel, type) { options.isBroadcast = false }
    guard options != message.options else { return message }
    return SchemaMessage(
      sender: message.sender, messageID: message.messageID, timestamp: message.timestamp, content: message.content,
      options: options)
  }
}

extension Hub.State {
  /// Somebody else's message in a room counts for what this node may say there.
  mutating func heard(_ message: Message, by me: PeerID) {
    guard message.sender != me, let name = message.channel,
      let joined = channels.values.first(where: { $0.name == name }), joined.type == .room
    else { return }
    rooms[joined.id, default: RoomBook()].rate.note(message.options.priority.rank, at: SystemClock.now())
  }
}

extension ParleyError {
  /// Of what can befall messages and attributes in rooms.
  var roomSentence: String {
    switch self {
    case .messageDropped(let name, let priority, let perSecondMax):
      "\(name.text.escapedLine) has \(perSecondMax) messages a second that are at least as important: this one of "
        + "\(priority.rawValue) priority was not sent; send it again in a moment, or with a higher priority"
    case .attribute(_, let key, let refusal): refusal.sentence(key)
    default: preconditionFailure("asked for these cases only")
    }
  }
}
