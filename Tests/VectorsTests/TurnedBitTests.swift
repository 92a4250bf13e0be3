import ParleyHashing
import ParleySealing
import ParleyVocabulary
import ParleyWire
import Testing

/// One bit of anything that travels, turned: refused, whichever bit and whichever kind.
@Suite struct TurnedBitTests {
  private let keys = ChannelKeys.open(name: try! ChannelName("kitchen"))
  private let ana = Identity(seed: [UInt8](repeating: 1, count: 32))
  private let ben = Identity(seed: [UInt8](repeating: 2, count: 32))
  private let instance = Instance(7)

  private func signed(_ context: String, _ object: [UInt8]) -> Signed {
    Signed(
      signature: ana.sign(context: context, channel: keys.id, log: instance, object: object), object: object)
  }

  private var presence: Presence {
    Presence(
      author: ana.peerID, instance: instance, counter: 3, incarnation: 2, tcpPort: 4_000, intervalMilliseconds: 2_000,
      nonce: 9, head: 1, digest: HeadsDigest(of: [:]), lamport: 4, wantsAcknowledgement: false, status: [],
      statusHash: 5)
  }

  private var live: LiveObject {
    LiveObject(author: ana.peerID, instance: instance, counter: 4, json: Array("{}".utf8))
  }

  private var entry: Entry {
    var entry = Entry(
      key: LogKey(author: ana.peerID, log: instance), number: 1, lamport: 1, timestamp: 5, isHidden: false,
      items: [Entry.Item(kind: TextKind.code, body: Array("hello".utf8))])
    entry.signature = ana.sign(
      context: Entry.context, channel: keys.id, log: instance, object: entry.signedPart)
    return entry
  }

  private var frames: [DatagramFrame] {
    [
      .presence(signed(Presence.context, presence.encoded)), .live(signed(LiveObject.context, live.encoded)),
      .entry(entry.encoded), .fragment(EntryFragment(group: 1, index: 0, count: 2, bytes: [1, 2, 3])),
      .liveFragment(EntryFragment(group: 2, index: 1, count: 2, bytes: [4])),
      .direct([UInt8](repeating: 6, count: 40)), .suspect(ben.peerID, incarnation: 3),
      .whoHas([MediaID(Bytes32(words: (1, 2, 3, 4)))]),
    ]
  }

  private func flipping(_ bytes: [UInt8], _ bit: Int) -> [UInt8] {
    var bytes = bytes
    bytes[bit / 8] ^= 1 << (bit % 8)
    return bytes
  }

  @Test(arguments: 0..<7) func ofADatagramOfEachKind(_ kind: Int) throws {
    var body = ByteWriter(reserving: 512)
    frames[kind].write(to: &body)
    let datagram = try DatagramSealer.seal(
      frames: body.bytes, direct: (to: ben.peerID, plaintext: [1, 2, 3]), identity: ana, channel: keys,
      instance: instance)
    #expect(DatagramSealer.open(datagram, channel: keys) != nil)
    let passed = (0..<datagram.count * 8).filter {
      DatagramSealer.open(flipping(datagram, $0), channel: keys) != nil
    }
    #expect(passed == [])
  }

  /// Whoever has the channel's key can seal what it altered; the author's signature does not fit.
  @Test func ofWhatIsSigned() throws {
    let objects = [(Presence.context, presence.encoded), (LiveObject.context, live.encoded)]
    for (context, object) in objects {
      let whole = signed(context, object).encoded
      let passed = (0..<whole.count * 8).filter { bit in
        guard let altered = try? Signed(decoding: flipping(whole, bit)[...]) else { return false }
        return Signature.verify(
          altered.signature, by: ana.peerID, context: context, channel: keys.id, log: instance, object: altered.object)
      }
      #expect(passed == [])
      // Nor for another channel, run or kind of object.
      let signed = signed(context, object)
      for (context, channel, log) in [
        (Entry.context, keys.id, instance), (context, ChannelID(Bytes32(words: (1, 1, 1, 1))), instance),
        (context, keys.id, Instance(8)),
      ] {
        #expect(
          !Signature.verify(
            signed.signature, by: ana.peerID, context: context, channel: channel, log: log, object: object))
      }
    }
  }

  @Test func ofAnEntry() throws {
    let whole = entry.encoded
    let passed = (0..<whole.count * 8).filter { bit in
      guard let altered = try? Entry(decoding: flipping(whole, bit)[...]) else { return false }
      return Signature.verify(
        altered.signature, by: altered.key.author, context: Entry.context, channel: keys.id, log: altered.key.log,
        object: altered.signedPart)
    }
    #expect(passed == [])
  }
}
