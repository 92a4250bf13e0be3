import ParleyVocabulary
import ParleyWire

/// A generation of which the secret is here.
package struct KnownGeneration: Equatable, Sendable {
  package let id: GenerationID
  /// Nil when it came with an invitation: nobody's word is needed for it then.
  package let author: PeerID?
  /// Who is removed by it.
  package let excluded: [PeerID]
  package init(id: GenerationID, author: PeerID?, excluded: [PeerID] = []) {
    self.id = id
    self.author = author
    self.excluded = excluded
  }
}

/// What an owned channel's acts say of its people, as far as it concerns links.
package struct ChannelTrust: Equatable, Sendable {
  /// Those who may make generations: the owner and the admins.
  package var rotators: Set<PeerID>
  /// In good standing: the owner, admins and members, muted ones, too.
  package var members: Set<PeerID>
  /// Who is removed or banned, or whose invitation does not count.
  package var refused: [PeerID: ChannelRefusal]
  /// Generations stated by acts that count: they stay good when their author is an admin no more.
  package var confirmed: Set<GenerationID>

  package init(
    rotators: Set<PeerID>, members: Set<PeerID> = [], refused: [PeerID: ChannelRefusal] = [:],
    confirmed: Set<GenerationID> = []
  ) {
    self.rotators = rotators
    self.members = members.union(rotators)
    self.refused = refused
    self.confirmed = confirmed
  }
}

package enum GenerationRule {
  /// Datagrams sealed under the generation before are read for so long after the change: they were on their way.
  static let overlap = Span.seconds(120)
  /// A member that lags is called by those who hear it, one after the other: the first one that reaches it is enough.
  static let callPerMember = Span.milliseconds(5)
  static let callMax = Span.seconds(5)
  /// When keys have changed, one who has the new ones calls those that are not known to have them, one every so long:
  /// they may be on the other side of a cut, and have changed keys, too. Later less often: most are away.
  static let recallEvery = Span.seconds(10)
  static let recallEveryLater = Span.seconds(60)
  static let recallsSoon = 30
  /// Members that lag and wait to be called, and generations whose author is not known to have the right; a channel.
  static let laggingMax = 1_024
  static let pendingMax = 16
}

/// An owned channel: which generations are here, and who lacks the newest.
struct OwnedChannel: Equatable, Sendable {
  struct Pending: Equatable, Sendable {
    let statement: GenerationStatement
    let signed: Signed
    let secret: Bytes32
    let from: PeerID
  }

  let founder: PeerID
  /// By author.
  var known: [GenerationID: PeerID?] = [:]
  /// The one to send under.
  var current: GenerationID
  /// Older ones are heard in full until `GenerationRule.overlap` after it; nil: not in this run.
  var changedAt: Instant?
  /// When to make the next one unasked, if we may.
  var rotateAt: Instant?
  /// Nil before the acts have been read.
  var trust: ChannelTrust?
  /// Refused by us until acts say the same.
  var expected: [PeerID: ChannelRefusal] = [:]
  /// By which generation, where another one's statement said so.
  var expectedUntil: [PeerID: GenerationID] = [:]
  /// The newest generation that was made to be without them.
  var excludedBy: [PeerID: GenerationID] = [:]
  /// The newest generation that each peer is known to have.
  var held: [PeerID: GenerationID] = [:]
  /// In which session it was given to them: while that is all we know of it, they have it only if the session stands.
  var given: [PeerID: LinkID] = [:]
  /// When to call those that lag and have no session with us.
  var lagging: [PeerID: Instant] = [:]
  /// When to call the next one that is not known to have the newest, who was called last, and how often that was done.
  var recallAt: Instant?
  var recalled: PeerID?
  var recallCount = 0
  /// Who has refused us, and why: told once.
  var refusedBy: [PeerID: ChannelRefusal] = [:]
  /// Wait until their author is known to have the right.
  var pending: [Pending] = []

  func isGood(_ peer: PeerID) -> Bool { trust?.members.contains(peer) ?? true }
  func refusal(of peer: PeerID) -> ChannelRefusal? { trust?.refused[peer] }
  /// Who was removed and has a secret made to be without them was given it by an invitation since. The act that says so
  /// can only come from them, so it is heard.
  func isInvitedAgain(_ peer: PeerID, holding id: GenerationID?) -> Bool {
    guard refusal(of: peer) == .removed, let id, let without = excludedBy[peer] else { return false }
    return id >= without
  }
  mutating func note(_ generation: KnownGeneration) {
    known[generation.id] = .some(generation.author)
    for peer in generation.excluded { excludedBy[peer] = max(excludedBy[peer] ?? generation.id, generation.id) }
  }
  func mayRotate(_ peer: PeerID) -> Bool { trust?.rotators.contains(peer) ?? (peer == founder) }
  func counts(_ id: GenerationID, by author: PeerID?) -> Bool {
    author.map { mayRotate($0) || trust?.confirmed.contains(id) == true } ?? true
  }

  /// The newest one that counts; when none does, what was is left.
  var best: GenerationID { known.filter { counts($0, by: $1) }.keys.max() ?? current }

  func lags(_ peer: PeerID) -> Bool { held[peer].map { $0 < current } ?? false }

  mutating func note(_ peer: PeerID, holds id: GenerationID) {
    if let other = held[peer], id < other { return }
    held[peer] = id
    given[peer] = nil
    if id >= current { lagging[peer] = nil }
  }
}

extension LinksMachine {
  mutating func restored(
    _ channel: ChannelID, _ founder: PeerID, _ known: [KnownGeneration], _ age: Span, _ now: Instant
  ) -> [LinksEffect] {
    guard let newest = known.first else { return [] }
    var state = OwnedChannel(founder: founder, current: newest.id)
    // In an earlier run there may have been a cut.
    if known.count > 1 { state.recallAt = now + GenerationRule.recallEvery }
    state.rotateAt = rotateEvery.map { every in
      age < every ? now + Span(microseconds: every.microseconds - age.microseconds) : now
    }
    for generation in known { state.note(generation) }
    owned[channel] = state
    return [state.rotateAt, state.recallAt].compactMap { $0.map { .wake(at: $0) } }
  }

  /// What is said of this channel is for this peer's ears.
  func admits(_ peer: PeerID, to channel: ChannelID) -> Bool { owned[channel]?.refusal(of: peer) == nil }

  /// Not only is it not refused: it is known to belong. For what costs much, such as files.
  package func trusts(_ peer: PeerID, in channel: ChannelID) -> Bool {
    guard let state = owned[channel] else { return true }
    return state.isGood(peer) && state.refusal(of: peer) == nil
  }

  package func trust(of channel: ChannelID) -> ChannelTrust? { owned[channel]?.trust }
  package func mayRotate(_ channel: ChannelID) -> Bool { owned[channel]?.mayRotate(me) ?? false }

  mutating func rotate(
    _ channel: ChannelID, refusing refused: [PeerID: ChannelRefusal], _ now: Instant
  ) -> [LinksEffect] {
    guard let state = owned[channel], state.mayRotate(me) else { return [] }
    owned[channel]!.expected.merge(refused) { $1 }
    let effects: [LinksEffect] =
      refused.isEmpty ? [] : trustChanged(state.trust ?? ChannelTrust(rotators: [me]), channel, now)
    let newest = max(state.current, state.best).number
    guard newest < GenerationID.numberMax else { return effects }
    let excluded = refused.keys.sorted().prefix(GenerationStatement.excludedMax)
    return effects + [.drawGeneration(channel, number: newest + 1, excluding: Array(excluded))]
  }

  /// Not asked again in this session; somebody else may know better.
  mutating func refused(_ channel: ChannelID, _ reason: ChannelRefusal, by peer: PeerID, _ link: LinkID)
    -> [LinksEffect]
  {
    guard sessions[link]!.channels.remove(channel) != nil, owned[channel] != nil,
      owned[channel]!.refusedBy.updateValue(reason, forKey: peer) != reason
    else { return [] }
    return [.refusalHeard(channel, peer, reason)]
  }

  /// A secret in a session.
  mutating func received(
    _ signed: Signed, _ secret: Bytes32, _ channel: ChannelID, from peer: PeerID
  ) -> [LinksEffect] {
    guard var state = owned[channel], state.refusal(of: peer) == nil,
      let statement = try? GenerationStatement(decoding: signed.object[...]),
      statement.id.number <= state.current.number + GenerationID.stepMax
    else { return [] }
    state.note(peer, holds: statement.id)
    state.refusedBy[peer] = nil
    defer { owned[channel] = state }
    if state.known[statement.id] != nil { return [] }
    guard state.counts(statement.id, by: statement.author) else {
      // Its author's promotion may be on its way.
      let pending = OwnedChannel.Pending(statement: statement, signed: signed, secret: secret, from: peer)
      if state.pending.count < GenerationRule.pendingMax, !state.pending.contains(pending) {
        state.pending.append(pending)
      }
      return []
    }
    return [.checkGeneration(channel, signed, secret: secret, from: peer)]
  }

  mutating func added(
    _ generation: KnownGeneration, _ channel: ChannelID, from peer: PeerID?, _ now: Instant
  ) -> [LinksEffect] {
    guard owned[channel] != nil else { return [] }
    owned[channel]!.note(generation)
    if let peer { owned[channel]!.note(peer, holds: generation.id) }
    let effects = exclude(generation, channel, now) + settle(channel, now)
    // Received, but older than what we have: the giver lacks ours.
    return effects + (peer.map { catchUp($0, in: channel) } ?? [])
  }

  /// Before it is passed on: the acts that remove them may come later. Only who has the right now is believed, admins
  /// not about admins.
  private mutating func exclude(
    _ generation: KnownGeneration, _ channel: ChannelID, _ now: Instant
  ) -> [LinksEffect] {
    guard let state = owned[channel], let trust = state.trust, let author = generation.author,
      trust.rotators.contains(author), generation.id > state.current, !trust.confirmed.contains(generation.id)
    else { return [] }
    let excluded = generation.excluded.filter { peer in
      guard peer != me, peer != state.founder, trust.refused[peer] == nil else { return false }
      return author == state.founder || !trust.rotators.contains(peer)
    }
    guard !excluded.isEmpty else { return [] }
    for peer in excluded {
      owned[channel]!.expected[peer] = .removed
      owned[channel]!.expectedUntil[peer] = generation.id
    }
    return trustChanged(trust, channel, now)
  }

  mutating func trustChanged(_ trust: ChannelTrust, _ channel: ChannelID, _ now: Instant) -> [LinksEffect] {
    guard let before = owned[channel] else { return [] }
    var trust = trust
    owned[channel]!.expected = before.expected.filter { peer, _ in
      // Who has the act that names the generation has those before it: whoever is no longer refused was let in again.
      let isFolded = before.expectedUntil[peer].map { trust.confirmed.contains($0) } ?? false
      return trust.refused[peer] == nil && !isFolded
    }
    for (peer, reason) in owned[channel]!.expected {
      trust.refused[peer] = reason
      trust.members.remove(peer)
      trust.rotators.remove(peer)
    }
    guard before.trust != trust else { return [] }
    owned[channel]!.trust = trust
    var effects: [LinksEffect] = []
    for (peer, reason) in trust.refused.sorted(by: { $0.key < $1.key }) where before.refusal(of: peer) == nil {
      effects += refuse(peer, channel, reason)
    }
    let ready = owned[channel]!.pending.filter { owned[channel]!.counts($0.statement.id, by: $0.statement.author) }
    owned[channel]!.pending.removeAll { ready.contains($0) }
    effects += ready.map { .checkGeneration(channel, $0.signed, secret: $0.secret, from: $0.from) }
    effects += settle(channel, now)
    // Newcomers that came with an older generation are members now.
    for peer in trust.members.subtracting(before.trust?.members ?? []).sorted() {
      effects += catchUp(peer, in: channel)
    }
    return effects
  }

  /// Sends under the best that is known, and hands that on.
  private mutating func settle(_ channel: ChannelID, _ now: Instant) -> [LinksEffect] {
    guard var state = owned[channel] else { return [] }
    let best = state.best
    guard best != state.current else { return [] }
    state.current = best
    state.changedAt = now
    state.recallAt = now + GenerationRule.recallEvery
    state.recallCount = 0
    state.rotateAt = rotateEvery.map { now + $0 }
    state.lagging = [:]
    owned[channel] = state
    var effects: [LinksEffect] = [.sendUnder(channel, best)]
    // Along all sessions that stand. They make a ring, so it reaches everybody, and costs each member two messages.
    for peer in sessions.values.map(\.peer).sorted() { effects += give(best, to: peer, in: channel) }
    if let next = next(in: channel, after: me, where: { _ in true }), owned[channel]!.held[next] != best,
      peers[next]?.session == nil
    {
      effects += dial(next, now)
    }
    effects.append(.wake(at: now + GenerationRule.recallEvery))
    effects.append(.tell(.membership(.keysChanged(channel))))
    if let at = state.rotateAt { effects.append(.wake(at: at)) }
    return effects
  }

  /// Round in the order of PeerIDs, over those in good standing that we have met in this channel.
  private func next(
    in channel: ChannelID, after peer: PeerID, where isWanted: (PeerID) -> Bool
  ) -> PeerID? {
    guard let state = owned[channel] else { return nil }
    let wanted = peers.filter { peer, known in
      known.channels.contains(channel) && state.isGood(peer) && isWanted(peer)
    }.keys
    return wanted.filter { $0 > peer }.min() ?? wanted.min()
  }

  /// Whether a peer is known to have the generation to send under. What is in a session that broke may be lost.
  private func isHolder(_ peer: PeerID, _ state: OwnedChannel) -> Bool {
    state.held[peer] == state.current && (state.given[peer].map { sessions[$0] != nil } ?? true)
  }

  /// Those that have the newest generation call: the one with the lowest PeerID each time, the next one every second
  /// time, and so on, since the first ones may be gone.
  mutating func recall(_ now: Instant) -> [LinksEffect] {
    var effects: [LinksEffect] = []
    for channel in owned.keys.sorted() {
      let state = owned[channel]!
      guard let at = state.recallAt, at <= now else { continue }
      let soon = state.recallCount < GenerationRule.recallsSoon
      let next = now + (soon ? GenerationRule.recallEvery : GenerationRule.recallEveryLater)
      owned[channel]!.recallAt = next
      effects.append(.wake(at: next))
      owned[channel]!.recallCount += 1
      let rank = state.held.keys.count { $0 < me && isHolder($0, state) }
      guard owned[channel]!.recallCount % (rank + 1) == 0 else { continue }
      let lacking = self.next(in: channel, after: state.recalled ?? me) { !isHolder($0, state) }
      owned[channel]!.recalled = lacking
      if let lacking, peers[lacking]?.session == nil { effects += dial(lacking, now) }
    }
    return effects
  }

  private mutating func give(_ id: GenerationID, to peer: PeerID, in channel: ChannelID) -> [LinksEffect] {
    guard let link = peers[peer]?.session, sessions[link]?.channels.contains(channel) == true,
      let state = owned[channel], state.isGood(peer), state.refusal(of: peer) == nil,
      state.held[peer].map({ $0 < id }) ?? true
    else { return [] }
    owned[channel]!.note(peer, holds: id)
    owned[channel]!.given[peer] = link
    return [.handOver(link, channel, id)]
  }

  /// Gives a peer that lags what it lacks, when it may have it and there is a session.
  mutating func catchUp(_ peer: PeerID, in channel: ChannelID) -> [LinksEffect] {
    guard let state = owned[channel], state.lags(peer) else { return [] }
    return give(state.current, to: peer, in: channel)
  }

  /// Heard, signed, under an older generation than ours: it was away when the keys changed.
  mutating func noteLag(
    _ peer: PeerID, _ id: GenerationID, _ counter: UInt64, in channel: ChannelID, _ now: Instant
  ) -> [LinksEffect] {
    guard var state = owned[channel], state.refusal(of: peer) == nil else { return [] }
    // What it sends tells more than what was given to it: it may have lost that.
    state.held[peer] = id
    state.given[peer] = nil
    owned[channel] = state
    let effects = catchUp(peer, in: channel)
    guard effects.isEmpty, state.lagging[peer] == nil, state.lagging.count < GenerationRule.laggingMax else {
      return effects
    }
    let crowd = peers.values.count { $0.channels.contains(channel) }
    var jitter = Jitter(seed: me.value.words.0 ^ peer.value.words.1 ^ counter)
    let delay = jitter.span(
      .milliseconds(0), min(GenerationRule.callPerMember * crowd, GenerationRule.callMax))
    owned[channel]!.lagging[peer] = now + delay
    return [.wake(at: now + delay)]
  }

  /// Calls those that lag and are due.
  mutating func callLagging(_ now: Instant) -> [LinksEffect] {
    var effects: [LinksEffect] = []
    for channel in owned.keys.sorted() {
      for peer in owned[channel]!.lagging.filter({ $1 <= now }).keys.sorted() {
        owned[channel]!.lagging[peer] = nil
        if owned[channel]!.lags(peer), peers[peer]?.session == nil { effects += dial(peer, now) }
      }
    }
    return effects
  }

  /// Makes new generations where it is time to.
  mutating func rotateOnSchedule(_ now: Instant) -> [LinksEffect] {
    guard let rotateEvery else { return [] }
    var effects: [LinksEffect] = []
    for channel in owned.keys.sorted() {
      guard let at = owned[channel]!.rotateAt, at <= now else { continue }
      owned[channel]!.rotateAt = now + rotateEvery
      effects += rotate(channel, refusing: [:], now) + [.wake(at: now + rotateEvery)]
    }
    return effects
  }

  var nextCall: Instant? {
    owned.values.compactMap { state in
      [state.lagging.values.min(), state.rotateAt, state.recallAt].compactMap(\.self).min()
    }.min()
  }

  /// Of a channel's datagram that was not sealed under the generation to send under.
  func isLate(_ id: GenerationID?, _ channel: ChannelID) -> Bool {
    guard let id, let state = owned[channel] else { return false }
    return id < state.current
  }

  /// What was on its way when the keys changed is still read.
  func isOverlapping(_ channel: ChannelID, _ now: Instant) -> Bool {
    owned[channel]?.changedAt.map { now - $0 < GenerationRule.overlap } ?? false
  }

  /// Ends what is shared of a channel with somebody: in the session that stands, and for datagrams.
  mutating func refuse(_ peer: PeerID, _ channel: ChannelID, _ reason: ChannelRefusal) -> [LinksEffect] {
    peers[peer]?.channels.remove(channel)
    owned[channel]?.held[peer] = nil
    owned[channel]?.lagging[peer] = nil
    var effects: [LinksEffect] = [.tell(.membership(.excluded(channel, peer)))]
    for link in sessions.filter({ $1.peer == peer && $1.channels.contains(channel) }).keys.sorted(by: {
      $0.value < $1.value
    }) {
      sessions[link]!.channels.remove(channel)
      effects.append(.sendFrame(link, .refused(channel, reason)))
      guard sessions[link]!.channels.isEmpty else { continue }
      effects += [.sendFrame(link, .closing), .close(link, afterWrites: true)]
      sessions[link] = nil
      if peers[peer]?.session == link { peers[peer]!.session = nil }
    }
    return effects
  }

  /// What of a session's channels this peer may share; the others it is refused in.
  mutating func admitted(
    _ facts: SessionFacts, _ link: LinkID
  ) -> (channels: [ChannelID], refusals: [LinksEffect]) {
    var refusals: [LinksEffect] = []
    let channels = facts.channels.filter { channel in
      guard let state = owned[channel], let reason = state.refusal(of: facts.peer),
        !state.isInvitedAgain(facts.peer, holding: facts.generations[channel])
      else { return true }
      refusals.append(.sendFrame(link, .refused(channel, reason)))
      return false
    }
    return (channels, refusals)
  }

  /// By what a channel was proved tells what the other end has; at most what we have.
  mutating func proved(
    _ generations: [ChannelID: GenerationID], by peer: PeerID, in channels: [ChannelID]
  ) -> [LinksEffect] {
    var effects: [LinksEffect] = []
    for channel in channels {
      guard let id = generations[channel], owned[channel] != nil else { continue }
      owned[channel]!.held[peer] = id
      owned[channel]!.given[peer] = nil
      owned[channel]!.lagging[peer] = nil
      effects += catchUp(peer, in: channel)
    }
    return effects
  }
}
