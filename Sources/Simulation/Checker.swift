import ParleyHashing
import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// What must hold at every step, whatever the network does.
struct Checker {
  struct Place: Hashable {
    let channel: ChannelID
    let key: LogKey
    let number: UInt64
  }

  /// What each node has promised to keep: by acknowledging it to somebody or by saying `stored`.
  private var promised: [Int: [ChannelID: [LogKey: UInt64]]] = [:]
  private var promisedPeer: [Int: Set<SimulatedStore.PeerKey>] = [:]
  /// What was signed under each number, wherever it was stored first.
  private var contents: [Place: Hash32] = [:]

  // MARK: Promises

  mutating func says(_ direct: DirectFor, in channel: ChannelID, _ node: SimulatedNode, _ network: SimulatedNetwork) {
    for case .acknowledge(let log, let number) in direct.message.parts {
      promise(channel, LogKey(author: direct.peer, log: log), number, node, network)
    }
  }

  mutating func says(
    _ parts: [DirectMessage.Part], _ link: LinkID, in channel: ChannelID, _ node: SimulatedNode,
    _ network: SimulatedNetwork
  ) {
    guard let peer = peer(of: link, node, network) else { return }
    for case .acknowledge(let log, let number) in parts {
      promise(channel, LogKey(author: peer, log: log), number, node, network)
    }
  }

  mutating func saysStored(_ id: MessageID, on link: LinkID, _ node: SimulatedNode, _ network: SimulatedNetwork) {
    guard let peer = peer(of: link, node, network) else { return }
    let key = SimulatedStore.PeerKey(peer: peer, id: id, isOwn: false)
    promisedPeer[node.index, default: []].insert(key)
    if node.store.peerMessages[key] == nil { network.violate("\(node.name) says it stored \(id), which it has not") }
  }

  private func peer(of link: LinkID, _ node: SimulatedNode, _ network: SimulatedNetwork) -> PeerID? {
    guard let id = node.process?.streams[link], let stream = network.streams[id],
      let other = stream.ends.first(where: { $0.node != node.index })
    else { return nil }
    return network.nodes[other.node].peer
  }

  private mutating func promise(
    _ channel: ChannelID, _ key: LogKey, _ number: UInt64, _ node: SimulatedNode, _ network: SimulatedNetwork
  ) {
    let known = promised[node.index]?[channel]?[key] ?? 0
    guard number > known else { return }
    promised[node.index, default: [:]][channel, default: [:]][key] = number
    for missing in known + 1...number where !node.store.has(channel, key, missing) {
      return network.violate("\(node.name) promises number \(missing) of \(key.log), which its disk has not")
    }
  }

  /// Whatever was promised is there after any crash.
  func crashed(_ node: SimulatedNode, _ network: SimulatedNetwork) {
    for (channel, logs) in promised[node.index] ?? [:] {
      for (key, through) in logs {
        for number in 1...through where !node.store.has(channel, key, number) {
          return network.violate("\(node.name) has lost number \(number) of \(key.log), which it had promised")
        }
      }
    }
    for key in promisedPeer[node.index] ?? [] where node.store.peerMessages[key] == nil {
      network.violate("\(node.name) has lost \(key.id), which it had promised")
    }
  }

  mutating func committed(_ records: [MessagingRecord], by node: SimulatedNode, _ network: SimulatedNetwork) {
    for case .entry(let channel, let entry) in records {
      let place = Place(channel: channel, key: entry.key, number: entry.number)
      let hash = Hash32(BLAKE2b.hash256(entry.signedPart))
      if let known = contents[place] {
        if known != hash { network.violate("two entries under number \(entry.number) of \(entry.key.log)") }
      } else {
        contents[place] = hash
      }
    }
  }

  // MARK: Notices

  mutating func notified(_ notice: MessagingNotice, _ node: SimulatedNode, _ network: SimulatedNetwork) {
    switch notice {
    case .stored(let request, let channel, let key, let number):
      answered(request, node, network)
      promise(channel, key, number, node, network)
    case .queued(let request): answered(request, node, network)
    case .failed(let request, let failure):
      answered(request, node, network)
      node.application.failures[request] = failure
    case .entryStored(let channel, let entry, let cursor): tell(channel, entry, cursor, node, network)
    case .delivered(let channel, let log, let through, let peer):
      let key = LogKey(author: node.peer, log: log)
      node.application.delivered[channel, default: [:]][key, default: [:]][peer] = through
      guard let other = network.nodes.first(where: { $0.peer == peer }) else { return }
      for number in 1...max(1, through) where !other.store.has(channel, key, number) {
        return network.violate("\(node.name) takes \(number) for delivered to \(other.name), whose disk has it not")
      }
    case .peerMessage(let peer, let id, _, _):
      let key = SimulatedStore.PeerKey(peer: peer, id: id, isOwn: peer == node.peer)
      tellPeerMessage(key, node, network)
    case .peerDelivered(let peer, let id):
      guard let other = network.nodes.first(where: { $0.peer == peer }) else { return }
      if other.store.peerMessages[.init(peer: node.peer, id: id, isOwn: false)] == nil {
        network.violate("\(node.name) takes \(id) for delivered to \(other.name), whose disk has it not")
      }
    }
  }

  private func answered(_ request: RequestID, _ node: SimulatedNode, _ network: SimulatedNetwork) {
    if node.application.open.remove(request) == nil {
      network.violate("\(node.name) answers a request twice, or one that was never made")
    }
  }

  private func tell(
    _ channel: ChannelID, _ entry: Entry, _ cursor: UInt64, _ node: SimulatedNode, _ network: SimulatedNetwork
  ) {
    let told = Application.Told(channel: channel, key: entry.key, number: entry.number)
    guard node.application.told.insert(told).inserted else {
      return network.violate("\(node.name) is told number \(entry.number) of \(entry.key.log) twice")
    }
    if cursor <= node.application.cursors[channel, default: 0] {
      network.violate("\(node.name) is told of cursor \(cursor) after a later one")
    }
    node.application.cursors[channel] = cursor
  }

  private func tellPeerMessage(
    _ key: SimulatedStore.PeerKey, _ node: SimulatedNode, _ network: SimulatedNetwork
  ) {
    // Own ones are records of what was said; their key is the one they went to.
    guard !node.application.peerMessages.contains(key) else {
      return network.violate("\(node.name) is told \(key.id) twice")
    }
    node.application.peerMessages.insert(key)
  }

  /// A subscriber that comes back is told what was stored since its cursor.
  func resumed(_ channel: ChannelID, _ node: SimulatedNode, _ network: SimulatedNetwork) {
    let cursor = node.application.cursors[channel, default: 0]
    for row in node.store.arrivals[channel] ?? [] where row.cursor > cursor {
      tell(channel, row.entry, row.cursor, node, network)
    }
  }

  // MARK: Members

  func announced(
    _ view: MemberView, in channel: ChannelID, _ node: SimulatedNode, _ network: SimulatedNetwork
  ) {
    let known = node.application.members[channel]?[view.peer]
    if known == view { network.violate("\(node.name) announces \(view.displayName) without a change") }
    if known == nil, !view.isOnline { network.violate("\(node.name) lists \(view.displayName) first as offline") }
    node.application.members[channel, default: [:]][view.peer] = view
    node.application.announcements.append((network.now, channel, view))
  }
}
