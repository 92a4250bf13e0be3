import ParleyVocabulary
import ParleyWire

extension MembershipMachine {
  mutating func sessionOpened(
    _ channel: ChannelID, _ peer: PeerID, _ instance: Instance, _ wasIntroduced: Bool, _ now: Instant
  ) -> [MembershipEffect] {
    guard var state = channels[channel] else { return [] }
    let greeting = MembershipEffect.tell(
      .links(.unicast(channel, peer, [presence(channel, full: true)], direct: [])))
    // Known by the session alone (multicast does not reach): it learns who we are there.
    guard var member = state.members[peer], member.instance == instance, member.displayName != nil else {
      return [greeting]
    }
    let before = member.view(peer)
    // A handshake is as fresh as an echo.
    member.phase = .present
    member.lastHeard = now
    state.members[peer] = member
    channels[channel] = state
    return settle(channel, peer, before, at: now) + (wasIntroduced ? [greeting] : [])
  }

  mutating func sessionLost(_ peer: PeerID, _ instance: Instance, _ now: Instant) -> [MembershipEffect] {
    var effects: [MembershipEffect] = []
    for channel in channels.keys.sorted() {
      guard let member = channels[channel]!.members[peer], member.instance == instance, case .present = member.phase
      else { continue }
      effects += suspect(channel, peer, now, isFirstHand: true)
    }
    return effects
  }

  mutating func suspected(
    _ channel: ChannelID, _ peer: PeerID, _ incarnation: UInt64, _ now: Instant
  ) -> [MembershipEffect] {
    guard let state = channels[channel] else { return [] }
    if peer == me {
      return incarnation == state.incarnation ? [beacon(channel, full: true)] : []
    }
    guard let member = state.members[peer], case .present = member.phase, incarnation == member.incarnation,
      now - member.lastHeard > .milliseconds(200)
    else { return [] }
    return suspect(channel, peer, now)
  }

  private mutating func suspect(
    _ channel: ChannelID, _ peer: PeerID, _ now: Instant, isFirstHand: Bool = false
  ) -> [MembershipEffect] {
    let probing = MemberState.Probing(
      nonce: takeNonce(), sentCount: 1, nextAt: now + MembershipRule.probeDistances[0], isFirstHand: isFirstHand)
    channels[channel]!.members[peer]!.phase = .suspect(probing)
    return probe(channel, peer, probing)
  }

  /// Only who has lost a session says it to all: of silence each hears for itself.
  private func probe(_ channel: ChannelID, _ peer: PeerID, _ probing: MemberState.Probing) -> [MembershipEffect] {
    let question = answer(channel, peer, [.probe(nonce: probing.nonce)])
    guard probing.isFirstHand else { return [question] }
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
      channels[channel]!.members[peer] = member
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
      for peer in channels[channel]!.members.keys.sorted() { effects += woke(channel, peer, now) }
    }
    return effects
  }

  private mutating func woke(_ channel: ChannelID, _ peer: PeerID, _ now: Instant) -> [MembershipEffect] {
    var member = channels[channel]!.members[peer]!
    switch member.phase {
    case .gone: return []
    case .present: return member.silentAt <= now ? suspect(channel, peer, now) : []
    case .claimed(var probing):
      guard probing.nextAt <= now else { return [] }
      guard probing.sentCount < MembershipRule.probeDistances.count else {
        member.phase = .gone
        channels[channel]!.members[peer] = member
        return []
      }
      probing.nextAt = now + MembershipRule.probeDistances[probing.sentCount]
      probing.sentCount += 1
      member.phase = .claimed(probing)
      channels[channel]!.members[peer] = member
      return [answer(channel, peer, [.probe(nonce: probing.nonce), .echo(nonce: member.theirNonce)])]
    case .suspect(var probing):
      guard probing.nextAt <= now, !probing.isDialling else { return [] }
      if probing.sentCount < MembershipRule.probeDistances.count {
        probing.nextAt = now + MembershipRule.probeDistances[probing.sentCount]
        probing.sentCount += 1
        member.phase = .suspect(probing)
        channels[channel]!.members[peer] = member
        return probe(channel, peer, probing)
      }
      probing.isDialling = true
      member.phase = .suspect(probing)
      channels[channel]!.members[peer] = member
      return [.tell(.links(.check(peer)))]
    }
  }
}
