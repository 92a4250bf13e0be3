import ParleyVocabulary
import ParleyWire

extension MembershipMachine {
  mutating func sessionOpened(
    _ channel: ChannelID, _ peer: PeerID, _ instance: Instance, _ wasIntroduced: Bool, _ now: Instant
  ) -> [MembershipEffect] {
    guard channels[channel] != nil else { return [] }
    let greeting = MembershipEffect.tell(
      .links(.unicast(channel, peer, [presence(channel, full: true)], direct: [])))
    // Known by the session alone (multicast does not reach): it learns who we are there.
    guard var member = channels[channel]!.members[peer], member.instance == instance, member.displayName != nil else {
      return [greeting]
    }
    let before = member.view(peer)
    // A handshake is as fresh as an echo.
    member.phase = .present
    member.lastHeard = now
    channels[channel]!.put(member, peer)
    return settle(channel, peer, before, at: now) + (wasIntroduced ? [greeting] : [])
  }

  mutating func sessionLost(_ peer: PeerID, _ instance: Instance, _ now: Instant) -> [MembershipEffect] {
    var effects: [MembershipEffect] = []
    for channel in channels.keys.sorted() {
      guard let member = channels[channel]!.members[peer], member.instance == instance, case .present = member.phase
      else { continue }
      effects += suspect(channel, peer, now, .lostSession)
    }
    return effects
  }

  mutating func suspected(
    _ channel: ChannelID, _ peer: PeerID, _ incarnation: UInt64, _ now: Instant
  ) -> [MembershipEffect] {
    if peer == me { return suspectedOurselves(channel, incarnation, now) }
    guard let member = channels[channel]?.members[peer], case .present = member.phase,
      incarnation == member.incarnation, now - member.lastHeard > .milliseconds(200),
      channels[channel]!.hearsay.take(1, at: now)
    else { return [] }
    return suspect(channel, peer, now, .hearsay)
  }

  /// Anybody can say it, so it costs a beacon at most every half second; and a later incarnation that others know, from
  /// before this profile was restored from a backup, raises ours, by no more than such a past can explain.
  private mutating func suspectedOurselves(
    _ channel: ChannelID, _ incarnation: UInt64, _ now: Instant
  ) -> [MembershipEffect] {
    guard let state = channels[channel], incarnation >= state.incarnation,
      incarnation - state.incarnation <= MembershipRule.raiseMax, state.refuteAt.map({ $0 <= now }) ?? true
    else { return [] }
    channels[channel]!.refuteAt = now + MembershipRule.refuteAgain
    guard incarnation > state.incarnation else { return [beacon(channel, full: true)] }
    for channel in channels.keys { channels[channel]!.raise(to: incarnation + 1) }
    return [.tell(.login(.incarnationRaised(incarnation + 1)))]
      + channels.keys.sorted().map { beacon($0, full: true) }
  }

  private mutating func suspect(
    _ channel: ChannelID, _ peer: PeerID, _ now: Instant, _ cause: MemberState.Cause
  ) -> [MembershipEffect] {
    var probing = MemberState.Probing(
      nonce: takeNonce(), sentCount: 1, nextAt: now + cause.probeDistances[0], cause: cause)
    var member = channels[channel]!.members[peer]!
    let isLater = cause == .hearsay && channels[channel]!.members.count > MembershipRule.crowd
    if isLater {
      // Lest a thousand ask the one that is about to say to all that it lives.
      probing.sentCount = 0
      probing.nextAt = now + jitter.span(MembershipRule.hearsayJitter.0, MembershipRule.hearsayJitter.1)
    }
    member.phase = .suspect(probing)
    channels[channel]!.put(member, peer)
    return isLater ? [] : probe(channel, peer, probing)
  }

  /// Only who has lost a session says it to all, and only when a first probe was in vain: of silence each hears for
  /// itself.
  private func probe(_ channel: ChannelID, _ peer: PeerID, _ probing: MemberState.Probing) -> [MembershipEffect] {
    let question = answer(channel, peer, [.probe(nonce: probing.nonce)])
    guard probing.cause == .lostSession, probing.sentCount > 1 else { return [question] }
    let incarnation = channels[channel]!.members[peer]!.incarnation
    return [
      question, .tell(.links(.multicast(channel, [.plain(.suspect(peer, incarnation: incarnation))]))),
    ]
  }

  /// Its session has been announced already, channel by channel: where it still is suspected, the peer lives but is in
  /// that channel no more, or runs anew.
  mutating func dialSucceeded(_ peer: PeerID, _ now: Instant) -> [MembershipEffect] { dialFailed(peer, now) }

  mutating func dialFailed(_ peer: PeerID, _ now: Instant) -> [MembershipEffect] {
    var effects: [MembershipEffect] = []
    for channel in channels.keys.sorted() {
      guard var member = channels[channel]!.members[peer], case .suspect(let probing) = member.phase,
        probing.isDialling
      else { continue }
      let before = member.view(peer)
      member.phase = .gone
      channels[channel]!.put(member, peer)
      effects += settle(channel, peer, before, at: now)
    }
    return effects
  }

  mutating func woke(_ now: Instant) -> [MembershipEffect] {
    var effects: [MembershipEffect] = []
    for channel in channels.keys.sorted() {
      if channels[channel]!.nextBeacon <= now {
        let isBurst = channels[channel]!.burstIndex < MembershipRule.burst.count
        channels[channel]!.scheduleBeacon(now, &jitter)
        effects.append(beacon(channel, full: isBurst))
      }
      for peer in channels[channel]!.takeDue(now) { effects += woke(channel, peer, now) }
      effects += typingDue(channel, now)
    }
    return effects
  }

  private mutating func woke(_ channel: ChannelID, _ peer: PeerID, _ now: Instant) -> [MembershipEffect] {
    var member = channels[channel]!.members[peer]!
    defer { channels[channel]!.put(member, peer) }
    switch member.phase {
    case .gone: return []
    case .present:
      let effects = suspect(channel, peer, now, .silence)
      member = channels[channel]!.members[peer]!
      return effects
    case .claimed(var probing):
      guard probing.sentCount < MembershipRule.probeDistances.count else {
        member.phase = .gone
        return []
      }
      probing.nextAt = now + MembershipRule.probeDistances[probing.sentCount]
      probing.sentCount += 1
      member.phase = .claimed(probing)
      return [answer(channel, peer, [.probe(nonce: probing.nonce), .echo(nonce: member.theirNonce)])]
    case .suspect(var probing):
      let distances = probing.cause.probeDistances
      guard probing.sentCount < distances.count else {
        probing.isDialling = true
        member.phase = .suspect(probing)
        return [.tell(.links(.check(peer)))]
      }
      probing.nextAt = now + distances[probing.sentCount]
      probing.sentCount += 1
      member.phase = .suspect(probing)
      return probe(channel, peer, probing)
    }
  }
}
