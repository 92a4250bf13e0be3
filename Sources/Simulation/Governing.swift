import ParleyMachines
import ParleyVocabulary
import ParleyWire

// Channels with an owner.
extension SimulatedNetwork {
  /// The channel belongs to this node from the beginning. Before anybody joins it.
  package func found(_ channel: String, by id: SimulatedNodeID) {
    let salt = [UInt8](repeating: 7, count: ChannelOwnership.saltByteCount)
    let ownership = ChannelOwnership(founder: nodes[id.index].peer, salt: salt)!
    ownerships[self.channel(named: Self.name(channel))] = ownership
  }

  /// The node says that it came by an invitation of another.
  package func useInvitation(
    _ id: SimulatedNodeID, _ channel: String, of inviter: SimulatedNodeID, number: UInt8 = 1, uses: UInt64 = 0,
    as role: Grant.Role = .member
  ) {
    let channelID = self.channel(named: Self.name(channel))
    let node = nodes[inviter.index]
    var grant = Grant(
      inviter: node.peer, inviteID: [UInt8](repeating: number, count: Grant.inviteIDByteCount), role: role,
      issued: node.clock.milliseconds(at: now), expires: 0, uses: uses)
    grant.signature = node.sealer.sign(grant.signedPart, context: Grant.context, channelID, Grant.log)
    submit(id, channel, JoinedKind(grant: grant), isHidden: true)
  }

  package func setRole(
    _ id: SimulatedNodeID, _ channel: String, _ role: RoleKind.Role, of target: SimulatedNodeID
  ) {
    let channelID = self.channel(named: Self.name(channel))
    let node = nodes[id.index]
    let whose = role == .owner ? node.peer : nodes[target.index].peer
    let lamport = node.process?.messaging.lamport(in: channelID) ?? 0
    let heads = node.store.heads(of: whose, in: channelID, lamportMax: lamport)
    submit(id, channel, RoleKind(target: nodes[target.index].peer, role: role, heads: heads), isHidden: true)
  }

  package func lowerHand(_ id: SimulatedNodeID, _ channel: String, of target: SimulatedNodeID) {
    let channelID = self.channel(named: Self.name(channel))
    let peer = nodes[target.index].peer
    let lamport = nodes[id.index].process?.messaging.lamport(in: channelID) ?? 0
    let heads = nodes[id.index].store.heads(of: peer, in: channelID, lamportMax: lamport)
    submit(id, channel, LowerHandKind(target: peer, heads: heads), isHidden: true)
  }

  package func close(_ id: SimulatedNodeID, _ channel: String) { submit(id, channel, CloseKind(), isHidden: true) }

  /// What a node takes another for.
  package func standing(_ id: SimulatedNodeID, _ channel: String, of other: SimulatedNodeID) -> Standing? {
    governance(id, channel)?.standing(of: nodes[other.index].peer)
  }

  package func governance(_ id: SimulatedNodeID, _ channel: String) -> Governance? {
    nodes[id.index].process?.messaging.governances[self.channel(named: Self.name(channel))]
  }

  /// The texts that a node shows: those of its disk that count.
  package func shown(_ id: SimulatedNodeID, _ channel: String) -> [String] {
    let channelID = self.channel(named: Self.name(channel))
    let governance = governance(id, channel)
    return nodes[id.index].store.history(channelID)
      .filter { !$0.isHidden && governance?.voidReason(EntryFacts($0)) == nil }
      .flatMap { entry in
        entry.items.compactMap { item -> String? in
          let message = item.body.flatMap { try? SchemaMessage(decoding: $0, author: entry.key.author) }
          return (message?.content as? TextKind)?.body
        }
      }
  }

  /// Says something under a Lamport time of its choice, past its own machine, as a faulty program would.
  package func forge(
    _ id: SimulatedNodeID, _ channel: String, _ content: some MessageKind, isHidden: Bool, log: UInt64, number: UInt64,
    lamport: UInt64
  ) {
    let channelID = self.channel(named: Self.name(channel))
    let node = nodes[id.index]
    let json = node.message(content, id: type(of: content).needsMessageID ? node.takeMessageID() : nil)
    var entry = Entry(
      key: LogKey(author: node.peer, log: Instance(log)), number: number, lamport: lamport,
      timestamp: node.clock.milliseconds(at: now), isHidden: isHidden,
      items: [Entry.Item(kind: KindRegistry.code(of: content.type), body: json)])
    entry.signature = node.sealer.sign(entry.signedPart, context: Entry.context, channelID, entry.key.log)
    let bytes = entry.encoded
    node.act { $0.post(.messaging(.entryHeard(channelID, bytes, from: nil))) }
  }

  package func peer(of id: SimulatedNodeID) -> PeerID { nodes[id.index].peer }

  /// Whether all that are in the channel hold the same.
  package func digestsAgree(_ channel: String) -> Bool { digestCount(in: channel) == 1 }
}
