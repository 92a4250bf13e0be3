import ParleyStore
import ParleyVocabulary

/// What the user wishes of one channel, on this node only.
public struct ChannelSettings: Sendable, Equatable {
  /// Its messages are marked (`Message.isMuted`): they come like all else, and nobody is to be notified of them.
  public var isMuted = false
  /// Whether subscribers of events get this node's own messages, too.
  public var includesOwnMessages = true
  /// Whether others are told what was read here. In rooms they never are.
  public var sendsReceipts = true
  /// Whether previews of photos and videos announced there are fetched unasked, where
  /// `NodeSettings.downloadsThumbnails` is set.
  public var downloadsThumbnails = true
  /// Whether voice is, where `NodeSettings.downloadsVoice` is set.
  public var downloadsVoice = true
  /// Days for which its history is kept, 1 to 36,500; nil: as `NodeSettings.historyDays` has it.
  public var historyDays: Int?
  /// Entries that are kept of it, 100 to 10,000,000; nil: as `NodeSettings.historyEntryCountMax` has it.
  public var historyEntryCountMax: Int?

  /// What counts where nothing was set.
  public init() {}
}

/// What the user wishes of one person, on this node only.
public struct PeerSettings: Sendable, Equatable {
  /// Their messages are marked (`Message.isMuted`), in channels, too.
  public var isMuted = false
  /// Whether subscribers of events get this node's own messages to them, too.
  public var includesOwnMessages = true
  /// Whether they are told what of their messages to this node alone was read.
  public var sendsReceipts = true

  /// What counts where nothing was set.
  public init() {}
}

extension ChannelSettings {
  /// Names on the disk, and in the local API.
  private static let flags: [(name: String, path: WritableKeyPath<ChannelSettings, Bool> & Sendable)] = [
    ("muted", \.isMuted), ("own_messages", \.includesOwnMessages), ("receipts", \.sendsReceipts),
    ("previews", \.downloadsThumbnails), ("voice", \.downloadsVoice),
  ]
  private static let numbers: [(name: String, path: WritableKeyPath<ChannelSettings, Int?> & Sendable)] = [
    ("history_days", \.historyDays), ("history_entries", \.historyEntryCountMax),
  ]

  mutating func take(_ name: String, _ value: Int64) {
    if let flag = Self.flags.first(where: { $0.name == name }) { self[keyPath: flag.path] = value != 0 }
    if let number = Self.numbers.first(where: { $0.name == name }) { self[keyPath: number.path] = Int(value) }
  }

  /// What is as it is by itself is not written down.
  func stored(of channel: ChannelID) -> [StoredSetting] {
    let standard = ChannelSettings()
    let flags = Self.flags.map { name, path -> StoredSetting in
      let isSet = self[keyPath: path]
      return StoredSetting(
        subject: .channel(channel), name: name, value: isSet == standard[keyPath: path] ? nil : isSet ? 1 : 0)
    }
    return flags
      + Self.numbers.map { name, path in
        StoredSetting(subject: .channel(channel), name: name, value: self[keyPath: path].map { Int64($0) })
      }
  }

  /// Throws `.badSetting`.
  func check() throws(ParleyError) {
    let numbers = [
      ("days of history", historyDays, NodeSettings.historyDaysRange),
      ("entries of history", historyEntryCountMax, NodeSettings.historyEntryCountRange),
    ]
    for case (let name, let value?, let allowed) in numbers where !allowed.contains(value) {
      throw .badSetting(name, value: value, allowed: allowed)
    }
  }
}

extension PeerSettings {
  private static let flags: [(name: String, path: WritableKeyPath<PeerSettings, Bool> & Sendable)] = [
    ("muted", \.isMuted), ("own_messages", \.includesOwnMessages), ("receipts", \.sendsReceipts),
  ]

  mutating func take(_ name: String, _ value: Int64) {
    if let flag = Self.flags.first(where: { $0.name == name }) { self[keyPath: flag.path] = value != 0 }
  }

  func stored(of peer: PeerID) -> [StoredSetting] {
    let standard = PeerSettings()
    return Self.flags.map { name, path in
      let isSet = self[keyPath: path]
      return StoredSetting(
        subject: .peer(peer), name: name, value: isSet == standard[keyPath: path] ? nil : isSet ? 1 : 0)
    }
  }
}
