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

  public init(
    home: String, displayName: String? = nil, interfaces: [String] = [], peers: [String] = [], port: UInt16 = 0
  ) {
    self.home = home
    self.displayName = displayName
    self.interfaces = interfaces
    self.peers = peers
    self.port = port
  }
}
