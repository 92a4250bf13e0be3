import ParleyActors
import ParleySealing
import ParleyVocabulary
import ParleyWire

/// A login token: what an organiser says of somebody, signed. A PASETO v4.public. It says nothing true before
/// `refusal(for:in:signedBy:at:)` was asked.
public struct LoginToken: Sendable, Hashable {
  /// As it travels.
  public let text: String
  /// `sub`: whose token it is.
  public let subject: PeerID
  /// `name`: how the organiser calls them. Hostile until shown escaped (`escapedLine`).
  public let name: String
  /// `channel`: the only channel it is for; nil: any.
  public let channel: ChannelName?
  /// `role`: what the organiser says they are. Shown, it gives no rights. Hostile until shown escaped.
  public let role: String?
  /// `iat`, or `nbf` where that is later.
  public let validFrom: Timestamp
  /// `exp`: not valid from then on.
  public let expires: Timestamp
  /// PASERK's ID of the key that it says it is signed with; nil when it does not say. Hostile until shown escaped.
  public let keyID: String?

  /// Takes it apart; spaces and line ends around it do not count. Throws `.badToken`.
  public init(_ text: String) throws(ParleyError) {
    let text = Self.trimmed(text)
    let paseto: Paseto
    do { paseto = try Paseto(text) } catch { throw .badToken(.malformed(error.description)) }
    let claims: TokenClaims
    do { claims = try TokenClaims(decoding: paseto.payload) } catch {
      throw .badToken(.malformed(error.description))
    }
    self.init(text, claims, paseto)
  }

  init(_ text: String, _ claims: TokenClaims, _ paseto: Paseto) {
    self.text = text
    subject = claims.subject
    name = claims.name.text
    channel = claims.channel
    role = claims.role
    validFrom = claims.validFrom
    expires = claims.expires
    keyID = TokenClaims.keyID(inFooter: paseto.footer)
  }

  private static func trimmed(_ text: String) -> String {
    // A file may hold anything; what is longer by more than a line end or two is refused with its length.
    var bytes = Substring(text).utf8
    let blanks: [UInt8] = [0x20, 0x0A, 0x0D, 0x09]
    while let last = bytes.last, blanks.contains(last) { bytes.removeLast() }
    while let first = bytes.first, blanks.contains(first) { bytes.removeFirst() }
    return String(Substring(bytes))
  }

  /// How far an organiser's clock may be ahead, in milliseconds: a token just issued is valid at once.
  static let clockAheadMax: Int64 = 60_000

  /// Why the token says nothing of `peer` in `channel` at that moment, in the words of who has `key`; nil: it does.
  public func refusal(
    for peer: PeerID, in channel: ChannelName, signedBy key: OrganiserKey, at moment: Timestamp
  ) -> TokenRefusal? {
    if let refusal = signatureRefusal(key) { return refusal }
    if subject != peer { return .wrongSubject(subject) }
    if let only = self.channel, only != channel { return .wrongChannel(only) }
    return refusal(at: moment)
  }

  /// Whether it is too early or too late for it by this machine's clock.
  public func refusalNow() -> TokenRefusal? {
    refusal(at: Timestamp(milliseconds: Int64(clamping: SystemClock.wallMilliseconds())))
  }

  func refusal(at moment: Timestamp) -> TokenRefusal? {
    if moment.milliseconds < validFrom.milliseconds - Self.clockAheadMax { return .notYetValid(from: validFrom) }
    return moment < expires ? nil : .expired(at: expires)
  }

  /// Whether somebody else signed it, or what was signed was changed.
  public func signatureRefusal(_ key: OrganiserKey) -> TokenRefusal? {
    if let keyID, keyID != key.paserkID { return .foreign(keyID: keyID) }
    guard let paseto = try? Paseto(text) else { return .altered }
    return paseto.isSigned(by: key) ? nil : .altered
  }
}

/// Why a login token is not accepted.
public enum TokenRefusal: Error, Sendable, Hashable, CustomStringConvertible {
  /// No token was shown.
  case missing
  /// It is not a PASETO v4.public with the claims that are needed; the text is for people.
  case malformed(String)
  /// It names another key than the organiser's.
  case foreign(keyID: String)
  /// The organiser's key did not sign this: it was changed, or signed by another key without saying so.
  case altered
  /// It is somebody else's.
  case wrongSubject(PeerID)
  /// It is for another channel.
  case wrongChannel(ChannelName)
  case notYetValid(from: Timestamp)
  case expired(at: Timestamp)

  /// Stable, for programs.
  public var code: String {
    switch self {
    case .missing: "missing"
    case .malformed: "malformed"
    case .foreign: "foreign"
    case .altered: "altered"
    case .wrongSubject: "wrong_subject"
    case .wrongChannel: "wrong_channel"
    case .notYetValid: "not_yet_valid"
    case .expired: "expired"
    }
  }

  public var description: String {
    switch self {
    case .missing: "no login token was shown, and this channel asks for one"
    case .malformed(let reason): "the login token is malformed: \(reason)"
    case .foreign(let keyID):
      "the login token is signed with another key (\(keyID.prefix(64).description.escapedLine)), not the organiser's"
    case .altered: "the login token is not as the organiser signed it"
    case .wrongSubject(let peer): "the login token is somebody else's: it names \(peer.fingerprint)"
    case .wrongChannel(let channel): "the login token is for the channel \(channel.text.escapedLine)"
    case .notYetValid(let moment): "the login token is not valid before \(moment.text)"
    case .expired(let moment): "the login token expired at \(moment.text)"
    }
  }
}

/// An organiser's private key, with which login tokens are issued. It lies in a file that only its owner may read.
public final class OrganiserSecret: Sendable {
  private let signer: TokenSigner

  private init(_ signer: TokenSigner) { self.signer = signer }

  /// What members are given to check tokens with.
  public var publicKey: OrganiserKey { signer.publicKey }

  /// Makes a new key in a file of mode 0600. Throws `.alreadyExists`, which leaves the file as it is, and
  /// `.fileTrouble`.
  public static func create(at path: String) throws(ParleyError) -> OrganiserSecret {
    do { return OrganiserSecret(try TokenSigner.create(path: path)) } catch { throw trouble(error, path) }
  }

  /// Throws `.noSuchFile`, and `.fileTrouble` also for a file that others may read.
  public static func open(_ path: String) throws(ParleyError) -> OrganiserSecret {
    do { return OrganiserSecret(try TokenSigner.open(path: path)) } catch { throw trouble(error, path) }
  }

  private static func trouble(_ error: ProfileError, _ path: String) -> ParleyError {
    if error.isMissing { return .noSuchFile(path: path) }
    if error.isThereAlready { return .alreadyExists(path: path) }
    return .fileTrouble(path: path, reason: error.description)
  }

  /// How long a token may be valid, in seconds: up to 366 days.
  public static let lifetimes = 1...31_622_400

  /// A token valid from now on for so many seconds (`lifetimes`). `role`: 1 to 64 bytes without control characters.
  /// Throws `.badToken(.malformed)`, `.badSetting`.
  public func issue(
    to peer: PeerID, name: DisplayName, channel: ChannelName? = nil, role: String? = nil, seconds: Int
  ) throws(ParleyError) -> LoginToken {
    try issue(
      to: peer, name: name, channel: channel, role: role, seconds: seconds,
      from: Timestamp(milliseconds: Int64(clamping: SystemClock.wallMilliseconds())))
  }

  /// As above, but valid from `start` on, which loses its milliseconds.
  public func issue(
    to peer: PeerID, name: DisplayName, channel: ChannelName? = nil, role: String? = nil, seconds: Int,
    from start: Timestamp
  ) throws(ParleyError) -> LoginToken {
    guard Self.lifetimes.contains(seconds) else {
      throw .badSetting("seconds of a token's life", value: seconds, allowed: Self.lifetimes)
    }
    if let role {
      do { try TokenClaims.check(role: role) } catch { throw .badToken(.malformed(error.description)) }
    }
    let start = start.milliseconds / 1_000 * 1_000
    let claims = TokenClaims(
      subject: peer, name: name, channel: channel, role: role, validFrom: Timestamp(milliseconds: start),
      expires: Timestamp(milliseconds: start + Int64(seconds) * 1_000))
    let footer = TokenClaims.footer(keyID: publicKey.paserkID)
    let paseto = Paseto(signing: claims.encoded, footer: footer, with: signer)
    return LoginToken(paseto.text, claims, paseto)
  }
}

extension OrganiserKey {
  /// From either text: 52 characters of base32, as this library writes it, or PASERK's `k4.public.…`.
  public init?(anyText text: String) {
    if let key = OrganiserKey(text: text) ?? OrganiserKey(paserk: text) { self = key } else { return nil }
  }

  /// As other implementations of PASETO take it: `k4.public.…`.
  public var paserkText: String { paserk }
  /// What tokens name it by: `k4.pid.…`.
  public var keyID: String { paserkID }
}
