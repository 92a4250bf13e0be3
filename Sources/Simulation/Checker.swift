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
  /// Up to which number its author had let a log go when it was promised.
  private var excused: [Int: [ChannelID: [LogKey: UInt64]]] = [:]
  private var promisedPeer: [Int: Set<SimulatedStore.PeerKey>] = [:]
  /// Of callers: in the outbox, or on the disk of whom it is for.
  private var promisedOutbox: [Int: Set<SimulatedStore.PeerKey>] = [:]
  /// The last acknowledgement of each log that each node gave.
  private var acknowledged: [Int: [ChannelID: [LogKey: UInt64]]] = [:]
  /// What was signed under each number, wherever it was stored first.
  private var contents: [Place: Hash32] = [:]

  // MARK: Promises

  mutating func says(_ direct: DirectFor, in channel: ChannelID, _ node: SimulatedNode, _ network: SimulatedNetwork) {
    acknowledges(direct.message.parts, of: direct.peer, channel, node, network)
  }

  private mutating func acknowledges(
    _ parts: [DirectMessage.Part], of peer: PeerID, _ channel: ChannelID, _ node: SimulatedNode,
    _ network: SimulatedNetwork
  ) {
    for case .acknowledge(let log, let number) in parts {
      let key = LogKey(author: peer, log: log)
      let before = acknowledged[node.index]?[channel]?[key] ?? 0
      if number < before { network.violate("\(node.name) acknowledges \(number) of \(log) after \(before)") }
      acknowledged[node.index, default: [:]][channel, default: [:]][key] = number
      promise(channel, key, number, node, network)
    }
  }

  mutating func says(
    _ parts: [DirectMessage.Part], _ link: LinkID, in channel: ChannelID, _ node: SimulatedNode,
    _ network: SimulatedNetwork
  ) {
    guard let peer = peer(of: link, node, network) else { return }
    acknowledges(parts, of: peer, channel, node, network)
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
    // What the author has let go itself may have come to nobody since.
    let gone = network.node(of: key.author)?.store.floors[channel]?[key] ?? 0
    excused[node.index, default: [:]][channel, default: [:]][key] = gone
    guard number > gone else { return }
    for missing in max(known, gone) + 1...number where !node.store.has(channel, key, missing) {
      return network.violate("\(node.name) promises number \(missing) of \(key.log), which its disk has not")
    }
  }

  /// Whatever was promised is there after any crash.
  func crashed(_ node: SimulatedNode, _ network: SimulatedNetwork) {
    for (channel, logs) in promised[node.index] ?? [:] {
      for (key, through) in logs {
        let from = (excused[node.index]?[channel]?[key] ?? 0) + 1
        for number in from...max(from, through) where number <= through && !node.store.has(channel, key, number) {
          return network.violate("\(node.name) has lost number \(number) of \(key.log), which it had promised")
        }
      }
    }
    for key in promisedPeer[node.index] ?? [] where node.store.peerMessages[key] == nil {
      network.violate("\(node.name) has lost \(key.id), which it had promised")
    }
    for key in promisedOutbox[node.index] ?? [] { checkOutbox(key, node, network) }
  }

  private func checkOutbox(_ key: SimulatedStore.PeerKey, _ node: SimulatedNode, _ network: SimulatedNetwork) {
    if node.store.outbox.contains(where: { $0.peer == key.peer && $0.id == key.id }) { return }
    if isStored(key.id, from: node, at: key.peer, network) { return }
    network.violate("\(node.name) had promised to say \(key.id), which is neither in its outbox nor with its peer")
  }

  private func isStored(
    _ id: MessageID, from node: SimulatedNode, at peer: PeerID, _ network: SimulatedNetwork
  ) -> Bool {
    network.node(of: peer)?.store.peerMessages[.init(peer: node.peer, id: id, isOwn: false)] != nil
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
    for case .outboxRemove(let peer, let id) in records where !isStored(id, from: node, at: peer, network) {
      network.violate("\(node.name) takes \(id) out of its outbox, though its peer's disk has it not")
    }
  }

  // MARK: Notices

  mutating func notified(_ notice: MessagingNotice, _ node: SimulatedNode, _ network: SimulatedNetwork) {
    switch notice {
    case .stored(let request, let channel, let key, let number):
      answered(request, node, network)
      promise(channel, key, number, node, network)
    case .queued(let request):
      answered(request, node, network)
      guard let key = node.application.said[request] else { return }
      promisedOutbox[node.index, default: []].insert(key)
      checkOutbox(key, node, network)
    case .failed(let request, let failure):
      answered(request, node, network)
      node.application.failures[request] = failure
    case .entryStored(let channel, let entry, let cursor):
      node.application.unsynced.append(.entry(channel, entry, cursor: cursor))
    case .governed, .localStored, .live: break
    case .sent(let request): answered(request, node, network)
    case .synced(let cursor): synced(cursor, node, network)
    case .delivered(let channel, let log, let after, let through, let peer):
      let key = LogKey(author: node.peer, log: log)
      node.application.delivered[channel, default: [:]][key, default: [:]][peer] = through
      guard let other = network.node(of: peer) else { return }
      for number in after + 1...through where !other.store.has(channel, key, number) {
        return network.violate("\(node.name) takes \(number) for delivered to \(other.name), whose disk has it not")
      }
    case .peerMessage(let peer, let id, _, let cursor):
      let key = node.store.key(at: cursor) ?? .init(peer: peer, id: id, isOwn: false)
      node.application.unsynced.append(.peerMessage(key, cursor: cursor))
    case .overLimit(_, let peer, let excess): network.violate("\(node.name) reports \(peer) for \(excess)")
    case .equivocated(_, let proof): network.violate("\(node.name) has proof of two entries \(proof.number)")
    case .peerExpired(_, let id): network.violate("\(node.name) gives \(id) up, though its time is not over")
    case .peerDelivered(let peer, let id):
      if !isStored(id, from: node, at: peer, network) {
        network.violate("\(node.name) takes \(id) for delivered, though its peer's disk has it not")
      }
    }
  }

  private func synced(_ cursor: UInt64, _ node: SimulatedNode, _ network: SimulatedNetwork) {
    let count = node.application.unsynced.prefix { $0.cursor <= cursor }.count
    let news = node.application.unsynced[..<count]
    node.application.unsynced.removeFirst(count)
    for item in news {
      switch item {
      case .entry(let channel, let entry, let cursor):
        // What it has been told when it came back, while the notice was on its way, a subscriber knows by the cursor.
        if cursor <= node.application.resumedThrough[channel, default: 0] { continue }
        tell(channel, entry, cursor, node, network)
      case .peerMessage(let key, let cursor): tellPeerMessage(key, cursor, node, network)
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
    _ key: SimulatedStore.PeerKey, _ cursor: UInt64, _ node: SimulatedNode, _ network: SimulatedNetwork
  ) {
    guard node.application.peerMessages.insert(key).inserted else {
      return network.violate("\(node.name) is told \(key.id) twice")
    }
    node.application.peerCursor = max(node.application.peerCursor, cursor)
  }

  /// A subscriber that comes back is told what was stored since its cursor.
  func restarted(_ node: SimulatedNode, _ network: SimulatedNetwork) {
    let cursor = node.application.peerCursor
    let missed = node.store.peerMessages.filter { $0.value > cursor }.sorted { $0.value < $1.value }
    for (key, cursor) in missed { tellPeerMessage(key, cursor, node, network) }
  }

  /// What Links passes on as heard for the first time.
  mutating func heard(
    _ presence: Presence, in channel: ChannelID, _ process: SimulatedProcess, _ network: SimulatedNetwork
  ) {
    guard process.seen[channel, default: [:]][presence.instance, default: []].insert(presence.counter).inserted else {
      return network.violate("\(process.node.name) passes on a presence twice, number \(presence.counter)")
    }
  }

  /// A subscriber that comes back is told what was stored since its cursor.
  func resumed(_ channel: ChannelID, _ node: SimulatedNode, _ network: SimulatedNetwork) {
    let cursor = node.application.cursors[channel, default: 0]
    for row in node.store.arrivals[channel] ?? [] where row.cursor > cursor {
      tell(channel, row.entry, row.cursor, node, network)
      node.application.resumedThrough[channel] = row.cursor
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
    guard !view.isOnline, let other = network.node(of: view.peer) else { return }
    if other.process != nil, !other.isPaused, other.goneSince[channel] == nil { network.falseAlarmCount += 1 }
  }
}
