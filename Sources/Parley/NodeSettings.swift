/// With what a node is started.
public struct NodeSettings: Sendable {
  /// The folder with the profile and everything the node keeps.
  public var home: String
  /// Nil: the name of last time, or else the login name.
  public var displayName: String?
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

  public init(
    home: String, displayName: String? = nil, interfaces: [String] = [], peers: [String] = [], port: UInt16 = 0,
    historyDays: Int = 30, historyEntryCountMax: Int = 100_000
  ) {
    self.home = home
    self.displayName = displayName
    self.interfaces = interfaces
    self.peers = peers
    self.port = port
    self.historyDays = historyDays
    self.historyEntryCountMax = historyEntryCountMax
  }

  static let historyDaysRange = 1...36_500
  static let historyEntryCountRange = 100...10_000_000

  /// Throws `.badSetting` for a number outside its bounds.
  func check() throws(ParleyError) {
    guard Self.historyDaysRange.contains(historyDays) else {
      throw .badSetting("days of history", value: historyDays, allowed: Self.historyDaysRange)
    }
    guard Self.historyEntryCountRange.contains(historyEntryCountMax) else {
      throw .badSetting("entries of history", value: historyEntryCountMax, allowed: Self.historyEntryCountRange)
    }
  }
}
