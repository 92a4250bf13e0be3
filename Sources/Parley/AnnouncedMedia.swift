import ParleyVocabulary

/// Media that messages of one channel announce: the first message for each ID counts. The oldest go when there are too
/// many to remember; their messages stay in the history.
struct AnnouncedMedia: Sendable {
  static let countMax = 10_000
  static let byteCountMax = 8 << 20

  private var byID: [MediaID: Message] = [:]
  /// Smaller pictures, by what they are of.
  private var wholes: [MediaID: MediaID] = [:]
  private var order: [MediaID] = []
  private var byteCount = 0

  /// What announces this media, or what this is a smaller picture of.
  subscript(_ id: MediaID) -> Message? { byID[id] ?? wholes[id].flatMap { byID[$0] } }
  var messages: [Message] { order.compactMap { byID[$0] } }

  mutating func note(_ id: MediaID, _ message: Message) {
    guard byID[id] == nil else { return }
    byID[id] = message
    order.append(id)
    byteCount += Self.byteCount(message)
    for preview in message.previews where wholes[preview] == nil { wholes[preview] = id }
    while order.count > Self.countMax || byteCount > Self.byteCountMax, order.count > 1 {
      let id = order.removeFirst()
      guard let oldest = byID.removeValue(forKey: id) else { continue }
      byteCount -= Self.byteCount(oldest)
      for preview in oldest.previews where wholes[preview] == id { wholes[preview] = nil }
    }
  }

  /// Messages that do not count after all.
  mutating func forget(_ messages: Set<MessageID>) {
    for (id, message) in byID where messages.contains(message.id) {
      byID[id] = nil
      byteCount -= Self.byteCount(message)
      order.removeAll { $0 == id }
      for preview in message.previews where wholes[preview] == id { wholes[preview] = nil }
    }
  }

  /// About what it takes.
  static func byteCount(_ message: Message) -> Int {
    256 + message.json.utf8.count
  }
}

extension Message {
  /// The media that this message announces.
  public var media: MediaReference? {
    switch body {
    case .photo(let media), .video(let media), .file(let media): media
    case .text, .unknown: nil
    }
  }

  var previews: [MediaID] { [media?.picture?.bigID, media?.picture?.thumbnailID].compactMap { $0 } }

  var kindName: String {
    switch body {
    case .text: "text"
    case .photo: "photo"
    case .video: "video"
    case .file: "file"
    case .unknown(let kind): kind
    }
  }
}
