import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// What a simulated node's profile has of an owned channel: survives its crashes.
struct SimulatedKeyring {
  struct Generation {
    let id: GenerationID
    let secret: Bytes32
    let signed: Signed
    private var statement: GenerationStatement? { try? GenerationStatement(decoding: signed.object[...]) }
    var author: PeerID? { statement?.author }
    var excluded: [PeerID] { statement?.excluded ?? [] }
  }

  let founder: PeerID
  var known: [GenerationID: Generation] = [:]
  var current: GenerationID
  /// As the acts were told to it last.
  var trust: ChannelTrust?

  /// The one to send under first, then the newest.
  var ordered: [GenerationID] { [current] + known.keys.filter { $0 != current }.sorted(by: >) }
}

extension FakeSealer {
  static func generationID(_ number: UInt64, _ secret: Bytes32, _ channel: ChannelID) -> GenerationID {
    var hash = ShortHash("generation")
    hash.add(channel.value)
    hash.add(number)
    hash.add(secret)
    return GenerationID(number: number, hash: hash.bytes32)
  }

  static func generation(
    _ number: UInt64, _ secret: Bytes32, _ channel: ChannelID, by author: PeerID, excluding excluded: [PeerID] = []
  ) -> SimulatedKeyring.Generation {
    let id = generationID(number, secret, channel)
    let object = GenerationStatement(author: author, id: id, excluded: excluded).encoded
    let signature = sign(
      object, context: GenerationStatement.context, channel, GenerationStatement.instance, by: author)
    return .init(id: id, secret: secret, signed: Signed(signature: signature, object: object))
  }

  /// Nil for what is not what its statement says.
  static func generation(
    _ signed: Signed, _ secret: Bytes32, _ channel: ChannelID
  ) -> SimulatedKeyring.Generation? {
    guard let statement = try? GenerationStatement(decoding: signed.object[...]),
      verify(
        signed.signature, signed.object, context: GenerationStatement.context, channel, GenerationStatement.instance,
        by: statement.author),
      statement.id == generationID(statement.id.number, secret, channel)
    else { return nil }
    return .init(id: statement.id, secret: secret, signed: signed)
  }
}

// Owned channels, with the fake sealer only. Who is trusted with what is told to each node by the test, as its acts
// would.
extension SimulatedNetwork {
  /// Makes a channel that this node owns, and joins it.
  public func create(_ id: SimulatedNodeID, _ channel: String) {
    precondition(sealing == .fake, "only the fake sealer knows generations")
    let node = nodes[id.index]
    let channelID = self.channel(named: Self.name(channel))
    let first = FakeSealer.generation(0, drawSecret(), channelID, by: node.peer)
    node.keyrings[channelID] = SimulatedKeyring(founder: node.peer, known: [first.id: first], current: first.id)
    join(id, channel)
  }

  /// Gives a node what an invitation would, by what another one knows now, and lets it join.
  public func invite(_ id: SimulatedNodeID, _ channel: String, by other: SimulatedNodeID) {
    let channelID = self.channel(named: Self.name(channel))
    guard let ring = nodes[other.index].keyrings[channelID], let newest = ring.known[ring.current] else {
      preconditionFailure("only who is in an owned channel invites")
    }
    nodes[id.index].keyrings[channelID] = SimulatedKeyring(
      founder: ring.founder, known: [newest.id: newest], current: newest.id)
    join(id, channel)
  }

  /// Tells these nodes who is in good standing, who may rotate, and who is refused.
  public func trust(
    _ channel: String, rotators: [SimulatedNodeID], members: [SimulatedNodeID], removed: [SimulatedNodeID] = [],
    toldTo told: [SimulatedNodeID]
  ) {
    let channelID = self.channel(named: Self.name(channel))
    func peers(_ ids: [SimulatedNodeID]) -> Set<PeerID> { Set(ids.map { nodes[$0.index].peer }) }
    let trust = ChannelTrust(
      rotators: peers(rotators), members: peers(members),
      refused: Dictionary(uniqueKeysWithValues: peers(removed).map { ($0, ChannelRefusal.removed) }))
    for id in told {
      let node = nodes[id.index]
      node.keyrings[channelID]?.trust = trust
      node.act { $0.post(.links(.trustChanged(channelID, trust))) }
    }
  }

  /// Makes a new generation, if the node may.
  public func rotate(_ id: SimulatedNodeID, _ channel: String) {
    let channelID = self.channel(named: Self.name(channel))
    nodes[id.index].act { $0.post(.links(.rotate(channelID))) }
  }

  /// Of the generation that a node sends under; nil when it knows none.
  public func generation(of id: SimulatedNodeID, _ channel: String) -> UInt64? {
    nodes[id.index].keyrings[self.channel(named: Self.name(channel))]?.current.number
  }

  /// How many different generations these nodes send under.
  public func generationCount(of ids: [SimulatedNodeID], _ channel: String) -> Int {
    let channelID = self.channel(named: Self.name(channel))
    return Set(ids.map { nodes[$0.index].keyrings[channelID]?.current }).count
  }

  /// Of how many generations a node has the secret.
  public func knownGenerationCount(of id: SimulatedNodeID, _ channel: String) -> Int {
    nodes[id.index].keyrings[self.channel(named: Self.name(channel))]?.known.count ?? 0
  }

  func drawSecret() -> Bytes32 { Bytes32(words: (dice.next(), dice.next(), dice.next(), dice.next())) }
}

extension SimulatedProcess {
  /// What the machine is told of a channel that it opens.
  static func restoring(_ channel: ChannelID, _ ring: SimulatedKeyring) -> [LinksEvent] {
    let known = ring.ordered.map { id in
      let generation = ring.known[id]!
      return KnownGeneration(id: id, author: generation.author, excluded: generation.excluded)
    }
    let restored = LinksEvent.generationsRestored(channel, founder: ring.founder, known)
    return [restored] + (ring.trust.map { [.trustChanged(channel, $0)] } ?? [])
  }

  func drawGeneration(_ channel: ChannelID, _ number: UInt64, _ excluded: [PeerID]) {
    let secret = node.network.drawSecret()
    add(
      FakeSealer.generation(number, secret, channel, by: node.peer, excluding: excluded), channel, from: nil)
  }

  func checkGeneration(_ channel: ChannelID, _ signed: Signed, _ secret: Bytes32, from peer: PeerID) {
    guard let generation = FakeSealer.generation(signed, secret, channel) else { return }
    add(generation, channel, from: peer)
  }

  private func add(_ generation: SimulatedKeyring.Generation, _ channel: ChannelID, from peer: PeerID?) {
    node.keyrings[channel]?.known[generation.id] = generation
    let known = KnownGeneration(id: generation.id, author: generation.author, excluded: generation.excluded)
    post(.links(.generationAdded(channel, known, from: peer)))
  }

  func handOver(_ link: LinkID, _ channel: ChannelID, _ id: GenerationID) {
    guard let generation = node.keyrings[channel]?.known[id] else { return }
    send(.generation(channel, generation.signed, secret: generation.secret), link)
  }

  /// What both know of these channels, the newest first: what a handshake proves.
  func generations(sharedWith other: SimulatedProcess, _ channels: [ChannelID]) -> [ChannelID: GenerationID] {
    var shared: [ChannelID: GenerationID] = [:]
    for channel in channels {
      guard let own = node.keyrings[channel], let theirs = other.node.keyrings[channel] else { continue }
      shared[channel] = own.ordered.first { theirs.known[$0] != nil }
    }
    return shared
  }

  /// Those proofs of a channel that this node can make; one for a channel that nobody owns.
  func proofs(_ channel: ChannelID, _ keys: SessionKeys, isInitiator: Bool) -> [(GenerationID?, Bytes32)] {
    guard let ring = node.keyrings[channel] else {
      return [(nil, keys.proof(channel, node.network.channelKeys[channel], isInitiator: isInitiator))]
    }
    return ring.ordered.map {
      ($0, FakeSealer.proof(channel, session: keys.number, isInitiator: isInitiator, generation: $0))
    }
  }
}
