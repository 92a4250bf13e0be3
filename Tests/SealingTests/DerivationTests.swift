import ParleyHashing
import ParleyVocabulary
import Testing

@testable import ParleySealing

/// The expected values were computed with Python from the doc comments alone: hashlib's BLAKE2b, the `cryptography`
/// package's Ed25519, X25519, Argon2id and ChaCha20-Poly1305, and HChaCha20 written out from the draft.
@Suite struct DerivationTests {
  static let channel = ChannelKeys.open(name: try! ChannelName("кают-компания"))
  static let instance = Instance(0x0102_0304_0506_0708)
  static let ana = Identity(seed: [UInt8](repeating: 1, count: 32))
  static let ben = Identity(seed: [UInt8](repeating: 2, count: 32))
  static let datagram = bytes(
    "504c010001020304050607080592bc45a78e08686465666768696a6b6c6d6e6f707172737475767778797a7b"
      + "825742ae7fdf9ad6b8c9b54cd4e8acad5d0185b1ef5b80a8aaf6671afa1a849a194881456157ecc13557c070"
      + "fa15017a5924313b8a")

  @Test func openChannels() {
    let secret = Self.channel.withSecret { Array($0).hex }
    #expect(secret == "0cabe9e9d4fa9c4119c39b7955aa926e713fa689f5b88fc9f7019dd09c7c900a")
    #expect(Self.channel.id.bytes.hex == "6d213e8760369b09da95a457d7f25e5242a9b0774dd7fa18afda58a2e3e68115")
    #expect(Self.channel.isOpen)
    #expect(Self.channel.tag(of: Self.instance) == 0x0592_BC45_A78E_0868)
    #expect(Self.channel.tag(of: Instance(1)) != Self.channel.tag(of: Instance(2)))
  }

  @Test func passphrases() throws {
    let name = Self.channel.name
    let keys = try ChannelKeys.passphrase(name: name, Array("correct horse".utf8))
    #expect(keys.id.bytes.hex == "f5d49a778d0e49f5dd50fac6d56f43d06159584ccfd9865d2143bd3fa93db7fc")
    #expect(!keys.isOpen)
    for byteCount in [0, 1_025] {
      #expect(throws: SealingError.passphraseLength(byteCount: byteCount, byteCountMax: 1_024)) {
        try ChannelKeys.passphrase(name: name, [UInt8](repeating: 1, count: byteCount))
      }
    }
  }

  @Test func proofs() {
    let h = Array(UInt8(0)..<32)
    let initiator = SessionProof.make(Self.channel, role: .initiator, h: h)
    let responder = SessionProof.make(Self.channel, role: .responder, h: h)
    #expect(initiator.hex == "ebb93c01673a22988d02db353c0f3aba61012505026d351d88819e309757953f")
    #expect(responder.hex == "b4bb30932253988bb9240b14ebc625e77d70737cf19922bc126b0aeb128e5893")
    #expect(SessionProof.verify(initiator, Self.channel, role: .initiator, h: h))
    #expect(!SessionProof.verify(initiator, Self.channel, role: .responder, h: h))
    #expect(!SessionProof.verify(initiator, Self.channel, role: .initiator, h: h.flipping(bit: 5)))
    #expect(!SessionProof.verify(Array(initiator.dropLast()), Self.channel, role: .initiator, h: h))
  }

  @Test func identitiesAndSignatures() {
    #expect(Self.ana.peerID.bytes.hex == "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c")
    #expect(Self.ben.peerID.bytes.hex == "8139770ea87d175f56a35466c34c7ecccb8d8a91b4ee37a25df60f5b8fc9b394")
    let object = Array("an object".utf8)
    let signature = Self.ana.sign(context: "entry", channel: Self.channel.id, log: Self.instance, object: object)
    #expect(
      signature.hex
        == "93b4dba5aa695db26efb3338914ecb3d330de66bac05958ae3408b2e54a5a5c0bde2bbefe4bc10dc797d6d57fc4863a3"
        + "2071bdb013d4e80a673e1643f03cee07")
    func isValid(
      _ signature: [UInt8], by peer: PeerID = Self.ana.peerID, context: String = "entry",
      channel: ChannelID = Self.channel.id, log: Instance = Self.instance, _ object: [UInt8]
    ) -> Bool {
      Signature.verify(signature, by: peer, context: context, channel: channel, log: log, object: object)
    }
    #expect(isValid(signature, object))
    #expect(!isValid(signature, by: Self.ben.peerID, object))
    #expect(!isValid(signature, context: "entry2", object))
    #expect(!isValid(signature, channel: ChannelKeys.open(name: try! ChannelName("other")).id, object))
    #expect(!isValid(signature, log: Instance(1), object))
    #expect(!isValid(signature, object + [0]))
    #expect(!isValid(signature + [0], object))
    #expect(!isValid([], object))
    for bit in 0..<512 { #expect(!isValid(signature.flipping(bit: bit), object)) }
  }

  @Test func randomValuesDiffer() {
    #expect(Sealing.randomBytes(0).isEmpty)
    #expect(Sealing.randomBytes(33).count == 33)
    #expect(Sealing.randomInstance() != Sealing.randomInstance())
    #expect(Sealing.randomMessageID() != Sealing.randomMessageID())
    #expect(Sealing.randomMessageID().text.utf8.count == 26)
    #expect(Identity.random().peerID != Identity.random().peerID)
    let founder = Identity.random().peerID
    let founded = (0..<2).map { _ in ChannelKeys.founded(name: Self.channel.name, by: founder) }
    #expect(founded[0].id != founded[1].id)
    #expect(founded[0].newest.id != founded[1].newest.id)
    #expect(Instance(bytes: Self.instance.bytes) == Self.instance)
    #expect(Instance(bytes: [1, 2]) == nil)
  }
}
