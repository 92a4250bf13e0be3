import ParleyVocabulary

/// One entry of a channel, as it is on disk. The store does not look into `bytes`.
package struct StoredEntry: Sendable, Equatable {
  package var channel: ChannelID
  package var key: LogKey
  /// 1, 2, 3 … within the log, at most `Limit.counterMax`.
  package var number: UInt64
  /// At most `Limit.counterMax`.
  package var lamport: UInt64
  /// Kept and reconciled like any other, but not part of what people scroll through.
  package var isHidden: Bool
  /// Of the hidden: never too old, since what counts in the channel depends on it.
  package var isKept: Bool
  package var bytes: [UInt8]
  /// Given by the store; 0 when not stored yet.
  package var cursor: UInt64
  /// What it does to messages. Nothing in what the store gives out.
  package var acts: [StoredAct] = []
  /// Of the hidden: whether it may say how things stand now, as the last hand of a log does. What only does something
  /// to messages does not.
  package var isStanding = true

  package init(
    channel: ChannelID, key: LogKey, number: UInt64, lamport: UInt64, isHidden: Bool, isKept: Bool = false,
    bytes: [UInt8], cursor: UInt64 = 0, acts: [StoredAct] = []
  ) {
    precondition(isHidden || !isKept, "only hidden entries are kept for ever")
    precondition(isHidden || acts.isEmpty, "only hidden entries do something to messages")
    self.acts = acts
    self.channel = channel
    self.key = key
    self.number = number
    self.lamport = lamport
    self.isHidden = isHidden
    self.isKept = isKept
    self.bytes = bytes
    self.cursor = cursor
  }

  package var order: OrderKey { OrderKey(lamport: lamport, author: key.author, log: key.log, number: number) }
}

/// What is known of one log without reading its entries.
package struct StoredLog: Sendable, Equatable {
  package var key: LogKey
  /// Nothing is kept up to here but the last hidden entry, and nothing will be stored there again; 0 at first.
  package var floor: UInt64
  /// The highest n such that all above `floor` up to n are stored. Never falls.
  package var contiguous: UInt64
  /// The stored numbers above `contiguous` + 1.
  package var beyond: RangeSet<UInt64>

  package init(key: LogKey, floor: UInt64 = 0, contiguous: UInt64, beyond: RangeSet<UInt64> = RangeSet()) {
    self.key = key
    self.floor = floor
    self.contiguous = contiguous
    self.beyond = beyond
  }
}

/// A message between two people, outside every channel.
package struct StoredPeerMessage: Sendable, Equatable {
  /// The other side, whoever wrote.
  package var peer: PeerID
  /// Whether this profile wrote it.
  package var isOwn: Bool
  package var id: MessageID
  package var json: [UInt8]
  /// Given by the store; 0 when not stored yet.
  package var cursor: UInt64

  package init(peer: PeerID, isOwn: Bool, id: MessageID, json: [UInt8], cursor: UInt64 = 0) {
    self.peer = peer
    self.isOwn = isOwn
    self.id = id
    self.json = json
    self.cursor = cursor
  }
}

/// A message of a channel that is no entry: nobody is given it.
package struct StoredLocalMessage: Sendable, Equatable {
  package var channel: ChannelID
  package var author: PeerID
  package var id: MessageID
  /// Its place among the channel's entries; at most `Limit.counterMax`.
  package var lamport: UInt64
  /// At most `Limit.counterMax`.
  package var kind: UInt64
  package var json: [UInt8]
  /// Given by the store; 0 when not stored yet.
  package var cursor: UInt64

  package init(
    channel: ChannelID, author: PeerID, id: MessageID, lamport: UInt64, kind: UInt64, json: [UInt8],
    cursor: UInt64 = 0
  ) {
    self.channel = channel
    self.author = author
    self.id = id
    self.lamport = lamport
    self.kind = kind
    self.json = json
    self.cursor = cursor
  }

  /// Behind the entries of its author that have the same time.
  package var order: OrderKey { OrderKey(lamport: lamport, author: author, log: Instance(.max), number: cursor) }
}

/// A message that waits for its receiver.
package struct OutboxItem: Sendable, Equatable {
  package var peer: PeerID
  package var id: MessageID
  package var json: [UInt8]
  /// What `Store.age` was when it was added; given by the store.
  package var queuedAt: Int64

  package init(peer: PeerID, id: MessageID, json: [UInt8], queuedAt: Int64 = 0) {
    self.peer = peer
    self.id = id
    self.json = json
    self.queuedAt = queuedAt
  }
}

package struct StoredMember: Sendable, Equatable {
  package var channel: ChannelID
  package var peer: PeerID
  package var displayName: String
  package var isOnline: Bool
  /// At most `Limit.counterMax`.
  package var incarnation: UInt64

  package init(channel: ChannelID, peer: PeerID, displayName: String, isOnline: Bool, incarnation: UInt64) {
    self.channel = channel
    self.peer = peer
    self.displayName = displayName
    self.isOnline = isOnline
    self.incarnation = incarnation
  }
}

/// A file of this machine, announced in a channel.
package struct StoredShare: Sendable, Equatable {
  package var id: MediaID
  package var channel: ChannelID
  package var path: String
  package var byteCount: UInt64
  /// Nanoseconds since 1970, of the file's last change when its hashes were taken.
  package var modifiedNanoseconds: Int64
  package var inode: UInt64
  package var kind: String
  package var manifest: [UInt8]
  /// 32 bytes a piece, of all files one after the other.
  package var pieceHashes: [UInt8]
  /// Of a folder: what the caller needs to know its files again. Empty for a file. The store does not look into it.
  package var members: [UInt8]

  package init(
    id: MediaID, channel: ChannelID, path: String, byteCount: UInt64, modifiedNanoseconds: Int64, inode: UInt64,
    kind: String, manifest: [UInt8], pieceHashes: [UInt8], members: [UInt8] = []
  ) {
    self.members = members
    self.id = id
    self.channel = channel
    self.path = path
    self.byteCount = byteCount
    self.modifiedNanoseconds = modifiedNanoseconds
    self.inode = inode
    self.kind = kind
    self.manifest = manifest
    self.pieceHashes = pieceHashes
  }
}

/// What a file hashed to, as long as it stays as it was then.
package struct StoredScan: Sendable, Equatable {
  /// Absolute.
  package var path: String
  package var byteCount: UInt64
  /// Nanoseconds since 1970.
  package var modifiedNanoseconds: Int64
  package var inode: UInt64
  /// 32 bytes a piece.
  package var pieceHashes: [UInt8]

  package init(path: String, byteCount: UInt64, modifiedNanoseconds: Int64, inode: UInt64, pieceHashes: [UInt8]) {
    self.path = path
    self.byteCount = byteCount
    self.modifiedNanoseconds = modifiedNanoseconds
    self.inode = inode
    self.pieceHashes = pieceHashes
  }
}

/// A download that was begun: all that it takes to go on after a restart.
package struct StoredDownload: Sendable, Equatable {
  package var id: MediaID
  package var channel: ChannelID
  package var targetPath: String
  package var partPath: String
  package var manifest: [UInt8]
  /// 32 bytes a piece.
  package var pieceHashes: [UInt8]
  /// Which pieces are verified and written.
  package var bitmap: [UInt8]
  /// Whether an existing file at the target may be replaced.
  package var replacing: Bool
  /// The files of a folder whose piece hashes are kept, a bit each; empty: all.
  package var selected: [UInt8]

  package init(
    id: MediaID, channel: ChannelID, targetPath: String, partPath: String, manifest: [UInt8], pieceHashes: [UInt8],
    bitmap: [UInt8], replacing: Bool, selected: [UInt8] = []
  ) {
    self.selected = selected
    self.id = id
    self.channel = channel
    self.targetPath = targetPath
    self.partPath = partPath
    self.manifest = manifest
    self.pieceHashes = pieceHashes
    self.bitmap = bitmap
    self.replacing = replacing
  }
}

/// One change; `Store.apply` takes many and commits them together.
package enum StoreWrite: Sendable, Equatable {
  /// The first entry under one log and number stays; another is a duplicate.
  case entry(StoredEntry)
  /// The first message under one (channel, author, ID) stays; another is a duplicate.
  case localMessage(StoredLocalMessage)
  /// The first message under one (peer, side, ID) stays; another is a duplicate.
  case peerMessage(StoredPeerMessage)
  /// The first item under one (peer, ID) stays.
  case outboxAdd(OutboxItem)
  case outboxRemove(PeerID, MessageID)
  /// Replaces what was known of this member of this channel.
  case member(StoredMember)
  /// `peer` has the entries of my `log` up to `number`; a lower number than before changes nothing.
  case delivered(ChannelID, log: Instance, peer: PeerID, number: UInt64)
  /// Nobody has this log's entries up to the number any more: the log goes on after it.
  case floor(ChannelID, LogKey, UInt64)
  /// The entry, if it is one that was kept for ever, is a hidden one like others: it goes when it is too old.
  case release(ChannelID, LogKey, UInt64)
  /// Replaces the facts under the same media ID and path, and announces them in the share's channel too.
  case share(StoredShare)
  /// From one channel, or from all. What is announced nowhere is forgotten.
  case unshare(MediaID, ChannelID?)
  /// Replace what these paths hashed to before. Beyond `Store.scanCountMax` and `scanByteCountMax` the oldest go.
  case scans([StoredScan])
  /// Replaces an earlier download of the same media ID.
  case download(StoredDownload)
  /// Nothing when there is no such download.
  case downloadProgress(MediaID, bitmap: [UInt8])
  case downloadRemove(MediaID)
  /// What the user decided about somebody: replaces what was decided before.
  case contact(StoredContact)
  /// What the user set of a channel or a person: replaces what was set before.
  case setting(StoredSetting)
  /// Whose login tokens are believed in the channel; nil: nobody's.
  case organiser(ChannelID, OrganiserKey?)
  /// A login token that was accepted; of one person in one channel so many that last longest are kept.
  case token(StoredToken, countMax: Int)
  /// Its entries, members, deliveries, shares and downloads; the files themselves are the caller's.
  case forgetChannel(ChannelID)
}
