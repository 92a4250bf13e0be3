import ParleyHashing
import ParleyVocabulary
import ParleyWire

/// Who is in each channel, who is there now, and whose hand is up. Failure detection after SWIM (Das, Gupta,
/// Motivala 2002): suspicion, probes, refutation; the last word is a failed dial.
package struct MembershipMachine: Sendable {
  package let me: PeerID
  package let instance: Instance
  var channels: [ChannelID: ChannelMembers] = [:]
  private let nonceKey: [UInt8]
  private var nonceCount: UInt64 = 0
  var jitter: Jitter
  /// The one we keep a session to, and who it is to be.
  var successor: PeerID?
  /// When we asked to be woken.
  private var dueAt: Instant?
  private var nextSuccessor: PeerID?

  /// `nonceKey`: 32 secret bytes drawn by Sealing for this run; nonces are a keyed hash of a count under it, so that a
  /// step that needs a thousand of them need not wait for a source of randomness. `seed` steers timing only.
  package init(me: PeerID, instance: Instance, nonceKey: [UInt8], seed: UInt64) {
    precondition(nonceKey.count == 32, "a nonce key is 32 bytes")
    self.me = me
    self.instance = instance
    self.nonceKey = nonceKey
    jitter = Jitter(seed: seed)
  }

  /// Everybody ever listed in a channel, ourselves included; first those whose hand is up, in the order in which all
  /// members see them raised.
  package func members(of channel: ChannelID) -> [MemberView] {
    guard let state = channels[channel] else { return [] }
    let views = state.members.compactMap { $1.view($0) } + [state.ownView(me)]
    let raised = views.filter(\.isHandRaised).map { (view: $0, order: state.handOrder(of: $0.peer)) }
      .sorted { a, b in
        guard let first = a.order, let second = b.order else { return a.order != nil }
        return first < second
      }
    return raised.map(\.view) + views.filter { !$0.isHandRaised }
  }

  package func presentPeers(in channel: ChannelID) -> [PeerID] {
    channels[channel].map { $0.members.filter(\.value.isPresent).keys.sorted() } ?? []
  }

  package mutating func handle(_ event: MembershipEvent, at now: Instant) -> [MembershipEffect] {
    var effects: [MembershipEffect] = []
    if let dueAt, now > dueAt + MembershipRule.sleep { effects.append(.tell(.login(.slept(now - dueAt)))) }
    effects += step(event, now)
    effects += refreshSuccessor()
    dueAt = nil
    // A view of the keys would keep a second reference, and every member would be copied.
    for channel in Array(channels.keys) {
      let own = channels[channel]!.nextDue()
      dueAt = dueAt.map { min($0, own) } ?? own
    }
    if let due = dueAt {
      effects.append(.wake(at: due))
      // A turn that is over stands for now: the same sleep is told once, also when other events come before the wake.
      dueAt = max(due, now)
    }
    return effects
  }

  private mutating func step(_ event: MembershipEvent, _ now: Instant) -> [MembershipEffect] {
    switch event {
    case .joined(let channel, let displayName, let incarnation, let remembered):
      return joined(channel, displayName, incarnation, remembered, now)
    case .left(let channel): return left(channel)
    case .presenceHeard(let channel, let presence, let overSession):
      return heard(presence, channel, overSession, now)
    case .liveHeard(let channel, let live): return heard(live, channel, now)
    case .typed(let channel, let isTyping): return typed(channel, isTyping, now)
    case .probed(let channel, let peer, let nonce): return probed(channel, peer, nonce, now)
    case .echoed(let channel, let peer, let nonce): return echoed(channel, peer, nonce, now)
    case .suspected(let channel, let peer, let incarnation): return suspected(channel, peer, incarnation, now)
    case .sessionOpened(let channel, let peer, let instance, let wasIntroduced):
      return sessionOpened(channel, peer, instance, wasIntroduced, now)
    case .sessionLost(let peer, let instance): return sessionLost(peer, instance, now)
    case .dialSucceeded(let peer): return dialSucceeded(peer, now)
    case .dialFailed(let peer): return dialFailed(peer, now)
    case .headsChanged(let channel, let digest, let head, let lamport):
      guard let isNews = channels[channel].map({ $0.digest != digest }) else { return [] }
      channels[channel]!.digest = digest
      channels[channel]!.head = head
      channels[channel]!.lamport = lamport
      if isNews { channels[channel]!.becomeLively(now) }
      return []
    case .announceHead(let channel):
      guard channels[channel] != nil else { return [] }
      return [beacon(channel, full: false, wantsAcknowledgement: true)]
    case .hiddenEntryStored(let channel, let entry): return stored(entry, channel)
    case .governed(let channel, let governance): return governed(channel, governance)
    case .excluded(let channel, let peer): return excluded(channel, peer, now)
    case .keysChanged(let channel):
      channels[channel]?.noteKeys(now, &jitter)
      return []
    case .networkChanged:
      return channels.keys.sorted().map { channel in
        channels[channel]!.callOut(now)
        return beacon(channel, full: true)
      }
    case .woke: return woke(now)
    }
  }

  mutating func takeNonce() -> UInt64 {
    nonceCount += 1
    var count = ByteWriter()
    count.uint64(nonceCount)
    let hash = BLAKE2b.hash(count.bytes, byteCount: 16, key: nonceKey)
    return hash.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  // MARK: Joining and leaving

  private mutating func joined(
    _ channel: ChannelID, _ displayName: DisplayName, _ incarnation: UInt64, _ remembered: [MemberRecord],
    _ now: Instant
  ) -> [MembershipEffect] {
    guard channels[channel] == nil else { return [] }
    var state = ChannelMembers(
      displayName: displayName, incarnation: incarnation, nonce: takeNonce(), me: me, instance: instance, now: now)
    for record in remembered where record.peer != me { state.remember(record, now) }
    channels[channel] = state
    return [beacon(channel, full: true), .announce(channel, state.ownView(me))]
  }

  private mutating func left(_ channel: ChannelID) -> [MembershipEffect] {
    guard let state = channels.removeValue(forKey: channel) else { return [] }
    let status = state.status(isOnline: false, me)
    // Nobody acknowledges a goodbye, so it is said three times (each with a counter of its own, under one meaning).
    let goodbye = OutboundFrame.live(LiveObject(author: me, instance: instance, counter: 0, json: status))
    let present = state.members.filter(\.value.isPresent).keys.sorted()
    if let next = nextSuccessor, state.present.contains(next) { findSuccessor() }
    return (0..<3).map { _ in .tell(.links(.multicast(channel, [goodbye]))) }
      + present.map { .tell(.links(.unicast(channel, $0, [goodbye], direct: []))) }
      + [.tell(.links(.channelClosed(channel)))]
  }

  // MARK: Beacons

  func presence(_ channel: ChannelID, full: Bool, wantsAcknowledgement: Bool = false) -> OutboundFrame {
    let state = channels[channel]!
    return .presence(
      Presence(
        author: me, instance: instance, counter: 0, incarnation: state.incarnation, tcpPort: 0,
        intervalMilliseconds: UInt64(state.interval.microseconds / 1_000), nonce: state.nonce, head: state.head,
        digest: state.digest, lamport: state.lamport, wantsAcknowledgement: wantsAcknowledgement,
        status: full ? state.ownStatus : [], statusHash: state.ownStatusHash))
  }

  func beacon(_ channel: ChannelID, full: Bool, wantsAcknowledgement: Bool = false) -> MembershipEffect {
    .tell(
      .links(.multicast(channel, [presence(channel, full: full, wantsAcknowledgement: wantsAcknowledgement)])))
  }

  /// Our full presence for one member, with whatever is to be sealed for it.
  func answer(_ channel: ChannelID, _ peer: PeerID, _ parts: [DirectMessage.Part]) -> MembershipEffect {
    .tell(.links(.unicast(channel, peer, [presence(channel, full: true)], direct: parts)))
  }

  // MARK: What is heard

  private mutating func heard(
    _ presence: Presence, _ channel: ChannelID, _ overSession: Bool, _ now: Instant
  ) -> [MembershipEffect] {
    let peer = presence.author
    guard channels[channel] != nil, channels[channel]!.hasRoom(for: peer) else { return [] }
    var member = channels[channel]!.members[peer] ?? channels[channel]!.newMember(presence, now)
    guard presence.incarnation >= member.incarnation else { return report(&member, presence, channel, now) }
    var effects: [MembershipEffect] = []
    if member.instance == presence.instance {
      // Overtaken on the way by a later one, or by the goodbye.
      guard presence.counter > member.counter, presence.counter > member.goodbye else { return [] }
    } else {
      // It was started again: the run that was listed is over, for the application and for messaging, too.
      let before = member.view(peer)
      member.startAgain(as: presence)
      member.incarnation = presence.incarnation
      channels[channel]!.put(member, peer)
      effects += settle(channel, peer, before, isStartingAgain: true, at: now)
      member = channels[channel]!.members[peer]!
    }
    let before = member.view(peer)
    member.take(presence, peer, now)
    if overSession { member.phase = .present }
    switch member.phase {
    case .present: break
    case .suspect: member.phase = .present
    case .claimed: break
    case .gone:
      effects += welcome(channel, peer, now, &member)
    }
    channels[channel]!.put(member, peer)
    if member.isPresent {
      // A brief beacon that names a status we have not seen: its sender tells it with the echo.
      if presence.statusHash != member.statusHash, member.answers.take(1, at: now) {
        channels[channel]!.put(member, peer)
        effects.append(answer(channel, peer, [.probe(nonce: channels[channel]!.nonce)]))
      }
      effects += settle(channel, peer, before, at: now)
      effects.append(
        .tell(.messaging(.presenceHeard(channel, peer, PresenceFacts(presence)))))
    }
    return effects
  }

  /// It runs an older copy of its profile than the one it was known by.
  private mutating func report(
    _ member: inout MemberState, _ presence: Presence, _ channel: ChannelID, _ now: Instant
  ) -> [MembershipEffect] {
    guard member.instance != presence.instance, member.reportAt.map({ $0 <= now }) ?? true else { return [] }
    member.reportAt = now + MembershipRule.reportAgain
    channels[channel]!.put(member, presence.author)
    let frame = DatagramFrame.suspect(presence.author, incarnation: member.incarnation)
    return [.tell(.links(.unicast(channel, presence.author, [.plain(frame)], direct: [])))]
  }

  /// In a small channel the newcomer is answered at once; in a larger one after a jitter, lest all answer together.
  private mutating func welcome(
    _ channel: ChannelID, _ peer: PeerID, _ now: Instant, _ member: inout MemberState
  ) -> [MembershipEffect] {
    let nonce = takeNonce()
    let crowd = channels[channel]!.members.count
    guard crowd > MembershipRule.crowd else {
      member.phase = .claimed(.init(nonce: nonce, sentCount: 1, nextAt: now + MembershipRule.probeDistances[0]))
      return [answer(channel, peer, [.probe(nonce: nonce), .echo(nonce: member.theirNonce)])]
    }
    member.phase = .claimed(
      .init(
        nonce: nonce, sentCount: 0, nextAt: now + jitter.span(.milliseconds(0), .milliseconds(min(400, crowd * 4)))))
    return []
  }

  private mutating func heard(_ live: LiveObject, _ channel: ChannelID, _ now: Instant) -> [MembershipEffect] {
    guard var member = channels[channel]?.members[live.author],
      member.instance == live.instance,
      let message = try? SchemaMessage(decoding: live.json, author: live.author)
    else { return [] }
    if let typing = message.content as? TypingKind { return heard(typing, live, channel, now) }
    guard let status = message.content as? StatusKind else {
      // Who is only claimed may be a recording.
      return member.isPresent ? [.tell(.messaging(.liveHeard(channel, live.author, json: live.json)))] : []
    }
    let before = member.view(live.author)
    if status.isOnline {
      member.displayName = message.sender.displayName
      member.lastHeard = now
    } else {
      // Said before it came back, and overtaken on the way.
      guard live.counter > member.counter else { return [] }
      member.goodbye = live.counter
      member.phase = .gone
    }
    channels[channel]!.put(member, live.author)
    return settle(channel, live.author, before, at: now)
  }

  private mutating func excluded(_ channel: ChannelID, _ peer: PeerID, _ now: Instant) -> [MembershipEffect] {
    guard var member = channels[channel]?.members[peer] else { return [] }
    let before = member.view(peer)
    member.phase = .gone
    // As after a goodbye: nobody misses it.
    member.goodbye = max(member.goodbye, member.counter + 1)
    channels[channel]!.put(member, peer)
    return settle(channel, peer, before, at: now)
  }

  private mutating func probed(
    _ channel: ChannelID, _ peer: PeerID, _ nonce: UInt64, _ now: Instant
  ) -> [MembershipEffect] {
    guard var member = channels[channel]?.members[peer], member.answers.take(1, at: now) else { return [] }
    channels[channel]!.put(member, peer)
    var parts: [DirectMessage.Part] = [.echo(nonce: nonce)]
    if case .claimed(let probing) = member.phase { parts.append(.probe(nonce: probing.nonce)) }
    return [answer(channel, peer, parts)]
  }

  private mutating func echoed(
    _ channel: ChannelID, _ peer: PeerID, _ nonce: UInt64, _ now: Instant
  ) -> [MembershipEffect] {
    guard var member = channels[channel]?.members[peer] else { return [] }
    let before = member.view(peer)
    switch member.phase {
    case .claimed(let probing):
      guard nonce == probing.nonce || nonce == channels[channel]!.nonce else { return [] }
    // What answers an earlier question may have been on its way for long.
    case .suspect(let probing): guard nonce == probing.nonce else { return [] }
    case .present: break
    case .gone: return []
    }
    member.phase = .present
    member.lastHeard = now
    channels[channel]!.put(member, peer)
    return settle(channel, peer, before, at: now)
  }

  private mutating func stored(_ entry: Entry, _ channel: ChannelID) -> [MembershipEffect] {
    guard channels[channel] != nil else { return [] }
    let author = entry.key.author
    let before = view(of: author, in: channel)
    for item in entry.items where item.kind == RaiseHandKind.code {
      guard let body = item.body, let message = try? SchemaMessage(decoding: body, author: entry.key.author),
        let hand = message.content as? RaiseHandKind
      else { continue }
      channels[channel]!.noteHand(entry, isRaised: hand.isRaised)
    }
    guard let after = view(of: author, in: channel), after != before else { return [] }
    return [.announce(channel, after)]
  }

  private mutating func governed(_ channel: ChannelID, _ governance: Governance) -> [MembershipEffect] {
    guard channels[channel] != nil else { return [] }
    channels[channel]!.governance = governance
    var effects: [MembershipEffect] = []
    for author in Set(channels[channel]!.hands.keys.map(\.author)).sorted() {
      let before = view(of: author, in: channel)
      channels[channel]!.refreshHand(of: author)
      let after = view(of: author, in: channel)
      if let after, after != before { effects.append(.announce(channel, after)) }
    }
    return effects
  }

  private func view(of peer: PeerID, in channel: ChannelID) -> MemberView? {
    peer == me ? channels[channel]!.ownView(me) : channels[channel]!.members[peer]?.view(peer)
  }

  /// Says what changed of a member: to the application, the disk, and messaging.
  mutating func settle(
    _ channel: ChannelID, _ peer: PeerID, _ before: MemberView?, isStartingAgain: Bool = false, at now: Instant
  ) -> [MembershipEffect] {
    guard var member = channels[channel]?.members[peer] else { return [] }
    if member.isPresent, member.displayName != nil { member.isListed = true }
    let wasPresent = channels[channel]!.present.contains(peer)
    let isFirst = member.isPresent && !wasPresent
    let isLast = !member.isPresent && wasPresent
    if isLast { member.isHandRaised = false }
    if isFirst {
      channels[channel]!.present.insert(peer)
      if nextSuccessor.map({ isNearer(peer, than: $0) }) ?? true { nextSuccessor = peer }
      // Those who were cut off from us find us sooner when all speak up.
      channels[channel]!.becomeLively(now)
      channels[channel]!.noteReturn(peer, now, &jitter)
      member.isHandRaised = channels[channel]!.isHandRaised(LogKey(author: peer, log: member.instance))
    }
    if isLast {
      channels[channel]!.present.remove(peer)
      if nextSuccessor == peer { findSuccessor() }
      // Its goodbye is younger than all else of it.
      if !isStartingAgain, member.goodbye <= member.counter { channels[channel]!.noteLost(peer, now) }
    }
    channels[channel]!.put(member, peer)
    var effects: [MembershipEffect] = []
    if isLast, channels[channel]!.typing.forget(peer) { effects.append(.typing(channel, peer, false)) }
    if isFirst {
      let facts = PresenceFacts(digest: member.digest, head: member.head, lamport: member.lamport)
      effects.append(.tell(.messaging(.memberPresent(channel, peer, member.instance, facts))))
    }
    if isLast {
      effects.append(.tell(.messaging(.memberGone(channel, peer))))
      if !isStartingAgain, !channels.values.contains(where: { $0.present.contains(peer) }) {
        effects.append(.tell(.links(.peerIsGone(peer))))
      }
    }
    if let after = member.view(peer), after != before {
      effects.append(.announce(channel, after))
      effects.append(
        .persist(
          channel,
          MemberRecord(
            peer: peer, displayName: after.displayName, isOnline: after.isOnline, incarnation: member.incarnation)))
    }
    return effects
  }

  /// In PeerID order from us on, and round.
  private func isNearer(_ peer: PeerID, than other: PeerID) -> Bool {
    (peer > me) == (other > me) ? peer < other : peer > me
  }

  private mutating func findSuccessor() {
    nextSuccessor = channels.values.compactMap { state in
      state.present.min { isNearer($0, than: $1) }
    }.min { isNearer($0, than: $1) }
  }

  /// The next present member in PeerID order, over all channels: the one we keep a session to.
  private mutating func refreshSuccessor() -> [MembershipEffect] {
    guard nextSuccessor != successor else { return [] }
    successor = nextSuccessor
    return [.tell(.links(.keep(nextSuccessor)))]
  }
}
