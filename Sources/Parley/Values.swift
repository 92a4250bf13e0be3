/// A member of a channel as this node sees it now.
public struct Member: Sendable, Equatable {
  /// Online is who answers now; offline is everybody else ever seen in the channel.
  public enum Status: String, Sendable { case online, offline }
  /// Who it is: the public key, not the name.
  public let peer: PeerID
  /// Decoration chosen by the member; hostile until shown escaped (`escapedLine`).
  public let displayName: String
  /// In which section of the list the member stands.
  public let status: Status
  /// Never set for an offline member.
  public let isHandRaised: Bool
  /// Whether this is the node itself.
  public let isSelf: Bool
  /// What is known of who they are, beyond that name.
  public let recognition: Recognition
  /// Nil in channels without an owner.
  public let role: MemberRole?
  /// What it did more of in this run than a member may (`NodeSettings.memberLimits`), or what none may do.
  public let excesses: [MemberExcess]

  public init(
    peer: PeerID, displayName: String, status: Status, isHandRaised: Bool, isSelf: Bool,
    recognition: Recognition = .none, role: MemberRole? = nil, excesses: [MemberExcess] = []
  ) {
    self.recognition = recognition
    self.role = role
    self.peer = peer
    self.displayName = displayName
    self.status = status
    self.isHandRaised = isHandRaised
    self.isSelf = isSelf
    self.excesses = excesses
  }
}

/// A channel this node is in.
public struct ChannelSummary: Sendable, Equatable {
  /// The channel, as this node joined it.
  public let name: ChannelName
  /// Open channels can be joined by anyone who knows or guesses the name.
  public let isOpen: Bool
  /// Members online, this node included.
  public let onlineCount: Int
  /// Members ever seen, online or not, this node included.
  public let memberCount: Int
  /// What it is for.
  public let type: ChannelType
  /// Own messages that were not sent because a room had too many (`ParleyError.messageDropped`), in this run.
  public let droppedCount: Int

  public init(
    name: ChannelName, isOpen: Bool, onlineCount: Int, memberCount: Int, type: ChannelType = .group,
    droppedCount: Int = 0
  ) {
    self.type = type
    self.droppedCount = droppedCount
    self.name = name
    self.isOpen = isOpen
    self.onlineCount = onlineCount
    self.memberCount = memberCount
  }
}

/// What a channel's key is made from.
public enum ChannelSecret: Sendable {
  /// Derived from the name: anyone who guesses the name is in.
  case open
  /// Derived by Argon2id (3 passes, 64 MiB): takes about a tenth of a second of a core. UTF-8 bytes, 1 to 1,024.
  case passphrase([UInt8])
}

/// A file, folder, photo or video that a message announces.
public struct MediaReference: Sendable, Equatable {
  /// What to download it by.
  public let id: MediaID
  /// As the sender named it: hostile until shown escaped or made safe (`SafeFileName`).
  public let fileName: String
  /// In bytes; nil when the message does not say.
  public let byteCount: UInt64?
  /// What the sender took it for; receivers decide for themselves.
  public let mimeType: String?
  /// Whether it is announced as a folder with files in it.
  public var isFolder: Bool { mimeType == "inode/directory" }
  /// Of a photo or video: its size and smaller pictures of it. Nil for other files.
  public let picture: PictureReference?

  public init(
    id: MediaID, fileName: String, byteCount: UInt64?, mimeType: String?, picture: PictureReference? = nil
  ) {
    self.id = id
    self.fileName = fileName
    self.byteCount = byteCount
    self.mimeType = mimeType
    self.picture = picture
  }
}

/// One message, checked: its sender is who signed it.
public struct Message: Sendable, Equatable {
  /// What it says, by kind.
  public enum Body: Sendable, Equatable {
    /// Hostile until shown escaped (`escapedText`). At most 30,000 bytes with the JSON around it.
    case text(String)
    /// A picture to download.
    case photo(MediaReference)
    /// Moving pictures to download.
    case video(MediaReference)
    /// A file to download.
    case file(MediaReference)
    /// Recorded speech to download, of so many whole seconds.
    case voice(MediaReference, seconds: Int)
    /// A place.
    case location(Location)
    /// What an application made of its own.
    case custom(CustomContent)
    /// Messages that somebody put together: `Node.unpack(_:)`.
    case combine(CombinedMessages)
    /// A photo, voice, video or file on a server of the application's own: nodes transfer nothing of it.
    case remote(RemoteMedia)
    /// A kind that this version does not know; its JSON is kept in `json`.
    case unknown(kind: String)
    /// Taken back, a message of this kind: what it said is not shown any more. `state` says by whom.
    case recalled(kind: String)
  }
  /// Nil for a message from peer to peer.
  public let channel: ChannelName?
  /// With `sender` the key of the message everywhere.
  public let id: MessageID
  /// Who signed it.
  public let sender: PeerID
  /// As the sender wished to be shown when writing: hostile until shown escaped.
  public let senderName: String
  /// RFC 3339, UTC, as the sender's clock had it.
  public let timestamp: String
  /// The content.
  public let body: Body
  /// The checked message, encoded again: exactly the members of the schema.
  public let json: String
  /// Where this message stands in this node's own sequence of arrivals; rises, never reused. With it
  /// `Node.events(since:)` goes on after this message.
  public let cursor: UInt64
  /// Who besides the author is known to have it stored; empty for other people's messages.
  public internal(set) var deliveredTo: [PeerID]
  /// Of a message from peer to peer: the other one, who wrote it or to whom it went. Nil in a channel.
  public let peer: PeerID?
  /// What is known of who the sender is, beyond that name.
  public let recognition: Recognition
  /// Data of the application: the text of a JSON object. Hostile.
  public let ext: String?
  /// Whether nobody is to be notified of it (`ChannelSettings.isMuted`, `PeerSettings.isMuted`).
  public internal(set) var isMuted = false
  /// What it answers; may be a message that is not here.
  public let replyTo: MessageReference?
  /// Of the media it announces, what this node fetched beforehand (`NodeSettings.downloadsThumbnails`,
  /// `downloadsVoice`): it can be read at once, also when nobody else is present.
  public let fetched: [MediaID]
  /// What was done to it, as far as this node knows and as it counts: `body`, `ext` and `json` are what it says now.
  public internal(set) var state = State.untouched
  /// As its author signed it, milliseconds since 1970; 0 for a message from peer to peer.
  var signedAt: UInt64 = 0
  /// What it announced before it was taken back.
  var recalledMedia: [MediaID] = []
  /// What its sender asked for beside.
  public let options: Options

  public init(
    channel: ChannelName?, id: MessageID, sender: PeerID, senderName: String, timestamp: String, body: Body,
    json: String, cursor: UInt64, deliveredTo: [PeerID], peer: PeerID? = nil, recognition: Recognition = .none,
    ext: String? = nil, replyTo: MessageReference? = nil, fetched: [MediaID] = [], options: Options = .none
  ) {
    self.fetched = fetched
    self.options = options
    self.recognition = recognition
    self.ext = ext
    self.replyTo = replyTo
    self.channel = channel
    self.peer = peer
    self.id = id
    self.sender = sender
    self.senderName = senderName
    self.timestamp = timestamp
    self.body = body
    self.json = json
    self.cursor = cursor
    self.deliveredTo = deliveredTo
  }
}

/// What is known when `send` returns.
public struct SendReceipt: Sendable, Equatable {
  /// With `sender` the key of the message everywhere.
  public let id: MessageID
  /// Members known to have stored the message when the call returned.
  public let deliveredTo: [PeerID]
  /// Other members present when the call returned.
  public let presentCount: Int

  public init(id: MessageID, deliveredTo: [PeerID], presentCount: Int) {
    self.id = id
    self.deliveredTo = deliveredTo
    self.presentCount = presentCount
  }
}

/// What became of a message to one person.
public enum TellOutcome: Sendable, Equatable {
  /// The peer has stored it.
  case delivered(MessageID)
  /// The peer is away; it waits on disk and goes out when the peer appears.
  case queued(MessageID)
}

/// A person this node has met in any of its channels.
public struct PeerSummary: Sendable, Equatable {
  /// Who it is: the public key, not the name.
  public let peer: PeerID
  /// Decoration: hostile until shown escaped.
  public let displayName: String
  /// Whether they answer now, in any channel of ours.
  public let isOnline: Bool

  public init(peer: PeerID, displayName: String, isOnline: Bool) {
    self.peer = peer
    self.displayName = displayName
    self.isOnline = isOnline
  }
}

/// What one message announces, and who has it.
public struct MediaSummary: Sendable, Equatable {
  /// The file, photo or video.
  public let media: MediaReference
  /// The schema's `type`: `photo`, `video`, `voice` or `file`.
  public let kind: String
  /// Who signed it.
  public let sender: PeerID
  /// As the sender wished to be shown when writing: hostile until shown escaped.
  public let senderName: String
  /// Members present (this node included) that answered that they have all of it.
  public let holderCount: Int
  /// Whether this node can serve it: shared from here, or downloaded.
  public let isHeldHere: Bool

  public init(
    media: MediaReference, kind: String, sender: PeerID, senderName: String, holderCount: Int, isHeldHere: Bool
  ) {
    self.media = media
    self.kind = kind
    self.sender = sender
    self.senderName = senderName
    self.holderCount = holderCount
    self.isHeldHere = isHeldHere
  }
}

/// How far the reading of what is being shared has come.
public struct ShareProgress: Sendable, Equatable {
  /// Bytes whose hashes are known.
  public let hashedByteCount: UInt64
  /// Of so many.
  public let byteCount: UInt64
  /// In so many files.
  public let fileCount: Int

  public init(hashedByteCount: UInt64, byteCount: UInt64, fileCount: Int) {
    self.hashedByteCount = hashedByteCount
    self.byteCount = byteCount
    self.fileCount = fileCount
  }
}

/// What was shared.
public struct SharedMedia: Sendable, Equatable {
  /// What the channel was told.
  public let media: MediaReference
  /// 1, or how many files of the folder.
  public let fileCount: Int
  /// How many entries of the folder are not among them.
  public let skippedCount: Int
  /// The first 100 of those.
  public let skipped: [SkippedFile]
  /// What could not be done, such as a preview: a sentence each.
  public let notes: [String]

  public init(
    media: MediaReference, fileCount: Int, skippedCount: Int, skipped: [SkippedFile], notes: [String] = []
  ) {
    self.notes = notes
    self.media = media
    self.fileCount = fileCount
    self.skippedCount = skippedCount
    self.skipped = skipped
  }
}

/// An entry of a folder that was not shared with it.
public struct SkippedFile: Sendable, Equatable {
  /// Below the folder; to be shown escaped (`escapedLine`).
  public let path: String
  /// Such as "is a symbolic link", in words for people.
  public let reason: String

  public init(path: String, reason: String) {
    self.path = path
    self.reason = reason
  }
}

/// How a file is announced.
public enum ShareKind: String, Sendable {
  /// A picture without what it says of place, time and device; its pixels are those of the file. With a thumbnail and,
  /// if it is large, a smaller big picture.
  case photo
  /// The same, but the file goes out as it is, its location included.
  case originalPhoto = "original_photo"
  /// Moving pictures, as they are, with a frame as thumbnail. A file whose length cannot be found out is a `file`.
  case video
  /// Recorded speech, as it is. Never guessed: a file with sound is a `file` unless it is said to be this.
  case voice
  /// Anything, as it is.
  case file
}

/// How a file is shared, and what is said beside it.
public struct ShareOptions: Sendable, Equatable {
  /// Nil: a photo or video when its first bytes are those of one, else a file.
  public var kind: ShareKind?
  /// Whole seconds of a voice or video, 0 to 2,147,483,647. Counts only where the file's own length cannot be found
  /// out: `ffprobe` is missing, or the file does not say.
  public var seconds: Int?
  /// A picture that stands for a video, in place of one of its frames; absolute, or relative to the working directory.
  public var thumbnailPath: String?
  /// Data of the application: the text of a JSON object, nested at most 15 deep.
  public var ext: String?
  /// What it answers.
  public var replyTo: MessageReference?

  public init(
    as kind: ShareKind? = nil, seconds: Int? = nil, thumbnailPath: String? = nil, ext: String? = nil,
    replyTo: MessageReference? = nil
  ) {
    self.kind = kind
    self.seconds = seconds
    self.thumbnailPath = thumbnailPath
    self.ext = ext
    self.replyTo = replyTo
  }

  static let secondsRange = 0...Int(Int32.max)
}

/// What of a folder is downloaded, and how.
public struct DownloadChoice: Sendable, Equatable {
  /// Paths below the folder, of files or of folders with all that is in them; `*` stands for any characters but a
  /// slash, `?` for one. Empty: everything.
  public var paths: [String]
  /// Whether files become executable that were so where they were shared. They are somebody else's programs.
  public var isApplyingExecutable: Bool

  public init(paths: [String] = [], isApplyingExecutable: Bool = false) {
    self.paths = paths
    self.isApplyingExecutable = isApplyingExecutable
  }

  /// Everything, and nothing executable.
  public static let all = DownloadChoice()
}

/// The states of the RTM tutorial.
public enum ConnectionState: String, Sendable {
  /// Not logged in; no interface works yet; one does; the last one is gone, an address that was in use is, or the
  /// process did not run for a while: what stood is being looked at.
  case disconnected, connecting, connected, reconnecting
  /// The same identity was started elsewhere.
  case aborted
}

/// A node as it is at this moment.
public struct NodeStatus: Sendable, Equatable {
  /// Who it is: the public key, not the name.
  public let peer: PeerID
  /// Decoration: hostile until shown escaped.
  public let displayName: String
  /// Whether an interface works, and whether the identity is still ours.
  public let state: ConnectionState
  /// Where sessions are accepted; 0 while nothing can listen.
  public let tcpPort: UInt16
  /// One line each: name, addresses, trouble if any.
  public let interfaces: [String]
  /// Encrypted sessions that stand now.
  public let sessionCount: Int
  /// Nodes heard on the network, in whatever channel, during the last minute.
  public let nodesHeardCount: Int
  /// By name.
  public let channels: [ChannelSummary]
  /// What does not work now, such as a disk that refuses to keep what is said; a sentence each.
  public let troubles: [String]

  public init(
    peer: PeerID, displayName: String, state: ConnectionState, tcpPort: UInt16, interfaces: [String],
    sessionCount: Int, nodesHeardCount: Int, channels: [ChannelSummary], troubles: [String] = []
  ) {
    self.troubles = troubles
    self.peer = peer
    self.displayName = displayName
    self.state = state
    self.tcpPort = tcpPort
    self.interfaces = interfaces
    self.sessionCount = sessionCount
    self.nodesHeardCount = nodesHeardCount
    self.channels = channels
  }
}

/// Why a member of an owned channel tells somebody nothing.
public enum RefusalReason: String, Sendable, CaseIterable {
  case removed, banned
  /// No invitation counts with which this node came.
  case notAdmitted = "not_admitted"
}

/// What happens, as it happens.
public enum NodeEvent: Sendable, Equatable {
  /// A hook gave no answer, or nonsense, and what became of the message by its policy.
  case hookFailed(HookFailure)
  /// The connection state is another now; why, in a sentence for people.
  case stateChanged(ConnectionState, reason: String)
  /// This node is in the channel.
  case joined(ChannelName)
  /// This node has left it.
  case left(ChannelName)
  /// A member came, went, changed name, status or hand.
  case memberChanged(ChannelName, Member)
  /// A message is on this node's disk: own ones too, in a channel or from peer to peer.
  case message(Message)
  /// Something was done to messages that are here: own deeds too. Has a cursor, as a message has.
  case messageChanged(MessageChange)
  /// A member who is here commands this application something; kept nowhere, and told once.
  case command(Command)
  /// A member has a name that looks like that of a person whom the user verified, and another key: somebody else, or
  /// the same person with a new device or a lost profile. To be shown loudly. Comes when they appear under the name.
  case impostor(ChannelName, Member, of: PeerID)
  /// A member, or this node itself, showed a login token that the channel's organiser signed.
  case tokenAccepted(ChannelName, PeerID, OrganiserWord)
  /// What this member says is not shown, or this node's own messages are shown to nobody, in a channel that asks for
  /// login tokens; why. Told once for each reason.
  case tokenRefused(ChannelName, PeerID, TokenRefusal, isSelf: Bool)
  /// This node's own login token ends within 30 s: log in with a new one (`Node.logIn(with:)`).
  case tokenExpiring(LoginToken)
  /// A preview or voice that a message announced is here: it can be read at once (`Node.bytes(of:)`).
  case fetched(ChannelName, MediaID)
  /// A member is now known to have stored an own message.
  case delivered(ChannelName?, MessageID, to: PeerID)
  /// A message waited for this peer as long as it may (`NodeSettings.outboxSeconds`), in vain: it is no longer tried,
  /// and stays in this node's own history.
  case expired(MessageID, to: PeerID)
  /// In a channel with an owner, somebody's role is another now.
  case roleChanged(ChannelName, RoleChange)
  /// These messages were shown and do not count: an act reached this node late. The history has them no more.
  case voided(ChannelName, [MessageID])
  /// These messages did not count when they came, and do now. They have earlier cursors than what was told since.
  case counted(ChannelName, [Message])
  /// What stands over the channel is something else, or nothing any more.
  case announced(ChannelName, Announcement?)
  /// The owner has closed the channel: nobody else says anything in it.
  case closed(ChannelName)
  /// A message of this node's was not sent: a room had too many for one of this priority. So many in this run.
  case messageDropped(ChannelName, Message.Priority, droppedCount: Int)
  /// A member is writing, or not any more: they said so, their message came, they left, or nothing was heard for 8 s.
  case typing(ChannelName, PeerID, isTyping: Bool)
  /// An attribute of the channel was set, replaced or taken away, or went with its author.
  case attributeChanged(ChannelName, AttributeChange)
  /// The channel's secret is another now: what is said from here on is sealed under this generation of it.
  case keysChanged(ChannelName, generation: UInt64)
  /// This member tells this node nothing of the channel, and why.
  case refused(ChannelName, by: PeerID, RefusalReason)
  /// A member did more than one may (`NodeSettings.memberLimits`): it is slowed, or what is too much is let go. At most
  /// once a minute for each member.
  case memberOverLimit(ChannelName, PeerID, MemberExcess)
  /// A member signed two different entries under one number: what it writes in this log from that number on is shown to
  /// nobody any more, in the history either. All members are told, with the proof.
  case equivocated(ChannelName, PeerID, Equivocation)
  /// This subscriber read too slowly: so many events are missing here. The messages among them, if it is of the kind
  /// that can miss any, come again from `events(since:)` with this cursor.
  case dropped(Int, since: UInt64)
}
