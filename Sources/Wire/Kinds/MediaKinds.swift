import ParleyVocabulary

/// A photo: no body, with `media_id` and `file_name` beside.
package struct PhotoKind: MessageKind {
  package static let type = "photo"
  package static let code: UInt64 = 4
  package let file: MediaMembers
  package let picture: PictureMembers
  package init(file: MediaMembers, picture: PictureMembers = PictureMembers()) {
    self.file = file
    self.picture = picture
  }
  package init(from members: [JSONMember]) throws(WireError) {
    file = try MediaMembers(from: members, needsSize: false)
    picture = try PictureMembers(from: members, isPhoto: true)
  }
  package var members: [JSONMember] { file.members + picture.members }
}

/// Moving pictures: a photo's members and a `duration`, but no big picture, no `original` and no `gif`.
package struct VideoKind: MessageKind {
  package static let type = "video"
  package static let code: UInt64 = 7
  package let file: MediaMembers
  /// Whole seconds, 0 to 2³¹ − 1.
  package let duration: UInt32
  package let picture: PictureMembers
  package init(file: MediaMembers, duration: UInt32, picture: PictureMembers = PictureMembers()) {
    precondition(duration <= PictureMembers.numberMax && picture.isOfVideo, "made here, within what readers take")
    self.file = file
    self.duration = duration
    self.picture = picture
  }
  package init(from members: [JSONMember]) throws(WireError) {
    file = try MediaMembers(from: members, needsSize: false)
    guard let seconds = try PictureMembers.number("duration", members, from: 0) else {
      throw .malformed(field: "duration", reason: "missing")
    }
    duration = seconds
    picture = try PictureMembers(from: members, isPhoto: false)
  }
  package var members: [JSONMember] {
    file.members + [JSONMember("duration", .integer(Int64(duration)))] + picture.members
  }
}

/// What photos and videos say of how they look, and under what else they can be had. All of it is optional.
package struct PictureMembers: Equatable, Sendable {
  /// Dots, upright, 1 to 2³¹ − 1.
  package let width: UInt32?
  package let height: UInt32?
  /// The photo is the file as it was, with everything it says of place and device.
  package let isOriginal: Bool
  package let isGIF: Bool
  /// A JPEG that fills a screen, and one that fills a line of a list.
  package let big: MediaID?
  package let thumbnail: MediaID?

  package static let numberMax: UInt32 = 0x7FFF_FFFF

  package init(
    width: UInt32? = nil, height: UInt32? = nil, isOriginal: Bool = false, isGIF: Bool = false, big: MediaID? = nil,
    thumbnail: MediaID? = nil
  ) {
    self.width = width
    self.height = height
    self.isOriginal = isOriginal
    self.isGIF = isGIF
    self.big = big
    self.thumbnail = thumbnail
  }

  init(from members: [JSONMember], isPhoto: Bool) throws(WireError) {
    width = try Self.number("width", members, from: 1)
    height = try Self.number("height", members, from: 1)
    isOriginal = isPhoto ? try members.flag("original") : false
    isGIF = isPhoto ? try members.flag("gif") : false
    big = isPhoto ? try Self.media("big_media_id", members) : nil
    thumbnail = try Self.media("thumbnail_media_id", members)
  }

  var isOfVideo: Bool { !isOriginal && !isGIF && big == nil }

  static func number(_ name: String, _ members: [JSONMember], from least: UInt64) throws(WireError) -> UInt32? {
    guard let value = try members.optionalCounter(name) else { return nil }
    guard (least...UInt64(numberMax)).contains(value) else { throw .malformed(field: name, reason: "out of range") }
    return UInt32(value)
  }

  private static func media(_ name: String, _ members: [JSONMember]) throws(WireError) -> MediaID? {
    guard let text = try members.optionalString(name) else { return nil }
    guard let id = MediaID(text: text) else { throw .malformed(field: name, reason: "not a media ID") }
    return id
  }

  var members: [JSONMember] {
    var members: [JSONMember] = []
    if let width { members.append(JSONMember("width", .integer(Int64(width)))) }
    if let height { members.append(JSONMember("height", .integer(Int64(height)))) }
    if isOriginal { members.append(JSONMember("original", .bool(true))) }
    if isGIF { members.append(JSONMember("gif", .bool(true))) }
    if let big { members.append(JSONMember("big_media_id", .string(big.text))) }
    if let thumbnail { members.append(JSONMember("thumbnail_media_id", .string(thumbnail.text))) }
    return members
  }
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
