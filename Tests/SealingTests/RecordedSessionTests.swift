import CSodium
import ParleyVocabulary
import Testing

@testable import ParleySealing

/// What a recording of everything on the wire, and both identity keys afterwards, are worth.
@Suite struct RecordedSessionTests {
  /// The identity keys sign and do nothing else: the same two people, channels and instances make other keys each time,
  /// and no public key on the wire is one of theirs.
  @Test func theKeysOfASessionAreDrawnForIt() throws {
    var hashes: Set<[UInt8]> = []
    var ephemerals: Set<[UInt8]> = []
    for _ in 0..<8 {
      var pair = SessionPair()
      try pair.run()
      let session = try #require(pair.initiatorSession)
      hashes.insert(session.handshakeHash)
      // Behind the prefaces of 8 bytes.
      ephemerals.insert(Array(pair.sent[0].bytes[8..<40]))
      ephemerals.insert(Array(pair.sent[1].bytes[8..<40]))
    }
    #expect(hashes.count == 8)
    #expect(ephemerals.count == 16)
    for identity in [SessionPair.ana, SessionPair.ben] {
      var montgomery = [UInt8](repeating: 0, count: 32)
      #expect(crypto_sign_ed25519_pk_to_curve25519(&montgomery, identity.peerID.bytes) == 0)
      #expect(!ephemerals.contains(montgomery) && !ephemerals.contains(identity.peerID.bytes))
    }
  }

  /// Every agreement that a thief of both identities can compute with what was recorded, as the key of the transport.
  @Test func bothIdentityKeysOpenNoRecordedFrame() throws {
    var pair = SessionPair()
    try pair.run()
    let session = try #require(pair.initiatorSession)
    let recorded = try session.sender.seal(Array("what was said".utf8))
    let publics = [Array(pair.sent[0].bytes[8..<40]), Array(pair.sent[1].bytes[8..<40])]
    let secrets = try (1...2).map { seed -> [UInt8] in
      var (publicKey, secretKey) = ([UInt8](repeating: 0, count: 32), [UInt8](repeating: 0, count: 64))
      let bytes = [UInt8](repeating: UInt8(seed), count: 32)
      try #require(crypto_sign_ed25519_seed_keypair(&publicKey, &secretKey, bytes) == 0)
      var scalar = [UInt8](repeating: 0, count: 32)
      try #require(crypto_sign_ed25519_sk_to_curve25519(&scalar, secretKey) == 0)
      return scalar
    }
    var triedCount = 0
    for secret in secrets {
      for other in publics {
        var shared = [UInt8](repeating: 0, count: 32)
        try #require(crypto_scalarmult_curve25519(&shared, secret, other) == 0)
        for key in [shared, secret, session.handshakeHash] {
          var opener = key.withUnsafeBytes { FrameOpener(NoiseCipher(suite: session.suite, key: $0)) }
          opener.append(recorded)
          #expect(throws: FrameError.self) { try opener.next() }
          triedCount += 1
        }
      }
    }
    #expect(triedCount == 12)
  }

  /// With Ana's key a thief can be Ana to others, but not Ben to Ana.
  @Test func aStolenIdentityIsNobodyElse() throws {
    let thief = Identity(seed: [UInt8](repeating: 1, count: 32))
    var pair = SessionPair(expecting: SessionPair.ben.peerID, responderIdentity: thief)
    #expect(throws: HandshakeError.self) { try pair.run() }
    #expect(pair.initiatorSession == nil)
    let h = [UInt8](repeating: 7, count: 32)
    let own = SessionIdentity.make(thief, instance: Instance(1), role: .responder, h: h)
    // Under Ben's name, signed with Ana's key.
    let forged = SessionPair.ben.peerID.bytes + own[32...]
    #expect(forged.count == own.count)
    let isBens = Signature.verify(Array(forged.suffix(64)), by: SessionPair.ben.peerID, message: Array(own.prefix(40)))
    #expect(!isBens)
  }
}
