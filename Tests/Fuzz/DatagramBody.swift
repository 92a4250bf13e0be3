// What stands in an opened datagram: frames, and in them presences, live objects, entries, fragments, direct messages.
import ParleyVocabulary
import ParleyWire

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: count))
  if let frames = try? DatagramFrame.decodeAll(bytes) {
    var out = ByteWriter()
    for frame in frames { frame.write(to: &out) }
    precondition((try? DatagramFrame.decodeAll(out.bytes)) == frames, "frames are encoded as they were")
    for frame in frames { check(frame) }
  }
  checkDirect(bytes)
  checkPresence(bytes)
  return 0
}

private func check(_ frame: DatagramFrame) {
  switch frame {
  case .presence(let signed): checkPresence(signed.object)
  case .live(let signed):
    if let live = try? LiveObject(decoding: signed.object[...]) {
      precondition(live.encoded == signed.object, "one live object has one encoding")
    }
  case .entry(let bytes):
    if let entry = try? Entry(decoding: bytes[...]) {
      precondition(entry.encoded == bytes, "one entry has one encoding")
    }
  case .fragment(let fragment), .liveFragment(let fragment):
    precondition(fragment.index < fragment.count, "fragments are numbered below their count")
  case .direct(let bytes): checkDirect(bytes)
  case .suspect(_, let incarnation): precondition(incarnation <= Limit.counterMax, "counters are below 2^62")
  case .whoHas(let media): precondition(media.count <= 32, "a datagram asks for 32 media at most")
  }
}

private func checkPresence(_ bytes: [UInt8]) {
  guard let presence = try? Presence(decoding: bytes[...]) else { return }
  precondition((try? Presence(decoding: presence.encoded[...])) == presence, "a presence is encoded as it was")
}

private func checkDirect(_ bytes: [UInt8]) {
  guard let message = try? DirectMessage(decoding: bytes) else { return }
  precondition((try? DirectMessage(decoding: message.encoded)) == message, "a direct message is encoded as it was")
}
