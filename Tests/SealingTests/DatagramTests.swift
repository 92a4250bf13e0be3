import ParleyVocabulary
import Testing

@testable import ParleySealing

@Suite struct DatagramTests {
  private let channel = DerivationTests.channel
  private let instance = DerivationTests.instance
  private let ana = DerivationTests.ana
  private let ben = DerivationTests.ben
  private let cleo = Identity(seed: [UInt8](repeating: 3, count: 32))

  /// A frame of type 3 and then a direct frame, sealed by Python; see `DerivationTests`.
  @Test func aDatagramMadeElsewhereOpens() throws {
    let datagram = DerivationTests.datagram
    let header = try #require(DatagramHeader.parse(datagram))
    #expect(header.instance == instance)
    #expect(header.tag == channel.tag(of: instance))
    let frames = try #require(DatagramSealer.open(datagram, channel: channel))
    #expect(Array(frames.prefix(7)) == [3, 5] + Array("hello".utf8))
    #expect(frames[7] == 5)
    #expect(frames[8] == 28)
    let opened = DatagramSealer.openDirect(
      Array(frames[9...]), header: datagram[..<44], from: ana.peerID, identity: ben, channel: channel)
    #expect(opened == Array("only for you".utf8))
  }

  @Test func everyTurnedBitAndEveryCutIsRefused() throws {
    let datagram = try DatagramSealer.seal(frames: [3, 1, 9], identity: ana, channel: channel, instance: instance)
    #expect(DatagramSealer.open(datagram, channel: channel) == [3, 1, 9])
    for bit in 0..<datagram.count * 8 {
      #expect(DatagramSealer.open(datagram.flipping(bit: bit), channel: channel) == nil)
    }
    for count in 0..<datagram.count {
      #expect(DatagramSealer.open(Array(datagram.prefix(count)), channel: channel) == nil)
    }
    #expect(DatagramSealer.open(datagram + [0], channel: channel) == nil)
    #expect(DatagramSealer.open(datagram, channel: .founded(name: channel.name, by: ana.peerID)) == nil)
  }

  @Test func directFramesAreForOneInOneDirectionInOneDatagram() throws {
    let datagram = try DatagramSealer.seal(
      frames: [], direct: (to: ben.peerID, plaintext: [1, 2, 3]), identity: ana, channel: channel, instance: instance)
    let frames = try #require(DatagramSealer.open(datagram, channel: channel))
    let sealed = Array(frames.dropFirst(2))
    func open(
      _ sealed: [UInt8], _ header: ArraySlice<UInt8> = datagram[..<44], from: Identity, _ identity: Identity,
      _ channel: ChannelKeys = DerivationTests.channel
    ) -> [UInt8]? {
      DatagramSealer.openDirect(sealed, header: header, from: from.peerID, identity: identity, channel: channel)
    }
    #expect(open(sealed, from: ana, ben) == [1, 2, 3])
    #expect(open(sealed, from: ben, ana) == nil)
    #expect(open(sealed, from: ana, cleo) == nil)
    #expect(open(sealed, from: cleo, ben) == nil)
    #expect(open(sealed, from: ana, ben, .open(name: try ChannelName("other"))) == nil)
    for bit in 0..<sealed.count * 8 { #expect(open(sealed.flipping(bit: bit), from: ana, ben) == nil) }
    for bit in 0..<44 * 8 {
      #expect(open(sealed, Array(datagram[..<44]).flipping(bit: bit)[...], from: ana, ben) == nil)
    }
    #expect(open(sealed, datagram[..<43], from: ana, ben) == nil)
    #expect(open([], from: ana, ben) == nil)
  }

  @Test func lengthsAreBounded() throws {
    let longest = [UInt8](repeating: 1, count: DatagramSealer.framesByteCountMax)
    let datagram = try DatagramSealer.seal(frames: longest, identity: ana, channel: channel, instance: instance)
    #expect(datagram.count == Limit.datagramByteCountMax)
    #expect(DatagramSealer.open(datagram, channel: channel) == longest)
    #expect(throws: SealingError.datagramTooLong(byteCount: 1_233, byteCountMax: 1_232)) {
      try DatagramSealer.seal(frames: longest + [1], identity: ana, channel: channel, instance: instance)
    }
    let directLongest = [UInt8](repeating: 2, count: DatagramSealer.framesAndDirectByteCountMax)
    let direct = try DatagramSealer.seal(
      frames: [], direct: (ben.peerID, directLongest), identity: ana, channel: channel, instance: instance)
    #expect(direct.count == Limit.datagramByteCountMax)
    #expect(throws: SealingError.datagramTooLong(byteCount: 1_233, byteCountMax: 1_232)) {
      try DatagramSealer.seal(
        frames: [1], direct: (ben.peerID, directLongest), identity: ana, channel: channel, instance: instance)
    }
    for plaintextByteCount in [0, 47, 48, 1_000] {
      let sealed = try DatagramSealer.seal(
        frames: [], direct: (ben.peerID, [UInt8](repeating: 0, count: plaintextByteCount)), identity: ana,
        channel: channel, instance: instance)
      let frame = DatagramSealer.directFrameByteCount(plaintextByteCount: plaintextByteCount)
      #expect(sealed.count == 44 + frame + 16)
    }
  }

  /// The neutral element, a point of order 8, and a number that is no point (y = 2).
  @Test(arguments: [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "0200000000000000000000000000000000000000000000000000000000000000",
  ])
  func unusableKeysAreRefused(_ key: String) {
    let peer = PeerID(bytes: bytes(key))!
    #expect(throws: SealingError.unusablePeer(peer)) {
      try DatagramSealer.seal(
        frames: [], direct: (peer, [1]), identity: ana, channel: channel, instance: instance)
    }
    let sealed = [UInt8](repeating: 0, count: 17)
    #expect(
      DatagramSealer.openDirect(
        sealed, header: DerivationTests.datagram[..<44], from: peer, identity: ana, channel: channel) == nil)
    #expect(!Signature.verify([UInt8](repeating: 0, count: 64), by: peer, message: []))
  }

  @Test func rememberedKeysAreBoundedAndRight() throws {
    let many = Identity(seed: [UInt8](repeating: 4, count: 32))
    for round in 0..<PairwiseKeys.pairCountMax + 3 {
      let channel = ChannelKeys.open(name: try ChannelName("room \(round)"))
      let datagram = try DatagramSealer.seal(
        frames: [], direct: (ben.peerID, [7]), identity: many, channel: channel, instance: instance)
      let frames = try #require(DatagramSealer.open(datagram, channel: channel))
      guard round % 100 == 0 || round >= PairwiseKeys.pairCountMax else { continue }
      let opened = DatagramSealer.openDirect(
        Array(frames.dropFirst(2)), header: datagram[..<44], from: many.peerID, identity: ben, channel: channel)
      #expect(opened == [7])
    }
    #expect(many.pairwiseKeyCount == PairwiseKeys.pairCountMax)
  }
}
