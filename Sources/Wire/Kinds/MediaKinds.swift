import ParleyVocabulary

/// A photo: no body, with `media_id` and `file_name` beside.
package struct PhotoKind: MessageKind {
  package static let type = "photo"
  package static let code: UInt64 = 4
  package let file: MediaMembers
  package init(file: MediaMembers) { self.file = file }
  package init(from members: [JSONMember]) throws(WireError) {
    file = try MediaMembers(from: members, needsSize: false)
  }
  package var members: [JSONMember] { file.members }
}

/// Any file: `media_id`, `file_name`, `size`.
package struct FileKind: MessageKind {
  package static let type = "file"
  package static let code: UInt64 = 5
  package let file: MediaMembers
  package init(file: MediaMembers) { self.file = file }
  package init(from members: [JSONMember]) throws(WireError) {
    file = try MediaMembers(from: members, needsSize: true)
  }
  package var members: [JSONMember] { file.members }
}

/// The members that every kind with media has.
package struct MediaMembers: Equatable, Sendable {
  package let id: MediaID
  /// As sent: hostile until made safe or escaped. 0 to 1,024 bytes.
  package let fileName: String
  package let byteCount: UInt64?
  package let mimeType: String?

  package init(id: MediaID, fileName: String, byteCount: UInt64?, mimeType: String?) {
    self.id = id
    self.fileName = fileName
    self.byteCount = byteCount
    self.mimeType = mimeType
  }

  init(from members: [JSONMember], needsSize: Bool) throws(WireError) {
    guard let id = MediaID(text: try members.string("media_id")) else {
      throw .malformed(field: "media_id", reason: "not a media ID")
    }
    self.id = id
    fileName = try members.string("file_name")
    guard fileName.utf8.count <= 1_024 else {
      throw .tooLong(field: "file_name", byteCount: UInt64(fileName.utf8.count), byteCountMax: 1_024)
    }
    byteCount = try members.optionalCounter("size")
    if needsSize, byteCount == nil { throw .malformed(field: "size", reason: "missing") }
    mimeType = try members.optionalString("mime")
    if let mimeType, mimeType.utf8.count > 255 {
      throw .tooLong(field: "mime", byteCount: UInt64(mimeType.utf8.count), byteCountMax: 255)
    }
  }

  var members: [JSONMember] {
    var members = [
      JSONMember("media_id", .string(id.text)), JSONMember("file_name", .string(fileName)),
    ]
    if let byteCount { members.append(JSONMember("size", .integer(Int64(byteCount)))) }
    if let mimeType { members.append(JSONMember("mime", .string(mimeType))) }
    return members
  }
}
