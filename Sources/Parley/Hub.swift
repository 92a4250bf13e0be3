import ParleyActors
import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire
import Synchronization

/// Turns what the actors tell into what the application sees: names for IDs, messages for entries, one bounded queue a
/// subscriber. Called from any thread; never blocks for long.
final class Hub: Sendable {
  struct Joined: Sendable {
    let name: ChannelName
    let id: ChannelID
    let isOpen: Bool
    let type: ChannelType
  }

  struct State {
    var channels: [ChannelID: Joined] = [:]
    var online: [ChannelID: Set<PeerID>] = [:]
    /// Whether it is open to who knows its name, and its type.
    var secrets: [ChannelID: (isOpen: Bool, type: ChannelType)] = [:]
    /// Who has which of our logs, up to which number.
    var deliveries: [ChannelID: [Instance: [PeerID: UInt64]]] = [:]
    /// The last ones, for calls that wait; in their order.
    var deliveredPeerMessages: [MessageID] = []
    /// The last messages of ours to some members of a channel.
    var directed = DirectedMessages()
    var own: [ChannelID: [UInt64: [MessageID]]] = [:]
    var subscribers: [UInt64: Subscriber] = [:]
    /// Shown, and not known to be on the disk: for subscribers with a cursor.
    var unsynced: [NodeEvent] = []
    var nextSubscriber: UInt64 = 1
    /// Of the last message told.
    var cursor: UInt64 = 0
    var isFinished = false
    var state = ConnectionState.disconnected
    var interfaces: [String] = []
    /// What the disk refuses; nil while it takes everything.
    var diskTrouble: String?
    var holders: [MediaID: Set<PeerID>] = [:]
    var media: [ChannelID: AnnouncedMedia] = [:]
    /// Bundles of combined messages, and what unpacked ones announce: as said by whoever combined them.
    var bundled: [ChannelID: AnnouncedMedia] = [:]
    /// Announced from peer to peer.
    var peerMedia = AnnouncedMedia()
    /// Fetched beforehand, or told to be here.
    var fetched = FetchedMedia()
    var queue = FetchQueue()
    /// Channels where the owner asks for another organiser's tokens, until the node has seen to it.
    var newOrganisers: Set<ChannelID> = []
    var wake: (@Sendable () -> Void)?
    /// Has the store keep something; nil before there is one.
    var keep: (@Sendable (StoreWrite) -> Void)?
    var suspicions: [ChannelID: Suspicions] = [:]
    var rooms: [ChannelID: RoomBook] = [:]
    /// Who is writing just now.
    var typing: [ChannelID: Set<PeerID>] = [:]
    var talks: [ChannelID: Talk] = [:]
    /// What entries do to messages that are about to be told, by cursor.
    var acted: [UInt64: (channel: ChannelID, on: [ActedOn])] = [:]
    /// Messages that were stored but are malformed: shown to nobody.
    var malformedCount = 0
    var counts = Counts()
  }

  let people = People()
  let tokens = Tokens()
  let attributes = AttributeShelf()
  let wishes = Wishes()
  let me: PeerID
  let instance: Instance
  let state = Mutex(State())
  /// Of owned channels.
  let rulebook = Rulebook()
  /// Generations made on schedule, for the acts that name them.
  let drawn = AsyncStream.makeStream(of: (ChannelID, GenerationID).self)
  /// Media that messages announced which were taken back.
  let recalled = AsyncStream.makeStream(of: [MediaID].self)
  private let trouble: @Sendable (String) -> Void
  private let aborted: @Sendable () -> Void
  let sharesMax: Int
  let fetchRules: FetchRules
  /// Something may be there to be fetched beforehand.
  let offers = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

  init(
    me: PeerID, instance: Instance, sharesMax: Int = MemberLimits().shares, fetchRules: FetchRules = FetchRules(),
    trouble: @escaping @Sendable (String) -> Void,
    aborted: @escaping @Sendable () -> Void
  ) {
    self.aborted = aborted
    self.sharesMax = sharesMax
    self.fetchRules = fetchRules
    self.me = me
    self.instance = instance
    self.trouble = trouble
  }

  /// What people should know of the node as it is now.
  var troubles: [String] { state.withLock { $0.diskTrouble.map { [$0] } ?? [] } }

  // MARK: What the actors tell

  func take(_ notice: Notice) {
    switch notice {
    case .state(let new, let reason): changed(to: new, reason)
    case .opened(let name, let channel): opened(name, channel)
    case .closed(let name, let channel):
      state.withLock {
        $0.channels[channel] = nil
        $0.online[channel] = nil
        $0.typing[channel] = nil
        $0.rooms[channel] = nil
        $0.media[channel] = nil
        $0.bundled[channel] = nil
        $0.suspicions[channel] = nil
        $0.talks[channel] = nil
        $0.acted = $0.acted.filter { $0.value.channel != channel }
        $0.secrets[channel] = nil
        $0.deliveries[channel] = nil
        $0.own[channel] = nil
      }
      people.forget(channel)
      tokens.close(channel)
      rulebook.forget(channel)
      attributes.forget(channel)
      emit(.left(name))
    case .member(let channel, let view): member(channel, view)
    case .typing(let channel, let peer, let isTyping): typing(channel, peer, isTyping)
    case .messaging(let notice): messaging(notice)
    case .overLimit(let channel, let peer, let excess): overLimit(channel, peer, excess)
    case .interfaces(let lines): state.withLock { $0.interfaces = lines }
    case .holder(_, let media, let peer): noteHolder(media, peer)
    case .disk(let refusal):
      state.withLock { $0.diskTrouble = refusal }
      trouble(
        refusal.map { "\($0); the node goes on without keeping anything new, and tries again" }
          ?? "the disk takes everything again; what waited is written")
    case .keysDrawn(let channel, let generation): drawn.continuation.yield((channel, generation))
    case .keysChanged(let channel, let generation):
      if let name = name(of: channel) { emit(.keysChanged(name, generation: generation.number)) }
    case .refused(let channel, let peer, let reason):
      if let name = name(of: channel) { emit(.refused(name, by: peer, RefusalReason(reason))) }
    case .acted(let channel, let cursor, let on): state.withLock { $0.acted[cursor] = (channel, on) }
    case .waiting(let channel, let acts, let pins): waiting(channel, acts, pins)
    case .trouble(let text): trouble(text)
    }
  }

  private func name(of channel: ChannelID) -> ChannelName? { state.withLock { $0.channels[channel]?.name } }

  private func changed(to new: LoginState, _ reason: String) {
    let mapped: ConnectionState =
      switch new {
      case .disconnected: .disconnected
      case .connecting: .connecting
      case .connected: .connected
      case .reconnecting: .reconnecting
      case .aborted: .aborted
      }
    state.withLock { $0.state = mapped }
    emit(.stateChanged(mapped, reason: reason))
    if mapped == .aborted { aborted() }
  }

  private func opened(_ name: ChannelName, _ channel: ChannelID) {
    state.withLock {
      let (isOpen, type) = $0.secrets[channel] ?? (false, .group)
      $0.channels[channel] = Joined(name: name, id: channel, isOpen: isOpen, type: type)
    }
    emit(.joined(name))
  }

  private func member(_ channel: ChannelID, _ view: MemberView) {
    let name = state.withLock { state -> ChannelName? in
      // What membership was still working off when the channel was left counts no more: a later join begins anew.
      guard let name = state.channels[channel]?.name else { return nil }
      if !view.isOnline {
        state.online[channel]?.remove(view.peer)
      } else if view.peer != me {
        state.online[channel, default: []].insert(view.peer)
      }
      return name
    }
    guard let name else { return }
    if attributes.note(view.run, of: view.peer, in: channel) { attributesMayHaveChanged(in: channel) }
    let isRenamed = people.note(view.peer, named: view.displayName.text, in: channel)
    let member = value(view, in: channel)
    emit(.memberChanged(name, member))
    if isRenamed, case .verified(let other) = member.recognition.likeness {
      emit(.impostor(name, member, of: other))
    }
  }

  /// Others who are online there.
  func presentCount(in channel: ChannelID) -> Int { state.withLock { $0.online[channel]?.count ?? 0 } }

  /// The channel's name, if we are in it.
  func noted(_ excess: MemberExcess, of peer: PeerID, in channel: ChannelID) -> ChannelName? {
    state.withLock { state in
      guard let name = state.channels[channel]?.name else { return nil }
      _ = state.suspicions[channel, default: Suspicions()].note(excess, of: peer)
      return name
    }
  }

  private func equivocated(_ channel: ChannelID, _ proof: EquivocationProof) {
    let name = state.withLock { state -> ChannelName? in
      guard let name = state.channels[channel]?.name else { return nil }
      state.suspicions[channel, default: Suspicions()].note(proof)
      return name
    }
    guard let name else { return }
    emit(.equivocated(name, proof.key.author, Equivocation(proof)))
    attributesMayHaveChanged(in: channel)
  }

  func value(_ view: MemberView, in channel: ChannelID) -> Member {
    var recognition = people.recognition(of: view.peer, named: view.displayName.text, in: channel)
    recognition.add(tokens.word(for: view.peer, in: channel, at: .now))
    let excesses = state.withLock { $0.suspicions[channel]?.excesses(of: view.peer) ?? [] }
    return Member(
      peer: view.peer, displayName: view.displayName.text, status: view.isOnline ? .online : .offline,
      isHandRaised: view.isHandRaised && recognition.isShown, isSelf: view.peer == me, recognition: recognition,
      role: rulebook.governance(of: channel)?.role(of: view.peer), excesses: excesses)
  }

  private func messaging(_ notice: MessagingNotice) {
    switch notice {
    case .entryStored(let channel, let entry, let cursor): stored(channel, entry, cursor)
    case .governed(let channel, let governance, let change): governed(channel, governance, change)
    case .synced(let cursor): synced(cursor)
    case .delivered(let channel, let log, let after, let through, let peer):
      delivered(channel, log, after: after, through, peer)
    case .peerMessage(let peer, _, let json, let cursor):
      if let message = peerMessage(json, with: peer, cursor) {
        notePeerMedia(message)
        emit(.message(message))
      }
    case .peerDelivered(let peer, let id):
      state.withLock { state in
        state.deliveredPeerMessages.append(id)
        if state.deliveredPeerMessages.count > 1_024 { state.deliveredPeerMessages.removeFirst() }
      }
      emit(.delivered(noteDelivered(id, to: peer), id, to: peer))
    case .overLimit(let channel, let peer, let excess): overLimit(channel, peer, excess)
    case .equivocated(let channel, let proof): equivocated(channel, proof)
    case .localStored(let message, let cursor): stored(message, cursor)
    case .live(let channel, let peer, let json): heardLive(json, from: peer, in: channel)
    case .peerExpired(let peer, let id): emit(.expired(id, to: peer))
    case .stored, .sent, .queued, .failed: break
    }
  }

  /// Deliveries of older entries than so many are read from the store.
  static let ownEntryCountMax: UInt64 = 2_048

  private func stored(_ channel: ChannelID, _ entry: Entry, _ cursor: UInt64) {
    guard let name = state.withLock({ $0.channels[channel]?.name }) else { return }
    if entry.isHidden {
      // A token of somebody who is out says nothing.
      if !rulebook.isVoid(entry, in: channel) { heardTokens(entry, in: channel, name) }
      heardAttributes(entry, in: channel)
      return heardActs(entry, cursor, in: channel, name)
    }
    if case .failure(let refusal) = tokens.word(of: entry, in: channel) {
      tell(refusal, of: entry.key.author, in: channel, name)
    }
    let messages = awaited(allMessages(entry, channel: channel, name: name, cursor: cursor), in: channel)
    if entry.key == LogKey(author: me, log: instance) {
      state.withLock { state in
        state.own[channel, default: [:]][entry.number] = messages.map(\.id)
        if entry.number > Self.ownEntryCountMax { state.own[channel]![entry.number - Self.ownEntryCountMax] = nil }
      }
    }
    guard rulebook.note(entry, messages, in: channel) else { return }
    for message in messages { note(message, in: channel) }
    // What they wrote is there.
    typing(channel, entry.key.author, false)
    emit(messages.map { .message($0) })
    for message in messages { offer(message, in: channel) }
  }

  private func governed(_ channel: ChannelID, _ governance: Governance, _ change: Governance.Change) {
    let news = rulebook.take(governance, change, in: channel, me: me)
    state.withLock { $0.talks[channel]?.govern(governance) }
    ownerSaid(governance.organiser.map { OrganiserKey($0.value) }, in: channel)
    guard let name = state.withLock({ $0.channels[channel]?.name }) else { return }
    if !news.voided.isEmpty { forgetMedia(of: Set(news.voided), in: channel) }
    for message in news.counted {
      note(message, in: channel)
      offer(message, in: channel)
    }
    var events = news.changes.map { NodeEvent.roleChanged(name, $0) }
    if !news.voided.isEmpty { events.append(.voided(name, news.voided)) }
    if !news.counted.isEmpty { events.append(.counted(name, news.counted)) }
    if let announcement = news.announcement { events.append(.announced(name, announcement)) }
    if news.isClosed { events.append(.closed(name)) }
    emit(events)
    attributesMayHaveChanged(in: channel)
  }

  /// The messages of an entry that count and are well-formed; those of a blocked author are not shown here, nor what is
  /// said without a login token where one is asked for.
  func messages(_ entry: Entry, channel: ChannelID, name: ChannelName, cursor: UInt64) -> [Message] {
    !entry.isLocal && rulebook.isVoid(entry, in: channel)
      ? [] : allMessages(entry, channel: channel, name: name, cursor: cursor)
  }

  /// Malformed ones are counted and shown to nobody.
  func allMessages(
    _ entry: Entry, channel: ChannelID, name: ChannelName, cursor: UInt64
  ) -> [Message] {
    guard !people.isBlocked(entry.key.author),
      entry.isLocal || state.withLock({ $0.suspicions[channel]?.isVoid(entry.key, entry.number) != true })
    else { return [] }
    let word = tokens.word(of: entry, in: channel)
    if case .failure = word { return [] }
    let holders = deliveredTo(channel, entry.key, entry.number)
    var messages: [Message] = []
    for (index, item) in entry.items.enumerated() {
      guard let body = item.body else { continue }
      if var message = message(
        body, kind: item.kind, author: entry.key.author, channel: (channel, name), isEntry: !entry.isLocal, word,
        cursor: cursor << 8 | UInt64(index),
        deliveredTo: holders)
      {
        message.signedAt = entry.timestamp
        messages.append(message)
      }
    }
    return messages
  }

  /// What we said ourselves comes back when it is stored: the other side is not its sender.
  func peerMessage(_ json: [UInt8], with peer: PeerID, _ cursor: UInt64, isDelivered: Bool = false) -> Message? {
    let message = message(
      json, kind: nil, author: nil, channel: nil, peer: peer, nil, cursor: cursor << 8,
      deliveredTo: isDelivered ? [peer] : [])
    guard let message, !people.isBlocked(message.sender) else { return nil }
    return message.sender == peer || message.sender == me ? message : nil
  }

  private func message(
    _ json: [UInt8], kind: UInt64?, author: PeerID?, channel: (id: ChannelID, name: ChannelName)?, peer: PeerID? = nil,
    isEntry: Bool = false, _ word: Result<OrganiserWord, TokenRefusal>?, cursor: UInt64, deliveredTo: [PeerID]
  ) -> Message? {
    guard let said = try? SchemaMessage(decoding: json, author: author), let id = said.messageID,
      kind.map({ KindRegistry.fits($0, said) }) ?? !type(of: said.content).isHidden, !said.isLive,
      // What everybody can read was said to everybody.
      !isEntry || said.options.direction == nil
    else {
      state.withLock { $0.malformedCount += 1 }
      return nil
    }
    let checked = channel.map { counting(said, in: $0.id) } ?? said
    let sender = checked.sender
    var recognition = people.recognition(of: sender.peer, named: sender.displayName.text, in: channel?.id)
    recognition.add(word)
    var message = Message(
      channel: channel?.name, id: id, sender: sender.peer, senderName: sender.displayName.text,
      timestamp: checked.timestamp ?? "", body: Message.Body(checked.content),
      json: String(decoding: checked.encoded, as: UTF8.self), cursor: cursor, deliveredTo: deliveredTo, peer: peer,
      recognition: recognition,
      ext: checked.options.ext.map { String(decoding: JSONValue.object($0).encoded, as: UTF8.self) },
      replyTo: checked.options.replyTo.map { MessageReference($0) },
      fetched: state.withLock { $0.fetched.known(of: checked.content) },
      options: Message.Options(checked.options))
    message.isMuted = sender.peer != me && wishes.isMuted(sender.peer, in: channel?.id)
    return message
  }

  // MARK: Names

  var channels: [Joined] { state.withLock { $0.channels.values.sorted { $0.name < $1.name } } }
  func channel(named name: ChannelName) -> Joined? {
    state.withLock { $0.channels.values.first { $0.name == name } }
  }
  var connectionState: ConnectionState { state.withLock { $0.state } }
  var interfaceLines: [String] { state.withLock { $0.interfaces } }

  // MARK: Subscribers

  /// The store has given this cursor last, before anything is told.
  /// `wake` is called when `takeNewOrganisers` has something.
  func begin(
    after cursor: UInt64, keep: @escaping @Sendable (StoreWrite) -> Void, wake: @escaping @Sendable () -> Void
  ) {
    state.withLock {
      $0.cursor = Self.end(of: cursor)
      $0.keep = keep
      $0.wake = wake
    }
  }

  func keep(_ write: StoreWrite) { state.withLock { $0.keep }?(write) }

  func events(bufferingCount: Int) -> AsyncStream<NodeEvent> {
    events(after: nil, in: nil, bufferingCount: bufferingCount, pager: nil)
  }

  /// `cursor`: nil for that of the last message told.
  func events(
    after cursor: UInt64?, in channel: ChannelName?, bufferingCount: Int, pager: Subscriber.Pager?
  ) -> AsyncStream<NodeEvent> {
    let (subscriber, id) = state.withLock { state in
      let subscriber = Subscriber(
        after: cursor ?? state.cursor, in: channel, countMax: bufferingCount, pager: pager)
      let id = state.nextSubscriber
      state.nextSubscriber += 1
      if state.isFinished { subscriber.finish() } else { state.subscribers[id] = subscriber }
      return (subscriber, id)
    }
    return Subscription(subscriber) { [weak self] in self?.unsubscribe(id) }.stream
  }

  private func unsubscribe(_ id: UInt64) { state.withLock { _ = $0.subscribers.removeValue(forKey: id) } }

  func emit(_ event: NodeEvent) { emit([event]) }

  func emit(_ events: [NodeEvent]) {
    state.withLock { state in
      for event in events {
        state.counts.note(event, me)
        guard let cursor = event.cursor else {
          for subscriber in state.subscribers.values { subscriber.offer(event) }
          continue
        }
        state.cursor = cursor
        if case .message(let message) = event {
          state.heard(message, by: me)
          if !isEchoed(message, state) { continue }
        }
        var isAwaited = false
        for subscriber in state.subscribers.values {
          if subscriber.isPaged { isAwaited = true } else { subscriber.offer(event) }
        }
        if isAwaited { state.unsynced.append(event) }
      }
    }
  }

  /// Who keeps a cursor is told what a power cut cannot take any more: it would come again under another cursor.
  private func synced(_ cursor: UInt64) {
    state.withLock { state in
      let count = state.unsynced.prefix { event in
        event.cursor.map { $0 >> 8 <= cursor } ?? true
      }.count
      guard count > 0 else { return }
      for event in state.unsynced[..<count] {
        for subscriber in state.subscribers.values where subscriber.isPaged { subscriber.offer(event) }
      }
      state.unsynced.removeFirst(count)
    }
  }

  func finish() {
    let all = state.withLock { state in
      defer { state.subscribers = [:] }
      state.isFinished = true
      return state.subscribers.values
    }
    for subscriber in all { subscriber.finish() }
  }
}
