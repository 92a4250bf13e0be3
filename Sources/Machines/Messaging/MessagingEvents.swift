import ParleyVocabulary
import ParleyWire

/// A message that the application wants said in a channel.
package struct Submission: Equatable, Sendable {
  package let request: RequestID
  package let kind: UInt64
  package let isHidden: Bool
  /// Exactly the schema's JSON.
  package let json: [UInt8]
  /// Our clock, milliseconds since 1970.
  package let timestamp: UInt64

  package init(request: RequestID, kind: UInt64, isHidden: Bool, json: [UInt8], timestamp: UInt64) {
    self.request = request
    self.kind = kind
    self.isHidden = isHidden
    self.json = json
    self.timestamp = timestamp
  }
}

/// What the disk had of one log.
package struct RestoredLog: Equatable, Sendable {
  package let key: LogKey
  /// Everything up to it has gone: too old.
  package let floor: UInt64
  /// Above the floor everything up to this is there.
  package let contiguous: UInt64
  package let beyond: RangeSet<UInt64>
  package init(key: LogKey, floor: UInt64 = 0, contiguous: UInt64, beyond: RangeSet<UInt64> = RangeSet()) {
    self.key = key
    self.floor = floor
    self.contiguous = contiguous
    self.beyond = beyond
  }
}

/// Up to where a log has gone from the disk.
package struct LogFloor: Equatable, Sendable {
  package let key: LogKey
  package let floor: UInt64
  package init(key: LogKey, floor: UInt64) {
    self.key = key
    self.floor = floor
  }
}

package struct OutboxMessage: Equatable, Sendable {
  package let peer: PeerID
  package let id: MessageID
  package let json: [UInt8]
  package init(peer: PeerID, id: MessageID, json: [UInt8]) {
    self.peer = peer
    self.id = id
    self.json = json
  }
}

/// What waited on the disk since an earlier run.
package struct RestoredOutboxMessage: Equatable, Sendable {
  package let message: OutboxMessage
  /// How long it has waited so far.
  package let age: Span
  package init(_ message: OutboxMessage, age: Span) {
    self.message = message
    self.age = age
  }
}

package enum MessagingEvent: Equatable, Sendable {
  case joined(ChannelID, logs: [RestoredLog], lamport: UInt64)
  case left(ChannelID)
  /// Before `.joined`: what is said in this channel counts as its acts have it.
  case owned(ChannelID, ChannelOwnership)
  /// Entries that hold acts, from the disk.
  case actsStored(ChannelID, [Entry])
  /// What `.readActs` asked for.
  case actsRead(ChannelID, [Act])
  /// Oldest first.
  case outboxRestored([RestoredOutboxMessage])
  /// The disk has let go of what was too old.
  case pruned(ChannelID, [LogFloor])

  case submitted(ChannelID, Submission)
  case entrySigned(ChannelID, Entry)
  /// An encoded entry came by datagram. `from` is nil when its sender has not introduced itself yet.
  case entryHeard(ChannelID, [UInt8], from: PeerID?)
  case entryVerified(ChannelID, Entry, isGenuine: Bool)
  /// The batch is in the store, where a power cut may still take it; a cursor for each record, 0 where it was there
  /// already. It may be shown, and not yet promised.
  case committed(batch: UInt64, cursors: [UInt64])
  /// What was committed up to this batch is on the disk.
  case synced(through: UInt64)
  /// The batch is on the disk, and all before it: committed and synced in one.
  case persisted(batch: UInt64, cursors: [UInt64])
  /// Nothing that was committed and not synced is known to be on the disk.
  case syncFailed(reason: String)
  case persistFailed(batch: UInt64, reason: String)
  case loaded(LoadID, [[UInt8]])

  case memberPresent(ChannelID, PeerID, Instance, PresenceFacts)
  case presenceHeard(ChannelID, PeerID, PresenceFacts)
  case memberGone(ChannelID, PeerID)
  case acknowledged(ChannelID, PeerID, log: Instance, number: UInt64)
  case sessionMessage(PeerID, SessionMessage)
  case sessionFailed(PeerID)

  /// A message from peer to peer; `queuedAt` is our clock, milliseconds since 1970.
  case told(RequestID, OutboxMessage, queuedAt: UInt64)
  /// For whoever is in the channel now.
  case submittedLive(ChannelID, LiveSubmission)
  /// For a peer who is there.
  case toldLive(PeerID, LiveSubmission)
  /// For some members of a channel; `isLive`: for those who are there.
  case directed(ChannelID, LiveSubmission, to: [PeerID], isLive: Bool, queuedAt: UInt64)
  /// A live object of a member who is present; its signature and its counter are checked.
  case liveHeard(ChannelID, PeerID, json: [UInt8])
  case woke
}

package struct LoadID: Hashable, Sendable {
  package let value: UInt64
  package init(_ value: UInt64) { self.value = value }
}

package enum MessagingRecord: Equatable, Sendable {
  case entry(ChannelID, Entry)
  case peerMessage(PeerID, MessageID, json: [UInt8], isOwn: Bool)
  /// `isAnswered`: its author is told that it is here.
  case local(LocalMessage, isAnswered: Bool)
  case outboxAdd(OutboxMessage, queuedAt: UInt64)
  case outboxRemove(PeerID, MessageID)
  case delivered(ChannelID, log: Instance, PeerID, number: UInt64)
  /// What is not here up to this number is to be had from nobody.
  case floor(ChannelID, LogKey, UInt64)

  static func byteCount(of entry: Entry) -> Int {
    200 + entry.items.reduce(0) { $0 + 48 + ($1.body?.count ?? 0) }
  }

  var byteCount: Int {
    switch self {
    case .entry(_, let entry): Self.byteCount(of: entry)
    case .peerMessage(_, _, let json, _): 120 + json.count
    case .local(let message, _): 160 + message.json.count
    case .outboxAdd(let message, _): 120 + message.json.count
    case .outboxRemove, .delivered, .floor: 120
    }
  }
}

package enum MessagingEffect: Equatable, Sendable {
  case sign(ChannelID, Entry)
  case verify(ChannelID, Entry)
  /// Answered by `.actsRead` before the next effect is carried out: whether grants are genuine is not known here.
  case readActs(ChannelID, [Entry])
  /// Answered by `.actsStored`, with all there are of these authors.
  case loadActs(ChannelID, Set<PeerID>)
  case persist(batch: UInt64, [MessagingRecord])
  /// Encoded entries of these ranges, in order of number, up to so many bytes (one at least).
  case load(LoadID, ChannelID, [LogRange], byteCountMax: Int)
  case notify(MessagingNotice)
  case wake(at: Instant)
  case tell(NodeEvent)
}

/// What the application is told.
package enum MessagingNotice: Equatable, Sendable {
  /// On the disk and on the wire.
  case stored(RequestID, ChannelID, LogKey, number: UInt64)
  /// Gone out to whoever is there, or in the outbox; on the disk, if it is kept.
  case sent(RequestID)
  /// In the outbox, on the disk.
  case queued(RequestID)
  case failed(RequestID, MessagingFailure)
  /// In the store: to be shown. A power cut may take it until `.synced`.
  case entryStored(ChannelID, Entry, cursor: UInt64)
  /// Comes before the entries that it decides on.
  case governed(ChannelID, Governance, Governance.Change)
  /// All that was shown up to this cursor is on the disk.
  case synced(cursor: UInt64)
  /// This member has everything of our log after the one number up to the other, on disk. What we let go ourselves is
  /// not spoken of.
  case delivered(ChannelID, log: Instance, after: UInt64, through: UInt64, to: PeerID)
  case peerMessage(PeerID, MessageID, json: [UInt8], cursor: UInt64)
  case peerDelivered(PeerID, MessageID)
  /// As `entryStored`, of what is no entry.
  case localStored(LocalMessage, cursor: UInt64)
  /// Of a kind that is never kept; `channel` is nil from peer to peer.
  case live(_ channel: ChannelID?, PeerID, json: [UInt8])
  /// This author costs more than a member may, or did what none may.
  case overLimit(ChannelID, PeerID, MemberExcess)
  /// From this number on the log is shown to nobody.
  case equivocated(ChannelID, EquivocationProof)
  /// It waited for as long as it may, in vain, and is no longer tried.
  case peerExpired(PeerID, MessageID)
}

package enum MessagingFailure: Equatable, Sendable {
  case notInChannel
  /// It would not count.
  case excluded(VoidReason)
  /// So many bytes wait to be written already.
  case queueFull(byteCount: Int, byteCountMax: Int)
  /// So many messages, or bytes, wait for peers who are away.
  case outboxFull(count: Int, countMax: Int, byteCount: Int, byteCountMax: Int)
  /// It was only for whoever is there, and nobody is.
  case peerAway
  case disk(String)
  /// Not even taken: the disk refuses what came before.
  case diskRefuses(String)
}
