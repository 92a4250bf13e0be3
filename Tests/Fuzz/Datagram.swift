// Opening of datagrams: what was altered anywhere is not opened, what was not is as it was sealed.
import ParleySealing
import ParleyVocabulary

private let alice = Identity(seed: [UInt8](repeating: 1, count: 32))
private let bob = Identity(seed: [UInt8](repeating: 2, count: 32))
private let keys = ChannelKeys.open(name: try! ChannelName("fuzz"))

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  var input = Input(data, count)
  if input.bool() { checkRaw(input.rest) } else { checkSealed(&input) }
  return 0
}

/// Nobody guesses a tag: no bytes are opened that were not sealed here.
private func checkRaw(_ bytes: [UInt8]) {
  if let header = DatagramHeader.parse(bytes) {
    precondition(bytes.count <= Limit.datagramByteCountMax, "a datagram keeps its limit")
    // The tag that the sender of this instance would have put there.
    var tagged = bytes
    let tag = keys.tag(of: header.instance)
    for index in 0..<8 { tagged[12 + index] = UInt8(truncatingIfNeeded: tag >> UInt64(56 - 8 * index)) }
    precondition(DatagramSealer.open(tagged, channel: keys) == nil, "a forged datagram is not opened")
  }
  precondition(DatagramSealer.open(bytes, channel: keys) == nil, "a forged datagram is not opened")
  let peer = PeerID(bytes: (bytes + [UInt8](repeating: 0, count: 32)).prefix(32))!
  precondition(
    DatagramSealer.openDirect(bytes, header: bytes.prefix(44), from: peer, identity: bob, channel: keys) == nil,
    "what was not sealed for us is not opened")
}

private func checkSealed(_ input: inout Input) {
  let instance = Instance(input.uint64())
  let frames = input.block(1_300)
  let plaintext = input.bool() ? input.block(1_300) : nil
  let direct = plaintext.map { (to: bob.peerID, plaintext: $0) }
  var datagram: [UInt8]
  do {
    datagram = try DatagramSealer.seal(
      frames: frames, direct: direct, identity: alice, channel: keys, instance: instance)
  } catch {
    guard case .datagramTooLong = error else { preconditionFailure("everything else can be sealed") }
    return
  }
  precondition(datagram.count <= Limit.datagramByteCountMax, "a datagram keeps its limit")
  guard let body = DatagramSealer.open(datagram, channel: keys), body.starts(with: frames) else {
    preconditionFailure("a datagram is opened as it was sealed")
  }
  if let plaintext { checkDirect(body.dropFirst(frames.count), datagram[..<44], plaintext) }
  let place = Int(input.uint16()) % datagram.count
  datagram[place] ^= max(1, input.byte())
  precondition(DatagramSealer.open(datagram, channel: keys) == nil, "an altered datagram is not opened")
}

private func checkDirect(_ frame: ArraySlice<UInt8>, _ header: ArraySlice<UInt8>, _ plaintext: [UInt8]) {
  let sealed = Array(frame.suffix(plaintext.count + DatagramSealer.tagByteCount))
  func open(_ header: ArraySlice<UInt8>, _ peer: PeerID, _ identity: Identity) -> [UInt8]? {
    DatagramSealer.openDirect(sealed, header: header, from: peer, identity: identity, channel: keys)
  }
  precondition(open(header, alice.peerID, bob) == plaintext, "the one it is for opens it")
  precondition(open(header, bob.peerID, bob) == nil, "it names its sender")
  precondition(open(header, bob.peerID, alice) == nil, "it has a direction")
  var other = Array(header)
  other[43] ^= 1
  precondition(open(other[...], alice.peerID, bob) == nil, "it belongs to one datagram")
}
