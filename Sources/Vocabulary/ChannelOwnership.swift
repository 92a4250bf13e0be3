/// What an owned channel's identifier commits to besides its name: who founded it, and 16 random bytes. Open and
/// passphrase channels have none.
public struct ChannelOwnership: Hashable, Sendable {
  public static let saltByteCount = 16

  public let founder: PeerID
  public let salt: [UInt8]
  public let type: ChannelType

  /// Nil when the salt has not 16 bytes.
  public init?(founder: PeerID, salt: [UInt8], type: ChannelType = .group) {
    guard salt.count == Self.saltByteCount else { return nil }
    self.founder = founder
    self.salt = salt
    self.type = type
  }
}
