import CSodium
import ParleyHashing
import ParleyVocabulary

/// The 44 bytes in front of every datagram, all of them authenticated:
///
/// | at | bytes | |
/// |---|---|---|
/// | 0 | 2 | `PL` |
/// | 2 | 1 | version, 1 |
/// | 3 | 1 | 0 |
/// | 4 | 8 | the sender's instance |
/// | 12 | 8 | channel tag, see `ChannelKeys.tag(of:)` |
/// | 20 | 24 | random nonce |
package enum DatagramHeader {
  package static let byteCount = 44
  package static let version: UInt8 = 1
  static let nonceRange = 20..<44

  /// Nil for what is not a datagram of this protocol and version, or has an impossible length.
  package static func parse(_ datagram: [UInt8]) -> (instance: Instance, tag: UInt64)? {
    guard (byteCount + DatagramSealer.tagByteCount...Limit.datagramByteCountMax).contains(datagram.count),
      datagram[0] == 0x50, datagram[1] == 0x4C, datagram[2] == version, datagram[3] == 0,
      let instance = Instance(bytes: datagram[4..<12])
    else { return nil }
    return (instance, datagram[12..<20].reduce(0) { $0 << 8 | UInt64($1) })
  }

  static func make(instance: Instance, tag: UInt64, nonce: [UInt8]) -> [UInt8] {
    [0x50, 0x4C, version, 0] + instance.bytes + tag.bigEndianBytes + nonce
  }
}

/// Seals and opens datagrams: header ‖ XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03, tag of 16 bytes at the end) of
/// the frames under the channel's datagram key, with the header's nonce and the whole header as associated data.
///
/// The body is a run of frames: type (varint, RFC 9000 section 16) ‖ length (varint) ‖ bytes. At most one, the last, is
/// of type 5, `direct`: its bytes are XChaCha20-Poly1305 under the pairwise key (see `PairwiseKeys`), with the same
/// nonce and the same header as associated data. The same nonce is no harm because the key is another.
package enum DatagramSealer {
  package static let tagByteCount = 16
  package static let directFrameType: UInt8 = 5
  /// The most bytes of frames in a datagram without a direct frame.
  package static let framesByteCountMax = Limit.datagramByteCountMax - DatagramHeader.byteCount - tagByteCount
  /// What a direct frame needs beside its plaintext: type, a length of two bytes, tag.
  package static let directFrameOverheadByteCount = 1 + 2 + tagByteCount
  /// The most bytes of frames and direct plaintext together.
  package static let framesAndDirectByteCountMax = framesByteCountMax - directFrameOverheadByteCount

  /// `frames` are whole encoded frames; the direct frame is appended to them. Costs a random nonce a datagram.
  package static func seal(
    frames: [UInt8], direct: (to: PeerID, plaintext: [UInt8])? = nil, identity: Identity, channel: ChannelKeys,
    instance: Instance
  ) throws(SealingError) -> [UInt8] {
    try seal(
      frames: frames, direct: direct, identity: identity, channel: channel, instance: instance,
      nonce: Sealing.randomBytes(24))
  }

  /// For tests, where nonces are facts; anywhere else a nonce is random.
  static func seal(
    frames: [UInt8], direct: (to: PeerID, plaintext: [UInt8])?, identity: Identity, channel: ChannelKeys,
    instance: Instance, nonce: [UInt8]
  ) throws(SealingError) -> [UInt8] {
    precondition(nonce.count == DatagramHeader.nonceRange.count, "a nonce has 24 bytes")
    let directByteCount = direct.map { directFrameByteCount(plaintextByteCount: $0.plaintext.count) } ?? 0
    let byteCount = DatagramHeader.byteCount + frames.count + directByteCount + tagByteCount
    guard byteCount <= Limit.datagramByteCountMax else {
      throw .datagramTooLong(byteCount: byteCount, byteCountMax: Limit.datagramByteCountMax)
    }
    let header = DatagramHeader.make(instance: instance, tag: channel.tag(of: instance), nonce: nonce)
    var body = frames
    if let direct {
      guard
        let sealed = identity.withPairwiseKey(
          with: direct.to, in: channel.id, sending: true, { encrypt(direct.plaintext, header: header, key: $0) })
      else { throw .unusablePeer(direct.to) }
      body.append(directFrameType)
      body += varint(sealed.count)
      body += sealed
    }
    return channel.newest.withDatagramKey { encrypt(body, header: header, key: $0, after: header) }
  }

  /// The frames, or nil when `datagram` is no datagram of this channel.
  package static func open(_ datagram: [UInt8], channel: ChannelKeys) -> [UInt8]? {
    guard let header = DatagramHeader.parse(datagram) else { return nil }
    return channel.generation(tag: header.tag, of: header.instance).flatMap { open(datagram, generation: $0) }
  }

  /// The frames, or nil when `datagram` was not sealed under this generation.
  package static func open(_ datagram: [UInt8], generation: ChannelGeneration) -> [UInt8]? {
    guard let header = DatagramHeader.parse(datagram), header.tag == generation.tag(of: header.instance) else {
      return nil
    }
    return generation.withDatagramKey {
      decrypt(datagram[DatagramHeader.byteCount...], header: datagram[..<DatagramHeader.byteCount], key: $0)
    }
  }

  /// What the direct frame of an opened datagram says, or nil when it was not sealed by `peer` for `identity` in this
  /// very datagram. `header` is the datagram's first 44 bytes.
  package static func openDirect(
    _ sealed: [UInt8], header: ArraySlice<UInt8>, from peer: PeerID, identity: Identity, channel: ChannelKeys
  ) -> [UInt8]? {
    guard header.count == DatagramHeader.byteCount, sealed.count <= framesByteCountMax else { return nil }
    let opened = identity.withPairwiseKey(with: peer, in: channel.id, sending: false) {
      decrypt(sealed[...], header: header, key: $0)
    }
    return opened ?? nil
  }

  /// The whole direct frame for a plaintext of so many bytes.
  package static func directFrameByteCount(plaintextByteCount: Int) -> Int {
    let sealedByteCount = plaintextByteCount + tagByteCount
    return 1 + varint(min(sealedByteCount, 16_383)).count + sealedByteCount
  }

  /// RFC 9000 section 16, for lengths that a datagram can have.
  private static func varint(_ value: Int) -> [UInt8] {
    precondition((0..<16_384).contains(value), "a datagram is shorter than two bytes of varint can say")
    return value < 64 ? [UInt8(value)] : [0x40 | UInt8(value >> 8), UInt8(value & 0xFF)]
  }

  /// What is sealed stands behind `start` in the result.
  private static func encrypt(
    _ plaintext: [UInt8], header: [UInt8], key: UnsafeRawBufferPointer, after start: [UInt8] = []
  ) -> [UInt8] {
    let byteCount = start.count + plaintext.count + tagByteCount
    return [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      _ = buffer.update(fromContentsOf: start)
      header.withUnsafeBytes { header in
        _ = crypto_aead_xchacha20poly1305_ietf_encrypt(
          buffer.baseAddress! + start.count, nil, plaintext, UInt64(plaintext.count), header.octets,
          UInt64(header.count), nil, header.octets + DatagramHeader.nonceRange.lowerBound, key.octets)
      }
      count = byteCount
    }
  }

  private static func decrypt(
    _ sealed: ArraySlice<UInt8>, header: ArraySlice<UInt8>, key: UnsafeRawBufferPointer
  ) -> [UInt8]? {
    guard sealed.count >= tagByteCount else { return nil }
    var status: Int32 = -1
    let plaintextByteCount = sealed.count - tagByteCount
    // One byte more, so that there is an address even when nothing is inside.
    let plaintext = [UInt8](unsafeUninitializedCapacity: plaintextByteCount + 1) { buffer, count in
      sealed.withUnsafeBytes { sealed in
        header.withUnsafeBytes { header in
          status = crypto_aead_xchacha20poly1305_ietf_decrypt(
            buffer.baseAddress!, nil, nil, sealed.octets, UInt64(sealed.count), header.octets, UInt64(header.count),
            header.octets + DatagramHeader.nonceRange.lowerBound, key.octets)
        }
      }
      count = status == 0 ? plaintextByteCount : 0
    }
    return status == 0 ? plaintext : nil
  }
}
