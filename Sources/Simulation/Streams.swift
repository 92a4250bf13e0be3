import ParleyMachines
import ParleySealing
import ParleyVocabulary
import ParleyWire

struct StreamID: Hashable {
  let value: UInt64
}

/// A TCP connection between two runs of nodes, after its handshake: bytes arrive in order or not at all.
struct Stream {
  struct End {
    let node: Int
    let run: Int
    let link: LinkID
    /// As the handshake told the other side.
    let instance: Instance
    let address: Address
    var isClosed = false
    /// Nothing sent from here arrives before this.
    var clearAt: Instant
    /// Waits for the way to open.
    var stalled: [StreamItem] = []
  }

  /// The dialler's, the accepter's.
  var ends: [End]
  let channels: [ChannelID]
  /// By which owned channels were proved.
  let generations: [ChannelID: GenerationID]
  var keys: SessionKeys
}

enum StreamItem {
  case message([UInt8])
  case closed(String)
}

struct StreamArrival {
  let stream: StreamID
  let to: Int
  let item: StreamItem
}

struct DialAttempt {
  let from: Int
  let run: Int
  let link: LinkID
  let address: Address
  let expecting: PeerID?
  let channels: [ChannelID]
}

extension SimulatedNetwork {
  /// As TCP repeats a SYN (RFC 6298); after 3 s the dialler gives up, as `Sockets` does.
  private static var dialDistances: [Span] { [.seconds(1), .seconds(2)] }

  private func segmentLoss(_ from: Int, _ to: Int) -> Double { conditions.datagramsOnly ? 0 : loss(from, to) }

  func tryDial(_ attempt: DialAttempt, number: Int) {
    guard nodes[attempt.from].run == attempt.run, nodes[attempt.from].process != nil else { return }
    func fail(_ reason: String, after span: Span) {
      schedule(
        .event(attempt.from, run: attempt.run, .links(.sessionClosed(attempt.link, reason: reason))), after: span)
    }
    let target = hosts[attempt.address.host]
    if let target, !isCut(attempt.from, target), !isCut(target, attempt.from), !nodes[target].isPaused,
      number < Self.dialDistances.count, !chance(segmentLoss(attempt.from, target)),
      !chance(segmentLoss(target, attempt.from))
    {
      guard let process = nodes[target].process, process.tcpPort == attempt.address.port,
        attempt.expecting == nil || attempt.expecting == nodes[target].peer
      else { return fail("refused", after: delay() + delay()) }
      let dialler = nodes[attempt.from].process!
      let offered = attempt.channels.filter(process.openChannels.contains)
      let generations = process.generations(sharedWith: dialler, offered)
      // Of an owned channel both must know a generation.
      let shared = offered.filter { generations[$0] != nil || nodes[target].keyrings[$0] == nil }
      guard !shared.isEmpty, target != attempt.from else { return fail("nothing shared", after: delay() + delay()) }
      nodes[attempt.from].traffic.dialled()
      nodes[target].traffic.accepted()
      return connect(attempt, target, shared, generations)
    }
    guard number < Self.dialDistances.count else { return fail("no answer", after: .milliseconds(0)) }
    schedule(.dial(attempt, number: number + 1), after: Self.dialDistances[number])
  }

  private func connect(
    _ attempt: DialAttempt, _ target: Int, _ shared: [ChannelID], _ generations: [ChannelID: GenerationID]
  ) {
    let id = StreamID(value: nextStream)
    nextStream += 1
    let opensAt = now + delay() + delay()
    let acceptedAt = opensAt + delay()
    let process = nodes[target].process!
    let dialler = nodes[attempt.from].process!
    streams[id] = Stream(
      ends: [
        .init(
          node: attempt.from, run: attempt.run, link: attempt.link, instance: dialler.instance,
          address: Address(host: dialler.host, port: 50_000), clearAt: acceptedAt),
        .init(
          node: target, run: nodes[target].run, link: process.takeAcceptedLink(), instance: process.instance,
          address: Address(host: process.host, port: process.tcpPort), clearAt: opensAt),
      ], channels: shared.sorted(), generations: generations, keys: agree(id, attempt, target))
    dialler.streams[attempt.link] = id
    queue.add(.accepted(id), at: acceptedAt)
    queue.add(
      .event(
        attempt.from, run: attempt.run,
        .links(.sessionOpened(attempt.link, facts(id, of: 0)))), at: opensAt)
  }

  private func agree(_ id: StreamID, _ attempt: DialAttempt, _ target: Int) -> SessionKeys {
    guard let dialler = nodes[attempt.from].sealer.identity, let accepter = nodes[target].sealer.identity else {
      return SessionKeys(number: id.value)
    }
    let instances = (nodes[attempt.from].process!.instance, nodes[target].process!.instance)
    let offered = attempt.channels.map { channelKeys[$0]! }
    let open = nodes[target].process!.openChannels.sorted().map { channelKeys[$0]! }
    do {
      return try SessionKeys.agree(id.value, dialler, accepter, instances, offered: offered, open: open)
    } catch {
      violate("\(nodes[attempt.from].name) and \(nodes[target].name) cannot agree on a session: \(error)")
      return SessionKeys(number: id.value)
    }
  }

  private func facts(_ id: StreamID, of side: Int) -> SessionFacts {
    let stream = streams[id]!
    let other = stream.ends[1 - side]
    return SessionFacts(
      peer: nodes[other.node].peer, instance: other.instance, channels: stream.channels, isInitiator: side == 0,
      remote: other.address, generations: stream.generations)
  }

  func accept(_ id: StreamID) {
    guard let stream = streams[id] else { return }
    let end = stream.ends[1]
    guard nodes[end.node].run == end.run, let process = nodes[end.node].process, streams[id] != nil,
      nodes[stream.ends[0].node].run == stream.ends[0].run
    else { return reset(id, end: 0) }
    process.streams[end.link] = id
    nodes[end.node].post(.links(.sessionOpened(end.link, facts(id, of: 1))), run: end.run)
  }

  /// Queues bytes or the end of them towards the other side.
  func write(_ item: StreamItem, _ id: StreamID, from link: LinkID, node: Int) {
    guard var stream = streams[id], let side = stream.ends.firstIndex(where: { $0.node == node && $0.link == link }),
      !stream.ends[side].isClosed
    else { return }
    var item = item
    switch item {
    case .message(let bytes):
      nodes[node].traffic.sentSegment(bytes.count + FrameSealer.overheadByteCount)
      if stream.keys.established.isEmpty { break }
      guard let sealed = try? stream.keys.established[side].sender.seal(bytes) else {
        return violate("\(nodes[node].name) cannot seal \(bytes.count) bytes for a session")
      }
      item = .message(sealed)
    case .closed: stream.ends[side].isClosed = true
    }
    let to = stream.ends[1 - side].node
    if isCut(node, to) || !stream.ends[side].stalled.isEmpty {
      stream.ends[side].stalled.append(item)
    } else {
      forward(item, id, &stream, side)
    }
    streams[id] = stream
  }

  private func forward(_ item: StreamItem, _ id: StreamID, _ stream: inout Stream, _ side: Int) {
    let way = (stream.ends[side].node, stream.ends[1 - side].node)
    var late = delay()
    var tries = 0
    while tries < 6, chance(segmentLoss(way.0, way.1)) {
      late = late + .milliseconds(200 << tries)
      tries += 1
    }
    let at = max(now + late, stream.ends[side].clearAt)
    stream.ends[side].clearAt = at
    queue.add(.stream(StreamArrival(stream: id, to: 1 - side, item: item)), at: at)
  }

  func flushStreams() {
    for id in streams.keys.sorted(by: { $0.value < $1.value }) {
      guard var stream = streams[id] else { continue }
      for side in 0..<2 where !isCut(stream.ends[side].node, stream.ends[1 - side].node) {
        let stalled = stream.ends[side].stalled
        stream.ends[side].stalled = []
        for item in stalled { forward(item, id, &stream, side) }
      }
      streams[id] = stream
    }
  }

  func deliver(_ arrival: StreamArrival) {
    guard var stream = streams[arrival.stream] else { return }
    let end = stream.ends[arrival.to]
    let node = nodes[end.node]
    guard node.isHostUp else { return }
    guard node.run == end.run, let process = node.process, !end.isClosed else {
      // Nobody is there any more: whoever sends is told.
      if case .message = arrival.item { reset(arrival.stream, end: 1 - arrival.to) }
      return
    }
    switch arrival.item {
    case .message(var bytes):
      if !stream.keys.established.isEmpty {
        stream.keys.established[arrival.to].receiver.append(bytes)
        guard let opened = try? stream.keys.established[arrival.to].receiver.next() else {
          return violate("\(node.name) cannot open what came in a session")
        }
        bytes = opened
        streams[arrival.stream] = stream
      }
      node.traffic.heardSegment(bytes.count + FrameSealer.overheadByteCount)
      nodes[stream.ends[1 - arrival.to].node].traffic.heardAcknowledgement()
      node.hear(bytes, end.link, process, arrival.stream, fromInitiator: arrival.to == 1)
    case .closed(let reason):
      streams[arrival.stream] = nil
      process.streams[end.link] = nil
      node.post(.links(.sessionClosed(end.link, reason: reason)), run: end.run)
    }
  }

  private func reset(_ id: StreamID, end side: Int) {
    guard let stream = streams[id] else { return }
    let end = stream.ends[side]
    streams[id] = nil
    guard !end.isClosed, nodes[end.node].run == end.run, let process = nodes[end.node].process else { return }
    process.streams[end.link] = nil
    schedule(.event(end.node, run: end.run, .links(.sessionClosed(end.link, reason: "reset"))), after: delay())
  }

  /// The system closes what a dead process left.
  func closeStreams(of node: Int, run: Int) {
    for (id, stream) in streams.sorted(by: { $0.key.value < $1.key.value }) {
      for end in stream.ends where end.node == node && end.run == run {
        write(.closed("the peer's process has ended"), id, from: end.link, node: node)
      }
    }
  }
}
