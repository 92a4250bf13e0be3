import ParleyMachines
import ParleySealing
import ParleyTransport
import ParleyVocabulary

/// One TCP connection, from the dial or accept to its end. Owned by the links actor; a class, so that the receive
/// buffer is changed in place.
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
  /// A peer that does not read is cut off when this much waits for it: in the session that stands, in each of the few
  /// that are heard out beside it, and in one for media. Together it costs less than 16 MB (and 4 MiB that wait for a
  /// session that is being dialled, when there is none).
  static let chatByteCountMax = 8 << 20
  static let endingByteCountMax = 256 << 10
  static let mediaByteCountMax = 4 << 20
  /// Sessions of one peer for one purpose; the oldest goes. Two are enough when both sides dial, and a moment needs
  /// more.
  static let sessionsPerPeerMax = 4
  /// Channel tags remembered: of our channels, and of others.
  static let tagsMax = 4_096
}

/// When sessions are not read because what came is not worked off.
enum BacklogRule {
  /// Messages, and bytes, that may wait for messaging.
  static let chatCountMax = 2_048
  static let chatByteCountMax = 8 << 20
  static let countToGoOn = 64
  static let datagramCountMax = 4_096
  static let mediaByteCountMax = 8 << 20
}

/// Which channel a datagram's tag belongs to. Tags are hashes of the sender's instance, so each costs one hash a
/// channel the first time only. Both go together: a tag seen in the clear and repeated under another instance says
/// nothing of the datagrams it was taken from.
struct TagTable {
  private struct Key: Hashable {
    let tag: UInt64
    let instance: Instance
  }

  private var known: [Key: ChannelID] = [:]
  private var foreign: [Key: Instant] = [:]

  mutating func channel(
    _ tag: UInt64, _ instance: Instance, _ keys: [ChannelID: ChannelKeys], _ now: Instant
  ) -> ChannelID? {
    let key = Key(tag: tag, instance: instance)
    if let channel = known[key] { return channel }
    if foreign[key] != nil {
      foreign[key] = now
      return nil
    }
    for (channel, keys) in keys where keys.generation(tag: tag, of: instance) != nil {
      if known.count >= ConnectionRule.tagsMax { known = [:] }
      known[key] = channel
      return channel
    }
    if foreign.count >= ConnectionRule.tagsMax {
      let middle = foreign.values.sorted()[foreign.count / 2]
      foreign = foreign.filter { $0.value > middle }
    }
    foreign[key] = now
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
