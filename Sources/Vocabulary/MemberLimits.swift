/// What one member may cost each of the others, metered at every receiver. What others relay counts against who wrote
/// it. Beyond a limit the member is slowed (what it wrote is asked for later, at the limit's rate) or what it did is
/// let go; either is told as `NodeEvent.memberOverLimit` and stands in the list of members.
public struct MemberLimits: Sendable, Equatable {
  /// So many a second on average, and so many at once after a pause.
  public struct Rate: Sendable, Equatable {
    /// 1 to 2^40.
    public var perSecond: UInt64
    /// 1 to 2^40.
    public var atOnce: UInt64
    public init(perSecond: UInt64, atOnce: UInt64) {
      self.perSecond = perSecond
      self.atOnce = atOnce
    }
  }

  /// Entries (each of up to 256 messages) of one author that come by themselves. Beyond: taken when they are asked for.
  public var entries = Rate(perSecond: 1_000, atOnce: 3_000)
  /// Entries of one author that are asked for, as history is, those that came by themselves counted in. Beyond: asked
  /// for later.
  public var entriesAsked = Rate(perSecond: 2_000, atOnce: 100_000)
  /// Bytes of entries of one author. Beyond: taken later.
  public var entryBytes = Rate(perSecond: 4 << 20, atOnce: 64 << 20)
  /// Live objects of one author: goodbyes, commands, messages for whoever is there. Rooms carry up to 200 a second.
  /// Beyond: let go.
  public var liveObjects = Rate(perSecond: 250, atOnce: 1_000)
  /// Bytes of messages in them. Beyond: let go.
  public var liveBytes = Rate(perSecond: 1 << 20, atOnce: 8 << 20)
  /// Presences of one author. Beyond: let go.
  public var presences = Rate(perSecond: 20, atOnce: 200)
  /// Handshakes of one identity. Beyond: the connection is closed.
  public var handshakes = Rate(perSecond: 5, atOnce: 40)
  /// Connections from one address. Beyond: closed at once.
  public var connections = Rate(perSecond: 50, atOnce: 300)
  /// Identities not heard of before, from one address. Beyond: not listened to.
  public var identities = Rate(perSecond: 20, atOnce: 500)
  /// Signatures to be checked in datagrams, from one address. Beyond: let go; entries are asked for later.
  public var signatures = Rate(perSecond: 2_500, atOnce: 6_000)
  /// Files and folders of one author remembered as announced in a channel, 1 to 10,000. Beyond: its oldest are
  /// forgotten; history has them.
  public var shares = 1_000

  public init() {}

  static let range: ClosedRange<UInt64> = 1...1 << 40

  /// What is outside its bounds, if anything.
  package var fault: (name: String, value: Int, allowed: ClosedRange<Int>)? {
    let rates = [
      ("entries", entries), ("entries asked for", entriesAsked), ("bytes of entries", entryBytes),
      ("live objects", liveObjects), ("bytes of live objects", liveBytes), ("presences", presences),
      ("handshakes", handshakes), ("connections", connections), ("identities", identities), ("signatures", signatures),
    ]
    for (name, rate) in rates {
      for (value, unit) in [(rate.perSecond, "a second"), (rate.atOnce, "at once")] where !Self.range.contains(value) {
        return ("\(name) \(unit)", Int(clamping: value), 1...1 << 40)
      }
    }
    return (1...10_000).contains(shares) ? nil : ("shares of one member", shares, 1...10_000)
  }
}

/// What a member did too much of, or what it must not do at all.
public enum MemberExcess: String, Sendable, Hashable, CaseIterable {
  case entries
  case entryBytes = "entry_bytes"
  case liveObjects = "live_objects"
  case presences
  case handshakes
  case shares
  /// It signed two different entries under one number.
  case equivocation
  /// It changed, took back or pinned what it may not, or too late or too often. Nobody heeds it.
  case forbiddenActs = "forbidden_acts"
}
