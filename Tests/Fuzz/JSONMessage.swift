// JSON from the network: what is accepted says the same once it is encoded and read again.
import ParleyVocabulary
import ParleyWire

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: count))
  if let value = try? JSONValue(decoding: bytes) {
    let encoded = value.encoded
    precondition(encoded.allSatisfy { $0 >= 0x20 && $0 != 0x7F }, "no raw control character")
    let again = try? JSONValue(decoding: encoded)
    precondition(again == value && again?.encoded == encoded, "a value that was accepted is one")
  }
  if let message = try? SchemaMessage(decoding: bytes, author: nil) { check(message) }
  return 0
}

private func check(_ message: SchemaMessage) {
  let encoded = message.encoded
  // Escapes can make it longer than what is accepted.
  guard encoded.count <= Limit.messageByteCountMax else { return }
  guard let again = try? SchemaMessage(decoding: encoded, author: message.sender.peer) else {
    preconditionFailure("a message that was accepted is one")
  }
  precondition(again.encoded == encoded, "one message has one text")
  precondition(again.sender == message.sender && again.messageID == message.messageID, "the same message")
  precondition(again.timestamp == message.timestamp && again.content.type == message.content.type, "the same kind")
  let other = PeerID(Bytes32(words: (1, 2, 3, 4)))
  precondition(
    other == message.sender.peer || (try? SchemaMessage(decoding: encoded, author: other)) == nil,
    "nobody speaks for another")
}
