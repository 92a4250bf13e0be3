import ParleyVocabulary
import ParleyWire

/// What this node fetches without being asked.
struct FetchRules: Sendable {
  var thumbnails = false
  var voice = false

  /// Bytes of one. A thumbnail of 170 × 8,192 dots without any compression has 4 MB; one as nodes make them 20 kB.
  static let thumbnailByteCountMax: UInt64 = 1 << 20
  /// Two hours of speech at 8 kbit/s, eight minutes at 128 kbit/s.
  static let voiceByteCountMax: UInt64 = 8 << 20
  /// Files that are kept at once, besides their bytes: each is looked at when the node starts.
  static let keptCountMax = 4_096

  /// What of a message is to be fetched.
  func offer(_ message: Message, in channel: ChannelID) -> FetchOffer? {
    switch message.body {
    case .photo(let media), .video(let media):
      guard thumbnails, let id = media.picture?.thumbnailID else { return nil }
      return FetchOffer(
        id: id, sender: message.sender, channel: channel, kind: PreviewName.thumbnail.rawValue,
        byteCountMax: Self.thumbnailByteCountMax)
    case .voice(let media, _):
      guard voice, media.byteCount ?? 0 <= Self.voiceByteCountMax else { return nil }
      return FetchOffer(
        id: media.id, sender: message.sender, channel: channel, kind: VoiceKind.type,
        byteCountMax: Self.voiceByteCountMax)
    case .text, .file, .location, .custom, .combine, .remote, .unknown, .recalled: return nil
    }
  }
}

/// A preview or voice that somebody announced.
struct FetchOffer: Sendable, Equatable {
  let id: MediaID
  let sender: PeerID
  let channel: ChannelID
  /// As what it is kept.
  let kind: String
  let byteCountMax: UInt64
}

/// Offers that wait to be fetched. Of each sender the newest goes first, senders take turns, and one is fetched of each
/// at a time: who offers what nobody has keeps back only what is its own.
struct FetchQueue: Sendable {
  static let countMax = 1_024
  static let countMaxEach = 64
  static let runningMax = 2

  /// The oldest first.
  private var waiting: [PeerID: [FetchOffer]] = [:]
  /// Whose turn it is.
  private var turns: [PeerID] = []
  private var running: [FetchOffer] = []
  private(set) var count = 0

  mutating func add(_ offer: FetchOffer) {
    var own = waiting[offer.sender] ?? []
    guard !running.contains(where: { $0.id == offer.id }), !own.contains(where: { $0.id == offer.id }) else { return }
    if own.isEmpty { turns.append(offer.sender) }
    own.append(offer)
    count += 1
    if own.count > Self.countMaxEach {
      own.removeFirst()
      count -= 1
    }
    waiting[offer.sender] = own
    guard count > Self.countMax, let most = waiting.max(by: { $0.value.count < $1.value.count })?.key else { return }
    waiting[most]!.removeFirst()
    count -= 1
    if waiting[most]!.isEmpty { drop(most) }
  }

  /// Nil when as many are being fetched as may be, or none waits.
  mutating func take() -> FetchOffer? {
    guard running.count < Self.runningMax,
      let turn = turns.firstIndex(where: { sender in !running.contains { $0.sender == sender } })
    else { return nil }
    let sender = turns.remove(at: turn)
    guard let offer = waiting[sender]?.popLast() else { return nil }
    count -= 1
    if waiting[sender]!.isEmpty { waiting[sender] = nil } else { turns.append(sender) }
    running.append(offer)
    return offer
  }

  mutating func end(_ offer: FetchOffer) { running.removeAll { $0 == offer } }

  private mutating func drop(_ sender: PeerID) {
    waiting[sender] = nil
    turns.removeAll { $0 == sender }
  }
}

/// Which previews and voice are here; the oldest are forgotten when there are too many.
struct FetchedMedia: Sendable {
  private var ids: Set<MediaID> = []
  private var order: [MediaID] = []

  mutating func insert(_ id: MediaID) {
    guard ids.insert(id).inserted else { return }
    order.append(id)
    if order.count > FetchRules.keptCountMax { ids.remove(order.removeFirst()) }
  }

  mutating func remove(_ id: MediaID) {
    if ids.remove(id) != nil { order.removeAll { $0 == id } }
  }

  /// Of what a message announces.
  func known(of content: any MessageKind) -> [MediaID] {
    ids.isEmpty ? [] : content.allMedia.map(\.id).filter(ids.contains)
  }
}
