/// What a file is, by its first bytes and its name: for the message that announces it. Receivers decide for themselves.
enum FileKindGuess {
  static func mimeType(head: [UInt8], name: String) -> String {
    if let picture = picture(head) { return picture }
    if head.starts(with: Array("%PDF-".utf8)) { return "application/pdf" }
    if head.starts(with: [0x50, 0x4B, 0x03, 0x04]) { return "application/zip" }
    if head.starts(with: [0x1F, 0x8B]) { return "application/gzip" }
    switch name.split(separator: ".").last.map({ $0.lowercased() }) {
    case "txt", "md", "log", "csv": return "text/plain"
    case "mp4", "m4v": return "video/mp4"
    case "ogg", "oga": return "audio/ogg"
    case "mp3": return "audio/mpeg"
    default: return "application/octet-stream"
    }
  }

  /// The type of a picture that every browser shows; nil for anything else.
  static func picture(_ head: [UInt8]) -> String? {
    if head.starts(with: [0xFF, 0xD8, 0xFF]) { return "image/jpeg" }
    if head.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) { return "image/png" }
    if head.starts(with: Array("GIF87a".utf8)) || head.starts(with: Array("GIF89a".utf8)) { return "image/gif" }
    if head.count >= 12, head.starts(with: Array("RIFF".utf8)), Array(head[8..<12]) == Array("WEBP".utf8) {
      return "image/webp"
    }
    return nil
  }
}
