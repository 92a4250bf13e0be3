import ParleyMachines
import ParleyVocabulary
import ParleyWire

// What people, machines and cables do.
extension SimulatedNetwork {
  /// A new node, running and logged in. `fault`: a mistake made on purpose.
  @discardableResult
  public func addNode(_ name: String, clock: SimulatedClock = .right, fault: SimulatedFault? = nil) -> SimulatedNodeID {
    guard let displayName = try? DisplayName(name) else { preconditionFailure("\(name) is no display name") }
    precondition(nodes.count < 65_000, "addresses end here")
    let node = SimulatedNode(nodes.count, displayName, clock, fault, in: self)
    nodes.append(node)
    hosts[node.host] = node.index
    indices[node.peer] = node.index
    node.start()
    return SimulatedNodeID(index: node.index)
  }

  /// Joins an open channel; the node joins it again after a restart.
  public func join(_ id: SimulatedNodeID, _ channel: String) {
    let name = Self.name(channel)
    let node = nodes[id.index]
    if !node.wanted.contains(name) { node.wanted.append(name) }
    node.goneSince[self.channel(named: name)] = nil
    later(node) { $0.join(name) }
  }

  public func leave(_ id: SimulatedNodeID, _ channel: String) {
    let name = Self.name(channel)
    let node = nodes[id.index]
    node.wanted.removeAll { $0 == name }
    node.goneSince[self.channel(named: name)] = now
    later(node) { $0.post(.login(.leaveRequested(node.takeRequest(), name))) }
  }

  /// Says something in a channel.
  public func send(_ id: SimulatedNodeID, _ channel: String, _ text: String) {
    submit(id, channel, TextKind(body: text), isHidden: false)
  }

  public func raiseHand(_ id: SimulatedNodeID, _ channel: String, _ isRaised: Bool) {
    submit(id, channel, RaiseHandKind(isRaised: isRaised), isHidden: true)
  }

  func submit(_ id: SimulatedNodeID, _ channel: String, _ content: some MessageKind, isHidden: Bool) {
    let node = nodes[id.index]
    let channel = self.channel(named: Self.name(channel))
    later(node) { process in
      guard process.openChannels.contains(channel) else { return }
      let request = node.takeRequest()
      node.application.open.insert(request)
      let json = node.message(content, id: type(of: content).needsMessageID ? node.takeMessageID() : nil)
      process.post(
        .messaging(
          .submitted(
            channel,
            Submission(
              request: request, kind: KindRegistry.code(of: content.type), isHidden: isHidden, json: json,
              timestamp: node.clock.milliseconds(at: self.now)))))
    }
  }

  /// Tells one peer something; it waits in the outbox while the peer is away.
  public func tell(_ id: SimulatedNodeID, _ other: SimulatedNodeID, _ text: String) {
    let node = nodes[id.index]
    let peer = nodes[other.index].peer
    later(node) { process in
      let request = node.takeRequest()
      node.application.open.insert(request)
      let message = node.takeMessageID()
      node.application.said[request] = .init(peer: peer, id: message, isOwn: true)
      let json = node.message(TextKind(body: text), id: message)
      process.post(
        .messaging(
          .told(
            request, OutboxMessage(peer: peer, id: message, json: json),
            queuedAt: node.clock.milliseconds(at: self.now))))
    }
  }

  private func later(_ node: SimulatedNode, _ act: @escaping (SimulatedProcess) -> Void) {
    node.act(act)
  }

  /// Dials a node by its address, as a person does who was told it.
  public func introduce(_ id: SimulatedNodeID, to other: SimulatedNodeID) {
    guard let target = nodes[other.index].process else { return }
    let address = Address(host: target.host, port: target.tcpPort)
    later(nodes[id.index]) { $0.post(.links(.introduce(address))) }
  }

  // MARK: Machines

  /// Ends the process at once, losing what was not committed; with `hostToo` nobody answers at its address any more.
  public func crash(_ id: SimulatedNodeID, hostToo: Bool = false) {
    let node = nodes[id.index]
    guard node.process != nil else { return }
    for channel in node.wanted { node.goneSince[self.channel(named: channel)] = now }
    node.crash(isHostDead: hostToo)
  }

  /// Ends the process in the middle of what it does next, after so many effects.
  public func crash(_ id: SimulatedNodeID, afterEffects count: Int) {
    nodes[id.index].process?.effectsUntilCrash = count
  }

  /// Starts a node that is not running: a new run on the same disk.
  public func restart(_ id: SimulatedNodeID) {
    let node = nodes[id.index]
    guard node.process == nil else { return }
    node.goneSince = [:]
    node.start()
    flushStreams()
  }

  /// As SIGSTOP does; the system goes on accepting what its buffers hold.
  public func pause(_ id: SimulatedNodeID) { nodes[id.index].pause() }
  public func resume(_ id: SimulatedNodeID) { nodes[id.index].resume() }

  /// Every commit of this node fails for so long.
  public func failDisk(_ id: SimulatedNodeID, for span: Span) { nodes[id.index].diskFailsUntil = now + span }

  /// Lets the oldest entries of each log of a channel go from a node's disk until so many are left.
  public func prune(_ id: SimulatedNodeID, _ channel: String, keeping count: Int) {
    let node = nodes[id.index]
    let channel = self.channel(named: Self.name(channel))
    // As the store does it: between two batches.
    let floors = node.store.prune(channel, keeping: count)
    guard !floors.isEmpty else { return }
    later(node) { $0.post(.messaging(.pruned(channel, floors))) }
  }

  /// The node's machine gets another address.
  public func move(_ id: SimulatedNodeID) {
    let node = nodes[id.index]
    hosts[node.host] = nil
    node.host[1] += 1
    hosts[node.host] = node.index
  }

  static func name(_ text: String) -> ChannelName {
    guard let name = try? ChannelName(text) else { preconditionFailure("\(text) is no channel name") }
    return name
  }
}

// What can be seen.
extension SimulatedNetwork {
  public var nodeIDs: [SimulatedNodeID] { nodes.indices.map { SimulatedNodeID(index: $0) } }
  public func isRunning(_ id: SimulatedNodeID) -> Bool { nodes[id.index].process != nil }
  public func traffic(of id: SimulatedNodeID) -> SimulatedTraffic { nodes[id.index].traffic }

  public func isIn(_ id: SimulatedNodeID, _ channel: String) -> Bool {
    nodes[id.index].process?.openChannels.contains(self.channel(named: Self.name(channel))) == true
  }

  /// As this node lists them, itself included; empty when it is not in the channel.
  public func members(_ id: SimulatedNodeID, _ channel: String) -> [SimulatedMember] {
    let views = nodes[id.index].process?.membership.members(of: self.channel(named: Self.name(channel))) ?? []
    return views.compactMap { view in
      guard let node = self.node(of: view.peer) else { return nil }
      return SimulatedMember(
        node: SimulatedNodeID(index: node.index), name: view.displayName.text, isOnline: view.isOnline,
        isHandRaised: view.isHandRaised)
    }.sorted { $0.node < $1.node }
  }

  /// Those listed as online, this node included.
  public func online(_ id: SimulatedNodeID, _ channel: String) -> [SimulatedNodeID] {
    members(id, channel).filter(\.isOnline).map(\.node)
  }

  /// The texts on the node's disk, in the order that people read them.
  public func history(_ id: SimulatedNodeID, _ channel: String) -> [String] {
    let node = nodes[id.index]
    return node.store.history(self.channel(named: Self.name(channel))).filter { !$0.isHidden }.flatMap { entry in
      entry.items.compactMap { item in
        guard let body = item.body, let message = try? SchemaMessage(decoding: body, author: entry.key.author),
          let text = message.content as? TextKind
        else { return nil }
        return text.body
      }
    }
  }

  /// How many messages a node has from others, told in private.
  public func privateMessageCount(_ id: SimulatedNodeID) -> Int {
    nodes[id.index].store.peerMessages.keys.filter { !$0.isOwn }.count
  }

  /// How many different digests the nodes that run have of a channel.
  func digestCount(in channel: String) -> Int {
    let id = self.channel(named: Self.name(channel))
    return Set(nodes.filter { $0.process?.openChannels.contains(id) == true }.map { $0.store.digest(id) }).count
  }

  /// Why the nodes in a channel are not of one mind; nil when they are: same members, hands, entries and order, nothing
  /// waiting for anybody who is there.
  public func disagreement(in channel: String) -> String? {
    let id = self.channel(named: Self.name(channel))
    let inside = nodes.filter { !$0.isPaused && $0.process?.openChannels.contains(id) == true }
    guard let first = inside.first else { return nil }
    // Of what only some keep nothing can be compared.
    let floors = inside.reduce(into: [LogKey: UInt64]()) { floors, node in
      floors.merge(node.store.floors[id] ?? [:]) { max($0, $1) }
    }
    func common(_ node: SimulatedNode) -> [OrderKey] {
      node.store.history(id).filter { $0.number > floors[$0.key] ?? 0 }.map(\.order)
    }
    let digest = first.store.digest(id)
    let history = common(first)
    for node in inside {
      if floors.isEmpty, node.store.digest(id) != digest {
        return "\(node.name) and \(first.name) hold different entries"
      }
      if common(node) != history { return "\(node.name) and \(first.name) show different histories" }
      let told = node.application.told.filter { $0.channel == id && $0.number > floors[$0.key] ?? 0 }.count
      if told != history.count { return "\(node.name) was told \(told) entries of \(history.count)" }
      let toldInPrivate = node.application.peerMessages.count
      if toldInPrivate != node.store.peerMessages.count {
        return "\(node.name) was told \(toldInPrivate) private messages of \(node.store.peerMessages.count)"
      }
      if let difference = memberDifference(node, inside, id) { return difference }
      let present = Set(inside.map(\.peer))
      if let waiting = node.store.outbox.first(where: { present.contains($0.peer) }) {
        return "\(waiting.id) waits for somebody present"
      }
      if !node.application.open.isEmpty { return "\(node.name) waits for \(node.application.open.count) answers" }
    }
    guard hasDeeds, floors.isEmpty else { return nil }
    let shown = conversation(first, id)
    for node in inside.dropFirst() {
      if let difference = difference(conversation(node, id), shown) {
        return "\(node.name), \(first.name): \(difference)"
      }
    }
    return nil
  }

  private func memberDifference(_ node: SimulatedNode, _ inside: [SimulatedNode], _ id: ChannelID) -> String? {
    let views = node.process!.membership.members(of: id)
    for view in views where view.peer != node.peer {
      let isThere = inside.contains { $0.peer == view.peer }
      if view.isOnline != isThere {
        return "\(node.name) lists \(view.displayName) as \(view.isOnline ? "online" : "offline")"
      }
    }
    for other in inside {
      guard let view = views.first(where: { $0.peer == other.peer }) else {
        return "\(node.name) does not list \(other.name)"
      }
      let own = other.process!.membership.members(of: id).first { $0.peer == other.peer }!
      if view != own { return "\(node.name) has \(other.name)'s hand wrong, or the name" }
    }
    return nil
  }

  /// Whatever two nodes both have they show in one order.
  func checkOrders() {
    guard nodes.count <= 64 else { return }
    for channel in channelIDs.values {
      for (node, other) in zip(nodes, nodes.dropFirst()) {
        let here = node.store.history(channel).map(\.order)
        let there = other.store.history(channel).map(\.order)
        let common = Set(here).intersection(there)
        if here.filter(common.contains) != there.filter(common.contains) {
          return violate("\(node.name) and \(other.name) show what both have in different orders")
        }
      }
    }
  }

  /// Nobody is listed as online long after leaving or crashing, by whoever was there and awake all the time.
  func checkGhosts() {
    let bound = Span.seconds(90)
    guard nodes.contains(where: { !$0.goneSince.isEmpty }) else { return }
    for node in nodes {
      guard !node.isPaused, let process = node.process else { continue }
      for channel in process.openChannels {
        for view in process.membership.members(of: channel) where view.isOnline && view.peer != node.peer {
          guard let other = self.node(of: view.peer), let since = other.goneSince[channel] else {
            continue
          }
          let from = max(since, node.awakeSince, process.joinedAt[channel]!)
          if now - from > bound { violate("\(node.name) lists \(other.name) as online, long gone") }
        }
      }
    }
  }
}
