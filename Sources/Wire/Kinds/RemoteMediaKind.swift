import ParleyVocabulary

/// A photo, voice, video or file that lies on a server of the application's own: the message carries its address, and
/// nodes transfer nothing of it. Its type and number are those of the kind it stands for.
package struct RemoteMediaKind: MessageKind {
  package static let type = ""
  package static let code: UInt64 = 0
  package static let takesOptions = true
  /// Those that media can have.
  package static let types = [PhotoKind.type, VoiceKind.type, VideoKind.type, FileKind.type]
  /// Bytes.
  package static let urlByteCountMax = 2_048

  package let type: String
  /// `http` or `https`, printable ASCII; nobody here has looked at what lies there.
  package let url: String
  /// As sent: hostile until made safe or escaped. 0 to 1,024 bytes.
  package let fileName: String
  package let byteCount: UInt64?
  package let mimeType: String?
  /// Whole seconds; of voice and video.
  package let duration: UInt32?
  /// Dots, of photo and video.
  package let width: UInt32?
  package let height: UInt32?

  package init(
    type: String, url: String, fileName: String, byteCount: UInt64? = nil, mimeType: String? = nil,
    duration: UInt32? = nil, width: UInt32? = nil, height: UInt32? = nil
  ) {
    precondition(Self.types.contains(type) && Self.isAddress(url), "made here, within what readers take")
    self.type = type
    self.url = url
    self.fileName = fileName
    self.byteCount = byteCount
    self.mimeType = mimeType
    self.duration = duration
    self.width = width
    self.height = height
  }

  package init(from members: [JSONMember]) throws(WireError) {
    type = try members.string("type")
    url = try members.string("remote_url", byteCounts: 1...Self.urlByteCountMax)
    guard Self.isAddress(url) else { throw .malformed(field: "remote_url", reason: "not an address of http or https") }
    if members["media_id"] != nil { throw .malformed(field: "media_id", reason: "beside a remote_url") }
    fileName = try members.string("file_name", byteCounts: 0...1_024)
    byteCount = try members.optionalCounter("size")
    mimeType = try members.optionalString("mime", byteCountMax: 255)
    let (isTimed, isSeen) = (type == VoiceKind.type || type == VideoKind.type, type != VoiceKind.type)
    duration = isTimed ? try PictureMembers.number("duration", members, from: 0) : nil
    if isTimed, duration == nil { throw .malformed(field: "duration", reason: "missing") }
    width = isSeen ? try PictureMembers.number("width", members, from: 1) : nil
    height = isSeen ? try PictureMembers.number("height", members, from: 1) : nil
  }

  /// A scheme of the two, a host, and nothing that is not printable ASCII.
  package static func isAddress(_ text: String) -> Bool {
    guard text.utf8.count <= urlByteCountMax, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return false }
    let rest = ["https://", "http://"].first { text.lowercased().hasPrefix($0) }.map {
      text.utf8.dropFirst($0.utf8.count)
    }
    guard let host = rest?.prefix(while: { !Array("/?#".utf8).contains($0) }) else { return false }
    // No name and password: they would be shown to everybody, and make one host look like another.
    return !host.isEmpty && host.first != UInt8(ascii: ":") && !host.contains(UInt8(ascii: "@"))
  }

  package var members: [JSONMember] {
    var members = [JSONMember("remote_url", .string(url)), JSONMember("file_name", .string(fileName))]
    if let byteCount { members.append(JSONMember("size", .integer(Int64(byteCount)))) }
    if let mimeType { members.append(JSONMember("mime", .string(mimeType))) }
    for (name, value) in [("duration", duration), ("width", width), ("height", height)] {
      if let value { members.append(JSONMember(name, .integer(Int64(value)))) }
    }
    return members
  }
}
