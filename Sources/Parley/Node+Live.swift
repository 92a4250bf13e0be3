import ParleyActors
import ParleyMachines
import ParleySealing
import ParleyStore
import ParleyVocabulary
import ParleyWire

extension Node {
  /// To whoever is in the channel. Returns once it is on the wire, and on this node's disk if it is kept.
  func sayLive(_ draft: MessageDraft, in name: ChannelName) async throws(ParleyError) -> SendReceipt {
    let engine = try await running()
    let joined = try channel(name)
    try checkToken(in: joined)
    let id = Sealing.randomMessageID()
    let said = try await hooks.before(message(draft.content, id, draft.options), .channel(name))
    let json = try checked(said)
    try admit(said.options, in: joined)
    let isKept = !type(of: draft.content).isLive
    let answer = await engine.messaging.submitLive(
      joined.id, id, kind: KindRegistry.code(of: draft.content.type), json: json, isKept: isKept)
    try Self.sent(answer, name)
    hooks.after(said, .channel(name))
    return SendReceipt(id: id, deliveredTo: [], presentCount: hub.presentCount(in: joined.id))
  }

  private static func sent(_ answer: MessagingActor.Answer, _ name: ChannelName?) throws(ParleyError) {
    switch answer {
    case .sent: break
    case .failed(let failure): throw ParleyError(failure, name)
    case .stored, .queued, .stopped: throw .stopped
    }
  }

  /// To one who is there. Throws `.peerAway` when nobody answers.
  func tellLive(_ draft: MessageDraft, to peer: PeerID, _ engine: Engine) async throws(ParleyError) -> TellOutcome {
    let id = Sealing.randomMessageID()
    let said = try await hooks.before(message(draft.content, id, draft.options), .peer(peer))
    let json = try checked(said)
    let events = hub.events(bufferingCount: 256)
    let answer = await engine.messaging.tellLive(
      peer, id, kind: KindRegistry.code(of: draft.content.type), json: json, isKept: !type(of: draft.content).isLive)
    if case .failed(.peerAway) = answer { throw .peerAway(peer) }
    try Self.sent(answer, nil)
    hooks.after(said, .peer(peer))
    guard await isAnswered(id, by: peer, events) else { throw .peerAway(peer) }
    return .delivered(id)
  }

  /// To some members of a channel. With `waiting`, returns once all of them have it, or so many seconds have passed.
  func direct(
    _ draft: MessageDraft, in name: ChannelName, waiting seconds: Double?
  ) async throws(ParleyError) -> SendReceipt {
    let engine = try await running()
    let joined = try channel(name)
    try checkToken(in: joined)
    // Whoever asks before a message goes out would read what is for its receivers alone, or be passed by.
    guard hooks.hook(.beforeSend, for: draft.options) == nil else {
      throw .badField(
        "receivers", value: draft.receivers[0], allowed: "none while a hook is to be asked before sending")
    }
    let receivers = try await receivers(draft.receivers, in: joined, engine)
    let id = Sealing.randomMessageID()
    var options = draft.options
    options.direction = MessageDirection(channel: joined.id, receivers: receivers)
    let said = try await hooks.before(message(draft.content, id, options), .channel(name))
    let json = try checked(said)
    hub.noteDirected(id, in: name)
    let events = hub.events(bufferingCount: 1_024)
    let answer = await engine.messaging.direct(
      joined.id, id, to: receivers, kind: KindRegistry.code(of: draft.content.type), json: json,
      isLive: draft.isLive, isKept: !type(of: draft.content).isLive)
    try Self.sent(answer, name)
    hooks.after(said, .channel(name))
    let present = Set(await engine.membership.presentPeers(in: joined.id)).intersection(receivers)
    var delivered: Set<PeerID> = []
    if let seconds {
      delivered = await answered(id, in: name, by: draft.isLive ? present : Set(receivers), seconds, events)
    }
    return SendReceipt(id: id, deliveredTo: delivered.sorted(), presentCount: present.count)
  }

  /// Whom these names mean: members of the channel, none twice, none oneself.
  private func receivers(
    _ people: [String], in joined: Hub.Joined, _ engine: Engine
  ) async throws(ParleyError) -> [PeerID] {
    let members = Set(await engine.membership.members(of: joined.id).map(\.peer))
    var receivers: [PeerID] = []
    for person in people {
      if person.lowercased().filter({ $0 != "-" }) == peerID.text {
        throw .badField("receivers", value: person, allowed: "others than oneself")
      }
      let peer = try await find(person, engine).peer
      guard members.contains(peer) else { throw .noSuchPeer(person) }
      guard !receivers.contains(peer) else {
        throw .badField("receivers", value: person, allowed: "each person once")
      }
      receivers.append(peer)
    }
    return receivers
  }

  private func answered(
    _ id: MessageID, in name: ChannelName, by peers: Set<PeerID>, _ seconds: Double, _ events: AsyncStream<NodeEvent>
  ) async -> Set<PeerID> {
    await withTaskGroup(of: Void.self) { group in
      let (news, continuation) = AsyncStream<PeerID>.makeStream()
      group.addTask {
        for await case .delivered(let place, let delivered, let peer) in events where delivered == id && place == name {
          continuation.yield(peer)
        }
        continuation.finish()
      }
      group.addTask {
        try? await Task.sleep(nanoseconds: UInt64(max(0, min(seconds, 86_400)) * 1e9))
        continuation.finish()
      }
      var answered: Set<PeerID> = []
      if !peers.isEmpty {
        for await peer in news {
          answered.insert(peer)
          if peers.isSubset(of: answered) { break }
        }
      }
      group.cancelAll()
      return answered
    }
  }

  /// Own messages to some members with those of them that have them: for whom nothing waits any more.
  func withDeliveries(_ messages: [Message], _ engine: Engine) async throws(StoreError) -> [Message] {
    var filled = messages
    for (index, message) in messages.enumerated()
    where message.sender == peerID && !message.options.receivers.isEmpty && !message.options.isOnlineOnly {
      let waiting = try await engine.store.waiting(message.id)
      filled[index].deliveredTo = message.options.receivers.filter { !waiting.contains($0) }.sorted()
    }
    return filled
  }
}
