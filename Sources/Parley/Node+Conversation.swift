import ParleyActors
import ParleyMachines
import ParleySealing
import ParleyStore
import ParleyVocabulary
import ParleyWire

/// What is done to messages that were said. Each deed is signed, kept and ordered like a message, and every member
/// computes alike what counts. What does not count is refused here, and heeded by nobody if it is sent all the same.
extension Node {
  /// Takes a message back: nobody is shown what it said any more, and its media is served by nobody. One's own within
  /// two minutes; in a channel with an owner, he and admins any message at any time.
  ///
  /// Throws `.noSuchMessage`, `.refusedDeed` (`.notAuthor`, `.notModerator`, `.tooLate`, `.wrongKind`, `.recalled`),
  /// `.notInChannel`, `.excluded`, `.badToken`, `.queueFull`.
  public func recall(_ message: MessageReference, in name: ChannelName) async throws(ParleyError) {
    try await act(RecallKind(target: MessageKey(message)), in: name)
  }

  /// Changes what an own message says, at most ten times: of texts and custom messages also the words, of all others
  /// `ext` alone. Sender, ID and time stay. Throws as `recall`, and `.messageTooLong`.
  public func edit(_ message: MessageReference, _ edit: MessageEdit, in name: ChannelName) async throws(ParleyError) {
    try await act(EditKind(target: MessageKey(message), content: edit.content, ext: edit.ext), in: name)
  }

  /// Puts a sign on a message, or takes one's own off. `emoji`: 1 to 64 bytes of UTF-8, one emoji as a rule; at most 20
  /// different ones stand on a message. Throws as `recall`, `.badField` for the emoji, `.refusedDeed(.tooManyEmoji)`.
  public func react(
    _ emoji: String, to message: MessageReference, isOn: Bool = true, in name: ChannelName
  ) async throws(ParleyError) {
    guard (1...ReactKind.emojiByteCountMax).contains(emoji.utf8.count) else {
      throw .badField("emoji", value: emoji, allowed: "1 to \(ReactKind.emojiByteCountMax) bytes")
    }
    try await act(ReactKind(target: MessageKey(message), emoji: emoji, isOn: isOn), in: name)
  }

  /// Puts a message over the channel, or takes it down; at most 20 stand there. In a channel with an owner he and
  /// admins may, in an open one anybody. Throws as `recall`, and `.refusedDeed(.tooManyPins)`.
  public func pin(
    _ message: MessageReference, isOn: Bool = true, in name: ChannelName
  ) async throws(ParleyError) {
    try await act(PinKind(target: MessageKey(message), isOn: isOn), in: name)
  }

  /// Tells the channel that this node's user has read these messages. Own ones, those that are not here and those of
  /// which it was told already are passed over; nothing is sent when none is left, in rooms, and where
  /// `ChannelSettings.sendsReceipts` is off. Throws `.notInChannel`, `.excluded`,
  /// `.badToken`, `.queueFull`.
  public func markRead(_ messages: [MessageReference], in name: ChannelName) async throws(ParleyError) {
    let engine = try await running()
    let joined = try channel(name)
    guard hub.rule(in: joined.id).hasReceipts, hub.wishes.settings(of: joined.id).sendsReceipts else { return }
    var seen: Set<MessageReference> = []
    var unread: [MessageKey] = []
    for reference in messages where reference.sender != peerID && seen.insert(reference).inserted {
      guard let message = try await find(reference, in: joined, engine) else { continue }
      if !message.state.readBy.contains(where: { $0.peer == peerID }) { unread.append(message.key) }
    }
    var rest = unread[...]
    while !rest.isEmpty {
      try await say(ReadKind(targets: Array(rest.prefix(ReadKind.targetCountMax))), of: joined, engine)
      rest = rest.dropFirst(ReadKind.targetCountMax)
    }
  }

  /// The message with this key, as it is now; nil when it is not here, or not shown. Throws `.notInChannel`, and
  /// `.profileDamaged` when the store cannot be read.
  public func message(_ message: MessageReference, in name: ChannelName) async throws(ParleyError) -> Message? {
    let engine = try await running()
    return try await find(message, in: try channel(name), engine)
  }

  /// The messages that stand over the channel and are here, in the order in which they were pinned. Throws
  /// `.notInChannel`, and `.profileDamaged` when the store cannot be read.
  public func pins(in name: ChannelName) async throws(ParleyError) -> [Message] {
    let engine = try await running()
    let joined = try channel(name)
    var pinned: [Message] = []
    for key in hub.pins(in: joined.id) {
      if let message = try await find(MessageReference(key), in: joined, engine) { pinned.append(message) }
    }
    return pinned
  }

  // MARK: Finding

  /// Of several with one key the last that came.
  func find(
    _ reference: MessageReference, in joined: Hub.Joined, _ engine: Engine
  ) async throws(ParleyError) -> Message? {
    do throws(StoreError) {
      var found: Message?
      for stored in try await engine.store.messages(under: MessageKey(reference), in: joined.id) {
        let all = hub.messages(stored.entry, channel: joined.id, name: joined.name, cursor: stored.cursor)
        found = all.first { $0.cursor == stored.cursor << 8 | UInt64(stored.place) } ?? found
      }
      guard let found else { return nil }
      return hub.after(try await engine.store.acts(on: [found.key], in: joined.id), [found], in: joined.id)[0]
    } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
  }

  /// Messages as they are after what was done to them; what they announce can be downloaded at once.
  func after(_ messages: [Message], in joined: Hub.Joined, _ engine: Engine) async throws(StoreError) -> [Message] {
    let acts = try await engine.store.acts(on: messages.map(\.key), in: joined.id)
    let now = hub.after(acts, messages, in: joined.id)
    for message in now { hub.note(message, in: joined.id) }
    return now
  }

  // MARK: Acting

  private func act(_ kind: some MessageActKind, in name: ChannelName) async throws(ParleyError) {
    let engine = try await running()
    let joined = try channel(name)
    let now = SystemClock.wallMilliseconds()
    let lamport = await engine.messaging.lamport(in: joined.id)
    // Where it will stand: behind all that is here.
    let order = OrderKey(lamport: lamport + 1, author: peerID, log: instance, number: Limit.counterMax)
    guard let act = MessageAct.acts(kind, at: Act.Place(order), timestamp: now).first else { return }
    guard let target = try await find(MessageReference(act.target), in: joined, engine) else {
      throw .noSuchMessage(MessageReference(act.target))
    }
    if let refusal = try await refusal(of: act, on: target, in: joined, engine) {
      throw .refusedDeed(MessageReference(act.target), refusal)
    }
    try await say(kind, of: joined, engine)
  }

  /// As every reader will see it.
  private func refusal(
    of act: MessageAct, on target: Message, in joined: Hub.Joined, _ engine: Engine
  ) async throws(ParleyError) -> DeedRefusal? {
    let governance = hub.rulebook.governance(of: joined.id)
    let facts = MessageFacts(key: act.target, type: target.kindName, timestamp: target.signedAt)
    if target.state.recalled != nil {
      if case .pin(isOn: false) = act.content { return nil }
      return .recalled
    }
    if act.isOfPins {
      if governance?.standing(of: peerID).isPrivileged == false { return .notModerator }
      let isOver = hub.pins(in: joined.id).count >= ConversationRule.pinCountMax
      return act.content == .pin(isOn: true) && target.state.pinned == nil && isOver
        ? .tooManyPins(countMax: ConversationRule.pinCountMax) : nil
    }
    if act.content == .recall, governance?.standing(of: peerID).isPrivileged == true {
      return target.kindName == MessageActRule.command ? .wrongKind(target.kindName) : nil
    }
    var acts: [MessageAct]
    do throws(StoreError) {
      acts = try await engine.store.acts(on: [act.target], in: joined.id)[act.target] ?? []
    } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
    acts.append(act)
    var fault: MessageActFault?
    _ = MessageState(of: facts, acts, hub.rule(in: joined.id), governance) { if $0.place == act.place { fault = $1 } }
    if case .excluded(let reason) = fault { throw .excluded(joined.name, Exclusion(reason)) }
    return fault.flatMap { DeedRefusal($0, target) }
  }

  /// On the disk and on the wire when it returns. Whether it counts was checked before.
  func say(
    _ kind: some MessageActKind, of joined: Hub.Joined, _ engine: Engine
  ) async throws(ParleyError) {
    try checkToken(in: joined)
    let json = try checked(message(kind, Sealing.randomMessageID()))
    let answer = await engine.messaging.submit(
      joined.id, kind: KindRegistry.code(of: kind.type), isHidden: true, json: json)
    _ = try Self.stored(answer, joined.name)
  }
}

extension MessageKey {
  init(_ reference: MessageReference) { self.init(sender: reference.sender, id: reference.id) }
}

/// What a message is to say instead. What is not given stays as it is.
public struct MessageEdit: Sendable {
  let content: EditKind.Content?
  let ext: [JSONMember]?

  private init(_ content: EditKind.Content?, _ ext: [JSONMember]?) {
    self.content = content
    self.ext = ext
  }

  /// What is changed, as the edit's members have it.
  package var json: String {
    let members = EditKind(
      target: MessageKey(sender: PeerID(Bytes32(words: (0, 0, 0, 0))), id: MessageID(random: [0])), content: content,
      ext: ext
    ).members.dropFirst()
    return String(decoding: JSONValue.object(Array(members)).encoded, as: UTF8.self)
  }

  /// Of a text: other words. Throws `.emptyMessage`.
  public static func text(_ text: String) throws(ParleyError) -> MessageEdit {
    guard !text.isEmpty else { throw .emptyMessage }
    return MessageEdit(.body(text), nil)
  }

  /// Of a custom message: all of it.
  public static func custom(_ custom: CustomContent) -> MessageEdit {
    MessageEdit(
      .custom(CustomKind(event: custom.event, fields: custom.fields.map { ($0.name, $0.value) })), nil)
  }

  /// Of any message: data of the application, as in `MessageDraft.with(ext:)`; `{}` takes it away. Throws `.badField`.
  public static func ext(_ json: String) throws(ParleyError) -> MessageEdit {
    MessageEdit(nil, try MessageDraft.ext(json))
  }

  /// The same and `ext` beside. Throws `.badField`.
  public func with(ext json: String) throws(ParleyError) -> MessageEdit {
    MessageEdit(content, try MessageDraft.ext(json))
  }
}

/// Why something is not done to a message.
public enum DeedRefusal: Sendable, Equatable {
  /// Only who said it may change it.
  case notAuthor
  /// Only the owner and admins take back what others said, and pin.
  case notModerator
  /// So many seconds after it was said, at most so many.
  case tooLate(seconds: Int, secondsMax: Int)
  /// That is not done with messages of this kind.
  case wrongKind(String)
  case tooManyEdits(countMax: Int)
  case tooManyEmoji(countMax: Int)
  case tooManyPins(countMax: Int)
  /// It was taken back.
  case recalled

  init?(_ fault: MessageActFault, _ message: Message) {
    switch fault {
    case .notAuthor: self = .notAuthor
    case .notModerator: self = .notModerator
    case .tooLate(let after, let limit):
      self = .tooLate(seconds: Int(clamping: (after + 999) / 1_000), secondsMax: Int(clamping: limit / 1_000))
    case .wrongKind: self = .wrongKind(message.kindName)
    case .tooManyEdits: self = .tooManyEdits(countMax: ConversationRule.editCountMax)
    case .tooManyEmoji: self = .tooManyEmoji(countMax: ConversationRule.emojiCountMax)
    case .tooManyPins: self = .tooManyPins(countMax: ConversationRule.pinCountMax)
    case .recalled: self = .recalled
    // Said by messaging, which knows it at the moment of saying.
    case .excluded, .backdated: return nil
    }
  }

  /// Stable, for programs.
  public var code: String {
    switch self {
    case .notAuthor: "not_author"
    case .notModerator: "not_moderator"
    case .tooLate: "too_late"
    case .wrongKind: "wrong_kind"
    case .tooManyEdits: "too_many_edits"
    case .tooManyEmoji: "too_many_emoji"
    case .tooManyPins: "too_many_pins"
    case .recalled: "recalled"
    }
  }

  func sentence(_ id: MessageID) -> String {
    let what =
      switch self {
      case .notAuthor: "only who said it can change it"
      case .notModerator: "only the owner and admins of the channel can do that"
      case .tooLate(let seconds, let secondsMax):
        "it was said \(seconds) s ago, and can be taken back for \(secondsMax) s"
      case .wrongKind(let kind): "that is not done with a message of the kind \(kind.escapedLine)"
      case .tooManyEdits(let countMax): "it was changed \(countMax) times, which is all it can be"
      case .tooManyEmoji(let countMax): "\(countMax) different signs stand on it, which is all there can be"
      case .tooManyPins(let countMax): "\(countMax) messages are pinned, which is all there can be: take one down first"
      case .recalled: "it was taken back"
      }
    return "\(id.text.escapedLine): \(what); nothing was sent"
  }
}
