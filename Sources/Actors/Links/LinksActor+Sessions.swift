import ParleyMachines
import ParleySealing
import ParleyTransport
import ParleyVocabulary
import ParleyWire

/// Connections: dialled, accepted, shaken hands on, read and written.
extension LinksActor {
  func dial(
    _ link: LinkID, _ address: Address, _ peer: PeerID?, _ channels: [ChannelID], _ purpose: SessionPurpose
  ) {
    let offered = channels.compactMap { keys[$0] }
    guard !offered.isEmpty else { return linkClosed(link, purpose, "no channel to offer") }
    let handshake = SessionHandshake(
      initiator: purpose, channels: offered, identity: identity, instance: instance, expecting: peer)
    let connection = Connection(
      id: transport.nextConnectionID(), link: link, remote: address, purpose: purpose, stage: .dialling(handshake),
      handshakeEnd: transport.now() + ConnectionRule.handshakeTime)
    connections[connection.id] = connection
    byLink[link] = connection
    transport.connect(connection.id, to: address)
    schedule()
  }

  func accepted(_ id: ConnectionID, _ remote: Address) {
    guard !keys.isEmpty, dialsIn.mayDial(remote, at: transport.now()) else {
      return transport.close(id, afterWrites: false)
    }
    if halfOpen.count >= ConnectionRule.handshakesMax { endOldestHalfOpen() }
    let link = LinkID(nextAccepted)
    nextAccepted += 2
    let handshake = SessionHandshake(
      responder: keys.values.sorted { $0.id < $1.id }, identity: identity, instance: instance)
    connections[id] = Connection(
      id: id, link: link, remote: remote, purpose: nil, stage: .handshaking(handshake),
      handshakeEnd: transport.now() + ConnectionRule.handshakeTime)
    halfOpen.append(id)
    schedule()
  }

  /// Of the host that has most of them: who opens many keeps out nobody but itself.
  func endOldestHalfOpen() {
    var counts: [[UInt8]: Int] = [:]
    for id in halfOpen { connections[id].map { counts[$0.remote.host, default: 0] += 1 } }
    let most = counts.values.max()
    guard let index = halfOpen.firstIndex(where: { connections[$0].map { counts[$0.remote.host] == most } ?? true })
    else { return }
    transport.close(halfOpen.remove(at: index), afterWrites: false)
  }

  func connected(_ id: ConnectionID) {
    guard let connection = connections[id], case .dialling(var handshake) = connection.stage else { return }
    let hello = handshake.start()
    connection.stage = .handshaking(handshake)
    transport.write(hello, to: id)
  }

  func received(_ id: ConnectionID, _ bytes: ReceivedBytes) {
    guard let connection = connections[id] else { return }
    switch connection.stage {
    case .dialling: break
    case .handshaking(var handshake):
      do {
        let (send, established) = try handshake.receive(bytes.copy)
        if !send.isEmpty { transport.write(send, to: id) }
        if let established {
          opened(connection, established)
        } else {
          connection.stage = .handshaking(handshake)
        }
      } catch {
        if case .ourself(let instance) = error { step(.metOurselves(instance)) }
        transport.close(id, afterWrites: false)
      }
    case .open: read(connection, bytes)
    }
  }

  private func opened(_ connection: Connection, _ session: EstablishedSession) {
    halfOpen.removeAll { $0 == connection.id }
    connection.stage = .open(session)
    // A channel may have been left while hands were shaken.
    let channels = session.channels.filter { channel in
      keys[channel] != nil && (session.purpose == .chat || machine.trusts(session.peer, in: channel))
    }
    guard !channels.isEmpty else { return transport.close(connection.id, afterWrites: false) }
    guard dialsIn.mayShakeHands(session.peer, at: transport.now()) else {
      for channel in channels { switchboard.notices(.overLimit(channel, session.peer, .handshakes)) }
      return transport.close(connection.id, afterWrites: false)
    }
    endOldest(of: session.peer, session.purpose, but: connection)
    byLink[connection.link] = connection
    traffic.sessionOpened(with: connection.remote)
    let purpose = session.purpose
    let facts = SessionFacts(
      peer: session.peer, instance: session.instance, channels: channels, isInitiator: session.isInitiator,
      remote: connection.remote, generations: session.generations.filter { keys[$0.key]?.ownership != nil })
    switch purpose {
    case .chat: step(.sessionOpened(connection.link, facts))
    case .media:
      switchboard.media.post(
        .opened(
          connection.link, session.peer, channels: channels, isInitiator: session.isInitiator))
    }
    if purpose == .chat ? isHeldBack : isMediaHeldBack { transport.setReading(false, connection.id) }
    read(connection, ReceivedBytes([]))
  }

  /// No member takes the places of all others.
  private func endOldest(of peer: PeerID, _ purpose: SessionPurpose, but new: Connection) {
    let others = connections.values.filter { other in
      other !== new && other.session?.peer == peer && other.session?.purpose == purpose
    }
    guard others.count >= ConnectionRule.sessionsPerPeerMax else { return }
    // Numbers of dialled and of accepted connections rise apart; those that a peer makes are all of one kind.
    guard let oldest = others.min(by: { $0.id.value < $1.id.value }) else { return }
    transport.close(oldest.id, afterWrites: false)
  }

  /// Hands on every frame that is whole with these bytes.
  private func read(_ connection: Connection, _ bytes: ReceivedBytes) {
    guard case .open(var session) = connection.stage else { return }
    // Taken out while it changes: a second reference would copy the buffer.
    connection.stage = .dialling(Self.placeholder)
    let (payloads, failure) = bytes.withUnsafeBytes { session.receiver.openAll($0) }
    connection.stage = .open(session)
    let byteCount = UInt64(bytes.count)
    switch session.purpose {
    case .chat:
      traffic.chatBytesHeard += byteCount
      for payload in payloads { chat(connection, Array(payload)) }
    case .media:
      traffic.mediaBytesHeard += byteCount
      media(connection, payloads)
    }
    if failure != nil { transport.close(connection.id, afterWrites: false) }
  }

  private func chat(_ connection: Connection, _ payload: [UInt8]) {
    let message: SessionMessage
    do {
      // Unknown types are skipped; what is malformed ends the session.
      guard let known = try SessionMessage.decode(payload) else { return }
      message = known
    } catch {
      return transport.close(connection.id, afterWrites: false)
    }
    switch message {
    case .prove(let proofs): check(proofs, connection)
    case .want: traffic.wantsHeard += 1
    case .entries(_, _, let entries, _): traffic.entriesRepaired += UInt64(entries.count)
    default: break
    }
    step(.sessionMessage(connection.link, message))
    let waitingCount = switchboard.messaging.count
    chatBacklog = waitingCount < BacklogRule.countToGoOn && !isHeldBack ? 0 : chatBacklog + payload.count
    if !isHeldBack, waitingCount > BacklogRule.chatCountMax || chatBacklog > BacklogRule.chatByteCountMax {
      isHeldBack = true
      for connection in connections.values where connection.session?.purpose == .chat {
        transport.setReading(false, connection.id)
      }
      schedule()
    }
  }

  /// Proofs for channels joined since the handshake, in the other side's role.
  private func check(_ proofs: [Bytes32], _ connection: Connection) {
    guard let session = connection.session else { return }
    let claimed = Set(proofs)
    var proven: [ChannelID: GenerationID] = [:]
    for channelKeys in keys.values {
      // The newest first.
      let known = channelKeys.generations.first { generation in
        let expected = SessionProof.make(
          generation, of: channelKeys.id, role: session.role.other, h: session.handshakeHash)
        return claimed.contains(Bytes32(expected)!)
      }
      if let known { proven[channelKeys.id] = known.id }
    }
    guard !proven.isEmpty else { return }
    let generations = proven.filter { keys[$0.key]?.ownership != nil }
    step(.channelsProven(connection.link, proven.keys.sorted(), generations: generations))
  }

  func prove(_ link: LinkID, _ channels: [ChannelID]) {
    guard let session = byLink[link]?.session else { return }
    let proofs = channels.compactMap { keys[$0] }.flatMap { channelKeys in
      channelKeys.generations.map { generation in
        Bytes32(
          SessionProof.make(generation, of: channelKeys.id, role: session.role, h: session.handshakeHash))!
      }
    }
    for start in stride(from: 0, to: proofs.count, by: Limit.channelsPerNodeMax) {
      sendFrame(link, .prove(Array(proofs[start...].prefix(Limit.channelsPerNodeMax))))
    }
  }

  func sendFrame(_ link: LinkID, _ message: SessionMessage) {
    guard let connection = byLink[link], let session = connection.session else { return }
    // Whoever does not read is cut off before it costs more; what it misses it asks for when it is back.
    let byteCountMax =
      machine.session(of: session.peer) == link ? ConnectionRule.chatByteCountMax : ConnectionRule.endingByteCountMax
    guard transport.queuedByteCount(connection.id) < byteCountMax else {
      return transport.close(connection.id, afterWrites: false)
    }
    switch message {
    case .want: traffic.wantsSent += 1
    case .entries(_, _, let entries, _): traffic.entriesServed += UInt64(entries.count)
    default: break
    }
    do {
      let sealed = try session.sender.seal(message.encoded)
      transport.write(sealed, to: connection.id)
      traffic.chatBytesSent += UInt64(sealed.count)
    } catch {
      switchboard.notices(.trouble("a session was closed: \(error)"))
      transport.close(connection.id, afterWrites: false)
    }
  }

  func closed(_ id: ConnectionID, _ reason: String) {
    guard let connection = connections.removeValue(forKey: id) else { return }
    halfOpen.removeAll { $0 == id }
    guard byLink[connection.link] === connection else { return }
    byLink[connection.link] = nil
    if connection.session == nil, connection.purpose != nil {
      traffic.dialFailed(connection.remote, reason, at: transport.now())
    }
    linkClosed(connection.link, connection.session?.purpose ?? connection.purpose ?? .chat, reason)
  }

  private func linkClosed(_ link: LinkID, _ purpose: SessionPurpose, _ reason: String) {
    switch purpose {
    case .chat: step(.sessionClosed(link, reason: reason))
    case .media: switchboard.media.post(.closed(link))
    }
  }

  // MARK: Media

  func openMedia(_ link: LinkID, _ peer: PeerID) {
    guard let address = machine.address(of: peer), address.port != 0 else {
      return switchboard.media.post(.closed(link))
    }
    dial(link, address, peer, machine.sharedChannels(with: peer), .media)
  }

  func sendMedia(_ link: LinkID, _ messages: [MediaMessage]) {
    guard let connection = byLink[link], let session = connection.session else { return }
    // Who asks without end and does not read the answers, refusals included, is cut off.
    guard transport.queuedByteCount(connection.id) < ConnectionRule.mediaByteCountMax else {
      return transport.close(connection.id, afterWrites: false)
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(messages.reduce(0) { $0 + $1.byteCountEstimate + FrameSealer.overheadByteCount })
    do {
      for message in messages { try session.sender.seal(appendingTo: &bytes) { message.append(to: &$0) } }
      transport.write(bytes, to: connection.id)
      traffic.mediaBytesSent += UInt64(bytes.count)
      // Otherwise the transport says when enough has gone out.
      if transport.queuedByteCount(connection.id) == 0 {
        switchboard.media.post(.writable(link, queuedByteCount: 0))
      }
    } catch {
      transport.close(connection.id, afterWrites: false)
    }
  }

  func writable(_ id: ConnectionID) {
    guard let connection = connections[id], connection.session?.purpose == .media else { return }
    switchboard.media.post(.writable(connection.link, queuedByteCount: transport.queuedByteCount(id)))
  }

  private func media(_ connection: Connection, _ payloads: [ArraySlice<UInt8>]) {
    guard !payloads.isEmpty else { return }
    mediaBacklog += payloads.reduce(0) { $0 + $1.count }
    switchboard.media.post(.payloads(connection.link, payloads))
    guard mediaBacklog > BacklogRule.mediaByteCountMax, !isMediaHeldBack else { return }
    isMediaHeldBack = true
    for connection in connections.values where connection.session?.purpose == .media {
      transport.setReading(false, connection.id)
    }
  }

  func relieveMedia(_ byteCount: Int) {
    mediaBacklog -= byteCount
    guard isMediaHeldBack, mediaBacklog < BacklogRule.mediaByteCountMax / 2 else { return }
    isMediaHeldBack = false
    for connection in connections.values where connection.session?.purpose == .media {
      transport.setReading(true, connection.id)
    }
  }

  /// Stands in a connection's stage for the moment in which its session is changed in place.
  private static let placeholder = SessionHandshake(
    responder: [], identity: Identity.random(), instance: Sealing.randomInstance())
}
