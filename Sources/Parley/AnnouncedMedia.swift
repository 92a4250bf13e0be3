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
  private var counts: [PeerID: Int] = [:]

  /// What announces this media, or what this is a smaller picture of.
  subscript(_ id: MediaID) -> Message? { byID[id] ?? wholes[id].flatMap { byID[$0] } }
  var messages: [Message] { order.compactMap { byID[$0] } }

  /// True when the sender announces more than one may, and its oldest makes room.
  @discardableResult
  mutating func note(_ id: MediaID, _ message: Message, countMaxEach: Int = countMax) -> Bool {
    guard byID[id] == nil else { return false }
    var isTooMuch = false
    if counts[message.sender, default: 0] >= countMaxEach,
      let oldest = order.firstIndex(where: { byID[$0]?.sender == message.sender })
    {
      remove(order.remove(at: oldest))
      isTooMuch = true
    }
    byID[id] = message
    order.append(id)
    counts[message.sender, default: 0] += 1
    byteCount += Self.byteCount(message)
    for preview in message.previews where wholes[preview] == nil { wholes[preview] = id }
    while order.count > Self.countMax || byteCount > Self.byteCountMax, order.count > 1 {
      // Of whoever announced most: nobody pushes out what others share.
      let most = counts.values.max()
      let index = order.firstIndex { byID[$0].map { counts[$0.sender] == most } ?? true } ?? 0
      remove(order.remove(at: index))
    }
    return isTooMuch
  }

  private mutating func remove(_ id: MediaID) {
    guard let message = byID.removeValue(forKey: id) else { return }
    byteCount -= Self.byteCount(message)
    counts[message.sender]! -= 1
    if counts[message.sender] == 0 { counts[message.sender] = nil }
    for preview in message.previews where wholes[preview] == id { wholes[preview] = nil }
  }

  /// A message that was taken back.
  mutating func forget(_ key: MessageReference) {
    for (id, message) in byID where message.reference == key {
      order.removeAll { $0 == id }
      remove(id)
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
    case .photo(let media), .video(let media), .file(let media), .voice(let media, _): media
    case .text, .location, .custom, .combine, .remote, .unknown, .recalled: nil
    }
  }

  var previews: [MediaID] { [media?.picture?.bigID, media?.picture?.thumbnailID].compactMap { $0 } }

  var kindName: String {
    switch body {
    case .text: "text"
    case .photo: "photo"
    case .video: "video"
    case .file: "file"
    case .voice: "voice"
    case .location: "location"
    case .custom: "custom"
    case .combine: "combine"
    case .remote(let media): media.kind.rawValue
    case .unknown(let kind), .recalled(let kind): kind
    }
  }
}
