/// Everything that a call of this package can fail with. `description` says what happened, what was kept and what to
/// do.
public enum ParleyError: Error, Sendable, Equatable, CustomStringConvertible {
  /// A channel or display name that cannot be used: empty, over 64 bytes of UTF-8, or with a control character.
  case badName(NameError)
  /// A passphrase that cannot be used (1 to 1,024 bytes); the text is for people.
  case badPassphrase(String)
  /// A login token that cannot be used; the value says why.
  case badToken(TokenRefusal)
  /// A number in `NodeSettings` that is outside its bounds.
  case badSetting(String, value: Int, allowed: ClosedRange<Int>)
  /// The call needs a channel that this node is not in.
  case notInChannel(ChannelName)
  /// The channel is joined already under another secret.
  case otherSecret(ChannelName)
  /// What one says in this channel counts for nobody. Nothing was sent.
  case excluded(ChannelName, Exclusion)
  /// One may not do that here. Nothing was sent.
  case notAllowed(ChannelName, RoleRefusal)
  /// An announcement has more than 2,048 bytes of UTF-8. Nothing was sent.
  case announcementTooLong(byteCount: Int, byteCountMax: Int)
  /// The room had as many messages within the last second as keep one of this priority away. Nothing was sent; it is
  /// counted in `ChannelSummary.droppedCount`.
  case messageDropped(ChannelName, Message.Priority, perSecondMax: Int)
  /// An attribute that cannot be set or taken away; why. Nothing was sent.
  case attribute(ChannelName, key: String, AttributeRefusal)
  /// An invitation that cannot be used; the text says why. Nothing was joined.
  case badInvitation(String)
  /// The channel's rules do not let this node do that; the text says whose right it is. Nothing was changed.
  case notPermitted(String)
  /// The node is in as many channels as it may be (64).
  case tooManyChannels(countMax: Int)
  /// As JSON the message has more than 30,000 bytes. Nothing was sent.
  case messageTooLong(byteCount: Int, byteCountMax: Int)
  /// A text to search for has more than 1,024 bytes of UTF-8.
  case searchTooLong(byteCount: Int, byteCountMax: Int)
  /// A field of a message that cannot be what it is (`value`); `allowed` says what it can be. Nothing was sent.
  case badField(String, value: String, allowed: String)
  /// A text without a character. Nothing was sent.
  case emptyMessage
  /// No message with this key is here, or none that is shown. Nothing was sent.
  case noSuchMessage(MessageReference)
  /// No message of the channel that is kept here has this ID. Nothing was sent.
  case unknownMessageID(MessageID, ChannelName)
  /// Several people chose this ID for a message. Nothing was done to any of them.
  case ambiguousMessage(MessageID, senders: [PeerID])
  /// This version does not know the kind of the message, and cannot say it again. Nothing was sent.
  case notForwarded(MessageID, kind: String)
  /// The file that a message announces is not here, so that it cannot be served elsewhere. Nothing was sent.
  case mediaNotHeld(MediaID)
  /// What a combined message names is not what it must be. Nothing of it is used.
  case badBundle(MediaID, reason: String)
  /// That is not done to this message, and why. Nothing was sent.
  case refusedDeed(MessageReference, DeedRefusal)
  /// It was for whoever is there, and this person is not, or did not answer within three seconds. It does not wait.
  case peerAway(PeerID)
  /// This node said more messages within a second than its settings let it (`NodeSettings.messageRateMax`); error 509
  /// of hosted systems. Nothing was sent.
  case messageRateLimited(perSecond: Int)
  /// A hook that cannot be; the text says why. Nothing was started.
  case badHook(String)
  /// The hook of this name, which is asked before sending, refused the message. Nothing was sent.
  case refusedByHook(String, reason: String)
  /// The hook of this name gave no answer, or nonsense, and by its policy nothing was sent.
  case hookFailed(String, reason: String)
  /// Nobody met so far has this ID, prefix or name.
  case noSuchPeer(String)
  /// Several people match; nothing was sent to any of them.
  case ambiguousPeer(String, candidates: [PeerSummary])
  /// What was scanned shows that two people do not see each other's key; the text says what it means.
  case notVerified(String)
  /// No message known here announces this ID, or it is not served from here.
  case noSuchMedia(MediaID)
  /// Nobody present has it, and nothing of it is here.
  case noSource(MediaID)
  /// A download ended before its end. So many of its bytes are kept, verified, in the target's folder.
  case downloadBroken(MediaID, reason: String, keptByteCount: UInt64, byteCount: UInt64)
  /// No download with this number runs, waits or can be gone on with.
  case noSuchDownload(DownloadID)
  /// The bytes asked for begin past the end of the file.
  case outOfRange(MediaID, byteCount: UInt64)
  /// The file is longer than the caller wants to have in memory. Nothing of it was fetched.
  case tooLargeForMemory(MediaID, byteCount: UInt64, byteCountMax: Int)
  /// The file exists and was left as it is.
  case alreadyExists(path: String)
  /// There is no file at this path.
  case noSuchFile(path: String)
  /// A device, FIFO or socket: only regular files and folders of them can be shared.
  case notAFile(path: String)
  /// The file system refused; `reason` says what it was doing and why.
  case fileTrouble(path: String, reason: String)
  /// Checked before the first byte is fetched; both in bytes.
  case noSpace(path: String, needByteCount: UInt64, haveByteCount: UInt64)
  /// The file is no longer the one that was shared, and is not served.
  case sourceChanged(path: String)
  /// Another process holds the profile.
  case profileInUse(home: String, processID: Int32)
  /// The home, its identity or its database cannot be used; it was left as it is.
  case profileDamaged(path: String, reason: String)
  /// The home is sealed with a passphrase, and none was given; it was left as it is.
  case homePassphraseNeeded(home: String)
  /// Not the passphrase of the home, which was left as it is.
  case wrongHomePassphrase(home: String)
  /// A passphrase was given for a home that has none, or is to be set for one that has one; it was left as it is.
  case homePassphraseMismatch(home: String, hasPassphrase: Bool)
  /// An identity is to be put into a home that has one, which was left as it is.
  case homeHasIdentity(home: String)
  /// The identity of this home was exported and then seen elsewhere: the home is not used again.
  case homeRetired(home: String)
  /// No usable interface, no port, or an address that cannot be found; the text is for people.
  case network(String)
  /// Too much waits to be written, or the disk refused; the text says what was kept.
  case queueFull(String)
  /// No message stored here has this cursor yet, `last` is the last one given: it is another store's, or this one was
  /// put back to an earlier state.
  case unknownCursor(UInt64, last: UInt64)
  /// The caller gave it up.
  case cancelled
  /// The node is stopping or has stopped.
  case stopped
  /// The same identity runs elsewhere.
  case aborted

  public var description: String {
    switch self {
    case .badName(let error): error.description
    case .badPassphrase(let reason), .badInvitation(let reason), .notPermitted(let reason), .badHook(let reason): reason
    case .badToken(let refusal): refusal.description
    case .badSetting(let field, let value, let allowed):
      "\(value) \(field) cannot be kept; choose \(allowed.lowerBound) to \(allowed.upperBound)"
    case .notInChannel(let name):
      "this node is not in the channel \(name.text.escapedLine): join it first (parley join CHANNEL)"
    case .otherSecret(let name):
      "this node is in \(name.text.escapedLine) already, under another secret: leave it first (parley leave CHANNEL)"
    case .excluded(let name, let exclusion): exclusion.sentence(name)
    case .notAllowed(let name, let refusal): refusal.sentence(name)
    case .attribute, .messageDropped: roomSentence
    case .announcementTooLong(let byteCount, let byteCountMax):
      "the announcement has \(byteCount) bytes, at most \(byteCountMax) fit: nothing was sent; say less, or send it as "
        + "a message"
    case .tooManyChannels(let countMax): "a node can be in \(countMax) channels: leave one first"
    case .messageTooLong(let byteCount, let byteCountMax):
      "the message is \(byteCount) bytes as JSON; at most \(byteCountMax) fit: "
        + "share it as a file (parley share CHANNEL FILE)"
    case .searchTooLong(let byteCount, let byteCountMax):
      "the text to search for has \(byteCount) bytes, at most \(byteCountMax) can be searched for: use fewer words"
    case .badField(let field, let value, let allowed):
      "\(field) cannot be \(String(value.prefix(64)).escapedLine): \(allowed); nothing was sent"
    case .emptyMessage: "the message is empty: nothing was sent"
    case .noSuchMessage(let message):
      "no message \(message.id.text.escapedLine) of \(message.sender.fingerprint) is here: nothing was sent"
    case .unknownMessageID, .ambiguousMessage, .notForwarded, .mediaNotHeld, .badBundle: messageSentence
    case .refusedDeed(let message, let refusal): refusal.sentence(message.id)
    case .peerAway, .messageRateLimited, .refusedByHook, .hookFailed: sendingSentence
    case .noSuchPeer(let text):
      "nobody met so far matches \(text.escapedLine): see parley members CHANNEL for names and IDs"
    case .ambiguousPeer(let text, let candidates):
      "\(text.escapedLine) could be any of these; say which by its ID: "
        + candidates.map { "\($0.displayName.escapedLine) (\($0.peer.fingerprint)) \($0.peer.text)" }
        .joined(separator: ", ")
    case .notVerified(let reason): "NOT verified, and nothing was remembered: \(reason)"
    case .noSuchMedia, .noSource, .downloadBroken, .noSuchDownload, .outOfRange, .tooLargeForMemory, .alreadyExists,
      .noSuchFile, .notAFile, .fileTrouble, .noSpace, .sourceChanged:
      fileSentence
    case .profileInUse(let home, let processID):
      "process \(processID) runs a node on \(home.escapedLine): use it, or end it first (parley down)"
    case .profileDamaged(let path, let reason):
      "\(path.escapedLine) cannot be used: \(reason); it was left as it is"
    case .homePassphraseNeeded(let home):
      "\(home.escapedLine) is sealed with a passphrase, and none was given: give it (parley up asks for it at the "
        + "terminal, or takes --passphrase-file F)"
    case .wrongHomePassphrase(let home):
      "this is not the passphrase of \(home.escapedLine): nothing was changed, try again"
    case .homePassphraseMismatch(let home, hasPassphrase: true):
      "\(home.escapedLine) has a passphrase already: nothing was changed; use parley passphrase change"
    case .homePassphraseMismatch(let home, hasPassphrase: false):
      "\(home.escapedLine) has no passphrase: nothing was changed; leave it away, or set one with parley passphrase set"
    case .homeHasIdentity(let home):
      "\(home.escapedLine) has an identity, which is never replaced: nothing was changed, choose another home"
    case .homeRetired(let home):
      "the identity of \(home.escapedLine) was exported and now runs elsewhere: one identity runs in one place, so "
        + "this home is retired; delete it, or, if the other one is gone for good, delete the file retired in it"
    case .network(let text), .queueFull(let text): text
    case .unknownCursor(let cursor, let last):
      "the cursor \(cursor) was not given by this node's store, which is at \(last): it is another node's, or this "
        + "store is a new one or was restored from a copy; begin again with 0 (everything kept) or without a cursor"
    case .cancelled: "cancelled"
    case .stopped: "the node is stopping"
    case .aborted: "the same identity was started elsewhere, so this node has stopped: one identity runs in one place"
    }
  }

  /// Of messages that are looked for and sent on.
  private var messageSentence: String {
    switch self {
    case .unknownMessageID(let id, let name):
      "no message \(id.text.escapedLine) of \(name.text.escapedLine) is kept here: nothing was sent; see parley "
        + "history \(name.text.escapedLine) --json for IDs"
    case .ambiguousMessage(let id, let senders):
      "several messages have the ID \(id.text.escapedLine), by \(senders.map(\.fingerprint).joined(separator: ", ")): "
        + "nothing was done; say whose"
    case .notForwarded(let id, let kind):
      "the message \(id.text.escapedLine) is of a kind that this version does not know (\(kind.escapedLine)): "
        + "nothing was sent"
    case .mediaNotHeld(let id):
      "the file \(id.text) is not here, so it cannot be served there: nothing was sent; download it first (parley "
        + "download \(id.text))"
    case .badBundle(let id, let reason):
      "the combined messages \(id.text) are not what they must be (\(reason.escapedLine)): nothing of them is used"
    default: preconditionFailure("asked for these cases only")
    }
  }

  /// Of what can befall files and downloads.
  private var fileSentence: String {
    switch self {
    case .noSuchMedia(let id): "no message known here announces the media ID \(id.text)"
    case .noSource(let id):
      "nobody present has \(id.text): nothing was written; try again when somebody who has it is online"
    case .downloadBroken(let id, let reason, let kept, let byteCount):
      "\(id.text) was not downloaded: \(reason); "
        + (kept == 0
          ? "nothing was kept"
          : "\(kept) of \(byteCount) bytes are kept, and a download of it to the same folder goes on from there")
    case .noSuchDownload(let id):
      "no download \(id.value) runs or can be gone on with: see parley downloads"
    case .outOfRange(let id, let byteCount):
      "\(id.text) has \(byteCount) bytes, and the range begins past its end: choose one within it"
    case .tooLargeForMemory(let id, let byteCount, let byteCountMax):
      "\(id.text) has \(byteCount) bytes, at most \(byteCountMax) were to be kept in memory: download it to a file, "
        + "or read it in pieces"
    case .alreadyExists(let path):
      "\(path.escapedLine) exists and was left as it is: choose another name, or replace it with --force"
    case .noSuchFile(let path): "there is no file \(path.escapedLine)"
    case .notAFile(let path): "\(path.escapedLine) is not a regular file: only files and folders can be shared"
    case .fileTrouble(let path, let reason): "\(path.escapedLine): \(reason)"
    case .noSpace(let path, let need, let have):
      "no space for \(path.escapedLine): \(need) bytes are needed, \(have) are free; make space and try again"
    case .sourceChanged(let path):
      "\(path.escapedLine) changed or is gone since it was shared and is no longer served: share it again"
    default: preconditionFailure("asked for these cases only")
    }
  }
}
