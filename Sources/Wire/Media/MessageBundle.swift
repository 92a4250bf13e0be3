import ParleyVocabulary

/// The messages of a combined one, as a file: one a line, each as its sender wrote it (Wire.docc/Messages.md). What is
/// in it is said on the word of whoever combined it: nothing shows that the senders named in it wrote it.
package struct MessageBundle: Sendable {
  package let messages: [SchemaMessage]

  package static let countRange = 1...300
  package static let levelRange = 1...10
  /// Of so many lines of the longest messages.
  package static let byteCountMax = countRange.upperBound * (Limit.messageByteCountMax + 1)
  package static let mimeType = "application/x-ndjson"
  package static let fileName = "combined.ndjson"

  /// Throws for too many or too few messages, and kinds that cannot be combined: see `check`.
  package init(_ messages: [SchemaMessage]) throws(WireError) {
    guard Self.countRange.contains(messages.count) else {
      if messages.isEmpty { throw .malformed(field: "messages", reason: "none") }
      throw .tooMany(field: "messages", count: UInt64(messages.count), countMax: Self.countRange.upperBound)
    }
    for message in messages { try Self.check(message) }
    guard messages.allSatisfy({ Self.levels(of: $0) < Self.levelRange.upperBound }) else {
      throw .tooMany(
        field: "levels", count: UInt64(Self.levelRange.upperBound) + 1, countMax: Self.levelRange.upperBound)
    }
    self.messages = messages
  }

  /// 1, and one more for each level of combined messages in it.
  package var levels: Int { 1 + (messages.map(Self.levels).max() ?? 0) }

  private static func levels(of message: SchemaMessage) -> Int { (message.content as? CombineKind)?.levels ?? 0 }

  /// Texts, photos, voice, videos, files, custom and combined messages, each with the ID that its sender gave it.
  private static func check(_ message: SchemaMessage) throws(WireError) {
    guard message.messageID != nil else { throw .malformed(field: "message_id", reason: "missing") }
    switch message.content {
    case is TextKind, is PhotoKind, is VoiceKind, is VideoKind, is FileKind, is CustomKind, is CombineKind: break
    default: throw .malformed(field: "type", reason: "of a kind that is not combined")
    }
  }

  /// `levels`: as announced; what is in it must have fewer.
  package init(decoding bytes: some Collection<UInt8>, levels: Int) throws(WireError) {
    guard bytes.count <= Self.byteCountMax else {
      throw .tooLong(field: "bundle", byteCount: UInt64(bytes.count), byteCountMax: Self.byteCountMax)
    }
    guard bytes.isEmpty || Array(bytes.suffix(1)) == [Self.newline] else {
      throw .malformed(field: "bundle", reason: "its last line has no end")
    }
    // What is beyond the last one that there may be is one piece, however long.
    let lines = bytes.split(
      separator: Self.newline, maxSplits: Self.countRange.upperBound, omittingEmptySubsequences: false)
    let count = lines.count - (lines.last?.isEmpty == true ? 1 : 0)
    guard count <= Self.countRange.upperBound else {
      throw .tooMany(field: "messages", count: UInt64(count), countMax: Self.countRange.upperBound)
    }
    var messages: [SchemaMessage] = []
    for line in lines.prefix(count) { messages.append(try SchemaMessage(decoding: line, author: nil)) }
    try self.init(messages)
    guard self.levels <= levels else {
      throw .tooMany(field: "levels", count: UInt64(self.levels), countMax: levels)
    }
  }

  package var encoded: [UInt8] { messages.reduce(into: []) { $0 += $1.encoded + [Self.newline] } }

  private static let newline = UInt8(ascii: "\n")
}
