import ParleyMachines
import ParleySealing
import ParleyVocabulary
import ParleyWire

/// The five machines of one run of a node, the events between them, and the carrying out of what they decide.
final class SimulatedProcess {
  unowned let node: SimulatedNode
  let instance: Instance
  let incarnation: UInt64
  let tcpPort: UInt16
  let datagramPort: UInt16
  private var links: LinksMachine
  private var login = LoginMachine()
  private(set) var membership: MembershipMachine
  private(set) var messaging: MessagingMachine
  private var media = MediaMachine()
  private var inbox: [NodeEvent] = []
  private var isDraining = false
  private var wakes: [Room: Instant] = [:]
  private(set) var openChannels: Set<ChannelID> = []
  private(set) var joinedAt: [ChannelID: Instant] = [:]
  var streams: [LinkID: StreamID] = [:]
  private var nextAccepted: UInt64 = 1
  private(set) var loginState = LoginState.disconnected
  /// The process dies in the middle of its next steps, after so many effects.
  var effectsUntilCrash: Int?
  var isEnded = false
  /// Counters of presences that were passed on to membership.
  var seen: [ChannelID: [Instance: Set<UInt64>]] = [:]
  /// Of the datagram that is being read.
  private var currentHeader: ArraySlice<UInt8> = []
  private var network: SimulatedNetwork { node.network }

  init(_ node: SimulatedNode, incarnation: UInt64, seed: UInt64) {
    self.node = node
    self.incarnation = incarnation
    var dice = Jitter(seed: node.network.seed ^ UInt64(node.index) << 32 ^ incarnation << 40)
    instance = Instance(dice.next())
    tcpPort = UInt16(20_000 + node.run % 10_000)
    datagramPort = UInt16(40_000 + node.run % 10_000)
    links = LinksMachine(me: node.peer, instance: instance)
    links.tcpPort = tcpPort
    membership = MembershipMachine(
      me: node.peer, instance: instance, nonceKey: node.peer.bytes.map { $0 ^ UInt8(truncatingIfNeeded: seed) },
      seed: seed)
    messaging = MessagingMachine(me: node.peer, instance: instance, seed: seed)
  }

  var host: [UInt8] { node.host }
  var sessionCount: Int { links.sessionCount }
  var datagramAddress: Address { Address(host: node.host, port: datagramPort) }

  func takeAcceptedLink() -> LinkID {
    defer { nextAccepted += 2 }
    return LinkID(nextAccepted)
  }

  func join(_ name: ChannelName) {
    post(.login(.joinRequested(node.takeRequest(), name, network.channel(named: name))))
  }

  // MARK: Events

  func post(_ event: NodeEvent) {
    inbox.append(event)
    guard !isDraining else { return }
    isDraining = true
    var next = 0
    while next < inbox.count, !isEnded {
      let event = inbox[next]
      next += 1
      handle(event)
    }
    inbox = []
    isDraining = false
  }

  func woke(_ room: Room) {
    guard let at = wakes[room], at <= network.now else { return }
    wakes[room] = nil
    switch room {
    case .links: post(.links(.woke))
    case .membership: post(.membership(.woke))
    case .messaging: post(.messaging(.woke))
    case .login, .media: break
    }
  }

  private func wake(_ room: Room, at instant: Instant) {
    if let standing = wakes[room], standing <= instant { return }
    wakes[room] = instant
    network.queue.add(.wake(node.index, run: node.run, room), at: max(instant, network.now))
  }

  func heard(_ datagram: SimulatedNetwork.Datagram) {
    guard openChannels.contains(datagram.channel) else { return }
    if let generation = datagram.generation {
      guard node.keyrings[datagram.channel]?.known[generation] != nil else { return }
    } else if node.keyrings[datagram.channel] != nil {
      return
    }
    guard let frames = open(datagram) else { return }
    if node.fault == .passesOnReplays { passOnReplays(frames, datagram.channel) }
    post(
      .links(
        .datagramOpened(
          datagram.channel, datagram.instance, from: datagram.from, frames, under: datagram.generation)))
  }

  func heard(_ bytes: [UInt8], _ link: LinkID, _ stream: StreamID, fromInitiator: Bool) {
    let decoded: SessionMessage?
    do { decoded = try SessionMessage.decode(bytes) } catch {
      return network.violate("\(node.name) cannot read a session message: \(error)")
    }
    guard let message = decoded else { return }
    post(.links(.sessionMessage(link, message)))
    guard case .prove(let proofs) = message, streams[link] != nil else { return }
    guard let keys = network.streams[stream]?.keys else { return }
    var proven: [ChannelID] = []
    var generations: [ChannelID: GenerationID] = [:]
    for channel in openChannels.sorted() {
      let own = self.proofs(channel, keys, isInitiator: fromInitiator)
      guard let match = own.first(where: { proofs.contains($0.1) }) else { continue }
      proven.append(channel)
      generations[channel] = match.0
    }
    if !proven.isEmpty { post(.links(.channelsProven(link, proven, generations: generations))) }
  }

  private func passOnReplays(_ frames: [DatagramFrame], _ channel: ChannelID) {
    for case .presence(let signed) in frames {
      guard let presence = try? Presence(decoding: signed.object[...]),
        seen[channel]?[presence.instance]?.contains(presence.counter) == true
      else { continue }
      post(.membership(.presenceHeard(channel, presence, overSession: false)))
    }
  }

  private func open(_ datagram: SimulatedNetwork.Datagram) -> [DatagramFrame]? {
    switch datagram.content {
    case .read(let frames): return frames
    case .sealed(let bytes):
      guard let keys = network.channelKeys[datagram.channel], let body = DatagramSealer.open(bytes, channel: keys),
        let frames = try? DatagramFrame.decodeAll(body)
      else {
        network.violate("\(node.name) cannot open a datagram of its channel")
        return nil
      }
      currentHeader = bytes[..<DatagramHeader.byteCount]
      return frames
    }
  }

  private func handle(_ event: NodeEvent) {
    let now = network.now
    switch event {
    case .links(let event):
      if case .channelOpened(let channel) = event {
        openChannels.insert(channel)
        joinedAt[channel] = now
        for event in node.keyrings[channel].map({ Self.restoring(channel, $0) }) ?? [] {
          for effect in links.handle(event, at: now) where survives() { carryOut(effect) }
        }
      }
      for effect in links.handle(event, at: now) where survives() { carryOut(effect) }
      if case .channelClosed(let channel) = event { openChannels.remove(channel) }
    case .login(let event):
      for effect in login.handle(event, at: now) where survives() { carryOut(effect) }
    case .membership(let event):
      if case .presenceHeard(let channel, let presence, _) = event, network.nodes.count <= 64 {
        network.checker.heard(presence, in: channel, self, network)
      }
      for effect in membership.handle(event, at: now) where survives() { carryOut(effect) }
    case .messaging(let event):
      for effect in messaging.handle(event, at: now) where survives() { carryOut(effect) }
    case .media(let event):
      for effect in media.handle(event, at: now) where survives() { carryOut(effect) }
    }
  }

  private func survives() -> Bool {
    node.effectCount += 1
    if let left = effectsUntilCrash {
      effectsUntilCrash = left - 1
      if left == 0 { network.crash(SimulatedNodeID(index: node.index)) }
    }
    return !isEnded
  }

  // MARK: Effects

  private func carryOut(_ effect: LinksEffect) {
    switch effect {
    case .multicast(let channel, let frames):
      for frames in FragmentRule.datagrams(of: frames.map { signed($0, channel) }) {
        network.multicast(datagram(channel, frames, nil), from: node.index)
      }
    case .unicast(let channel, let address, let frames, let said):
      let direct = node.fault == .lowersAcknowledgements ? said.map(lowered) : said
      if let direct { network.checker.says(direct, in: channel, node, network) }
      network.unicast(datagram(channel, frames.map { signed($0, channel) }, direct), from: node.index, to: address)
    case .verify(let channel, let claim, let address, let generation):
      let (author, instance, _) = claim.origin
      guard
        node.sealer.verify(
          claim.signed.signature, claim.signed.object, context: claim.context, channel, instance, by: author)
      else { return }
      post(.links(.claimVerified(channel, claim, from: address, under: generation)))
    case .openDirect(let channel, let sealed, let address, let author, let instance):
      guard let text = openDirect(sealed, channel, from: author),
        let message = try? DirectMessage(decoding: text)
      else { return }
      post(.links(.directOpened(channel, author, instance, from: address, message)))
    case .dial(let link, let address, let expecting, let channels):
      let attempt = DialAttempt(
        from: node.index, run: node.run, link: link, address: address, expecting: expecting, channels: channels)
      network.schedule(.dial(attempt, number: 0), after: network.delay())
    case .sendFrame(let link, let message): send(message, link)
    case .sendSigned(let link, let channel, let frame):
      switch signed(frame, channel) {
      case .presence(let signed): send(.presence(channel, signed), link)
      case .live(let signed): send(.live(channel, signed), link)
      case .entry, .fragment, .liveFragment, .direct, .suspect, .whoHas:
        preconditionFailure("only what is signed goes this way")
      }
    case .prove(let link, let channels):
      guard let stream = streams[link], let keys = network.streams[stream]?.keys else { return }
      let isInitiator = link.value % 2 == 0
      let proofs = channels.flatMap { self.proofs($0, keys, isInitiator: isInitiator).map(\.1) }
      send(.prove(Array(proofs.prefix(Limit.channelsPerNodeMax))), link)
    case .close(let link, _):
      guard let stream = streams.removeValue(forKey: link) else { return }
      network.write(.closed("closed"), stream, from: link, node: node.index)
    case .report(_, let peer, let excess): network.violate("\(node.name) reports \(peer) for \(excess)")
    case .wake(let instant): wake(.links, at: instant)
    case .tell(let event): post(event)
    case .drawGeneration(let channel, let number, let excluded): drawGeneration(channel, number, excluded)
    case .checkGeneration(let channel, let signed, let secret, let peer):
      checkGeneration(channel, signed, secret, from: peer)
    case .sendUnder(let channel, let id): node.keyrings[channel]?.current = id
    case .handOver(let link, let channel, let id): handOver(link, channel, id)
    case .refusalHeard: break
    }
  }

  func send(_ message: SessionMessage, _ link: LinkID) {
    let bytes = message.encoded
    precondition(bytes.count <= Limit.sealedPayloadByteCountMax - 16, "a session message fits one payload")
    switch message {
    case .peerStored(let id): network.checker.saysStored(id, on: link, node, network)
    case .direct(let channel, let parts): network.checker.says(parts, link, in: channel, node, network)
    case .heads, .summary, .want, .entries, .peerMessage, .ping, .pong, .prove, .presence, .live, .closing,
      .generation, .refused, .livePeerMessage:
      break
    }
    guard let stream = streams[link] else { return }
    network.write(.message(bytes), stream, from: link, node: node.index)
  }

  private func signed(_ frame: OutboundFrame, _ channel: ChannelID) -> DatagramFrame {
    func sign(_ object: [UInt8], _ context: String) -> Signed {
      Signed(
        signature: node.sealer.sign(object, context: context, channel, instance), object: object)
    }
    switch frame {
    case .presence(let presence): return .presence(sign(presence.encoded, Presence.context))
    case .live(let live): return .live(sign(live.encoded, LiveObject.context))
    case .plain(let plain): return plain
    }
  }

  /// Written and read as on the wire, once for all who hear it.
  private func datagram(
    _ channel: ChannelID, _ frames: [DatagramFrame], _ direct: DirectFor?
  ) -> SimulatedNetwork.Datagram {
    var out = ByteWriter(reserving: 512)
    for frame in frames { frame.write(to: &out) }
    if let keys = network.channelKeys[channel], let identity = node.sealer.identity {
      let plain = direct.map { (to: $0.peer, plaintext: $0.message.encoded) }
      guard
        let bytes = try? DatagramSealer.seal(
          frames: out.bytes, direct: plain, identity: identity, channel: keys, instance: instance)
      else { preconditionFailure("a body fits one datagram, and every peer here has a key") }
      return .init(
        channel: channel, instance: instance, from: datagramAddress, content: .sealed(bytes), byteCount: bytes.count)
    }
    if let direct {
      let sealed = FakeSealer.sealDirect(direct.message.encoded, channel, from: node.peer, to: direct.peer)
      DatagramFrame.direct(sealed).write(to: &out)
    }
    precondition(out.bytes.count <= Limit.datagramByteCountMax - 44 - 16, "a body fits one datagram")
    guard let read = try? DatagramFrame.decodeAll(out.bytes) else { preconditionFailure("what is written can be read") }
    return .init(
      channel: channel, instance: instance, from: datagramAddress, content: .read(read),
      byteCount: out.bytes.count + 60, generation: node.keyrings[channel]?.current)
  }

  private func openDirect(_ sealed: [UInt8], _ channel: ChannelID, from author: PeerID) -> [UInt8]? {
    guard let keys = network.channelKeys[channel], let identity = node.sealer.identity else {
      return FakeSealer.openDirect(sealed, channel, from: author, to: node.peer)
    }
    return DatagramSealer.openDirect(sealed, header: currentHeader, from: author, identity: identity, channel: keys)
  }

  private func carryOut(_ effect: LoginEffect) {
    switch effect {
    case .restore(let channel):
      node.store.syncAll()
      if let ownership = network.ownerships[channel] {
        post(.messaging(.owned(channel, ownership)))
        post(.messaging(.actsStored(channel, node.store.acts(channel))))
      }
      let (logs, lamport) = node.store.restored(channel)
      let members = (node.store.members[channel] ?? [:]).values.sorted { $0.peer < $1.peer }
      let restored = LoginEvent.restored(channel, logs: logs, lamport: lamport, members: members)
      network.schedule(
        .event(node.index, run: node.run, .login(restored)),
        after: network.dice.span(.milliseconds(0), .milliseconds(2)))
    case .stateChanged(let state, _): loginState = state
    case .answer: break
    case .opened(_, let channel):
      node.store.syncAll()
      network.checker.resumed(channel, node, network)
      for entry in node.store.newestHidden(channel) {
        network.schedule(
          .event(node.index, run: node.run, .membership(.hiddenEntryStored(channel, entry))),
          after: .milliseconds(1))
      }
    case .closed(_, let channel): node.application.members[channel] = nil
    case .tell(let event): post(event)
    }
  }

  private func carryOut(_ effect: MembershipEffect) {
    switch effect {
    // No user writes here.
    case .typing: break
    case .announce(let channel, let view): network.checker.announced(view, in: channel, node, network)
    case .persist(let channel, let record): node.store.remember(record, in: channel)
    case .wake(let instant): wake(.membership, at: instant)
    case .tell(let event): post(event)
    }
  }

  private func carryOut(_ effect: MessagingEffect) {
    switch effect {
    case .sign(let channel, var entry):
      entry.signature = node.sealer.sign(entry.signedPart, context: Entry.context, channel, entry.key.log)
      network.schedule(
        .event(node.index, run: node.run, .messaging(.entrySigned(channel, entry))),
        after: Span(microseconds: Int64(network.dice.next() % 500)))
    case .verify(let channel, let entry):
      let isGenuine = node.sealer.verify(
        entry.signature, entry.signedPart, context: Entry.context, channel, entry.key.log, by: entry.key.author)
      post(.messaging(.entryVerified(channel, entry, isGenuine: isGenuine)))
    case .readActs(let channel, let entries):
      let acts = entries.flatMap { entry in Act.acts(of: entry) { node.isGenuine($0, in: channel) } }
      for effect in messaging.handle(.actsRead(channel, acts), at: network.now) where survives() { carryOut(effect) }
    case .loadActs(let channel, let authors):
      let entries = node.store.acts(channel).filter { authors.contains($0.key.author) }
      post(.messaging(.actsStored(channel, entries)))
    case .persist(let batch, let records): node.persist(records, batch: batch)
    case .load(let id, let channel, let ranges, let byteCountMax):
      let entries = node.store.load(channel, ranges, byteCountMax: byteCountMax)
      network.schedule(
        .event(node.index, run: node.run, .messaging(.loaded(id, entries))),
        after: network.dice.span(.milliseconds(0), .milliseconds(2)))
    case .notify(let notice): network.checker.notified(notice, node, network)
    case .wake(let instant): wake(.messaging, at: instant)
    case .tell(.links(.send(let peer, .peerMessage(let id, let json)))) where node.fault == .takesSaidForStored:
      post(.links(.send(peer, .peerMessage(id, json: json))))
      node.persist([.outboxRemove(peer, id)], batch: 0)
    case .tell(let event): post(event)
    }
  }

  /// Every fourth acknowledgement is of one entry less.
  private func lowered(_ direct: DirectFor) -> DirectFor {
    let parts = direct.message.parts.map { part -> DirectMessage.Part in
      guard case .acknowledge(let log, let number) = part, number > 1, network.dice.next() % 4 == 0 else { return part }
      return .acknowledge(log: log, number: number - 1)
    }
    return DirectFor(peer: direct.peer, message: DirectMessage(counter: direct.message.counter, parts: parts))
  }

  private func carryOut(_ effect: MediaEffect) {
    switch effect {
    case .holderFound: break
    case .tell(let event): post(event)
    }
  }
}
