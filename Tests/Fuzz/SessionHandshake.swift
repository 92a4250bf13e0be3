// Handshakes: either role, given anything in pieces of any size; and both, with what passes between them altered.
import CSodium
import ParleySealing
import ParleyVocabulary

/// Keys that an input decides on, so that what was found is found again. nonisolated(unsafe): libFuzzer runs one input
/// at a time on one thread.
nonisolated(unsafe) private var dice: UInt64 = 0
nonisolated(unsafe) private var source = randombytes_implementation(
  implementation_name: {
    UnsafePointer(StaticString("fuzz").utf8Start).withMemoryRebound(to: CChar.self, capacity: 5) { $0 }
  },
  random: { UInt32(truncatingIfNeeded: next()) }, stir: nil, uniform: nil,
  buf: { place, count in
    guard let place else { return }
    for index in 0..<count {
      place.storeBytes(of: UInt8(truncatingIfNeeded: next() >> 24), toByteOffset: index, as: UInt8.self)
    }
  }, close: nil)
private let isSet: Bool = {
  withUnsafeMutablePointer(to: &source) { randombytes_set_implementation($0) == 0 }
}()

private func next() -> UInt64 {
  dice = dice &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
  return dice
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  precondition(isSet, "set once")
  dice = 0
  var input = Input(data, count)
  switch input.choice(3) {
  case 0: feed(Pair.responder(), started: false, &input)
  case 1: feed(Pair.initiator(input.bool() ? .chat : .media), started: true, &input)
  default: meet(&input)
  }
  return 0
}

private func feed(_ fresh: SessionHandshake, started: Bool, _ input: inout Input) {
  var handshake = fresh
  if started { precondition(!handshake.start().isEmpty, "an initiator begins") }
  let bytes = input.block(6_000)
  for piece in pieces(bytes, &input) {
    do {
      let (_, session) = try handshake.receive(piece)
      precondition(session == nil, "nobody gets in with made-up bytes")
    } catch {
      do {
        _ = try handshake.receive([])
        preconditionFailure("an error is for good")
      } catch { precondition(error == .failedBefore, "the handshake is over") }
      return
    }
  }
}

/// At most one byte is altered: then at least one end does not open, or what opens is what it would have been.
private func meet(_ input: inout Input) {
  var initiator = Pair.initiator()
  var responder = Pair.responder()
  let altered = input.bool() ? input.choice(5) : -1
  var toOther = initiator.start()
  var isInitiatorNext = false
  var ends: [EstablishedSession] = []
  for message in 0..<5 {
    if message == altered, !toOther.isEmpty {
      toOther[Int(input.uint16()) % toOther.count] ^= max(1, input.byte())
    }
    var answer: [UInt8] = []
    for piece in pieces(toOther, &input) {
      do {
        let (send, session) = try isInitiatorNext ? initiator.receive(piece) : responder.receive(piece)
        answer += send
        if let session { ends.append(session) }
      } catch {
        precondition(altered >= 0 && altered <= message, "what was not altered succeeds")
        precondition(ends.count <= 1, "one of two fails")
        return
      }
    }
    if ends.count == 2 { break }
    toOther = answer
    isInitiatorNext.toggle()
  }
  if altered < 0 { precondition(ends.count == 2, "what was not altered succeeds") }
  for end in ends {
    precondition(end.channels == [Pair.shared.id], "what is shared is shared")
    precondition(end.peer == (end.isInitiator ? Pair.bob : Pair.alice).peerID, "everybody is who they are")
  }
}
