import ParleyVocabulary

/// Messages that somebody put together: what they are called, and where the bundle with them is (`MessageBundle`).
package struct CombineKind: MessageKind {
  package static let type = "combine"
  package static let code: UInt64 = 24
  package let title: String
  package let summary: String
  /// What is shown where this kind is not known.
  package let compatibleText: String
  /// Of the bundle.
  package let media: MediaID
  package let byteCount: UInt64
  /// 1: no combined messages are in it; else one more than the most of those.
  package let levels: Int

  /// Bytes of UTF-8.
  package static let titleByteCountMax = 256
  package static let textByteCountMax = 1_024

  package init(title: String, summary: String, compatibleText: String, media: MediaID, byteCount: UInt64, levels: Int) {
    precondition(
      (1...Self.titleByteCountMax).contains(title.utf8.count) && summary.utf8.count <= Self.textByteCountMax
        && (1...Self.textByteCountMax).contains(compatibleText.utf8.count)
        && byteCount <= UInt64(MessageBundle.byteCountMax) && MessageBundle.levelRange.contains(levels),
      "made here, within what readers take")
    self.title = title
    self.summary = summary
    self.compatibleText = compatibleText
    self.media = media
    self.byteCount = byteCount
    self.levels = levels
  }

  package init(from members: [JSONMember]) throws(WireError) {
    title = try members.string("title", byteCounts: 1...Self.titleByteCountMax)
    summary = try members.string("summary", byteCounts: 0...Self.textByteCountMax)
    compatibleText = try members.string("compatible_text", byteCounts: 1...Self.textByteCountMax)
    guard let media = MediaID(text: try members.string("media_id")) else {
      throw .malformed(field: "media_id", reason: "not a media ID")
    }
    self.media = media
    guard let size = try members.optionalCounter("size") else { throw .malformed(field: "size", reason: "missing") }
    guard size <= UInt64(MessageBundle.byteCountMax) else {
      throw .tooLong(field: "size", byteCount: size, byteCountMax: MessageBundle.byteCountMax)
    }
    byteCount = size
    guard let levels = try members.optionalCounter("levels").flatMap({ Int(exactly: $0) }),
      MessageBundle.levelRange.contains(levels)
    else { throw .malformed(field: "levels", reason: "not 1 to \(MessageBundle.levelRange.upperBound)") }
    self.levels = levels
  }

  package var members: [JSONMember] {
    [
      JSONMember("title", .string(title)), JSONMember("summary", .string(summary)),
      JSONMember("compatible_text", .string(compatibleText)), JSONMember("media_id", .string(media.text)),
      JSONMember("size", .integer(Int64(byteCount))), JSONMember("levels", .integer(Int64(levels))),
    ]
  }
}
