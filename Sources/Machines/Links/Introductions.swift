import ParleyVocabulary

/// Addresses that a person named (`--peer`): dialled again every few seconds for as long as there is no session with
/// the node there, whether it starts later, restarts, or another takes its place.
struct Introductions: Equatable, Sendable {
  static let again = Span.seconds(3)

  private struct Named: Equatable, Sendable {
    let address: Address
    var dial: LinkID?
    /// Who answered there last.
    var peer: PeerID?
    var dialAt: Instant
    /// It is our own address.
    var isOurs = false
  }

  private var named: [Named] = []

  var isEmpty: Bool { named.allSatisfy(\.isOurs) }

  mutating func add(_ address: Address, at now: Instant) {
    guard !named.contains(where: { $0.address == address }) else { return }
    named.append(Named(address: address, dialAt: now))
  }

  /// The addresses to dial now. A dial that is under way is waited for.
  func due(at now: Instant, hasSession: (PeerID) -> Bool) -> [Address] {
    named.filter { named in
      named.dial == nil && !named.isOurs && named.dialAt <= now && named.peer.map(hasSession) != true
    }.map(\.address)
  }

  mutating func dialled(_ address: Address, _ link: LinkID) {
    for index in named.indices where named[index].address == address { named[index].dial = link }
  }

  mutating func opened(_ link: LinkID, _ peer: PeerID, isOurs: Bool, at now: Instant) {
    for index in named.indices where named[index].dial == link {
      named[index].dial = nil
      named[index].peer = peer
      named[index].isOurs = isOurs
      named[index].dialAt = now + Self.again
    }
  }

  mutating func failed(_ link: LinkID, at now: Instant) {
    for index in named.indices where named[index].dial == link {
      named[index].dial = nil
      named[index].dialAt = now + Self.again
    }
  }

  func names(_ peer: PeerID) -> Bool { named.contains { $0.peer == peer } }
}

extension LinksMachine {
  mutating func introduce(_ address: Address, _ now: Instant) -> [LinksEffect] {
    introductions.add(address, at: now)
    return dialIntroductions(now) + [.wake(at: now + SessionRule.tick)]
  }

  /// Without a channel there is nothing to say who we are with.
  mutating func dialIntroductions(_ now: Instant) -> [LinksEffect] {
    guard !channels.isEmpty else { return [] }
    return introductions.due(at: now, hasSession: { peers[$0]?.session != nil }).map { address in
      let link = LinkID(nextDial)
      nextDial += 2
      dials[link] = Dial(peer: nil)
      introductions.dialled(address, link)
      return .dial(link, address, expecting: nil, channels: channels.sorted())
    }
  }
}
