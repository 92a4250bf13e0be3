import Testing

@testable import ParleySealing

@Suite struct NoiseTests {
  static func pair(_ vector: NoiseVector) throws -> (NoiseHandshake, NoiseHandshake) {
    let suite: NoiseSuite = vector.name.contains("AESGCM") ? .aesGCM : .chaChaPoly
    func side(_ isInitiator: Bool, _ staticKey: String?, _ ephemeral: String) throws -> NoiseHandshake {
      try NoiseHandshake(
        staticKey == nil ? .nn : .xx, suite: suite, isInitiator: isInitiator, prologue: bytes(vector.prologue),
        staticKey: staticKey.map { SecretBytes(bytes($0)) }, ephemeralKey: SecretBytes(bytes(ephemeral)))
    }
    return (
      try side(true, vector.initiatorStatic, vector.initiatorEphemeral),
      try side(false, vector.responderStatic, vector.responderEphemeral)
    )
  }

  static func canRun(_ vector: NoiseVector) -> Bool {
    !vector.name.contains("AESGCM") || NoiseSuite.aesGCM.isAvailable
  }

  @Test(arguments: NoiseVector.all.filter(canRun))
  func everyVectorIsReproduced(_ vector: NoiseVector) throws {
    #expect(vector.name.hasPrefix(vector.initiatorStatic == nil ? "Noise_NN_" : "Noise_XX_"))
    var (initiator, responder) = try Self.pair(vector)
    var transport:
      (ini: (sender: NoiseCipher, receiver: NoiseCipher), res: (sender: NoiseCipher, receiver: NoiseCipher))?
    for (index, message) in vector.messages.enumerated() {
      let payload = bytes(message.payload)
      let fromInitiator = index.isMultiple(of: 2)
      if let transport {
        let sender = fromInitiator ? transport.ini.sender : transport.res.sender
        let receiver = fromInitiator ? transport.res.receiver : transport.ini.receiver
        let sealed = try sender.seal(payload)
        #expect(sealed.hex == message.ciphertext)
        #expect(try receiver.open(sealed) == payload)
        continue
      }
      let written = try fromInitiator ? initiator.writeMessage(payload) : responder.writeMessage(payload)
      #expect(written.hex == message.ciphertext)
      let read = try fromInitiator ? responder.readMessage(written) : initiator.readMessage(written)
      #expect(read == payload)
      if initiator.isComplete { transport = (initiator.split(), responder.split()) }
    }
    #expect(transport != nil)
    #expect(initiator.handshakeHash == responder.handshakeHash)
    if let hash = vector.handshakeHash { #expect(initiator.handshakeHash.hex == hash) }
    if let key = vector.initiatorStatic {
      #expect(responder.peerStatic == NoiseHandshake.publicKey(of: SecretBytes(bytes(key))))
    }
  }

  @Test func thereAreEightVectors() { #expect(NoiseVector.all.count == 8) }

  /// A turned bit in the first message may be noticed only in the second; no later message is ever taken.
  @Test(arguments: NoiseVector.all.filter { canRun($0) && $0.origin == "cacophony" })
  func everyTurnedBitIsNoticed(_ vector: NoiseVector) throws {
    for target in 0..<(vector.initiatorStatic == nil ? 2 : 3) {
      for bit in 0..<(bytes(vector.messages[target].ciphertext).count * 8) {
        #expect(throws: NoiseError.self) {
          var (initiator, responder) = try Self.pair(vector)
          var turn = 0
          while !initiator.isComplete || !responder.isComplete {
            let fromInitiator = turn.isMultiple(of: 2)
            var message = try fromInitiator ? initiator.writeMessage([1, 2]) : responder.writeMessage([1, 2])
            if turn == target { message = message.flipping(bit: bit % (message.count * 8)) }
            _ = try fromInitiator ? responder.readMessage(message) : initiator.readMessage(message)
            turn += 1
          }
        }
      }
    }
  }

  @Test(arguments: [NoiseSuite.aesGCM, .chaChaPoly].filter(\.isAvailable))
  func ciphersRefuseWhatIsNotNext(_ suite: NoiseSuite) throws {
    let key = [UInt8](repeating: 7, count: 32)
    let (sender, receiver) = key.withUnsafeBytes {
      (NoiseCipher(suite: suite, key: $0), NoiseCipher(suite: suite, key: $0))
    }
    let first = try sender.seal(Array("one".utf8), associated: [9])
    let second = try sender.seal([])
    #expect(first.count == 19)
    #expect(second.count == 16)
    for bit in 0..<first.count * 8 {
      #expect(throws: NoiseError.notAuthentic) { try receiver.open(first.flipping(bit: bit), associated: [9]) }
    }
    #expect(throws: NoiseError.notAuthentic) { try receiver.open(first, associated: [8]) }
    #expect(throws: NoiseError.notAuthentic) { try receiver.open(second) }
    #expect(try receiver.open(first, associated: [9]) == Array("one".utf8))
    #expect(throws: NoiseError.notAuthentic) { try receiver.open(first, associated: [9]) }
    #expect(try receiver.open(second) == [])
    #expect(throws: NoiseError.tooShort(byteCount: 15, byteCountMin: 16)) {
      try receiver.open([UInt8](repeating: 0, count: 15))
    }
  }

  @Test(arguments: [NoiseSuite.aesGCM, .chaChaPoly].filter(\.isAvailable))
  func theLastNonceIsNeverUsed(_ suite: NoiseSuite) throws {
    let key = [UInt8](repeating: 7, count: 32)
    let (sender, receiver) = key.withUnsafeBytes {
      (NoiseCipher(suite: suite, key: $0, counter: .max - 1), NoiseCipher(suite: suite, key: $0, counter: .max - 1))
    }
    let last = try sender.seal([1])
    #expect(try receiver.open(last) == [1])
    #expect(throws: NoiseError.noncesExhausted) { try sender.seal([1]) }
    #expect(throws: NoiseError.noncesExhausted) { try receiver.open(last) }
  }

  @Test func aPublicKeyOfSmallOrderIsRefused() throws {
    var responder = try NoiseHandshake(.nn, suite: .chaChaPoly, isInitiator: false, prologue: [])
    _ = try responder.readMessage([UInt8](repeating: 0, count: 32))
    #expect(throws: NoiseError.lowOrderPoint) { try responder.writeMessage([]) }
    #expect(throws: NoiseError.handshakeFailed) { try responder.writeMessage([]) }
  }

  @Test func sealingInPlaceIsTheSame() throws {
    let key = [UInt8](repeating: 3, count: 32)
    let (first, second) = key.withUnsafeBytes {
      (NoiseCipher(suite: .chaChaPoly, key: $0), NoiseCipher(suite: .chaChaPoly, key: $0))
    }
    let plaintext = Array(UInt8(0)..<200)
    let expected = try first.seal(plaintext)
    let elsewhere = UnsafeMutableRawBufferPointer.allocate(byteCount: 216, alignment: 16)
    defer { elsewhere.deallocate() }
    let outcome: Result<Void, NoiseError> = plaintext.withUnsafeBytes { source in
      do throws(NoiseError) {
        try second.seal(source, into: elsewhere)
        return .success(())
      } catch { return .failure(error) }
    }
    #expect(throws: Never.self) { try outcome.get() }
    #expect(Array(elsewhere) == expected)
  }
}
