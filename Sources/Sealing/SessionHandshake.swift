import ParleyVocabulary

/// A session over which both ends have proved who they are and which channels they share.
package struct EstablishedSession: Sendable {
  package let peer: PeerID
  package let instance: Instance
  /// The shared channels, at least one, in the order in which the initiator offered them.
  package let channels: [ChannelID]
  /// The generation by which each was proved: the newest that both ends know.
  package let generations: [ChannelID: GenerationID]
  package let purpose: SessionPurpose
  package let isInitiator: Bool
  package let suite: NoiseSuite
  package let sender: FrameSealer
  /// Holds what came with the last message of the handshake: take payloads from it before waiting for more bytes.
  package var receiver: FrameOpener
  /// h: what `SessionProof` and statements in this session are bound to.
  package let handshakeHash: [UInt8]

  package var role: SessionRole { isInitiator ? .initiator : .responder }
}

/// The handshake of a session, without a socket: bytes in, bytes out.
///
/// | | from | bytes |
/// |---|---|---|
/// | hello | initiator | preface (8) ‖ first message of Noise_NN_25519 (32, no payload) |
/// | answer | responder | preface (8) ‖ second message (48, no payload) |
/// | offer | initiator | frame: count (1, 1 to 64) ‖ a proof (32) for each generation it offers of its channels |
/// | acceptance | responder | frame: count (1) ‖ a proof (32) for each shared channel, in that order ‖ identity (104) |
/// | introduction | initiator | frame: identity (104) |
///
/// Offered are all channels' newest generations, then the next older one of each that has one, and so on while there is
/// room. Of each channel the responder proves the first that it knows.
///
/// See `SessionPreface`, `SessionProof`, `SessionIdentity` and `FrameSealer` for the parts. The first message of NN is
/// the ephemeral key alone and the same for every suite. A responder that shares no channel says nothing after the
/// offer, so an outsider learns nobody's PeerID.
package struct SessionHandshake: Sendable {
  static let helloByteCount = SessionPreface.byteCount + NoiseHandshake.keyByteCount
  static let answerByteCount = helloByteCount + NoiseCipher.tagByteCount
  /// The longest sealed frame of a handshake: an acceptance of every channel.
  static let sealedByteCountMax =
    1 + Limit.channelsPerNodeMax * SessionProof.byteCount + SessionIdentity.byteCount + NoiseCipher.tagByteCount

  private enum Step: Sendable {
    /// → `awaitingAnswer`: `start()`.
    case unstarted(SessionPurpose)
    /// → `awaitingAcceptance`: the responder's answer is read and the offer sent.
    case awaitingAnswer(SessionPreface, ephemeral: SecretBytes)
    /// → `finished`: the acceptance is checked and the introduction sent.
    case awaitingAcceptance(Agreed)
    /// → `awaitingOffer`: the initiator's hello is read and the answer sent.
    case awaitingHello
    /// → `awaitingIntroduction`: the offer holds a shared channel and the acceptance is sent.
    case awaitingOffer(Agreed)
    /// → `finished`: the introduction is checked.
    case awaitingIntroduction(Agreed, shared: [Offered])
    case finished
  }

  /// A channel and one of its generations.
  private struct Offered: Sendable {
    let channel: ChannelID
    let generation: ChannelGeneration

    func proof(_ role: SessionRole, _ agreed: Agreed) -> [UInt8] {
      SessionProof.make(generation, of: channel, role: role, h: agreed.h)
    }
  }

  /// What both ends have once Noise is done.
  private struct Agreed: Sendable {
    let purpose: SessionPurpose
    let suite: NoiseSuite
    let h: [UInt8]
    let sender: FrameSealer
    var receiver: FrameOpener
  }

  private let channels: [ChannelKeys]
  private let identity: Identity
  private let instance: Instance
  private let expected: PeerID?
  private let suites: [NoiseSuite]
  private var step: Step
  /// For tests, where keys are facts; anywhere else the key is drawn.
  var ephemeralKey: SecretBytes?
  /// Bytes of a hello or answer that is not whole yet.
  private var buffer: [UInt8] = []

  /// What this machine can do, the best first.
  package static var availableSuites: [NoiseSuite] { [.aesGCM, .chaChaPoly].filter(\.isAvailable) }

  /// 1 to 64 channels are offered. With `expecting`, any other PeerID fails.
  package init(
    initiator purpose: SessionPurpose, channels: [ChannelKeys], identity: Identity, instance: Instance,
    expecting: PeerID? = nil, suites: [NoiseSuite] = availableSuites
  ) {
    precondition((1...Limit.channelsPerNodeMax).contains(channels.count), "a node is in 1 to 64 channels when it dials")
    self.init(channels: channels, identity, instance, expecting, suites, .unstarted(purpose))
  }

  package init(
    responder channels: [ChannelKeys], identity: Identity, instance: Instance,
    suites: [NoiseSuite] = availableSuites
  ) {
    self.init(channels: channels, identity, instance, nil, suites, .awaitingHello)
  }

  private init(
    channels: [ChannelKeys], _ identity: Identity, _ instance: Instance, _ expected: PeerID?,
    _ suites: [NoiseSuite], _ step: Step
  ) {
    precondition(suites.allSatisfy(\.isAvailable) && !suites.isEmpty, "only available suites are offered")
    self.channels = channels
    self.identity = identity
    self.instance = instance
    self.expected = expected
    self.suites = suites
    self.step = step
  }

  /// What the initiator sends at once; nothing for a responder.
  package mutating func start() -> [UInt8] {
    guard case .unstarted(let purpose) = step else { return [] }
    let preface = SessionPreface(purpose: purpose, suites: SessionPreface.suites(suites))
    let ephemeral = ephemeralKey ?? SecretBytes(randomByteCount: NoiseHandshake.keyByteCount)
    step = .awaitingAnswer(preface, ephemeral: ephemeral)
    return preface.bytes(.initiator) + NoiseHandshake.publicKey(of: ephemeral)
  }

  /// Takes what was received, in pieces of any size, and says what to send and, at the end, what was established. After
  /// an error nothing may be sent and every later call fails. Holds at most one message of the handshake; what comes
  /// behind the last one goes to the session's `receiver`.
  package mutating func receive(
    _ bytes: [UInt8]
  ) throws(HandshakeError) -> (send: [UInt8], established: EstablishedSession?) {
    let current = step
    // Stays so when anything below throws.
    step = .finished
    switch current {
    case .finished: throw .failedBefore
    case .unstarted: preconditionFailure("an initiator starts before it receives")
    case .awaitingHello:
      buffer += bytes
      if buffer.count >= SessionPreface.byteCount {
        _ = try SessionPreface(buffer[..<SessionPreface.byteCount], from: .initiator)
      }
      guard buffer.count >= Self.helloByteCount else { return pause(at: current) }
      return try answer()
    case .awaitingAnswer(let preface, let ephemeral):
      buffer += bytes
      if buffer.count >= SessionPreface.byteCount { _ = try chosen(by: buffer[..<SessionPreface.byteCount], preface) }
      guard buffer.count >= Self.answerByteCount else { return pause(at: current) }
      return try offer(preface, ephemeral: ephemeral)
    case .awaitingOffer(var agreed):
      guard let payload = try Self.next(bytes, &agreed) else { return pause(at: .awaitingOffer(agreed)) }
      return try accept(payload, agreed)
    case .awaitingAcceptance(var agreed):
      guard let payload = try Self.next(bytes, &agreed) else { return pause(at: .awaitingAcceptance(agreed)) }
      return try introduce(payload, agreed)
    case .awaitingIntroduction(var agreed, let shared):
      guard let payload = try Self.next(bytes, &agreed) else {
        return pause(at: .awaitingIntroduction(agreed, shared: shared))
      }
      return ([], try finish(payload, agreed, shared: shared))
    }
  }

  private mutating func pause(at step: Step) -> (send: [UInt8], established: EstablishedSession?) {
    self.step = step
    return ([], nil)
  }

  private static func next(_ bytes: [UInt8], _ agreed: inout Agreed) throws(HandshakeError) -> [UInt8]? {
    agreed.receiver.append(bytes)
    do throws(FrameError) { return try agreed.receiver.next() } catch { throw .frame(error) }
  }
}

// MARK: Hello and answer

extension SessionHandshake {
  /// The responder, with the initiator's whole hello.
  private mutating func answer() throws(HandshakeError) -> (send: [UInt8], established: EstablishedSession?) {
    let first = Array(buffer[..<SessionPreface.byteCount])
    let preface = try SessionPreface(first[...], from: .initiator)
    guard let suite = suites.first(where: { preface.suites & SessionPreface.bit(of: $0) != 0 }) else {
      throw .noCommonSuite(offered: preface.suites, supported: SessionPreface.suites(suites))
    }
    let second = SessionPreface(purpose: preface.purpose, suites: SessionPreface.bit(of: suite)).bytes(.responder)
    let message: [UInt8]
    let agreed: Agreed
    do throws(NoiseError) {
      var noise = try NoiseHandshake(
        .nn, suite: suite, isInitiator: false, prologue: first + second, ephemeralKey: ephemeralKey)
      _ = try noise.readMessage(Array(buffer[SessionPreface.byteCount..<Self.helloByteCount]))
      message = try noise.writeMessage([])
      agreed = self.agreed(noise, preface.purpose, suite, rest: buffer[Self.helloByteCount...])
    } catch { throw .noise(error) }
    buffer = []
    step = .awaitingOffer(agreed)
    // An initiator sends its offer only after the answer, but what came early is looked at all the same.
    let next = try receive([])
    return (second + message + next.send, next.established)
  }

  /// The suite that the responder chose, if it was among those offered.
  private func chosen(by bytes: ArraySlice<UInt8>, _ own: SessionPreface) throws(HandshakeError) -> NoiseSuite {
    let preface = try SessionPreface(bytes, from: .responder)
    guard preface.purpose == own.purpose else { throw .purposeChanged }
    guard let suite = suites.first(where: { preface.suites == SessionPreface.bit(of: $0) }) else {
      throw .noCommonSuite(offered: preface.suites, supported: own.suites)
    }
    return suite
  }

  /// The initiator, with the responder's whole answer.
  private mutating func offer(
    _ own: SessionPreface, ephemeral: SecretBytes
  ) throws(HandshakeError) -> (send: [UInt8], established: EstablishedSession?) {
    let second = Array(buffer[..<SessionPreface.byteCount])
    let suite = try chosen(by: second[...], own)
    var agreed: Agreed
    do throws(NoiseError) {
      let prologue = own.bytes(.initiator) + second
      var noise = try NoiseHandshake(
        .nn, suite: suite, isInitiator: true, prologue: prologue, ephemeralKey: ephemeral)
      // These bytes went out with `start()`: without a payload they do not depend on suite or prologue.
      _ = try noise.writeMessage([])
      _ = try noise.readMessage(Array(buffer[SessionPreface.byteCount..<Self.answerByteCount]))
      agreed = self.agreed(noise, own.purpose, suite, rest: buffer[Self.answerByteCount...])
    } catch { throw .noise(error) }
    buffer = []
    let offered = offered
    let proofs = offered.flatMap { $0.proof(.initiator, agreed) }
    let frame = try Self.seal([UInt8(offered.count)] + proofs, agreed)
    step = .awaitingAcceptance(agreed)
    let next = try receive([])
    return (frame + next.send, next.established)
  }

  /// In the order of the offer.
  private var offered: [Offered] {
    var all: [Offered] = []
    let depth = channels.map(\.generations.count).max() ?? 0
    for age in 0..<depth {
      for keys in channels where age < keys.generations.count {
        all.append(Offered(channel: keys.id, generation: keys.generations[age]))
      }
    }
    return Array(all.prefix(Limit.channelsPerNodeMax))
  }

  private func agreed(
    _ noise: NoiseHandshake, _ purpose: SessionPurpose, _ suite: NoiseSuite, rest: ArraySlice<UInt8>
  ) -> Agreed {
    let ciphers = noise.split()
    var receiver = FrameOpener(ciphers.receiver, sealedByteCountMax: Self.sealedByteCountMax)
    receiver.append(Array(rest))
    return Agreed(
      purpose: purpose, suite: suite, h: noise.handshakeHash, sender: FrameSealer(ciphers.sender), receiver: receiver)
  }

  private static func seal(_ payload: [UInt8], _ agreed: Agreed) throws(HandshakeError) -> [UInt8] {
    do throws(FrameError) { return try agreed.sender.seal(payload) } catch { throw .frame(error) }
  }
}

// MARK: Offer, acceptance, introduction

extension SessionHandshake {
  /// The proofs at the start of an offer or an acceptance, and what is behind them.
  private static func proofs(
    _ payload: [UInt8]
  ) throws(HandshakeError) -> (proofs: [ArraySlice<UInt8>], rest: ArraySlice<UInt8>) {
    guard let first = payload.first else { throw .malformed(field: "count of proofs is missing") }
    let count = Int(first)
    guard count > 0 else { throw .malformed(field: "no proof") }
    guard count <= Limit.channelsPerNodeMax else {
      throw .tooManyChannels(count: count, countMax: Limit.channelsPerNodeMax)
    }
    let end = 1 + count * SessionProof.byteCount
    guard payload.count >= end else { throw .malformed(field: "proofs are cut short") }
    let proofs = stride(from: 1, to: end, by: SessionProof.byteCount).map { payload[$0..<$0 + SessionProof.byteCount] }
    return (proofs, payload[end...])
  }

  /// The responder, with the offer.
  private mutating func accept(
    _ payload: [UInt8], _ agreed: Agreed
  ) throws(HandshakeError) -> (send: [UInt8], established: EstablishedSession?) {
    let (proofs, rest) = try Self.proofs(payload)
    guard rest.isEmpty else { throw .malformed(field: "bytes behind the proofs") }
    let own = channels.flatMap { keys in
      keys.generations.map { generation in
        let offered = Offered(channel: keys.id, generation: generation)
        return (offered: offered, proof: offered.proof(.initiator, agreed))
      }
    }
    var shared: [Offered] = []
    var seen: Set<Bytes32> = []
    for proof in proofs {
      guard let match = own.first(where: { SessionProof.isEqual(proof, $0.proof) }) else { continue }
      guard seen.insert(Bytes32(proof)!).inserted else { throw .falseProof }
      // An older generation of what is shared already.
      if shared.contains(where: { $0.channel == match.offered.channel }) { continue }
      shared.append(match.offered)
    }
    guard !shared.isEmpty else { throw .noSharedChannel }
    let answers = shared.flatMap { $0.proof(.responder, agreed) }
    let introduction = SessionIdentity.make(identity, instance: instance, role: .responder, h: agreed.h)
    let frame = try Self.seal([UInt8(shared.count)] + answers + introduction, agreed)
    step = .awaitingIntroduction(agreed, shared: shared)
    let next = try receive([])
    return (frame + next.send, next.established)
  }

  /// The initiator, with the acceptance.
  private mutating func introduce(
    _ payload: [UInt8], _ agreed: Agreed
  ) throws(HandshakeError) -> (send: [UInt8], established: EstablishedSession?) {
    let (proofs, rest) = try Self.proofs(payload)
    var shared: [Offered] = []
    var candidates = offered[...]
    for proof in proofs {
      // In the order of the offer, so each is looked for only behind the one before; a repeated one is not found.
      let match = candidates.firstIndex { SessionProof.isEqual(proof, $0.proof(.responder, agreed)) }
      guard let match else { throw .falseProof }
      guard !shared.contains(where: { $0.channel == candidates[match].channel }) else { throw .falseProof }
      shared.append(candidates[match])
      candidates = candidates[(match + 1)...]
    }
    let peer = try checked(rest, from: .responder, agreed)
    let frame = try Self.seal(
      SessionIdentity.make(identity, instance: instance, role: .initiator, h: agreed.h), agreed)
    return (frame, established(peer, agreed, shared, isInitiator: true))
  }

  /// The responder, with the introduction.
  private func finish(
    _ payload: [UInt8], _ agreed: Agreed, shared: [Offered]
  ) throws(HandshakeError) -> EstablishedSession {
    let peer = try checked(payload[...], from: .initiator, agreed)
    return established(peer, agreed, shared, isInitiator: false)
  }

  private func checked(
    _ bytes: ArraySlice<UInt8>, from role: SessionRole, _ agreed: Agreed
  ) throws(HandshakeError) -> SessionIdentity {
    guard bytes.count == SessionIdentity.byteCount else { throw .malformed(field: "identity") }
    guard let peer = SessionIdentity(bytes, role: role, h: agreed.h) else { throw .falseIdentity }
    guard peer.peer != identity.peerID else { throw .ourself(peer.instance) }
    if let expected, peer.peer != expected { throw .unexpectedPeer(expected: expected, found: peer.peer) }
    return peer
  }

  private func established(
    _ peer: SessionIdentity, _ agreed: Agreed, _ shared: [Offered], isInitiator: Bool
  ) -> EstablishedSession {
    EstablishedSession(
      peer: peer.peer, instance: peer.instance, channels: shared.map(\.channel),
      generations: Dictionary(uniqueKeysWithValues: shared.map { ($0.channel, $0.generation.id) }),
      purpose: agreed.purpose,
      isInitiator: isInitiator, suite: agreed.suite, sender: agreed.sender,
      receiver: FrameOpener(continuing: agreed.receiver), handshakeHash: agreed.h)
  }
}
