import ParleyHashing
import ParleyVocabulary
import ParleyWire

package enum ServingEvent: Equatable, Sendable {
  case shared(ServedMedia)
  case unshared(MediaID)
  case requested(PeerID, UInt64, MediaRequest, isMember: Bool)
  case cancelled(PeerID, UInt64)
  case peerLost(PeerID)
  /// The bytes of a read, exactly as many as were asked for.
  case readDone(UInt64, [UInt8])
  case readFailed(UInt64, MediaRefusal)
  /// So many bytes wait on the peer's connection now.
  case drained(PeerID, queuedByteCount: Int)
}

package enum ServingEffect: Equatable, Sendable {
  case reply(PeerID, UInt64, MediaReply)
  /// Read from the disk; `.readDone` or `.readFailed` with its ID answers.
  case read(ServedRead)
  /// The source file is no longer what was shared: tell its sharer. It is refused from now on.
  case sourceChanged(MediaID)
}

/// Neighbouring blocks that one peer asked for, read at once.
package struct ServedRead: Equatable, Sendable {
  package let id: UInt64
  package let peer: PeerID
  package let media: MediaID
  package let file: Int
  package let offset: UInt64
  package let byteCount: Int
}

/// Serves everybody's requests: peers in turn, few reads at once, and nothing read for a connection that cannot take
/// it.
package struct ServingMachine: Sendable {
  package static let requestsPerPeerMax = 256
  package static let readsMax = 4
  package static let blocksPerReadMax = 16
  /// Read or waiting on one connection.
  package static let queuedByteCountMax = 1 << 20

  private struct Peer {
    /// A peer that was lost and came back has a new account, in which reads for the old one do not stand.
    let account: UInt64
    var requests: [(number: UInt64, request: MediaRequest)] = []
    /// Replied and not yet known to have left.
    var queuedByteCount = 0
    /// Being read.
    var readingByteCount = 0
    var readingCount = 0

    var room: Int { ServingMachine.queuedByteCountMax - queuedByteCount - readingByteCount }
  }

  private struct Reading {
    let read: ServedRead
    let account: UInt64
    /// Nil when cancelled meanwhile.
    var numbers: [UInt64?]
  }

  private var media: [MediaID: ServedMedia] = [:]
  private var changed: Set<MediaID> = []
  private var peers: [PeerID: Peer] = [:]
  private var order: [PeerID] = []
  private var turn = 0
  private var readings: [UInt64: Reading] = [:]
  private var nextRead: UInt64 = 0
  private var nextAccount: UInt64 = 0
  private var effects: [ServingEffect] = []

  package init() {}

  package mutating func handle(_ event: ServingEvent) -> [ServingEffect] { handle([event]) }

  /// What came together is taken in whole before anything is served: neighbouring blocks are then read at once.
  package mutating func handle(_ events: [ServingEvent]) -> [ServingEffect] {
    for event in events { take(event) }
    serve()
    defer { effects = [] }
    return effects
  }

  private mutating func take(_ event: ServingEvent) {
    switch event {
    case .shared(let served):
      media[served.manifest.id] = served
      changed.remove(served.manifest.id)
    case .unshared(let id):
      media[id] = nil
      changed.remove(id)
    case .requested(let peer, let number, let request, let isMember): requested(peer, number, request, isMember)
    case .cancelled(let peer, let number): cancelled(peer, number)
    case .peerLost(let peer): lose(peer)
    case .readDone(let id, let bytes): readDone(id, bytes)
    case .readFailed(let id, let reason): readFailed(id, reason)
    case .drained(let peer, let byteCount): peers[peer]?.queuedByteCount = byteCount
    }
  }

  package var readingCount: Int { readings.count }
  /// Requests waiting or being read for a peer.
  package func requestCount(of peer: PeerID) -> Int {
    peers[peer].map { $0.requests.count + $0.readingCount } ?? 0
  }
  /// What this machine believes to wait on the peer's connection, reads included.
  package func pendingByteCount(of peer: PeerID) -> Int {
    peers[peer].map { $0.queuedByteCount + $0.readingByteCount } ?? 0
  }

  private mutating func requested(_ peer: PeerID, _ number: UInt64, _ request: MediaRequest, _ isMember: Bool) {
    if peers[peer] == nil {
      peers[peer] = Peer(account: nextAccount)
      nextAccount += 1
      order.append(peer)
    }
    // Refused before anything is looked up: whether it is held is not for them to know.
    guard isMember else { return reply(peer, number, .refused(.notAMember)) }
    guard requestCount(of: peer) < Self.requestsPerPeerMax else { return reply(peer, number, .refused(.busy)) }
    peers[peer]!.requests.append((number, request))
  }

  private mutating func cancelled(_ peer: PeerID, _ number: UInt64) {
    guard peers[peer] != nil else { return }
    peers[peer]!.requests.removeAll { $0.number == number }
    for id in readings.keys where readings[id]!.read.peer == peer {
      if let index = readings[id]!.numbers.firstIndex(of: number) { readings[id]!.numbers[index] = nil }
    }
  }

  private mutating func lose(_ peer: PeerID) {
    peers[peer] = nil
    order.removeAll { $0 == peer }
    // The reads end in their time and count until then.
    for id in readings.keys where readings[id]!.read.peer == peer {
      readings[id]!.numbers = readings[id]!.numbers.map { _ in nil }
    }
  }

  private mutating func reply(_ peer: PeerID, _ number: UInt64, _ reply: MediaReply) {
    peers[peer]?.queuedByteCount += reply.payloadByteCount
    effects.append(.reply(peer, number, reply))
  }

  private mutating func endReading(_ id: UInt64) -> Reading? {
    guard let reading = readings.removeValue(forKey: id) else { return nil }
    if peers[reading.read.peer]?.account == reading.account {
      peers[reading.read.peer]!.readingByteCount -= reading.read.byteCount
      peers[reading.read.peer]!.readingCount -= reading.numbers.count
    }
    return reading
  }

  private mutating func readDone(_ id: UInt64, _ bytes: [UInt8]) {
    guard let reading = endReading(id) else { return }
    precondition(bytes.count == reading.read.byteCount, "a read gives what was asked for, or fails")
    // Unshared, or found changed, while it was read.
    guard media[reading.read.media] != nil, !changed.contains(reading.read.media) else {
      return refuse(reading, changed.contains(reading.read.media) ? .changed : .unknown)
    }
    for (index, number) in reading.numbers.enumerated() {
      guard let number else { continue }
      let start = index * Limit.mediaBlockByteCount
      reply(reading.read.peer, number, .block(bytes[start..<min(start + Limit.mediaBlockByteCount, bytes.count)]))
    }
  }

  private mutating func readFailed(_ id: UInt64, _ reason: MediaRefusal) {
    guard let reading = endReading(id) else { return }
    if reason == .changed, media[reading.read.media] != nil, changed.insert(reading.read.media).inserted {
      effects.append(.sourceChanged(reading.read.media))
    }
    refuse(reading, reason)
  }

  private mutating func refuse(_ reading: Reading, _ reason: MediaRefusal) {
    for case let number? in reading.numbers { reply(reading.read.peer, number, .refused(reason)) }
  }

  /// Peers in turn, one answer or read each, until nothing more may go.
  private mutating func serve() {
    var idleCount = 0
    while idleCount < order.count {
      turn = (turn + 1) % order.count
      if serveOne(order[turn]) { idleCount = 0 } else { idleCount += 1 }
    }
  }

  /// False when there is nothing to do for the peer now.
  private mutating func serveOne(_ peer: PeerID) -> Bool {
    guard let (number, request) = peers[peer]!.requests.first else { return false }
    guard peers[peer]!.room >= MediaMessage.byteCountMax else { return false }
    guard !changed.contains(request.media) else { return answer(peer, number, .refused(.changed)) }
    guard let served = media[request.media] else { return answer(peer, number, .refused(.unknown)) }
    switch served.answer(request) {
    case .reply(let reply): return answer(peer, number, reply)
    case .read(let file, let offset, let byteCount):
      guard readings.count < Self.readsMax else { return false }
      read(peer, served, file, offset, byteCount)
      return true
    }
  }

  private mutating func answer(_ peer: PeerID, _ number: UInt64, _ message: MediaReply) -> Bool {
    peers[peer]!.requests.removeFirst()
    reply(peer, number, message)
    return true
  }

  /// Begins a read of the first request and of those after it that ask for the blocks right behind.
  private mutating func read(_ peer: PeerID, _ served: ServedMedia, _ file: Int, _ offset: UInt64, _ first: Int) {
    var byteCount = first
    var numbers = [peers[peer]!.requests[0].number]
    let room = peers[peer]!.room
    for (number, request) in peers[peer]!.requests.dropFirst().prefix(Self.blocksPerReadMax - 1) {
      guard request.media == served.manifest.id,
        case .read(file, offset + UInt64(byteCount), let more) =
          served.answer(request), byteCount + more <= room
      else { break }
      byteCount += more
      numbers.append(number)
    }
    let read = ServedRead(
      id: nextRead, peer: peer, media: served.manifest.id, file: file, offset: offset, byteCount: byteCount)
    nextRead += 1
    peers[peer]!.requests.removeFirst(numbers.count)
    peers[peer]!.readingByteCount += byteCount
    peers[peer]!.readingCount += numbers.count
    readings[read.id] = Reading(read: read, account: peers[peer]!.account, numbers: numbers)
    effects.append(.read(read))
  }
}
