// What travels in a chat session.
import ParleyVocabulary
import ParleyWire

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: count))
  guard let message = try? SessionMessage.decode(bytes) else { return 0 }
  let encoded = message.encoded
  precondition(encoded.count <= bytes.count, "nothing grows by being passed on")
  guard let again = try? SessionMessage.decode(encoded) else {
    preconditionFailure("a message that was accepted is one")
  }
  precondition(again == message, "a message is encoded as it was")
  if case .want(_, _, let ranges) = message {
    precondition(ranges.allSatisfy { 0 < $0.from && $0.from <= $0.through }, "ranges hold numbers of entries")
  }
  return 0
}
