import ParleyVocabulary
import ParleyWire

/// A message that is no entry: said to whoever is there, or to some members only. Every node that has it keeps it for
/// itself, at its place among the entries that it had by then, and gives it to nobody.
package struct LocalMessage: Equatable, Sendable {
  package let channel: ChannelID
  package let author: PeerID
  package let id: MessageID
  /// What our clock showed when it came.
  package let lamport: UInt64
  package let kind: UInt64
  /// Exactly the schema's JSON.
  package let json: [UInt8]

  package init(
    channel: ChannelID, author: PeerID, id: MessageID, lamport: UInt64, kind: UInt64, json: [UInt8]
  ) {
    self.channel = channel
    self.author = author
    self.id = id
    self.lamport = lamport
    self.kind = kind
    self.json = json
  }

  /// As histories have it: under a log that no author has, numbered by its cursor, signed by nobody, said when its
  /// author says.
  package func entry(cursor: UInt64) -> Entry {
    let said = (try? SchemaMessage(decoding: json, author: author))?.saidAt ?? 0
    return Entry(
      key: LogKey(author: author, log: Entry.localLog), number: max(1, cursor), lamport: lamport, timestamp: said,
      isHidden: false, items: [Entry.Item(kind: kind, body: json)])
  }
}

extension Entry {
  /// Stands in histories for the log of what is no entry.
  package static let localLog = Instance(.max)
  /// Made of a message that is no entry. What came as an entry is signed.
  package var isLocal: Bool { signature.isEmpty }
}

/// A message that the application wants said to whoever is there, or to some.
package struct LiveSubmission: Equatable, Sendable {
  package let request: RequestID
  package let id: MessageID
  package let kind: UInt64
  package let json: [UInt8]
  /// Our clock, milliseconds since 1970.
  package let timestamp: UInt64
  /// Whether those who have it keep it; what is not kept is an event.
  package let isKept: Bool

  package init(
    request: RequestID, id: MessageID, kind: UInt64, json: [UInt8], timestamp: UInt64, isKept: Bool
  ) {
    self.request = request
    self.id = id
    self.kind = kind
    self.json = json
    self.timestamp = timestamp
    self.isKept = isKept
  }
}

/// Messages to peers for whoever is there, of which an answer is awaited. Bounded: beyond it the oldest are forgotten,
/// and their answers say nothing.
struct LiveAnswers: Sendable {
  static let countMax = 1_024
  private var awaited: [(peer: PeerID, id: MessageID)] = []

  mutating func await(_ peer: PeerID, _ id: MessageID) {
    if awaited.count == Self.countMax { awaited.removeFirst() }
    awaited.append((peer, id))
  }

  mutating func take(_ peer: PeerID, _ id: MessageID) -> Bool {
    guard let index = awaited.firstIndex(where: { $0.peer == peer && $0.id == id }) else { return false }
    awaited.remove(at: index)
    return true
  }
}

/// Where a message from peer to peer belongs.
enum PeerMessagePlace: Equatable {
  /// To what the two say to each other.
  case apart
  /// To a channel we are in, where it was said to some.
  case channel(ChannelID)

  var channel: ChannelID? { if case .channel(let channel) = self { channel } else { nil } }
}

// Saying.
extension MessagingMachine {
  /// In a channel, to whoever is there.
  mutating func submittedLive(_ channel: ChannelID, _ live: LiveSubmission) -> [MessagingEffect] {
    if let failure = trouble(saying: live, in: channel) { return [.notify(.failed(live.request, failure))] }
    let object = LiveObject(author: me, instance: instance, counter: 0, json: live.json)
    let sent = MessagingEffect.tell(.links(.multicast(channel, [.live(object)])))
    guard live.isKept else { return [sent, .notify(.sent(live.request))] }
    keep(live, in: channel)
    return [sent]
  }

  private func trouble(saying live: LiveSubmission, in channel: ChannelID) -> MessagingFailure? {
    guard channels[channel] != nil else { return .notInChannel }
    if let reason = governances[channel]?.troubleSaying(me, isHidden: false, at: live.timestamp) {
      return .excluded(reason)
    }
    return fullness
  }

  private var fullness: MessagingFailure? {
    recordsByteCount <= MessagingRule.recordsByteCountMax
      ? nil : .queueFull(byteCount: recordsByteCount, byteCountMax: MessagingRule.recordsByteCountMax)
  }

  private mutating func keep(_ live: LiveSubmission, in channel: ChannelID) {
    keptRequests[live.id] = live.request
    let local = LocalMessage(
      channel: channel, author: me, id: live.id, lamport: channels[channel]!.clock, kind: live.kind, json: live.json)
    enqueue(.local(local, isAnswered: false))
  }

  /// To one who is there.
  mutating func toldLive(_ peer: PeerID, _ live: LiveSubmission) -> [MessagingEffect] {
    guard isPresent(peer) else { return [.notify(.failed(live.request, .peerAway))] }
    if let failure = fullness { return [.notify(.failed(live.request, failure))] }
    liveAnswers.await(peer, live.id)
    let sent = MessagingEffect.tell(.links(.send(peer, .livePeerMessage(live.id, json: live.json))))
    guard live.isKept else { return [sent, .notify(.sent(live.request))] }
    keptRequests[live.id] = live.request
    enqueue(.peerMessage(peer, live.id, json: live.json, isOwn: true))
    return [sent]
  }

  /// In a channel, to some of its members: to each as a peer message, all of them or none. `live`: to those of them who
  /// are there.
  mutating func directed(
    _ channel: ChannelID, _ submission: LiveSubmission, to receivers: [PeerID], isLive: Bool, _ queuedAt: UInt64,
    _ now: Instant
  ) -> [MessagingEffect] {
    if let failure = trouble(saying: submission, in: channel) {
      return [.notify(.failed(submission.request, failure))]
    }
    if isLive {
      var effects: [MessagingEffect] = []
      for peer in receivers where isPresent(peer) {
        liveAnswers.await(peer, submission.id)
        effects.append(.tell(.links(.send(peer, .livePeerMessage(submission.id, json: submission.json)))))
      }
      guard submission.isKept else { return effects + [.notify(.sent(submission.request))] }
      keep(submission, in: channel)
      return effects
    }
    let messages = receivers.map { OutboxMessage(peer: $0, id: submission.id, json: submission.json) }
    if let failure = outbox.failure(adding: messages) { return [.notify(.failed(submission.request, failure))] }
    for message in messages {
      outbox.addForLater(message, expiresAt: now + outbox.limits.lifetime)
      enqueue(.outboxAdd(message, queuedAt: queuedAt))
    }
    keep(submission, in: channel)
    return []
  }

  /// What was said by us, and is no entry, is on the disk.
  mutating func kept(_ id: MessageID) -> [MessagingEffect] {
    keptRequests.removeValue(forKey: id).map { [.notify(.sent($0))] } ?? []
  }
}

// Hearing.
extension MessagingMachine {
  /// Its author signed it, and is here.
  mutating func heardLive(_ channel: ChannelID, _ json: [UInt8], _ author: PeerID) -> [MessagingEffect] {
    guard channels[channel] != nil else { return [] }
    guard let message = try? SchemaMessage(decoding: json, author: author), message.isForReaders,
      message.options.direction == nil, message.isLive || message.options.isOnlineOnly,
      mayBeHeard(message, from: author, in: channel), let id = message.messageID
    else {
      refuse()
      return []
    }
    guard !message.isLive else { return [.notify(.live(channel, author, json: json))] }
    return keepHeard(message, id, json, from: author, in: channel, isAnswered: false)
  }

  /// From the session's authenticated peer, for us while we are here. It is answered once it is kept, or told.
  mutating func heardLivePeerMessage(_ id: MessageID, _ json: [UInt8], _ peer: PeerID) -> [MessagingEffect] {
    guard let message = try? SchemaMessage(decoding: json, author: peer), message.messageID == id,
      message.isForReaders, message.isLive || message.options.isOnlineOnly, let place = place(of: message, from: peer)
    else {
      refuse()
      return []
    }
    guard !message.isLive else {
      return [.notify(.live(place.channel, peer, json: json)), .tell(.links(.send(peer, .peerStored(id))))]
    }
    return keepPeerMessage(message, id, json, from: peer, place)
  }

  /// Where a peer message belongs. Nil when it is not for us, or its author may say nothing there.
  func place(of message: SchemaMessage, from peer: PeerID) -> PeerMessagePlace? {
    guard let direction = message.options.direction else { return .apart }
    guard direction.receivers.contains(me) else { return nil }
    guard channels[direction.channel] != nil else { return .apart }
    return mayBeHeard(message, from: peer, in: direction.channel) ? .channel(direction.channel) : nil
  }

  mutating func keepPeerMessage(
    _ message: SchemaMessage, _ id: MessageID, _ json: [UInt8], from peer: PeerID, _ place: PeerMessagePlace
  ) -> [MessagingEffect] {
    guard let channel = place.channel else {
      if recordsByteCount < MessagingRule.recordsByteCountMax {
        enqueue(.peerMessage(peer, id, json: json, isOwn: false))
      }
      return []
    }
    return keepHeard(message, id, json, from: peer, in: channel, isAnswered: true)
  }

  private mutating func keepHeard(
    _ message: SchemaMessage, _ id: MessageID, _ json: [UInt8], from author: PeerID, in channel: ChannelID,
    isAnswered: Bool
  ) -> [MessagingEffect] {
    guard recordsByteCount < MessagingRule.recordsByteCountMax else { return [] }
    let local = LocalMessage(
      channel: channel, author: author, id: id, lamport: channels[channel]!.clock,
      kind: KindRegistry.code(of: message.content.type), json: json)
    enqueue(.local(local, isAnswered: isAnswered))
    return []
  }

  /// As for entries, the time that counts against a mute is the author's.
  private func mayBeHeard(_ message: SchemaMessage, from author: PeerID, in channel: ChannelID) -> Bool {
    guard let governance = governances[channel] else { return true }
    return governance.troubleSaying(author, isHidden: false, at: message.saidAt) == nil
  }
}

extension SchemaMessage {
  /// By the author's clock, milliseconds since 1970; 0 for what is no such time.
  package var saidAt: UInt64 {
    UInt64(clamping: timestamp.flatMap { Timestamp(rfc3339: $0) }?.milliseconds ?? 0)
  }
}
