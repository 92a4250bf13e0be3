import Parley

/// Settings of channels and people.
extension Router {
  func settings(_ text: String) async throws -> Reply {
    .json(JSON(try await node.settings(of: try ChannelName(text))))
  }

  /// What is not named stays as it is.
  func set(_ text: String, _ request: Request) async throws -> Reply {
    let name = try ChannelName(text)
    let fields = try Fields(
      request,
      known: ["muted", "own_messages", "receipts", "previews", "voice", "history_days", "history_entries"])
    let (isMuted, includesOwn) = (try fields.bool("muted"), try fields.bool("own_messages"))
    let sends = try fields.bool("receipts")
    let (previews, voice) = (try fields.bool("previews"), try fields.bool("voice"))
    let (days, entries) = (try fields.count("history_days"), try fields.count("history_entries"))
    var settings = try await node.settings(of: name)
    if let isMuted { settings.isMuted = isMuted }
    if let includesOwn { settings.includesOwnMessages = includesOwn }
    if let sends { settings.sendsReceipts = sends }
    if let previews { settings.downloadsThumbnails = previews }
    if let voice { settings.downloadsVoice = voice }
    // Null is something else than nothing.
    if fields.names("history_days") { settings.historyDays = days }
    if fields.names("history_entries") { settings.historyEntryCountMax = entries }
    try await node.set(settings, of: name)
    return .json(JSON(settings))
  }

  func peerSettings(_ peer: String) async throws -> Reply {
    .json(JSON(try await node.settings(ofPeer: peer)))
  }

  func setPeer(_ peer: String, _ request: Request) async throws -> Reply {
    let fields = try Fields(request, known: ["muted", "own_messages", "receipts"])
    let (isMuted, includesOwn) = (try fields.bool("muted"), try fields.bool("own_messages"))
    let sends = try fields.bool("receipts")
    var settings = try await node.settings(ofPeer: peer)
    if let isMuted { settings.isMuted = isMuted }
    if let includesOwn { settings.includesOwnMessages = includesOwn }
    if let sends { settings.sendsReceipts = sends }
    try await node.set(settings, ofPeer: peer)
    return .json(JSON(settings))
  }
}

extension JSON {
  init(_ settings: ChannelSettings) {
    self = [
      "muted": .bool(settings.isMuted), "own_messages": .bool(settings.includesOwnMessages),
      "receipts": .bool(settings.sendsReceipts), "previews": .bool(settings.downloadsThumbnails),
      "voice": .bool(settings.downloadsVoice), "history_days": settings.historyDays.map { .count($0) } ?? .null,
      "history_entries": settings.historyEntryCountMax.map { .count($0) } ?? .null,
    ]
  }

  init(_ settings: PeerSettings) {
    self = [
      "muted": .bool(settings.isMuted), "own_messages": .bool(settings.includesOwnMessages),
      "receipts": .bool(settings.sendsReceipts),
    ]
  }
}
