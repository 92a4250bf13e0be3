// A node's five machines, wired by the Router, with everything that comes from others chosen by the input: frames whose
// signatures are genuine (a hostile member signs what it likes), session messages, claims, clocks and disks.
import ParleyMachines
import ParleyVocabulary
import ParleyWire

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  var input = Input(data, count)
  var node = FuzzedNode()
  node.begin()
  for _ in 0..<400 where !input.isAtEnd {
    node.now = node.now + .milliseconds(Int(input.byte()) * (input.choice(8) == 0 ? 100 : 1))
    node.handle(node.event(&input))
    node.check()
  }
  return 0
}

private let me = PeerID(Bytes32(words: (2, 0, 0, 0)))
private let channel = ChannelID(Bytes32(words: (9, 0, 0, 0)))
private let address = Address(host: [127, 0, 0, 1], port: 4_000)

private func peer(_ input: inout Input) -> PeerID { PeerID(Bytes32(words: (UInt64(input.choice(5)), 0, 0, 0))) }
private func instance(_ input: inout Input) -> Instance { Instance(UInt64(input.choice(6))) }

private struct FuzzedNode {
  var now = Instant(microseconds: 1_000_000)
  var links = LinksMachine(me: me, instance: Instance(2))
  var login = LoginMachine()
  var membership = MembershipMachine(
    me: me, instance: Instance(2), nonceKey: [UInt8](repeating: 7, count: 32), seed: 1)
  var messaging = MessagingMachine(me: me, instance: Instance(2), seed: 1)
  var media = MediaMachine()
  var queue: [NodeEvent] = []
  var openLinks: [LinkID] = []
  var nextRequest: UInt64 = 1
  var nextLink: UInt64 = 1
  var persisting: [(batch: UInt64, count: Int)] = []
  /// Nonces that we asked to have echoed: an honest peer would.
  var nonces: [UInt64] = []

  mutating func begin() {
    handle(.login(.loggedIn(try! DisplayName("me"), incarnation: 1)))
    handle(.login(.interfacesChanged(workingCount: 1)))
    handle(.login(.joinRequested(RequestID(0), try! ChannelName("fuzz"), channel)))
    handle(.media(.held(MediaID(Bytes32(words: (1, 1, 1, 1))), channel)))
  }

  mutating func handle(_ event: NodeEvent) {
    queue.append(event)
    var stepCount = 0
    while !queue.isEmpty {
      stepCount += 1
      precondition(stepCount < 20_000, "one event makes few others")
      step(queue.removeFirst())
    }
  }

  func check() {
    precondition(membership.members(of: channel).count <= Limit.membersPerChannelMax + 1, "members are counted")
    precondition(links.sessionCount <= 5 * 3, "a session a peer, and two that are heard out")
  }

  private mutating func step(_ event: NodeEvent) {
    switch event {
    case .links(let event): for effect in links.handle(event, at: now) { carryOut(effect) }
    case .login(let event): for effect in login.handle(event, at: now) { carryOut(effect) }
    case .membership(let event): for effect in membership.handle(event, at: now) { carryOut(effect) }
    case .messaging(let event): for effect in messaging.handle(event, at: now) { carryOut(effect) }
    case .media(let event):
      for case .tell(let event) in media.handle(event, at: now) { queue.append(event) }
    }
  }

  private mutating func carryOut(_ effect: LinksEffect) {
    switch effect {
    case .verify(let channel, let claim, let address, let generation):
      queue.append(.links(.claimVerified(channel, claim, from: address, under: generation)))
    case .checkGeneration(let channel, let signed, _, let peer):
      let statement = try! GenerationStatement(decoding: signed.object[...])
      let known = KnownGeneration(id: statement.id, author: statement.author, excluded: statement.excluded)
      queue.append(.links(.generationAdded(channel, known, from: peer)))
    case .drawGeneration(let channel, let number, _):
      let id = GenerationID(number: number, hash: Bytes32(words: (number, 0, 0, 1)))
      queue.append(.links(.generationAdded(channel, KnownGeneration(id: id, author: nil), from: nil)))
    case .tell(let event): queue.append(event)
    case .multicast(_, let frames): for frame in frames { encode(frame) }
    case .unicast(_, _, let frames, let direct):
      for frame in frames { encode(frame) }
      for case .probe(let nonce) in direct?.message.parts ?? [] { nonces.append(nonce) }
      nonces = nonces.suffix(8)
    case .sendFrame(_, let message):
      precondition(message.encoded.count <= Limit.sealedPayloadByteCountMax - 16, "what is sent fits a frame")
    case .openDirect, .dial, .sendSigned, .prove, .close, .wake, .sendUnder, .handOver, .refusalHeard, .report: break
    }
  }

  private func encode(_ frame: OutboundFrame) {
    switch frame {
    case .presence(let presence): precondition(presence.encoded.count <= 1_100, "a presence fits a datagram")
    case .live(let live): precondition(live.encoded.count <= 1_100, "a live object fits a datagram")
    case .plain(let frame):
      var out = ByteWriter()
      frame.write(to: &out)
      precondition(out.bytes.count <= Limit.datagramByteCountMax - 60, "a frame fits a datagram")
    }
  }

  private mutating func carryOut(_ effect: LoginEffect) {
    switch effect {
    case .restore(let channel):
      // A disk that kept what somebody once made us keep.
      let key = LogKey(author: PeerID(Bytes32(words: (3, 0, 0, 0))), log: Instance(3))
      queue.append(
        .login(
          .restored(
            channel,
            logs: [
              RestoredLog(
                key: key, floor: 1, contiguous: 2, beyond: RangeSet([5..<6, Limit.counterMax..<Limit.counterMax + 1]))
            ],
            lamport: Limit.counterMax, members: [])))
    case .tell(let event): queue.append(event)
    case .stateChanged, .answer, .opened, .closed: break
    }
  }

  private mutating func carryOut(_ effect: MembershipEffect) {
    if case .tell(let event) = effect { queue.append(event) }
  }

  private mutating func carryOut(_ effect: MessagingEffect) {
    switch effect {
    case .sign(let channel, var entry):
      entry.signature = [UInt8](repeating: 0, count: 64)
      queue.append(.messaging(.entrySigned(channel, entry)))
    case .verify(let channel, let entry): queue.append(.messaging(.entryVerified(channel, entry, isGenuine: true)))
    case .persist(let batch, let records): persisting.append((batch, records.count))
    case .load(let load, _, let ranges, _):
      precondition(ranges.allSatisfy { $0.from <= $0.through }, "ranges are in order")
      queue.append(.messaging(.loaded(load, [[UInt8](repeating: 1, count: 20_000), [2], [3]])))
    case .tell(let event): queue.append(event)
    case .readActs, .loadActs: break
    case .notify, .wake: break
    }
  }

  // MARK: What others do

  mutating func event(_ input: inout Input) -> NodeEvent {
    switch input.choice(16) {
    case 0, 1: return .links(.datagramOpened(channel, instance(&input), from: address, frames(&input)))
    case 2:
      let direct = DirectMessage(counter: input.counter(), parts: parts(&input))
      return .links(.directOpened(channel, peer(&input), instance(&input), from: address, direct))
    case 3: return sessionOpened(&input)
    case 4, 5, 6:
      guard let link = openLinks.last, let message = sessionMessage(&input) else { return .links(.woke) }
      return .links(.sessionMessage(input.bool() ? link : openLinks[input.choice(openLinks.count)], message))
    case 7:
      guard !openLinks.isEmpty else { return .membership(.woke) }
      return .links(.sessionClosed(openLinks.remove(at: input.choice(openLinks.count)), reason: ""))
    case 8: return .membership(.woke)
    case 9: return .messaging(.woke)
    case 10: return persisted(&input)
    case 11: return .links(.woke)
    case 14, 15: return trust(&input)
    default: return ours(&input)
    }
  }

  /// The channel turns out to be owned, or its acts say something else than before.
  private mutating func trust(_ input: inout Input) -> NodeEvent {
    func generation(_ input: inout Input) -> GenerationID {
      GenerationID(number: UInt64(input.choice(4)), hash: Bytes32(words: (UInt64(input.choice(3)), 0, 0, 0)))
    }
    switch input.choice(4) {
    case 0:
      let known = KnownGeneration(id: generation(&input), author: input.bool() ? peer(&input) : nil)
      return .links(.generationsRestored(channel, founder: peer(&input), [known]))
    case 1: return .links(.rotate(channel))
    case 2:
      let frames = frames(&input)
      return .links(
        .datagramOpened(channel, instance(&input), from: address, frames, under: generation(&input)))
    default:
      let refused = input.bool() ? [peer(&input): ChannelRefusal.removed] : [:]
      return .links(
        .trustChanged(channel, ChannelTrust(rotators: [peer(&input)], members: [peer(&input)], refused: refused)))
    }
  }

  private mutating func sessionOpened(_ input: inout Input) -> NodeEvent {
    let link = LinkID(nextLink)
    nextLink += 2
    openLinks.append(link)
    if openLinks.count > 8 { openLinks.removeFirst() }
    let facts = SessionFacts(
      peer: peer(&input), instance: instance(&input), channels: [channel], isInitiator: input.bool(), remote: address)
    return .links(.sessionOpened(link, facts))
  }

  private mutating func persisted(_ input: inout Input) -> NodeEvent {
    guard !persisting.isEmpty else { return .messaging(.woke) }
    let done = persisting.removeFirst()
    guard input.choice(6) > 0 else { return .messaging(.persistFailed(batch: done.batch, reason: "full")) }
    let first = UInt64(input.choice(3))
    return .messaging(.persisted(batch: done.batch, cursors: (0..<done.count).map { first * UInt64($0 + 1) }))
  }

  /// What the one at this node does.
  private mutating func ours(_ input: inout Input) -> NodeEvent {
    nextRequest += 1
    let request = RequestID(nextRequest)
    switch input.choice(6) {
    case 0:
      let json = [UInt8](repeating: 32, count: Int(input.uint16()) % Limit.messageByteCountMax + 1)
      return .messaging(
        .submitted(
          channel, Submission(request: request, kind: 3, isHidden: input.bool(), json: json, timestamp: input.counter())
        ))
    case 1:
      let message = OutboxMessage(peer: peer(&input), id: MessageID("m\(input.choice(4))")!, json: [1, 2, 3])
      return .messaging(.told(request, message, queuedAt: 1))
    case 2: return .links(.check(peer(&input)))
    case 3: return .media(.holdersWanted(channel, [MediaID(Bytes32(words: (UInt64(input.choice(3)), 0, 0, 0)))]))
    case 4: return .login(.leaveRequested(request, try! ChannelName("fuzz")))
    default: return .login(.joinRequested(request, try! ChannelName("fuzz"), channel))
    }
  }

  private mutating func frames(_ input: inout Input) -> [DatagramFrame] {
    if input.choice(6) == 0 { return (try? DatagramFrame.decodeAll(input.block(1_200))) ?? [] }
    return (0...input.choice(3)).map { _ in
      switch input.choice(7) {
      case 0, 1, 2:
        return .presence(Signed(signature: [UInt8](repeating: 0, count: 64), object: presence(&input).encoded))
      case 3:
        let live = LiveObject(
          author: peer(&input), instance: instance(&input), counter: input.counter(), json: status(&input, peer(&input))
        )
        return .live(Signed(signature: [UInt8](repeating: 0, count: 64), object: live.encoded))
      case 4: return .entry(entry(&input))
      case 5:
        let count = input.choice(40) + 1
        return .fragment(
          EntryFragment(
            group: UInt64(input.byte()), index: input.choice(count), count: count, bytes: [1] + input.block(99)))
      default:
        return input.bool()
          ? .suspect(peer(&input), incarnation: input.counter())
          : .whoHas([MediaID(Bytes32(words: (1, 1, 1, 1)))])
      }
    }
  }

  private func status(_ input: inout Input, _ author: PeerID) -> [UInt8] {
    SchemaMessage(
      sender: Sender(peer: author, displayName: try! DisplayName("n\(input.choice(3))")), messageID: nil,
      timestamp: nil, content: StatusKind(isOnline: input.choice(4) > 0)
    ).encoded
  }

  private func presence(_ input: inout Input) -> Presence {
    let author = peer(&input)
    let json = input.choice(3) > 0 ? status(&input, author) : []
    return Presence(
      author: author, instance: input.choice(4) > 0 ? Instance(author.value.words.0) : instance(&input),
      counter: input.counter(), incarnation: input.choice(3) > 0 ? 1 : input.counter(), tcpPort: input.uint16(),
      intervalMilliseconds: input.counter(), nonce: input.uint64(), head: input.counter(),
      digest: HeadsDigest([UInt8](repeating: input.byte(), count: 16)), lamport: input.counter(),
      wantsAcknowledgement: input.bool(), status: json,
      statusHash: json.isEmpty ? input.uint64() : Presence.hash(ofStatus: json))
  }

  private func entry(_ input: inout Input) -> [UInt8] {
    let author = peer(&input)
    let hand = SchemaMessage(
      sender: Sender(peer: author, displayName: try! DisplayName("n")), messageID: nil, timestamp: nil,
      content: RaiseHandKind(isRaised: input.bool())
    ).encoded
    return Entry(
      key: LogKey(author: author, log: input.bool() ? Instance(author.value.words.0) : instance(&input)),
      number: max(1, input.bool() ? UInt64(input.choice(6)) : input.counter()), lamport: input.counter(),
      timestamp: input.counter(), isHidden: input.bool(),
      items: [Entry.Item(kind: RaiseHandKind.code, body: hand)], signature: [UInt8](repeating: 0, count: 64)
    ).encoded
  }

  private mutating func parts(_ input: inout Input) -> [DirectMessage.Part] {
    (0...input.choice(3)).map { _ in
      switch input.choice(5) {
      case 0: .probe(nonce: input.uint64())
      case 1, 2: .echo(nonce: nonces.isEmpty ? input.uint64() : nonces[input.choice(nonces.count)])
      case 3: .acknowledge(log: instance(&input), number: input.counter())
      default: .holding([MediaID(Bytes32(words: (UInt64(input.choice(3)), 0, 0, 0)))])
      }
    }
  }

  private mutating func sessionMessage(_ input: inout Input) -> SessionMessage? {
    func key(_ input: inout Input) -> LogKey { LogKey(author: peer(&input), log: instance(&input)) }
    switch input.choice(11) {
    case 0:
      let heads = (0..<input.choice(4)).map { _ in
        let ends = [input.counter(), input.counter()].sorted()
        return Head(key: key(&input), number: ends[1], floor: ends[0])
      }
      let buckets = input.bool() ? BucketSet.all : BucketSet([input.byte(), input.byte()])
      return .heads(channel, buckets, heads, isLast: input.bool(), answerWanted: input.bool())
    case 10:
      var digests: [UInt8: HeadsDigest] = [input.byte(): HeadsDigest(of: [:])]
      digests[input.byte()] = HeadsDigest([UInt8](repeating: input.byte(), count: HeadsDigest.byteCount))
      return .summary(channel, digests)
    case 1:
      let ranges = (0..<input.choice(4)).map { _ in
        let ends = [max(1, input.counter()), max(1, input.counter())].sorted()
        return LogRange(key: key(&input), from: ends[0], through: ends[1])
      }
      return .want(channel, request: input.counter(), ranges)
    case 2, 3:
      let entries = (0..<input.choice(4)).map { _ in input.choice(8) == 0 ? input.block(200) : entry(&input) }
      let request = input.bool() ? UInt64(input.choice(8)) : input.counter()
      return .entries(channel, request: request, entries, isLast: input.bool())
    case 4:
      return .presence(channel, Signed(signature: [UInt8](repeating: 0, count: 64), object: presence(&input).encoded))
    case 5: return .direct(channel, parts(&input))
    case 6: return .peerStored(MessageID("m\(input.choice(4))")!)
    case 7:
      let author = peer(&input)
      let id = MessageID("m\(input.choice(4))")!
      let json = SchemaMessage(
        sender: Sender(peer: author, displayName: try! DisplayName("n")), messageID: id, timestamp: "t",
        content: TextKind(body: "x")
      ).encoded
      return .peerMessage(id, json: json)
    case 8: return input.bool() ? .closing : .ping(input.uint64())
    default: return (try? SessionMessage.decode(input.block(4_000))) ?? nil
    }
  }
}
