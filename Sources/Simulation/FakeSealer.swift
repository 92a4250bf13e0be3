import ParleyHashing
import ParleyVocabulary
import ParleyWire

/// Stands in for Sealing where thousands of seeds run: a signature is a short keyed hash padded to 64 bytes, a sealed
/// direct message its text behind a tag. Lengths are those of the real ones; secrecy there is none.
struct FakeSealer {
  /// Nonce and tag of a sealed datagram (XChaCha20-Poly1305).
  static let directOverheadByteCount = 24 + 16

  static func peer(seed: UInt64, index: Int) -> PeerID {
    var text = ByteWriter()
    text.text("peer")
    text.uint64(seed)
    text.uint64(UInt64(index))
    return PeerID(BLAKE2b.hash256(text.bytes))
  }

  static func channel(named name: ChannelName) -> ChannelID {
    ChannelID(BLAKE2b.hash256(Array("channel".utf8), Array(name.text.utf8)))
  }

  /// The key is the PeerID itself: whoever is simulated plays by the rules of who signs as whom.
  static func sign(
    _ object: [UInt8], context: String, _ channel: ChannelID, _ instance: Instance, by author: PeerID
  ) -> [UInt8] {
    var text = ByteWriter(reserving: object.count + 64)
    text.text(context)
    text.bytes32(channel.value)
    text.uint64(instance.value)
    text.raw(object)
    let hash = BLAKE2b.hash(text.bytes, byteCount: 16, key: author.bytes)
    return hash + [UInt8](repeating: 0, count: Signed.signatureByteCount - hash.count)
  }

  static func sealDirect(_ text: [UInt8], _ channel: ChannelID, from: PeerID, to: PeerID) -> [UInt8] {
    [UInt8](repeating: 0, count: 24) + tag(text, channel, from, to) + text
  }

  static func openDirect(_ sealed: [UInt8], _ channel: ChannelID, from: PeerID, to: PeerID) -> [UInt8]? {
    guard sealed.count >= directOverheadByteCount else { return nil }
    let text = Array(sealed[directOverheadByteCount...])
    return Array(sealed[24..<directOverheadByteCount]) == tag(text, channel, from, to) ? text : nil
  }

  private static func tag(_ text: [UInt8], _ channel: ChannelID, _ from: PeerID, _ to: PeerID) -> [UInt8] {
    BLAKE2b.hash(channel.bytes + from.bytes + to.bytes + text, byteCount: 16)
  }

  /// Holds for one channel, one session and one side of it.
  static func proof(_ channel: ChannelID, session: UInt64, isInitiator: Bool) -> Bytes32 {
    var text = ByteWriter(reserving: 41)
    text.bytes32(channel.value)
    text.uint64(session)
    text.uint8(isInitiator ? 1 : 0)
    return BLAKE2b.hash256(text.bytes)
  }
}
