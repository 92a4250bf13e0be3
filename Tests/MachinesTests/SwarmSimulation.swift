import ParleyHashing
import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// Files of which no byte is kept: each piece is the same mebibyte with its place written over its beginning.
struct SwarmFiles: Sendable {
  let served: ServedMedia
  private let base: [UInt8]
  var id: MediaID { served.manifest.id }
  var layout: MediaLayout { served.layout }
  var byteCount: Int { Int(served.manifest.byteCount) }

  init(_ byteCounts: [Int]) {
    var dice = MediaDice(state: 7)
    base = (0..<Limit.mediaPieceByteCount / 8).map { _ in dice.next() }.withUnsafeBytes { Array($0) }
    let base = base
    var hashes: [[Hash32]] = []
    let files = byteCounts.enumerated().map { file, byteCount in
      let starts = Array(stride(from: 0, to: byteCount, by: Limit.mediaPieceByteCount))
      hashes.append(
        starts.map { start in
          let bytes = Self.bytes(base, file, start, min(Limit.mediaPieceByteCount, byteCount - start))
          return bytes.withUnsafeBytes { MediaTree.pieceHash(of: $0, isOnlyPiece: starts.count == 1) }
        })
      let root = MediaTree.root(pieceHashes: hashes[file], byteCount: UInt64(byteCount))
      let number = String(file + 100_000)
      return MediaManifest.File(path: [number], byteCount: UInt64(byteCount), root: root)
    }
    served = ServedMedia(manifest: try! MediaManifest(files: files), pieceHashes: hashes)
  }

  func bytes(_ file: Int, _ offset: UInt64, _ byteCount: Int) -> [UInt8] {
    Self.bytes(base, file, Int(offset), byteCount)
  }

  private static func bytes(_ base: [UInt8], _ file: Int, _ offset: Int, _ byteCount: Int) -> [UInt8] {
    let start = offset % Limit.mediaPieceByteCount
    var bytes = Array(base[start..<start + byteCount])
    if start == 0 {
      for index in 0..<min(8, byteCount) {
        bytes[index] = UInt8(truncatingIfNeeded: (file << 32 | offset >> 20) >> (8 * index))
      }
    }
    return bytes
  }
}

enum SwarmBehaviour: Equatable, Sendable {
  case honest
  /// A block in twenty has a wrong bit.
  case wrongBytes
  case wrongHashes
  /// A manifest of 16 MiB, none of which is true.
  case endlessManifest
  /// Says that it holds everything and gives nothing.
  case claimsAll
  case silent
  /// A block every 1.9 s.
  case drips
}

/// Any number of nodes, each of which may download and serve, on virtual time: the real machines and messages. Each has
/// one link of a rate in either direction; what it sends to several goes out in turns.
struct SwarmSimulation {
  struct Node {
    let peer: PeerID
    let behaviour: SwarmBehaviour
    /// Bytes a second.
    let rate: Int
    var download: DownloadMachine?
    var serving = ServingMachine()
    var isOffering = false
    var outgoing: [[Parcel]]
    var isSending = false
    var turn = 0
    var queuedByteCounts: [Int]
    var downFreeAt = Instant(microseconds: 0)
    var dripFreeAt = Instant(microseconds: 0)
    var connected: Set<Int> = []
    var finishedAt: Instant?
    var sentBlockByteCount = 0
    var receivedBlockByteCount = 0
    var faults: [Int: SourceFault] = [:]
    /// In the order in which they were written.
    var written: [Int] = []
  }

  struct Parcel {
    let content: Content
    let byteCount: Int
  }

  enum Content {
    case request(UInt64, MediaRequest)
    case cancel(UInt64, count: Int)
    case reply(UInt64, MediaReply)
  }

  private enum Happening {
    case starts(Int)
    case meets(Int, Int)
    case sent(Int, to: Int, Parcel)
    case arrives(Int, from: Int, Content)
    case read(Int, ServedRead)
    case tell(Int, DownloadEvent)
    case served(Int, ServingEvent)
    case write(Int, piece: Int)
    case answers(Int, to: Int, UInt64, MediaReply)
  }

  static let overheadByteCount = 70
  static let lowWaterByteCount = 256 << 10

  let files: SwarmFiles
  let latency: Span
  private(set) var now = Instant(microseconds: 0)
  private(set) var nodes: [Node] = []
  private(set) var violations: [String] = []
  private var agenda = Agenda<Happening>()
  private var dice: MediaDice
  private var numbers: [PeerID: Int] = [:]

  init(_ files: SwarmFiles, seed: UInt64, latency: Span = .init(microseconds: 200)) {
    self.files = files
    self.latency = latency
    dice = MediaDice(state: seed)
  }

  /// `options` nil: it has all of it from the start.
  mutating func add(
    _ count: Int = 1, _ behaviour: SwarmBehaviour = .honest, rate: Int, _ options: DownloadOptions?,
    from start: Span = .seconds(0)
  ) {
    for _ in 0..<count {
      let number = nodes.count
      let peer = mediaPeer(UInt8(number + 1))
      numbers[peer] = number
      var node = Node(peer: peer, behaviour: behaviour, rate: rate, outgoing: [], queuedByteCounts: [])
      if let options {
        node.download = DownloadMachine(id: files.id, tag: 1, seed: dice.next(), options)
      } else {
        _ = node.serving.handle(.shared(files.served), at: now)
        node.isOffering = true
      }
      nodes.append(node)
      agenda.add(.starts(number), at: now + start)
    }
  }

  /// Until every download has finished or `span` is over.
  mutating func run(atMost span: Span) {
    for number in nodes.indices where nodes[number].outgoing.isEmpty {
      nodes[number].outgoing = Array(repeating: [], count: nodes.count)
      nodes[number].queuedByteCounts = Array(repeating: 0, count: nodes.count)
    }
    let end = now + span
    while nodes.contains(where: { $0.download != nil && $0.finishedAt == nil }) {
      guard let (at, happening) = agenda.next(until: end) else {
        now = end
        return
      }
      now = at
      happen(happening)
    }
  }

  private mutating func plan(_ delay: Span, _ happening: Happening) { agenda.add(happening, at: now + delay) }

  private mutating func happen(_ happening: Happening) {
    switch happening {
    case .starts(let number):
      tell(number, .started)
      // Whoever has it answers the question who has it.
      for other in nodes.indices where other != number && nodes[other].isOffering {
        plan(Span(microseconds: latency.microseconds * 6), .meets(number, other))
      }
    case .meets(let number, let other):
      guard nodes[number].download != nil, nodes[number].connected.insert(other).inserted else { return }
      tell(number, .sourceFound(nodes[other].peer))
    case .sent(let number, let to, let parcel): sent(number, to, parcel)
    case .arrives(let number, let from, let content): arrive(number, from, content)
    case .read(let number, let read):
      serve(number, .readDone(read.id, files.bytes(read.file, read.offset, read.byteCount)))
    case .tell(let number, let event): tell(number, event)
    case .served(let number, let event): serve(number, event)
    case .write(let number, let piece):
      if nodes[number].written.contains(piece) { violations.append("\(number) wrote \(piece) twice") }
      nodes[number].written.append(piece)
      serve(number, .gained(files.id, piece: piece))
      tell(number, .pieceWritten(piece))
    case .answers(let number, let to, let request, let reply): answer(number, to, request, reply)
    }
  }
}

// MARK: - Downloading

extension SwarmSimulation {
  private mutating func tell(_ number: Int, _ event: DownloadEvent) {
    guard nodes[number].download != nil else { return }
    let effects = nodes[number].download!.handle(event, at: now)
    for effect in effects { carryOut(number, effect) }
    let machine = nodes[number].download!
    if machine.piecesInMemoryCount > DownloadMachine.piecesInMemoryMax { violations.append("too many pieces") }
    if machine.byteCountInMemory > DownloadMachine.byteCountInMemoryMax { violations.append("too many bytes") }
    if !nodes[number].isOffering, let served = machine.served { offer(number, served, machine.holding) }
  }

  private mutating func offer(_ number: Int, _ served: ServedMedia, _ holding: PieceSet) {
    nodes[number].isOffering = true
    serve(number, .partShared(served, holding: holding))
    // Others that ask who has it, as they do every 400 ms, find it.
    for other in nodes.indices where other != number {
      plan(.milliseconds(1 + dice.below(400)), .meets(other, number))
    }
  }

  private mutating func carryOut(_ number: Int, _ effect: DownloadEffect) {
    switch effect {
    case .request(let peer, let id, let request): send(number, to: numbers[peer]!, .request(id, request), 90)
    case .cancel(let peer, let id, let count): send(number, to: numbers[peer]!, .cancel(id, count: count), 75)
    case .prepare:
      plan(.milliseconds(3), .tell(number, .prepared(holding: PieceSet(pieceCount: files.layout.pieceCount))))
    case .verify(let check, let bytes):
      plan(.milliseconds(1), .tell(number, .pieceVerified(check.piece, isGood: check.accepts(bytes))))
    case .write(let piece, let file, let offset, let bytes):
      let place = files.layout.place(of: piece)
      if place != PiecePlace(file: file, offset: offset, byteCount: bytes.count)
        || bytes != files.bytes(file, offset, bytes.count)
      {
        violations.append("\(number) wrote something else to \(piece)")
      }
      plan(.milliseconds(1), .write(number, piece: piece))
    case .dropSource(let peer, let fault):
      nodes[number].faults[numbers[peer]!] = fault
      nodes[number].connected.remove(numbers[peer]!)
      // Members stay members: the node finds them again, and the machine says no where it must.
      plan(.seconds(1), .meets(number, numbers[peer]!))
    case .wake(let at): plan(at - now, .tell(number, .woke))
    case .finished:
      nodes[number].finishedAt = now
      if let served = nodes[number].download!.served { serve(number, .shared(served)) }
    case .failed(let reason): violations.append("\(reason)")
    case .progress: break
    }
  }
}

// MARK: - Serving

extension SwarmSimulation {
  private mutating func serve(_ number: Int, _ event: ServingEvent) {
    let effects = nodes[number].serving.handle(event, at: now)
    for effect in effects {
      switch effect {
      case .reply(let peer, let id, let reply): answer(number, numbers[peer]!, id, reply)
      case .read(let read): plan(.init(microseconds: 100), .read(number, read))
      case .sourceChanged, .fileChanged: break
      case .wake(let at): plan(at - now, .served(number, .woke))
      }
    }
  }

  private mutating func answer(_ number: Int, _ to: Int, _ id: UInt64, _ reply: MediaReply) {
    let reply = falsified(nodes[number].behaviour, reply)
    nodes[number].queuedByteCounts[to] += reply.payloadByteCount
    send(number, to: to, .reply(id, reply), reply.payloadByteCount + Self.overheadByteCount)
  }

  private mutating func falsified(_ behaviour: SwarmBehaviour, _ reply: MediaReply) -> MediaReply {
    switch (behaviour, reply) {
    case (.wrongBytes, .block(var bytes)) where dice.chance(5):
      bytes[bytes.startIndex + dice.below(bytes.count)] ^= 1
      return .block(bytes)
    case (.wrongHashes, .pieceHashes(var bytes)):
      bytes[bytes.startIndex + dice.below(bytes.count)] ^= 1
      return .pieceHashes(bytes)
    default: return reply
    }
  }

  /// What somebody hostile answers without its machine; nil: it does as others do.
  private mutating func hostileAnswer(_ number: Int, _ from: Int, _ id: UInt64, _ request: MediaRequest) -> Bool {
    switch (nodes[number].behaviour, request) {
    case (.silent, _): break
    case (.claimsAll, .block): plan(.milliseconds(300), .answers(number, to: from, id, .refused(.unknown)))
    case (.endlessManifest, .manifest(_, let offset)):
      let part = [UInt8](repeating: 9, count: min(24_000, Limit.manifestByteCountMax - offset))
      answer(number, from, id, .manifestPart(total: Limit.manifestByteCountMax, offset: offset, part[...]))
    case (.drips, .block):
      guard case .read(let file, let offset, let byteCount) = files.served.answer(request) else { return false }
      let at = max(now, nodes[number].dripFreeAt) + .milliseconds(1_900)
      nodes[number].dripFreeAt = at
      plan(at - now, .answers(number, to: from, id, .block(files.bytes(file, offset, byteCount)[...])))
    default: return false
    }
    return true
  }
}

// MARK: - The links

extension SwarmSimulation {
  private mutating func send(_ number: Int, to: Int, _ content: Content, _ byteCount: Int) {
    nodes[number].outgoing[to].append(Parcel(content: content, byteCount: byteCount))
    if !nodes[number].isSending { sendNext(number) }
  }

  private mutating func sendNext(_ number: Int) {
    for step in 1...nodes.count {
      let to = (nodes[number].turn + step) % nodes.count
      guard !nodes[number].outgoing[to].isEmpty else { continue }
      let parcel = nodes[number].outgoing[to].removeFirst()
      nodes[number].turn = to
      nodes[number].isSending = true
      return plan(time(parcel.byteCount, nodes[number].rate), .sent(number, to: to, parcel))
    }
  }

  private func time(_ byteCount: Int, _ rate: Int) -> Span {
    Span(microseconds: Int64(byteCount) * 1_000_000 / Int64(rate))
  }

  private mutating func sent(_ number: Int, _ to: Int, _ parcel: Parcel) {
    nodes[number].isSending = false
    let arrival =
      max(now + latency, nodes[to].downFreeAt) + time(parcel.byteCount, nodes[to].rate)
    nodes[to].downFreeAt = arrival
    agenda.add(.arrives(to, from: number, parcel.content), at: arrival)
    if case .reply(_, let reply) = parcel.content {
      if case .block(let bytes) = reply { nodes[number].sentBlockByteCount += bytes.count }
      nodes[number].queuedByteCounts[to] -= reply.payloadByteCount
      let left = nodes[number].queuedByteCounts[to]
      if left < Self.lowWaterByteCount { serve(number, .drained(nodes[to].peer, queuedByteCount: left)) }
    }
    if !nodes[number].isSending { sendNext(number) }
  }

  private mutating func arrive(_ number: Int, _ from: Int, _ content: Content) {
    switch content {
    case .request(let id, let request):
      // Who asks for what is being downloaded here may have some of it.
      if case .have = request, nodes[from].isOffering { plan(.milliseconds(2), .meets(number, from)) }
      guard nodes[number].isOffering else { return answer(number, from, id, .refused(.busy)) }
      // Who is hostile answers each block by itself.
      let isHostile = request.single.enumerated().reduce(false) { isHostile, one in
        hostileAnswer(number, from, id + UInt64(one.offset), one.element) || isHostile
      }
      if !isHostile { serve(number, .requested(nodes[from].peer, id, request, isMember: true)) }
    case .cancel(let id, let count): serve(number, .cancelled(nodes[from].peer, id, count: count))
    case .reply(let id, let reply):
      guard nodes[number].connected.contains(from) else { return }
      if case .block(let bytes) = reply { nodes[number].receivedBlockByteCount += bytes.count }
      tell(number, .replied(nodes[from].peer, id, reply))
    }
  }
}

/// What happens when, the earliest first; of what happens at once, what was planned first.
struct Agenda<Happening> {
  private var heap: [(at: Instant, order: Int, happening: Happening)] = []
  private var counter = 0

  mutating func add(_ happening: Happening, at instant: Instant) {
    heap.append((instant, counter, happening))
    counter += 1
    var child = heap.count - 1
    while child > 0, isBefore(child, (child - 1) / 2) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func next(until end: Instant) -> (Instant, Happening)? {
    guard let first = heap.first, first.at <= end else { return nil }
    let last = heap.removeLast()
    guard !heap.isEmpty else { return (first.at, first.happening) }
    heap[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && isBefore(child, least) { least = child }
      if least == parent { return (first.at, first.happening) }
      heap.swapAt(parent, least)
      parent = least
    }
  }

  private func isBefore(_ a: Int, _ b: Int) -> Bool { (heap[a].at, heap[a].order) < (heap[b].at, heap[b].order) }
}
