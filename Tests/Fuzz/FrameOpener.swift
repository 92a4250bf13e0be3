// A session's receiving end: frames in pieces of any size, altered or made up.
import ParleySealing
import ParleyVocabulary

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  var input = Input(data, count)
  let (alice, bob) = Pair.session()
  var receiver = bob.receiver
  var sent: [[UInt8]] = []
  var bytes: [UInt8] = []
  for _ in 0..<input.choice(5) {
    let payload = input.block(input.bool() ? 40 : 32_100)
    do {
      try alice.sender.seal(payload, appendingTo: &bytes)
      sent.append(payload)
    } catch {
      guard case .tooLong = error else { preconditionFailure("only what is too long is refused") }
      precondition(payload.count > FrameSealer.payloadByteCountMax, "what fits is sealed")
    }
  }
  let soundByteCount = bytes.count
  var isAltered = false
  if input.bool(), !bytes.isEmpty {
    bytes[Int(input.uint16()) % bytes.count] ^= max(1, input.byte())
    isAltered = true
  }
  bytes += input.block(33_000)
  check(&receiver, pieces(bytes, &input), sent, isAltered, hasMore: bytes.count > soundByteCount)
  return 0
}

private func check(
  _ receiver: inout FrameOpener, _ pieces: [[UInt8]], _ sent: [[UInt8]], _ isAltered: Bool, hasMore: Bool
) {
  var received: [[UInt8]] = []
  do {
    for piece in pieces {
      receiver.append(piece)
      while let payload = try receiver.next() { received.append(payload) }
      precondition(
        receiver.waitingByteCount < FrameSealer.lengthByteCount + Limit.sealedPayloadByteCountMax,
        "less than a frame waits")
    }
    precondition(isAltered || received == sent, "all that was sent arrives")
  } catch let first {
    precondition(isAltered || hasMore, "what was not altered is opened")
    precondition(receiver.waitingByteCount == 0, "nothing is kept after an error")
    do {
      _ = try receiver.next()
      preconditionFailure("an error is for good")
    } catch { precondition(error == first, "the same error") }
  }
  precondition(received.count <= sent.count && received == Array(sent.prefix(received.count)), "nothing is forged")
}
