import ParleyMachines
import ParleySealing
import ParleyTransport
import ParleyVocabulary
import ParleyWire

/// The secrets of owned channels: drawn, checked, handed over.
extension LinksActor {
  func restoreGenerations(_ channel: ChannelID) {
    guard let channelKeys = keys[channel], let ownership = channelKeys.ownership else { return }
    let known = channelKeys.generations.map { generation in
      let statement = Self.statement(of: generation)?.1
      return KnownGeneration(
        id: generation.id, author: statement?.author, excluded: statement?.excluded ?? [])
    }
    // The one before it was replaced when it came. Of the first nothing says how old it is.
    let now = SystemClock.wallMilliseconds()
    let replacedAt = channelKeys.generations.dropFirst().compactMap(\.replacedAt).max() ?? now
    let age = Span.milliseconds(Int(clamping: now - min(now, replacedAt)))
    step(.generationsRestored(channel, founder: ownership.founder, known, age: age))
  }

  /// Nil when it came with an invitation.
  private static func statement(of generation: ChannelGeneration) -> (Signed, GenerationStatement)? {
    guard let signed = try? Signed(decoding: generation.statement[...]),
      let statement = try? GenerationStatement(decoding: signed.object[...])
    else { return nil }
    return (signed, statement)
  }

  func drawGeneration(_ channel: ChannelID, _ number: UInt64, _ excluded: [PeerID]) {
    guard let channelKeys = keys[channel] else { return }
    let generation = channelKeys.drawGeneration(number: number) { id in
      let object = GenerationStatement(author: identity.peerID, id: id, excluded: excluded).encoded
      return Signed(signature: sign(object, channel), object: object).encoded
    }
    add(generation, to: channelKeys, by: identity.peerID, from: nil, excluding: excluded)
    if !isRotatingByHand { switchboard.notices(.keysDrawn(channel, generation.id)) }
  }

  private func sign(_ object: [UInt8], _ channel: ChannelID) -> [UInt8] {
    identity.sign(
      context: GenerationStatement.context, channel: channel, log: GenerationStatement.instance, object: object)
  }

  func checkGeneration(_ channel: ChannelID, _ signed: Signed, _ secret: Bytes32, from peer: PeerID) {
    guard let channelKeys = keys[channel],
      let statement = try? GenerationStatement(decoding: signed.object[...]),
      Signature.verify(
        signed.signature, by: statement.author, context: GenerationStatement.context, channel: channel,
        log: GenerationStatement.instance, object: signed.object)
    else { return }
    let generation = channelKeys.makeGeneration(
      number: statement.id.number, secret: SecretBytes(secret.bytes), statement: signed.encoded)
    // Another secret than the one that was stated.
    guard generation.id == statement.id else { return }
    add(generation, to: channelKeys, by: statement.author, from: peer, excluding: statement.excluded)
  }

  private func add(
    _ generation: ChannelGeneration, to channelKeys: ChannelKeys, by author: PeerID, from peer: PeerID?,
    excluding excluded: [PeerID] = []
  ) {
    install(
      channelKeys.adding(generation, sendingUnder: channelKeys.newest.id, now: SystemClock.wallMilliseconds()))
    step(
      .generationAdded(
        channelKeys.id, KnownGeneration(id: generation.id, author: author, excluded: excluded), from: peer))
  }

  func sendUnder(_ channel: ChannelID, _ id: GenerationID) {
    guard let channelKeys = keys[channel], channelKeys.generation(id) != nil else { return }
    install(channelKeys.adding(nil, sendingUnder: id, now: SystemClock.wallMilliseconds()))
    switchboard.notices(.keysChanged(channel, id))
  }

  /// The new generation; nil when we may not make one. Those refused get it not, whatever of the acts that remove them
  /// has come here yet.
  package func rotate(_ channel: ChannelID, refusing refused: [PeerID: ChannelRefusal]) -> GenerationID? {
    // What was posted before comes before.
    for letter in switchboard.links.takeMore() { take(letter) }
    let before = keys[channel]?.newest.id
    isRotatingByHand = true
    step(.rotate(channel, refusing: refused))
    isRotatingByHand = false
    if let trust = machine.trust(of: channel), !refused.isEmpty { endMedia(ofRefused: trust) }
    guard let id = keys[channel]?.newest.id, id != before else { return nil }
    return id
  }

  /// Whether we are its owner or an admin, as far as is known.
  package func mayRotate(_ channel: ChannelID) -> Bool { machine.mayRotate(channel) }

  /// What is being sent to those who may have nothing more ends, too.
  func endMedia(ofRefused trust: ChannelTrust) {
    for connection in connections.values {
      guard let session = connection.session, session.purpose == .media, trust.refused[session.peer] != nil,
        !session.channels.contains(where: { machine.trusts(session.peer, in: $0) })
      else { continue }
      transport.close(connection.id, afterWrites: false)
    }
  }

  private func install(_ channelKeys: ChannelKeys) {
    keys[channelKeys.id] = channelKeys
    // What was foreign may not be any more.
    tags.reset()
    keep(channelKeys)
  }

  func handOver(_ link: LinkID, _ channel: ChannelID, _ id: GenerationID) {
    // What came with an invitation cannot be passed on: nobody here can show who made it.
    guard let generation = keys[channel]?.generation(id), let (signed, _) = Self.statement(of: generation) else {
      return
    }
    let secret = generation.withSecret { Bytes32(raw: $0)! }
    sendFrame(link, .generation(channel, signed, secret: secret))
  }

  /// As they are now, for the profile; nil when the channel is not open.
  package func currentKeys(of channel: ChannelID) -> ChannelKeys? { keys[channel] }
}
