import ParleyActors
import ParleyVocabulary

/// With what a node is started.
public struct NodeSettings: Sendable {
  /// The folder with the profile and everything the node keeps.
  public var home: String
  /// Nil: the name of last time, or else the login name.
  public var displayName: String?
  /// Of the home, when it has one (`HomePassphrase`); 1 to 1,024 bytes. Not written anywhere.
  public var passphrase: [UInt8]?
  /// Names of network interfaces; none means all that can do multicast.
  public var interfaces: [String]
  /// Nodes to dial besides those that are heard, each as `HOST:PORT`.
  public var peers: [String]
  /// TCP port of sessions; 0 lets the system choose.
  public var port: UInt16
  /// Days for which the history of a channel is kept, 1 to 36,500. What was received longer ago goes.
  public var historyDays: Int
  /// Entries kept of each channel, 100 to 10,000,000: the newest in the order that all members share.
  public var historyEntryCountMax: Int
  /// Seconds for which a message to one person waits while that person is away, 1 to 31,536,000 (a year). Then it is
  /// given up, with `NodeEvent.expired`.
  public var outboxSeconds: Int
  /// Messages to people who are away that may wait at once, 1 to 1,000,000; a new one is refused beyond it.
  public var outboxCountMax: Int
  /// Bytes of such messages, 32,768 to 1,073,741,824.
  public var outboxByteCountMax: Int
  /// A file with a login token, read at the start and again when the token is about to end; nil: the one of last time
  /// counts while it is valid.
  public var tokenFile: String?
  /// Sizes, quality and upkeep of previews.
  public var pictures = PictureSettings()
  /// Whether the small previews of photos and videos are fetched as soon as they are announced.
  public var downloadsThumbnails = true
  /// Whether voice is fetched as soon as it is announced.
  public var downloadsVoice = true
  /// Bytes of such previews and voice kept in the home and served from there, 1,048,576 to 1,099,511,627,776. Beyond
  /// it, or beyond 4,096 of them, the ones used longest ago go. One preview has at most 1 MiB, one voice 8 MiB; longer
  /// ones are fetched when they are asked for.
  public var fetchedByteCountMax = 256 << 20
  /// What one member may cost this node.
  public var memberLimits = MemberLimits()
  /// Bytes a second of files sent to all others together, 65,536 to 2^40; nil: as fast as it goes.
  public var uploadByteRateMax: Int?
  /// Bytes a second of files received by all downloads together, 65,536 to 2^40; nil: as fast as it goes.
  public var downloadByteRateMax: Int?
  /// Bytes on the disk for parts of downloads that are paused or broke off, each counted with the size of its file,
  /// which it may come to take; 0 to 2^50. Beyond it the part that was used longest ago goes first. Nil: they go when
  /// they have not been used for 7 days. Finished files are their user's and never removed.
  public var partByteCountMax: Int?
  /// Seconds after which channels of which this node is the owner or an admin get a new secret, 60 to 31,536,000 (a
  /// year); nil: only when somebody is removed, and with `Node.rotate`.
  public var rotateEverySeconds: Int?
  /// Messages that the application may send within a second, in all channels and from peer to peer together, 1 to
  /// 100,000; beyond it `.messageRateLimited` is thrown. Nil: as many as it likes.
  public var messageRateMax: Int?
  /// The user's own programs and addresses that are asked before a message of this node goes out, told after, or asked
  /// for its translation; at each moment one of each name. They get an object with `event`, `hook`, `channel` or
  /// `peer_id`, and `message`. One before the fact answers nothing (it may go) or an object with `action`: `allow`,
  /// `refuse` with `reason`, or `rewrite` with `message`, members in the place of those of the same names; who says it,
  /// when, to whom and with what options stays. One for translation answers with `translations`, texts by language.
  public var hooks: [Hook] = []
  /// By which the seconds of `messageRateMax` are counted.
  package var clock: @Sendable () -> Instant = { SystemClock.now() }

  public init(
    home: String, displayName: String? = nil, interfaces: [String] = [], peers: [String] = [], port: UInt16 = 0,
    historyDays: Int = 30, historyEntryCountMax: Int = 100_000, outboxSeconds: Int = 604_800,
    outboxCountMax: Int = 10_000, outboxByteCountMax: Int = 64 << 20, uploadByteRateMax: Int? = nil,
    downloadByteRateMax: Int? = nil, partByteCountMax: Int? = nil, rotateEverySeconds: Int? = nil
  ) {
    self.home = home
    self.displayName = displayName
    self.interfaces = interfaces
    self.peers = peers
    self.port = port
    self.historyDays = historyDays
    self.historyEntryCountMax = historyEntryCountMax
    self.outboxSeconds = outboxSeconds
    self.outboxCountMax = outboxCountMax
    self.outboxByteCountMax = outboxByteCountMax
    self.uploadByteRateMax = uploadByteRateMax
    self.downloadByteRateMax = downloadByteRateMax
    self.partByteCountMax = partByteCountMax
    self.rotateEverySeconds = rotateEverySeconds
  }

  static let historyDaysRange = 1...36_500
  static let historyEntryCountRange = 100...10_000_000
  static let outboxSecondsRange = 1...31_536_000
  static let outboxCountRange = 1...1_000_000
  static let outboxByteCountRange = 32_768...1_073_741_824
  static let byteRateRange = 65_536...1 << 40
  static let rotateEverySecondsRange = 60...31_536_000
  static let messageRateRange = 1...100_000
  static let partByteCountRange = 0...1 << 50

  /// Throws `.badSetting` for a number outside its bounds.
  func check() throws(ParleyError) {
    let numbers = [
      ("days of history", historyDays, Self.historyDaysRange),
      ("entries of history", historyEntryCountMax, Self.historyEntryCountRange),
      ("seconds in the outbox", outboxSeconds, Self.outboxSecondsRange),
      ("messages in the outbox", outboxCountMax, Self.outboxCountRange),
      ("bytes in the outbox", outboxByteCountMax, Self.outboxByteCountRange),
      ("bytes of previews and voice fetched", fetchedByteCountMax, PictureSettings.keptByteCountRange),
    ]
    for (name, value, allowed) in numbers where !allowed.contains(value) {
      throw .badSetting(name, value: value, allowed: allowed)
    }
    let optional = [
      ("bytes a second to others", uploadByteRateMax, Self.byteRateRange),
      ("bytes a second from others", downloadByteRateMax, Self.byteRateRange),
      ("bytes of parts of downloads", partByteCountMax, Self.partByteCountRange),
      ("seconds between new secrets", rotateEverySeconds, Self.rotateEverySecondsRange),
      ("messages a second", messageRateMax, Self.messageRateRange),
    ]
    for case (let name, let value?, let allowed) in optional where !allowed.contains(value) {
      throw .badSetting(name, value: value, allowed: allowed)
    }
    if let fault = memberLimits.fault { throw .badSetting(fault.name, value: fault.value, allowed: fault.allowed) }
    try pictures.check()
    for (index, hook) in hooks.enumerated()
    where hooks[..<index].contains(where: { $0.name == hook.name && $0.moment == hook.moment }) {
      throw .badHook("there are two hooks \(hook.name) for \(hook.moment.rawValue)")
    }
  }
}
