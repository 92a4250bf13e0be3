import ParleyMachines
import ParleyVocabulary
import ParleyWire

extension Message {
  /// What was done to a message, of what counts.
  public struct State: Sendable, Equatable {
    /// Who did something, and when by the clock with which they signed it.
    public struct Deed: Sendable, Equatable {
      public let peer: PeerID
      public let at: Timestamp

      public init(peer: PeerID, at: Timestamp) {
        self.peer = peer
        self.at = at
      }
    }

    /// A sign and who gave it.
    public struct Reaction: Sendable, Equatable {
      /// 1 to 64 bytes; hostile until shown escaped (`escapedLine`): nothing says that it is an emoji.
      public let emoji: String
      /// In the order in which they gave it.
      public let peers: [PeerID]

      public init(emoji: String, peers: [PeerID]) {
        self.emoji = emoji
        self.peers = peers
      }
    }

    /// Who took it back; nil: nobody.
    public let recalled: Deed?
    /// 0 to 10. Of a message that was taken back 0.
    public let editCount: Int
    /// Who changed it last, its author; nil: nobody.
    public let edited: Deed?
    /// At most 20, in the order in which each was first given.
    public let reactions: [Reaction]
    /// Who pinned it; nil: it is not pinned.
    public let pinned: Deed?
    /// Who says to have read it, in order.
    public let readBy: [Deed]

    /// Nothing.
    public static let untouched = State()

    public init(
      recalled: Deed? = nil, editCount: Int = 0, edited: Deed? = nil, reactions: [Reaction] = [], pinned: Deed? = nil,
      readBy: [Deed] = []
    ) {
      self.recalled = recalled
      self.editCount = editCount
      self.edited = edited
      self.reactions = reactions
      self.pinned = pinned
      self.readBy = readBy
    }

    init(_ state: MessageState, pin: PinBoard.Pin?) {
      self.init(
        recalled: state.recall.map { Deed($0) }, editCount: state.editCount, edited: state.lastEdit.map { Deed($0) },
        reactions: state.reactions.map { Reaction(emoji: $0.emoji, peers: $0.peers) },
        pinned: pin.map { Deed($0.doing) }, readBy: state.readers.map { Deed($0) })
    }
  }

  /// What names it everywhere.
  public var reference: MessageReference { MessageReference(sender: sender, id: id) }

  var key: MessageKey { MessageKey(sender: sender, id: id) }

  /// What it is after what was done to it.
  func after(_ state: MessageState, pin: PinBoard.Pin?) -> Message {
    var message = self
    if state.recall != nil {
      message = with(body: .recalled(kind: kindName), json: Self.emptied(json), ext: nil)
      message.recalledMedia = mediaIDs
    } else if state.content != nil || state.ext != nil {
      message = edited(state.content, state.ext)
    }
    message.state = State(state, pin: pin)
    return message
  }

  private func with(body: Body, json: String, ext: String?) -> Message {
    var message = Message(
      channel: channel, id: id, sender: sender, senderName: senderName, timestamp: timestamp, body: body, json: json,
      cursor: cursor, deliveredTo: deliveredTo, peer: peer, recognition: recognition, ext: ext, replyTo: replyTo,
      options: options)
    message.signedAt = signedAt
    return message
  }

  private func edited(_ content: EditKind.Content?, _ ext: [JSONMember]?) -> Message {
    guard let old = try? SchemaMessage(decoding: json.utf8, author: nil) else { return self }
    let new: any MessageKind =
      switch content {
      case nil: old.content
      case .body(let body): TextKind(body: body)
      case .custom(let custom): custom
      }
    var options = old.options
    if let ext { options.ext = ext }
    let message = SchemaMessage(
      sender: old.sender, messageID: old.messageID, timestamp: old.timestamp, content: new, options: options)
    return with(
      body: Body(new), json: String(decoding: message.encoded, as: UTF8.self),
      ext: options.ext.map { String(decoding: JSONValue.object($0).encoded, as: UTF8.self) })
  }

  /// Of what was taken back only who said something of which kind, and when.
  private static func emptied(_ json: String) -> String {
    guard case .object(let members) = try? JSONValue(decoding: json.utf8) else { return "{}" }
    let kept = members.filter { ["sender", "message_id", "timestamp", "type"].contains($0.name) }
    return String(decoding: JSONValue.object(kept).encoded, as: UTF8.self)
  }
}

extension Message.State.Deed {
  init(_ doing: Doing) {
    self.init(peer: doing.author, at: Timestamp(milliseconds: Int64(clamping: doing.timestamp)))
  }
}

/// Something that was done to messages.
public struct MessageChange: Sendable, Equatable {
  /// What was done.
  public enum Deed: Sendable, Equatable {
    case recalled
    case edited
    /// A sign given, or taken back.
    case reacted(emoji: String, isOn: Bool)
    case pinned(isOn: Bool)
    case read
  }

  /// Nil for messages from peer to peer.
  public let channel: ChannelName?
  public let deed: Deed
  /// Who did it.
  public let peer: PeerID
  /// By the clock with which they signed it.
  public let at: Timestamp
  /// The messages as they are now, `state` included; one but of `read`, which may be of 64.
  public let messages: [Message]
  /// Where this stands in this node's own sequence of arrivals, as `Message.cursor`.
  public let cursor: UInt64

  public init(
    channel: ChannelName?, deed: Deed, peer: PeerID, at: Timestamp, messages: [Message], cursor: UInt64
  ) {
    self.channel = channel
    self.deed = deed
    self.peer = peer
    self.at = at
    self.messages = messages
    self.cursor = cursor
  }

  /// About what it takes while it waits.
  var byteCount: Int {
    messages.reduce(256) {
      $0 + 512 + 2 * $1.json.utf8.count + 64 * ($1.state.readBy.count + $1.state.reactions.count)
        + $1.state.reactions.reduce(0) { $0 + 32 * $1.peers.count }
    }
  }
}
