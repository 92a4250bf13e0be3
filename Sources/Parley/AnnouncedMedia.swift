import ParleyVocabulary

/// Media that messages of one channel announce: the first message for each ID counts. The oldest go when there are too
/// many to remember; their messages stay in the history.
struct AnnouncedMedia: Sendable {
  static let countMax = 10_000
  static let byteCountMax = 8 << 20

  private var byID: [MediaID: Message] = [:]
  private var order: [MediaID] = []
  private var byteCount = 0

  subscript(_ id: MediaID) -> Message? { byID[id] }
  var messages: [Message] { order.compactMap { byID[$0] } }

  mutating func note(_ id: MediaID, _ message: Message) {
    guard byID[id] == nil else { return }
    byID[id] = message
    order.append(id)
    byteCount += Self.byteCount(message)
    while order.count > Self.countMax || byteCount > Self.byteCountMax, order.count > 1 {
      if let oldest = byID.removeValue(forKey: order.removeFirst()) { byteCount -= Self.byteCount(oldest) }
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
    case .photo(let media), .file(let media): media
    case .text, .unknown: nil
    }
  }

  var kindName: String {
    switch body {
    case .text: "text"
    case .photo: "photo"
    case .file: "file"
    case .unknown(let kind): kind
    }
  }
}
