// Bundles of combined messages: what is accepted says the same once it is encoded and read again, within its bounds.
import ParleyVocabulary
import ParleyWire

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: count))
  guard let level = bytes.first.map({ Int($0 % 12) }) else { return 0 }
  guard let bundle = try? MessageBundle(decoding: bytes.dropFirst(), levels: level) else { return 0 }
  precondition(MessageBundle.countRange.contains(bundle.messages.count), "1 to 300 messages")
  precondition(bundle.levels <= level && bundle.levels <= 10, "no more levels than announced")
  precondition(bundle.messages.allSatisfy { $0.messageID != nil }, "each has an ID")
  let encoded = bundle.encoded
  // Escapes can make a line longer than what is accepted.
  guard bundle.messages.allSatisfy({ $0.encoded.count <= Limit.messageByteCountMax }) else { return 0 }
  guard let again = try? MessageBundle(decoding: encoded, levels: level) else {
    preconditionFailure("a bundle that was accepted is one")
  }
  precondition(again.encoded == encoded && again.levels == bundle.levels, "one bundle has one text")
  return 0
}
