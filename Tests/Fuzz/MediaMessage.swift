// What travels in a media session: one message has one encoding.
import ParleyVocabulary
import ParleyWire

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: count))
  guard let message = try? MediaMessage(decoding: bytes) else { return 0 }
  precondition(message.encoded == bytes, "one message has one encoding")
  if case .reply(_, let reply) = message {
    precondition(reply.payloadByteCount <= MediaMessage.byteCountMax, "an answer fits a frame")
  }
  return 0
}
