import ParleyMachines
import ParleySealing
import ParleyTransport
import ParleyVocabulary

/// One TCP connection, from the dial or accept to its end. Owned by the links actor; a class, so that the receive buffer
/// is changed in place.
final class Connection {
  enum Stage {
    /// → `handshaking`: TCP is up.
    case dialling(SessionHandshake)
    /// → `open`: both sides proved a channel and who they are.
    case handshaking(SessionHandshake)
    case open(EstablishedSession)
  }

  let id: ConnectionID
  let link: LinkID
  let remote: Address
  let purpose: SessionPurpose?
  var stage: Stage
  /// Half-open connections are ended then.
  let handshakeEnd: Instant
  /// Being closed because its handshake took too long.
  var isGivenUp = false

  init(
    id: ConnectionID, link: LinkID, remote: Address, purpose: SessionPurpose?, stage: Stage, handshakeEnd: Instant
  ) {
    self.id = id
    self.link = link
    self.remote = remote
    self.purpose = purpose
    self.stage = stage
    self.handshakeEnd = handshakeEnd
  }

  var session: EstablishedSession? {
    if case .open(let session) = stage { return session }
    return nil
  }

  /// Its handshake may still end well.
  var isHalfOpen: Bool { session == nil && !isGivenUp }
}

/// Bounds of what strangers can make a node hold.
enum ConnectionRule {
  static let handshakeTime = Span.seconds(5)
  /// Half-open connections at once; beyond that the oldest goes, so that a crowd of silent ones keeps nobody out.
  static let handshakesMax = 256
  /// A peer that does not read is cut off when this much waits for it.
  static let queuedByteCountMax = 16 << 20
  /// Channel tags remembered: of our channels, and of others.
  static let tagsMax = 4_096
}

/// Which channel a datagram's tag belongs to. Tags are hashes of the sender's instance, so each costs one hash a channel
/// the first time only.
struct TagTable {
  private var known: [UInt64: ChannelID] = [:]
  private var foreign: [UInt64: Instant] = [:]

  mutating func channel(
    _ tag: UInt64, _ instance: Instance, _ keys: [ChannelID: ChannelKeys], _ now: Instant
  ) -> ChannelID? {
    if let channel = known[tag] { return channel }
    if foreign[tag] != nil {
      foreign[tag] = now
      return nil
    }
    for (channel, keys) in keys where keys.tag(of: instance) == tag {
      if known.count >= ConnectionRule.tagsMax { known = [:] }
      known[tag] = channel
      return channel
    }
    if foreign.count >= ConnectionRule.tagsMax {
      let oldest = foreign.values.sorted()[foreign.count / 2]
      foreign = foreign.filter { $0.value > oldest }
    }
    foreign[tag] = now
    return nil
  }

  /// A channel was joined or left: what was foreign may not be any more.
  mutating func reset() {
    known = [:]
    foreign = [:]
  }

  /// Tags heard since `moment` that belong to none of our channels.
  func foreignCount(since moment: Instant) -> Int { foreign.values.count { $0 >= moment } }
}
