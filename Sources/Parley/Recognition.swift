import ParleyVocabulary

/// What this node knows of who somebody is, beyond the name that they gave themselves.
public struct Recognition: Sendable, Hashable {
  /// Whether this node's user compared codes with them (`Node.verify`): the key is theirs.
  public var isVerified = false
  /// Whether this node's user wants to see and hear nothing of them (`Node.block`).
  public var isBlocked = false
  /// Whose name looks the same.
  public var likeness = Likeness.none
  /// What the channel's organiser calls them, while their login token is valid: to be shown with a check mark.
  public var organiserWord: OrganiserWord?
  /// Why what they say is not shown, in a channel that asks for login tokens.
  public var tokenRefusal: TokenRefusal?

  public init() {}

  /// Nothing is known.
  public static let none = Recognition()
}

/// Whether a name can be told apart from others at a glance: Unicode Technical Standard 39, with and without case.
public enum Likeness: Sendable, Hashable {
  case none
  /// These people have a name that looks the same; eight at most.
  case others([PeerID])
  /// This person, whom the user verified, has a name that looks the same and is somebody else: take care.
  case verified(PeerID)
}

/// A login token's claims about somebody.
public struct OrganiserWord: Sendable, Hashable {
  /// Hostile until shown escaped, and not the name that they gave themselves.
  public let name: String
  /// Hostile until shown escaped.
  public let role: String?
  public let expires: Timestamp

  public init(name: String, role: String?, expires: Timestamp) {
    self.name = name
    self.role = role
    self.expires = expires
  }
}

/// What two people compare to know that each has the other's key.
public struct Verification: Sendable, Equatable {
  /// Whose key.
  public let peer: PeerID
  /// Decoration: hostile until shown escaped. Empty when it is not known.
  public let displayName: String
  /// Six groups of five digits with spaces between, the same on both sides; 99.6 bits.
  public let code: String
  /// For a QR code on this screen, to be scanned there.
  public let qrText: String
  /// Whether the user has confirmed it.
  public let isVerified: Bool

  public init(peer: PeerID, displayName: String, code: String, qrText: String, isVerified: Bool) {
    self.peer = peer
    self.displayName = displayName
    self.code = code
    self.qrText = qrText
    self.isVerified = isVerified
  }
}

/// Somebody about whom this node's user decided something.
public struct Contact: Sendable, Equatable {
  public let peer: PeerID
  /// The name under which they were verified, else the one they have now: hostile until shown escaped.
  public let displayName: String
  /// When they were verified; nil: they were not.
  public let verifiedAt: Timestamp?
  public let isBlocked: Bool

  public init(peer: PeerID, displayName: String, verifiedAt: Timestamp?, isBlocked: Bool) {
    self.peer = peer
    self.displayName = displayName
    self.verifiedAt = verifiedAt
    self.isBlocked = isBlocked
  }
}
