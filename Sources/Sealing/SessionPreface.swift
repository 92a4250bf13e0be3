import ParleyVocabulary

/// The first eight bytes of each direction:
///
/// | at | bytes | |
/// |---|---|---|
/// | 0 | 3 | `PLY` |
/// | 3 | 1 | `S` from the initiator, `R` from the responder |
/// | 4 | 1 | version, 1 |
/// | 5 | 1 | purpose: 0 chat, 1 media; the responder repeats it |
/// | 6 | 1 | suites: bit 0 AESGCM, bit 1 ChaChaPoly; the responder sets exactly the one it chose |
/// | 7 | 1 | 0 |
///
/// Both prefaces, the initiator's first, are the Noise prologue, so altering one fails the handshake.
struct SessionPreface {
  static let byteCount = 8
  static let version: UInt8 = 1

  let purpose: SessionPurpose
  let suites: UInt8

  /// A bit of the suites, in order of preference.
  static func bit(of suite: NoiseSuite) -> UInt8 { suite == .aesGCM ? 1 : 2 }

  static func suites(_ suites: [NoiseSuite]) -> UInt8 { suites.reduce(0) { $0 | bit(of: $1) } }

  func bytes(_ role: SessionRole) -> [UInt8] {
    Array("PLY".utf8) + [Self.mark(role), Self.version, purpose.rawValue, suites, 0]
  }

  init(purpose: SessionPurpose, suites: UInt8) {
    self.purpose = purpose
    self.suites = suites
  }

  init(_ bytes: ArraySlice<UInt8>, from role: SessionRole) throws(HandshakeError) {
    let bytes = Array(bytes)
    guard bytes.count == Self.byteCount, bytes[..<4].elementsEqual(Array("PLY".utf8) + [Self.mark(role)]) else {
      throw .notParley
    }
    guard bytes[4] == Self.version else { throw .unsupportedVersion(bytes[4], supported: Self.version) }
    guard let purpose = SessionPurpose(rawValue: bytes[5]) else { throw .unknownPurpose(bytes[5]) }
    guard bytes[7] == 0 else { throw .malformed(field: "preface's last byte") }
    self.init(purpose: purpose, suites: bytes[6])
  }

  private static func mark(_ role: SessionRole) -> UInt8 { UInt8(ascii: role == .initiator ? "S" : "R") }
}

/// Why a session was not established. The connection is closed without a word to the other side.
package enum HandshakeError: Error, Equatable, Sendable, CustomStringConvertible {
  case notParley
  case unsupportedVersion(UInt8, supported: UInt8)
  case unknownPurpose(UInt8)
  /// The responder answered for another purpose.
  case purposeChanged
  /// None of the offered ciphers, or a choice that was not offered.
  case noCommonSuite(offered: UInt8, supported: UInt8)
  case noise(NoiseError)
  case frame(FrameError)
  case malformed(field: String)
  case tooManyChannels(count: Int, countMax: Int)
  /// The two ends share no channel; to the initiator, that the responder closed says the same.
  case noSharedChannel
  /// A proof of a channel that was not offered, twice the same, or out of order.
  case falseProof
  /// The signature is not by the PeerID beside it.
  case falseIdentity
  case unexpectedPeer(expected: PeerID, found: PeerID)
  /// The other end is this very identity: this run, met at an address of its own, or another one.
  case ourself(Instance)
  /// An earlier call threw.
  case failedBefore

  package var description: String {
    switch self {
    case .notParley: "the other side does not speak Parley"
    case .unsupportedVersion(let version, let supported):
      "the other side speaks version \(version) of the session protocol; this is version \(supported)"
    case .unknownPurpose(let purpose): "the session's purpose \(purpose) is unknown"
    case .purposeChanged: "the other side answered for another purpose"
    case .noCommonSuite(let offered, let supported): "no common cipher: offered \(offered), supported \(supported)"
    case .noise(let error): "the handshake failed: \(error)"
    case .frame(let error): "the handshake failed: \(error)"
    case .malformed(let field): "the handshake is malformed: \(field)"
    case .tooManyChannels(let count, let countMax): "\(count) channels offered; at most \(countMax) are allowed"
    case .noSharedChannel: "no channel is shared with the other side"
    case .falseProof: "the other side proved a channel that was not asked for"
    case .falseIdentity: "the other side's identity is not proved"
    case .unexpectedPeer(let expected, let found):
      "\(expected.fingerprint) was dialled, but \(found.fingerprint) answered"
    case .ourself: "the other side is this node"
    case .failedBefore: "the handshake failed before"
    }
  }
}
