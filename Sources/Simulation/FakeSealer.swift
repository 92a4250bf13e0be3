import ParleyVocabulary
import ParleyWire

/// Stands in for Sealing where thousands of seeds run: a signature is a short hash padded to 64 bytes, a sealed direct
/// message its text behind a tag. Lengths are those of the real ones; secrecy there is none, and nobody here forges:
/// the hashes only have to tell what was said from what was mixed up.
enum FakeSealer {
  /// The tag; the nonce is the datagram's.
  static let directOverheadByteCount = 16

  static func peer(seed: UInt64, index: Int) -> PeerID {
    var hash = ShortHash("peer")
    hash.add(seed)
    hash.add(UInt64(index))
    return PeerID(hash.bytes32)
  }

  static func channel(named name: ChannelName) -> ChannelID {
    var hash = ShortHash("channel")
    hash.add(Array(name.text.utf8))
    return ChannelID(hash.bytes32)
  }

  /// The key is the PeerID itself: whoever is simulated plays by the rules of who signs as whom.
  static func sign(
    _ object: [UInt8], context: String, _ channel: ChannelID, _ instance: Instance, by author: PeerID
  ) -> [UInt8] {
    let hash = hash(of: object, context, channel, instance, author)
    return [UInt8](unsafeUninitializedCapacity: Signed.signatureByteCount) { buffer, count in
      buffer.initialize(repeating: 0)
      UnsafeMutableRawBufferPointer(buffer).storeBytes(of: hash, as: UInt64.self)
      count = Signed.signatureByteCount
    }
  }

  static func verify(
    _ signature: [UInt8], _ object: [UInt8], context: String, _ channel: ChannelID, _ instance: Instance,
    by author: PeerID
  ) -> Bool {
    let said = signature.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
    return said == hash(of: object, context, channel, instance, author)
  }

  private static func hash(
    of object: [UInt8], _ context: String, _ channel: ChannelID, _ instance: Instance, _ author: PeerID
  ) -> UInt64 {
    var hash = ShortHash(context)
    hash.add(channel.value)
    hash.add(instance.value)
    hash.add(author.value)
    hash.add(object)
    return hash.value
  }

  static func sealDirect(_ text: [UInt8], _ channel: ChannelID, from: PeerID, to: PeerID) -> [UInt8] {
    tag(text, channel, from, to) + text
  }

  static func openDirect(_ sealed: [UInt8], _ channel: ChannelID, from: PeerID, to: PeerID) -> [UInt8]? {
    guard sealed.count >= directOverheadByteCount else { return nil }
    let text = Array(sealed[directOverheadByteCount...])
    return Array(sealed[..<directOverheadByteCount]) == tag(text, channel, from, to) ? text : nil
  }

  private static func tag(_ text: [UInt8], _ channel: ChannelID, _ from: PeerID, _ to: PeerID) -> [UInt8] {
    var hash = ShortHash("direct")
    hash.add(channel.value)
    hash.add(from.value)
    hash.add(to.value)
    hash.add(text)
    return Array(hash.bytes32.bytes.prefix(16))
  }

  /// Holds for one channel, one session and one side of it.
  static func proof(
    _ channel: ChannelID, session: UInt64, isInitiator: Bool, generation: GenerationID? = nil
  ) -> Bytes32 {
    var hash = ShortHash("proof")
    hash.add(channel.value)
    if let generation { hash.add(generation.hash) }
    hash.add(session)
    hash.add(isInitiator ? 1 : 0)
    return hash.bytes32
  }
}

/// A quick hash of 64 bits; the mixing is that of SplitMix64 (Steele, Lea, Flood 2014).
struct ShortHash {
  private(set) var value: UInt64

  init(_ context: String) {
    value = 0x9E37_79B9_7F4A_7C15
    var context = context
    context.withUTF8 { add(UnsafeRawBufferPointer($0)) }
  }

  mutating func add(_ word: UInt64) {
    var mixed = (value ^ word) &+ 0x9E37_79B9_7F4A_7C15
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    value = mixed ^ mixed >> 31
  }

  mutating func add(_ bytes: Bytes32) {
    add(bytes.words.0)
    add(bytes.words.1)
    add(bytes.words.2)
    add(bytes.words.3)
  }

  mutating func add(_ bytes: [UInt8]) { bytes.withUnsafeBytes { add($0) } }

  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    add(UInt64(bytes.count))
    var at = 0
    while at + 8 <= bytes.count {
      add(bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self))
      at += 8
    }
    var rest: UInt64 = 0
    for index in at..<bytes.count { rest = rest << 8 | UInt64(bytes[index]) }
    add(rest)
  }

  /// Spread over 32 bytes.
  var bytes32: Bytes32 {
    var next = self
    func word() -> UInt64 {
      next.add(1)
      return next.value
    }
    return Bytes32(words: (word(), word(), word(), word()))
  }
}
