import ParleyVocabulary

/// A text message exactly as `SchemaMessage.encoded` writes one that needs no escapes: what nodes of this version send
/// most. Read in one pass, it need neither be parsed nor be written again to be shown. Anything else is left to the
/// parser, so this decides nothing but speed: what it accepts, `SchemaMessage` accepts, with the same result.
struct PlainText {
  let displayName: String
  let senderID: String
  let messageID: String
  let timestamp: String
  let body: String

  init?(_ json: [UInt8]) {
    let parts = json.withUnsafeBufferPointer { bytes -> (String, String, String, String, String)? in
      var reader = PlainReader(bytes)
      guard let name = reader.text(after: #"{"sender":{"display_name":""#),
        let sender = reader.text(after: #"","sender_id":""#), let id = reader.text(after: #""},"message_id":""#),
        let timestamp = reader.text(after: #"","timestamp":""#),
        let body = reader.text(after: #"","type":"text","body":""#), reader.ends(with: #""}"#)
      else { return nil }
      return (name, sender, id, timestamp, body)
    }
    guard let parts else { return nil }
    (displayName, senderID, messageID, timestamp, body) = parts
  }
}

private struct PlainReader {
  private let bytes: UnsafeBufferPointer<UInt8>
  private var position = 0

  init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

  private mutating func skip(_ literal: StaticString) -> Bool {
    let count = literal.utf8CodeUnitCount
    guard bytes.count - position >= count else { return false }
    for offset in 0..<count where bytes[position + offset] != literal.utf8Start[offset] { return false }
    position += count
    return true
  }

  func ends(with literal: StaticString) -> Bool {
    var copy = self
    return copy.skip(literal) && copy.position == bytes.count
  }

  /// Up to the next quotation mark; nil when there is anything that is written with an escape, or that is not UTF-8.
  mutating func text(after literal: StaticString) -> String? {
    guard skip(literal) else { return nil }
    // In registers: this loop runs over every byte of every message.
    let bytes = bytes
    var end = position
    var previous: UInt8 = 0
    while end < bytes.count, bytes[end] != UInt8(ascii: "\"") {
      let byte = bytes[end]
      if JSONValue.needsEscape(byte, after: previous) { return nil }
      previous = byte
      end &+= 1
    }
    guard end < bytes.count else { return nil }
    defer { position = end }
    return String(validating: UnsafeBufferPointer(rebasing: bytes[position..<end]), as: UTF8.self)
  }
}
