import CSodium
import ParleyHashing

/// A Noise handshake (revision 34, noiseprotocol.org) as a pure state machine: patterns NN and XX, 25519, SHA-256.
/// Messages alternate, the initiator first. It draws its ephemeral key itself unless it is given one.
package struct NoiseHandshake: Sendable {
  package enum Pattern: Sendable {
    case nn
    case xx
  }

  private enum Token: Sendable { case e, s, ee, es, se }

  /// Noise section 3: no message is longer.
  package static let messageByteCountMax = 65_535
  static let keyByteCount = 32

  private let isInitiator: Bool
  private var symmetric: NoiseSymmetricState
  private var remaining: [[Token]]
  private var isOwnTurn: Bool
  private var hasFailed = false
  private let ownStatic: SecretBytes?
  private let ownEphemeral: SecretBytes
  private var peerEphemeral: [UInt8]?
  /// The other's static public key, once it was read (XX).
  package private(set) var peerStatic: [UInt8]?

  /// `staticKey` (XX) and `ephemeralKey` are X25519 secret keys of 32 bytes.
  package init(
    _ pattern: Pattern, suite: NoiseSuite, isInitiator: Bool, prologue: [UInt8], staticKey: SecretBytes? = nil,
    ephemeralKey: SecretBytes? = nil
  ) throws(NoiseError) {
    guard suite.isAvailable else { throw .cipherUnavailable }
    precondition(pattern == .nn || staticKey != nil, "XX sends a static key")
    let name: String
    switch pattern {
    case .nn: (name, remaining) = ("NN", [[.e], [.e, .ee]])
    case .xx: (name, remaining) = ("XX", [[.e], [.e, .ee, .s, .es], [.s, .se]])
    }
    self.isInitiator = isInitiator
    isOwnTurn = isInitiator
    ownStatic = staticKey
    ownEphemeral = ephemeralKey ?? SecretBytes(randomByteCount: Self.keyByteCount)
    symmetric = NoiseSymmetricState(protocolName: "Noise_\(name)_25519_\(suite.noiseName)_SHA256", suite: suite)
    symmetric.mixHash(prologue)
  }

  package var isComplete: Bool { remaining.isEmpty }

  /// h: the same on both sides when nothing was altered. Meaningful once the handshake is complete.
  package var handshakeHash: [UInt8] { symmetric.hash }

  /// Calling it out of turn is a bug here and traps.
  package mutating func writeMessage(_ payload: [UInt8]) throws(NoiseError) -> [UInt8] {
    guard !hasFailed else { throw .handshakeFailed }
    precondition(isOwnTurn && !remaining.isEmpty, "it is the other side's turn")
    hasFailed = true
    var message: [UInt8] = []
    for token in remaining[0] {
      switch token {
      case .e:
        let key = Self.publicKey(of: ownEphemeral)
        symmetric.mixHash(key)
        message += key
      case .s: message += try symmetric.encryptAndHash(Self.publicKey(of: ownStatic!))
      case .ee, .es, .se: try agree(token)
      }
    }
    let byteCount = message.count + payload.count + symmetric.overheadByteCount
    guard byteCount <= Self.messageByteCountMax else {
      throw .tooLong(byteCount: byteCount, byteCountMax: Self.messageByteCountMax)
    }
    message += try symmetric.encryptAndHash(payload)
    advance()
    return message
  }

  /// The payload. After any failure every later call fails.
  package mutating func readMessage(_ message: [UInt8]) throws(NoiseError) -> [UInt8] {
    guard !hasFailed else { throw .handshakeFailed }
    precondition(!isOwnTurn && !remaining.isEmpty, "it is this side's turn")
    hasFailed = true
    guard message.count <= Self.messageByteCountMax else {
      throw .tooLong(byteCount: message.count, byteCountMax: Self.messageByteCountMax)
    }
    var rest = message[...]
    for token in remaining[0] {
      switch token {
      case .e:
        let key = try Self.take(Self.keyByteCount, from: &rest)
        peerEphemeral = key
        symmetric.mixHash(key)
      case .s:
        let sealed = try Self.take(Self.keyByteCount + symmetric.overheadByteCount, from: &rest)
        peerStatic = try symmetric.decryptAndHash(sealed)
      case .ee, .es, .se: try agree(token)
      }
    }
    let payload = try symmetric.decryptAndHash(Array(rest))
    advance()
    return payload
  }

  /// The two directions, once the handshake is complete.
  package func split() -> (sender: NoiseCipher, receiver: NoiseCipher) {
    precondition(isComplete && !hasFailed, "keys come after the last message")
    let keys = symmetric.split()
    return isInitiator
      ? (keys.initiatorToResponder, keys.responderToInitiator) : (keys.responderToInitiator, keys.initiatorToResponder)
  }

  static func publicKey(of secret: SecretBytes) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: keyByteCount) { buffer, count in
      secret.withBytes { _ = crypto_scalarmult_curve25519_base(buffer.baseAddress!, $0.octets) }
      count = keyByteCount
    }
  }

  private mutating func advance() {
    remaining.removeFirst()
    isOwnTurn.toggle()
    hasFailed = false
  }

  private mutating func agree(_ token: Token) throws(NoiseError) {
    let usesOwnEphemeral = token == .ee || token == (isInitiator ? .es : .se)
    let usesPeerEphemeral = token == .ee || token == (isInitiator ? .se : .es)
    let secret = usesOwnEphemeral ? ownEphemeral : ownStatic!
    let key = usesPeerEphemeral ? peerEphemeral! : peerStatic!
    let shared = SecretMemory(byteCount: Self.keyByteCount)
    let status = secret.withBytes { crypto_scalarmult_curve25519(shared.bytes.octets, $0.octets, key) }
    guard status == 0 else { throw .lowOrderPoint }
    symmetric.mixKey(UnsafeRawBufferPointer(shared.bytes))
  }

  private static func take(_ count: Int, from rest: inout ArraySlice<UInt8>) throws(NoiseError) -> [UInt8] {
    guard rest.count >= count else { throw .tooShort(byteCount: rest.count, byteCountMin: count) }
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }
}
