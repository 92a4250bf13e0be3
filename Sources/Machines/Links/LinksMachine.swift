import ParleyVocabulary
import ParleyWire

/// Who is connected to whom: addresses, replay windows, sessions and their ties, and to whom what arrives is passed on.
/// Pure: no clock, no dice, no I/O.
package struct LinksMachine: Sendable {
  package let me: PeerID
  package let instance: Instance
  var channels: Set<ChannelID> = []
  var peers: [PeerID: PeerLink] = [:]
  var claims = Claims()
  var elsewhere = Elsewhere()
  var strangers = StrangerQueue()
  package let limits: MemberLimits
  var newIdentities: Allowances<[UInt8]>
  var signatures: Allowances<[UInt8]>
  var reportedAt: [PeerID: Instant] = [:]
  var sessions: [LinkID: Session] = [:]
  var dials: [LinkID: Dial] = [:]
  var fragments = FragmentPool()
  var kept: PeerID?
  var introductions = Introductions()
  /// Those of `channels` that have generations.
  var owned: [ChannelID: OwnedChannel] = [:]
  /// How old a generation may get before we make the next one, where we may; nil: as old as it likes.
  package var rotateEvery: Span?
  /// When to dial the kept peer again whose session was lost.
  var redialAt: Instant?
  var redialDelay = SessionRule.redialFirst
  var nextDial: UInt64 = 2
  var nextCounter: UInt64 = 1
  var nextPing: UInt64 = 1
  package var tcpPort: UInt16 = 0
  /// Instances heard on the network whose channel is none of ours are counted by the actor; these are ours.
  package var sessionCount: Int { sessions.count }

  package init(me: PeerID, instance: Instance, limits: MemberLimits = MemberLimits()) {
    self.limits = limits
    newIdentities = Allowances(limits.identities)
    signatures = Allowances(limits.signatures)
    self.me = me
    self.instance = instance
  }

  /// Whose instance this is, when an authenticated presence told.
  package func peer(of instance: Instance) -> PeerID? { claims[instance] }

  /// Where to dial a peer: the address it last answered from, else the one it last spoke from.
  package func address(of peer: PeerID) -> Address? { peers[peer]?.dialAddress }
  /// The session that stands with a peer.
  package func session(of peer: PeerID) -> LinkID? { peers[peer]?.session }
  package func sharedChannels(with peer: PeerID) -> [ChannelID] {
    peers[peer].map { Array($0.channels.intersection(channels)).sorted() } ?? []
  }

  package mutating func handle(_ event: LinksEvent, at now: Instant) -> [LinksEffect] {
    switch event {
    case .channelOpened(let channel): return open(channel) + dialIntroductions(now)
    case .channelClosed(let channel):
      channels.remove(channel)
      owned[channel] = nil
      for peer in peers.keys { peers[peer]!.channels.remove(channel) }
      return []
    case .datagramOpened(let channel, let instance, let address, let frames, let generation):
      return datagram(channel, instance, address, frames, generation, now)
    case .claimVerified(let channel, let claim, let address, let generation):
      return verified(claim, channel, address, generation, now)
    case .directOpened(let channel, let peer, let instance, let address, let message):
      return direct(message, channel, peer, instance, address, now)
    case .sessionOpened(let link, let facts): return opened(link, facts, now)
    case .metOurselves(let instance): return metOurselves(instance)
    case .sessionClosed(let link, _): return closed(link, now)
    case .sessionMessage(let link, let message): return received(message, link, now)
    case .channelsProven(let link, let proven, let generations): return proved(proven, generations, link)
    case .generationsRestored(let channel, let founder, let known, let age):
      return restored(channel, founder, known, age, now)
    case .generationAdded(let channel, let generation, let peer): return added(generation, channel, from: peer, now)
    case .trustChanged(let channel, let trust): return trustChanged(trust, channel, now)
    case .rotate(let channel, let refused): return rotate(channel, refusing: refused, now)
    case .multicast(let channel, let frames): return multicast(channel, frames)
    case .unicast(let channel, let peer, let frames, let parts): return unicast(channel, peer, frames, parts)
    case .send(let peer, let message): return send(message, to: peer, now)
    case .sendIfOpen(let peer, let message):
      guard let link = peers[peer]?.session else { return [] }
      return [.sendFrame(link, message)]
    case .keep(let peer): return keep(peer, now)
    case .check(let peer): return check(peer, now)
    case .introduce(let address): return introduce(address, now)
    case .peerIsGone(let peer): return forgetSession(of: peer)
    case .networkChanged: return networkChanged(now)
    case .woke: return tick(now)
    }
  }

  /// Gives a live thing of ours its instance, counter and port.
  mutating func stamped(_ frame: OutboundFrame) -> OutboundFrame {
    switch frame {
    case .presence(var presence):
      presence.author = me
      presence.instance = instance
      presence.counter = takeCounter()
      presence.tcpPort = tcpPort
      return .presence(presence)
    case .live(var live):
      live.author = me
      live.instance = instance
      live.counter = takeCounter()
      return .live(live)
    case .plain: return frame
    }
  }

  private mutating func takeCounter() -> UInt64 {
    defer { nextCounter += 1 }
    return nextCounter
  }

  /// On the wire an entry may take several datagrams; whom no datagram reaches gets everything in the session.
  private mutating func multicast(_ channel: ChannelID, _ frames: [OutboundFrame]) -> [LinksEffect] {
    guard channels.contains(channel) else { return [] }
    let stamped = frames.map { self.stamped($0) }
    var effects: [LinksEffect] = []
    var small: [OutboundFrame] = []
    for frame in stamped {
      if case .plain(.entry(let bytes)) = frame, bytes.count > FragmentRule.wholeByteCountMax {
        effects += FragmentRule.split(bytes).map { .multicast(channel, [.plain(.fragment($0))]) }
      } else {
        small.append(frame)
      }
    }
    if !small.isEmpty { effects.insert(.multicast(channel, small), at: 0) }
    for (peer, known) in peers where known.candidate == nil && known.channels.contains(channel) {
      guard let link = peers[peer]?.session else { continue }
      for frame in stamped {
        switch frame {
        case .presence, .live: effects.append(.sendSigned(link, channel, frame))
        case .plain(.entry(let bytes)):
          effects.append(.sendFrame(link, .entries(channel, request: 0, [bytes], isLast: true)))
        case .plain: break
        }
      }
    }
    return effects
  }

  private mutating func unicast(
    _ channel: ChannelID, _ peer: PeerID, _ frames: [OutboundFrame], _ parts: [DirectMessage.Part]
  ) -> [LinksEffect] {
    guard let known = peers[peer] else { return [] }
    let out = frames.map { stamped($0) }
    guard let address = known.confirmed ?? known.candidate else {
      // Only reachable through a session (introduced by hand).
      guard let link = known.session else { return [] }
      let signed: [LinksEffect] = out.compactMap { frame in
        if case .plain = frame { return nil }
        return .sendSigned(link, channel, frame)
      }
      return signed + (parts.isEmpty ? [] : [.sendFrame(link, .direct(channel, parts))])
    }
    let direct =
      parts.isEmpty
      ? nil : DirectFor(peer: peer, message: DirectMessage(counter: takeCounter(), parts: parts))
    return [.unicast(channel, to: address, out, direct: direct)]
  }

  // MARK: Datagrams

  private mutating func datagram(
    _ channel: ChannelID, _ instance: Instance, _ address: Address, _ frames: [DatagramFrame],
    _ generation: GenerationID?, _ now: Instant
  ) -> [LinksEffect] {
    guard channels.contains(channel), instance != self.instance else { return [] }
    var frames = frames
    // Each costs a signature to look at, whoever made it.
    frames.removeAll { $0.isSigned && !signatures.take(address.host, at: now) }
    var effects: [LinksEffect] = []
    var author = claims[instance]
    var introduced: PeerID?
    if let author, !admits(author, to: channel) {
      guard owned[channel]?.isInvitedAgain(author, holding: generation) == true else { return [] }
      frames.removeAll { !$0.holdsEntry }
    }
    let isLate = isLate(generation, channel)
    if isLate, let author, let generation, owned[channel]!.held[author] != owned[channel]!.current {
      effects += noteLag(author, generation, nextCounter, in: channel, now)
    }
    for frame in frames {
      if isLate, !isReadLate(frame, of: author, channel, now) { continue }
      switch frame {
      case .presence(let signed):
        guard let presence = try? Presence(decoding: signed.object[...]), presence.instance == instance,
          isFresh(presence.author, instance, presence.counter, channel)
        else { continue }
        author = presence.author
        introduced = presence.author
        effects.append(.verify(channel, .presence(presence, signed), from: address, under: generation))
      case .live(let signed): effects += heardLive(signed, channel, instance, address, generation)
      case .liveFragment(let fragment):
        guard let bytes = fragments.add(fragment, channel, instance, from: address),
          let signed = try? Signed(decoding: bytes[...]), signatures.take(address.host, at: now)
        else { continue }
        effects += heardLive(signed, channel, instance, address, generation)
      case .entry(let bytes): effects.append(.tell(.messaging(.entryHeard(channel, bytes, from: author))))
      case .fragment(let fragment):
        guard let bytes = fragments.add(fragment, channel, instance, from: address) else { continue }
        effects.append(.tell(.messaging(.entryHeard(channel, bytes, from: author))))
      case .direct(let sealed):
        let others = claims.all(instance).filter { $0 != introduced }
        for author in [introduced].compactMap({ $0 }) + others {
          effects.append(.openDirect(channel, sealed, from: address, author: author, instance))
        }
      case .suspect(let peer, let incarnation):
        effects.append(.tell(.membership(.suspected(channel, peer, incarnation: incarnation))))
      case .whoHas(let media):
        guard let author else { continue }
        effects.append(.tell(.media(.asked(channel, author, media))))
      }
    }
    return effects
  }

  private func heardLive(
    _ signed: Signed, _ channel: ChannelID, _ instance: Instance, _ address: Address, _ generation: GenerationID?
  ) -> [LinksEffect] {
    guard let live = try? LiveObject(decoding: signed.object[...]), live.instance == instance,
      isFresh(live.author, instance, live.counter, channel)
    else { return [] }
    return [.verify(channel, .live(live, signed), from: address, under: generation)]
  }

  /// Under a key that those have who were removed meanwhile, nothing is read that nobody signed or that comes from
  /// nobody known, and after a while only who is there.
  private func isReadLate(
    _ frame: DatagramFrame, of author: PeerID?, _ channel: ChannelID, _ now: Instant
  ) -> Bool {
    switch frame {
    case .presence: true
    case .live, .liveFragment, .entry, .fragment, .direct: author != nil && isOverlapping(channel, now)
    case .suspect, .whoHas: false
    }
  }

  private func isFresh(_ author: PeerID, _ instance: Instance, _ counter: UInt64, _ channel: ChannelID) -> Bool {
    peers[author]?.liveWindow(of: instance, channel).isFresh(counter) ?? true
  }

  private mutating func verified(
    _ claim: LiveClaim, _ channel: ChannelID, _ address: Address?, _ generation: GenerationID?, _ now: Instant
  ) -> [LinksEffect] {
    let (author, instance, counter) = claim.origin
    guard channels.contains(channel), admits(author, to: channel) else { return [] }
    if author == me {
      return lookElsewhere(claim, address, now)
    }
    // Two claims of one counter can be under verification at once: the window decides here, too.
    guard isFresh(author, instance, counter, channel) else { return [] }
    var effects: [LinksEffect] = []
    if case .presence(let presence, _) = claim { effects = adopt(presence, channel, address, now) }
    guard var known = peers[author], known.instance == instance else { return effects }
    if let excess = known.costs.excess(of: claim, limits, at: now) {
      peers[author] = known
      return effects + report(channel, author, excess, now)
    }
    known.live[channel, default: ReplayWindow()].accept(counter)
    peers[author] = known
    if let generation {
      if isLate(generation, channel) {
        effects += noteLag(author, generation, counter, in: channel, now)
        // It cannot read what we would ask it. It is heard again as soon as it has caught up.
        if !isOverlapping(channel, now) { return effects }
      } else {
        owned[channel]?.note(author, holds: generation)
      }
    }
    switch claim {
    case .presence(let presence, _):
      effects.append(.tell(.membership(.presenceHeard(channel, presence, overSession: address == nil))))
    case .live(let live, _): effects.append(.tell(.membership(.liveHeard(channel, live))))
    }
    return effects
  }

  /// Learns port, instance and a candidate address. The confirmed address changes only with an echo from the new one,
  /// which is asked for here: nobody else would write there.
  private mutating func adopt(
    _ presence: Presence, _ channel: ChannelID, _ address: Address?, _ now: Instant
  ) -> [LinksEffect] {
    if peers[presence.author] == nil, let address, !newIdentities.take(address.host, at: now) { return [] }
    guard hasRoom(for: presence.author) else { return [] }
    if peers[presence.author] == nil { strangers.add(presence.author) }
    var known = peers[presence.author] ?? PeerLink(instance: presence.instance, incarnation: presence.incarnation)
    guard presence.incarnation >= known.incarnation else { return report(presence, channel, address, now) }
    var effects: [LinksEffect] = []
    if known.instance != presence.instance {
      claims.remove(presence.author, known.instance)
      effects += dropSession(&known)
      known.startAgain(as: presence.instance)
    }
    known.incarnation = presence.incarnation
    known.tcpPort = presence.tcpPort
    known.channels.insert(channel)
    if let address {
      known.candidate = address
      if let confirmed = known.confirmed, confirmed != address, known.askAt.map({ $0 <= now }) ?? true {
        // Who names one address after the other must not make all members write to strangers.
        known.askAt = now + SessionRule.askAddressAgain
        let question = DirectMessage(counter: takeCounter(), parts: [.probe(nonce: presence.counter)])
        effects.append(
          .unicast(channel, to: address, [], direct: DirectFor(peer: presence.author, message: question)))
      }
    }
    claims.add(presence.author, presence.instance)
    peers[presence.author] = known
    return effects
  }

  private mutating func direct(
    _ message: DirectMessage, _ channel: ChannelID, _ peer: PeerID, _ instance: Instance, _ address: Address,
    _ now: Instant
  ) -> [LinksEffect] {
    guard var known = peers[peer], known.instance == instance,
      known.direct[channel, default: ReplayWindow()].isFresh(message.counter)
    else { return [] }
    known.direct[channel, default: ReplayWindow()].accept(message.counter)
    let hasMoved = known.confirmed.map { $0.host != address.host } ?? false
    known.confirmed = address
    claims.prove(peer, instance)
    peers[peer] = known
    // A session to where it was is probably dead.
    let questions = hasMoved ? known.session.map { question($0, now) } ?? [] : []
    return questions + Self.passOn(message.parts, channel, peer)
  }

  static func passOn(_ parts: [DirectMessage.Part], _ channel: ChannelID, _ peer: PeerID) -> [LinksEffect] {
    // One question is enough: each costs a datagram, and many fit into one.
    let probe = parts.firstIndex { if case .probe = $0 { true } else { false } }
    return parts.enumerated().compactMap { index, part in
      switch part {
      case .probe(let nonce): index == probe ? .tell(.membership(.probed(channel, peer, nonce: nonce))) : nil
      case .echo(let nonce): .tell(.membership(.echoed(channel, peer, nonce: nonce)))
      case .acknowledge(let log, let number):
        .tell(.messaging(.acknowledged(channel, peer, log: log, number: number)))
      case .holding(let media): .tell(.media(.holdingHeard(channel, peer, media)))
      }
    }
  }
}

extension LiveClaim {
  package var origin: (author: PeerID, instance: Instance, counter: UInt64) {
    switch self {
    case .presence(let presence, _): (presence.author, presence.instance, presence.counter)
    case .live(let live, _): (live.author, live.instance, live.counter)
    }
  }

  package var signed: Signed {
    switch self {
    case .presence(_, let signed), .live(_, let signed): signed
    }
  }

  /// The context under which it is signed.
  package var context: String {
    switch self {
    case .presence: Presence.context
    case .live: LiveObject.context
    }
  }
}
