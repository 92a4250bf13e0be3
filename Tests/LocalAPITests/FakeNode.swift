import Parley
import Synchronization

/// A node without a network: remembers what was asked, answers what it was told to.
final class FakeNode: NodeServing {
  struct State {
    var calls: [String] = []
    var failure: ParleyError?
    var subscribers: [AsyncStream<NodeEvent>.Continuation] = []
    var downloadEvents: [DownloadEvent] = []
    var isDownloadEndless = false
    var paused: [DownloadID] = []
    var downloads: [DownloadSummary] = []
    /// What `bytes` gives.
    var bytes: [UInt8] = []
    var bufferingCounts: [Int] = []
  }
  let state = Mutex(State())
  let pauses = AsyncStream<DownloadID>.makeStream()
  let subscriptions = AsyncStream<Void>.makeStream()
  let stopping = AsyncStream<Void>.makeStream()
  /// Held back until this is finished, when set.
  let gate: AsyncStream<Void>?

  static let ana = PeerID(bytes: [UInt8](repeating: 1, count: 32))!
  static let ben = PeerID(bytes: [UInt8](repeating: 2, count: 32))!
  static let mediaID = MediaID(bytes: [UInt8](repeating: 3, count: 32))!
  static let members = [
    Member(peer: ana, displayName: "Ana", status: .online, isHandRaised: true, isSelf: true),
    Member(peer: ben, displayName: "Ben\u{1B}[2J", status: .offline, isHandRaised: false, isSelf: false),
  ]
  static let media = MediaReference(id: mediaID, fileName: "plan.pdf", byteCount: 42, mimeType: nil)

  init(gate: AsyncStream<Void>? = nil) { self.gate = gate }

  var calls: [String] { state.withLock { $0.calls } }

  func fail(with error: ParleyError?) { state.withLock { $0.failure = error } }

  func emit(_ event: NodeEvent) {
    for subscriber in state.withLock({ $0.subscribers }) { subscriber.yield(event) }
  }

  private func note(_ call: String) throws(ParleyError) {
    let failure = state.withLock { state in
      state.calls.append(call)
      return state.failure
    }
    if let failure { throw failure }
  }

  static func message(_ text: String, cursor: UInt64, channel: ChannelName?) -> Message {
    Message(
      channel: channel, id: MessageID("m\(cursor)")!, sender: ben, senderName: "Ben", timestamp: "2021-03-12T09:05:16Z",
      body: .text(text),
      json: """
        {"sender":{"display_name":"Ben","sender_id":"\(ben.text)"},"message_id":"m\(cursor)",\
        "timestamp":"2021-03-12T09:05:16Z","type":"text","body":"\(text)","cursor":"forged"}
        """, cursor: cursor, deliveredTo: [])
  }

  var peerID: PeerID { get async { Self.ana } }

  func status() async -> NodeStatus {
    NodeStatus(
      peer: Self.ana, displayName: "Ana", state: .connected, tcpPort: 4_000, interfaces: ["lo 127.0.0.1"],
      sessionCount: 1, nodesHeardCount: 3, channels: await channels())
  }

  func stop() async { stopping.continuation.finish() }

  func create(_ name: ChannelName, as type: ChannelType) async throws(ParleyError) {
    try note("create \(name)" + (type == .group ? "" : " as \(type)"))
  }

  func join(invitation: String) async throws(ParleyError) -> ChannelName {
    try note("join by \(invitation)")
    do { return try ChannelName("team") } catch { throw .badName(error) }
  }

  func invite(
    to name: ChannelName, as role: InvitedRole, expiringAfter seconds: Int?, uses: Int?
  ) async throws(ParleyError) -> InvitationLink {
    try note("invite \(name) \(role) \(seconds ?? 0) \(uses ?? 0)")
    return InvitationLink(
      channel: name, role: role, expires: 1_700_000_000_000, uses: nil, link: "parley://join/team#abc", code: nil)
  }

  func rotate(_ name: ChannelName) async throws(ParleyError) -> UInt64 {
    try note("rotate \(name)")
    return 7
  }

  func join(
    _ name: ChannelName, as type: ChannelType, secret: ChannelSecret, organiser: OrganiserKey?
  ) async throws(ParleyError) {
    let organiser = (type == .group ? "" : " as \(type)") + (organiser.map { " \($0)" } ?? "")
    switch secret {
    case .open: try note("join \(name) open\(organiser)")
    case .passphrase(let bytes):
      try note("join \(name) passphrase \(String(decoding: bytes, as: UTF8.self))\(organiser)")
    }
  }
  static let organiser = OrganiserKey(bytes: [UInt8](repeating: 4, count: 32))!
  func organiser(of name: ChannelName) async throws(ParleyError) -> OrganiserKey? {
    try note("organiser \(name)")
    return Self.organiser
  }
  func setOrganiser(_ key: OrganiserKey?, in name: ChannelName) async throws(ParleyError) {
    try note("set organiser \(name) \(key?.text ?? "-")")
  }
  func logIn(with token: LoginToken) async throws(ParleyError) { try note("log in \(token.name)") }
  func loginToken() async -> LoginToken? { nil }
  func leave(_ name: ChannelName) async throws(ParleyError) { try note("leave \(name)") }
  func setRole(_ role: RoleAssignment, of peer: String, in name: ChannelName) async throws(ParleyError) -> PeerID {
    try note("role \(name) \(peer) \(role)")
    return Self.ben
  }
  func recall(_ message: MessageReference, in name: ChannelName) async throws(ParleyError) {
    try note("recall \(name) \(message.id)")
  }
  func edit(_ message: MessageReference, _ edit: MessageEdit, in name: ChannelName) async throws(ParleyError) {
    try note("edit \(name) \(message.id) \(edit.json)")
  }
  func react(
    _ emoji: String, to message: MessageReference, isOn: Bool, in name: ChannelName
  ) async throws(ParleyError) {
    try note("react \(name) \(message.id) \(emoji) \(isOn)")
  }
  func pin(_ message: MessageReference, isOn: Bool, in name: ChannelName) async throws(ParleyError) {
    try note("pin \(name) \(message.id) \(isOn)")
  }
  func markRead(_ messages: [MessageReference], in name: ChannelName) async throws(ParleyError) {
    try note("read \(name) \(messages.map(\.id.text))")
  }
  func message(_ message: MessageReference, in name: ChannelName) async throws(ParleyError) -> Message? {
    message.id.text == "none" ? nil : Self.message("hello", cursor: 7, channel: name)
  }
  func pins(in name: ChannelName) async throws(ParleyError) -> [Message] {
    try note("pins \(name)")
    return [Self.message("pinned", cursor: 8, channel: name)]
  }
  func unmute(_ peer: String, in name: ChannelName) async throws(ParleyError) -> PeerID {
    try note("unmute \(name) \(peer)")
    return Self.ben
  }
  func unban(_ peer: String, in name: ChannelName) async throws(ParleyError) -> PeerID {
    try note("unban \(name) \(peer)")
    return Self.ben
  }
  func lowerHand(of peer: String, in name: ChannelName) async throws(ParleyError) -> PeerID {
    try note("lower \(name) \(peer)")
    return Self.ben
  }
  func announce(_ text: String, in name: ChannelName) async throws(ParleyError) { try note("announce \(name) \(text)") }
  func announcement(in name: ChannelName) async throws(ParleyError) -> Announcement? {
    Announcement(text: "At 9\u{1B}", author: Self.ana, timestamp: Timestamp(milliseconds: 0))
  }
  func close(_ name: ChannelName) async throws(ParleyError) { try note("close \(name)") }
  func channels() async -> [ChannelSummary] {
    [ChannelSummary(name: try! ChannelName("team"), isOpen: true, onlineCount: 1, memberCount: 2)]
  }
  func members(of name: ChannelName) async throws(ParleyError) -> [Member] {
    try note("members \(name)")
    return Self.members
  }
  func nodesHeardElsewhere() async -> Int { 3 }

  func broadcast(_ draft: MessageDraft) async throws(ParleyError) -> [BroadcastOutcome] {
    try note("broadcast \(draft.json)")
    let receipt = SendReceipt(id: MessageID("m1")!, deliveredTo: [], presentCount: 0)
    let stage = try! ChannelName("stage")
    return [
      BroadcastOutcome(channel: stage, receipt: receipt, error: nil),
      BroadcastOutcome(
        channel: stage, receipt: nil, error: .messageDropped(stage, .low, perSecondMax: 20)),
    ]
  }
  func settings(of name: ChannelName) async throws(ParleyError) -> ChannelSettings {
    try note("settings \(name)")
    return ChannelSettings()
  }
  func set(_ settings: ChannelSettings, of name: ChannelName) async throws(ParleyError) {
    let (days, entries) = (settings.historyDays ?? 0, settings.historyEntryCountMax ?? 0)
    try note(
      "set \(name) \(settings.isMuted) \(settings.includesOwnMessages) \(settings.sendsReceipts) \(days) \(entries)")
  }
  func settings(ofPeer peer: String) async throws(ParleyError) -> PeerSettings {
    try note("settings of \(peer)")
    return PeerSettings()
  }
  func set(_ settings: PeerSettings, ofPeer peer: String) async throws(ParleyError) {
    try note("set of \(peer) \(settings.isMuted) \(settings.includesOwnMessages) \(settings.sendsReceipts)")
  }

  func attributes(of name: ChannelName) async throws(ParleyError) -> [ChannelAttribute] {
    try note("attributes \(name)")
    return [
      ChannelAttribute(
        key: "seat 1", value: "Ben\u{1B}", author: Self.ben, timestamp: Timestamp(milliseconds: 0), isUntilLeave: true)
    ]
  }
  func setAttribute(
    _ key: String, to value: String, isOverwriting: Bool, isUntilLeave: Bool, in name: ChannelName
  ) async throws(ParleyError) {
    try note("attribute \(name) \(key)=\(value) \(isOverwriting) \(isUntilLeave)")
  }
  func removeAttribute(_ key: String, isOverwriting: Bool, in name: ChannelName) async throws(ParleyError) {
    try note("no attribute \(name) \(key) \(isOverwriting)")
  }

  func send(
    _ draft: MessageDraft, to name: ChannelName, waiting seconds: Double?
  ) async throws(ParleyError) -> SendReceipt {
    if let gate { for await _ in gate {} }
    try note("send \(name) \(draft.json) \(seconds.map { "\($0)" } ?? "-")")
    return SendReceipt(id: MessageID("m1")!, deliveredTo: [Self.ben], presentCount: 1)
  }
  func setHand(raised: Bool, in name: ChannelName) async throws(ParleyError) { try note("hand \(name) \(raised)") }
  func setTyping(_ isTyping: Bool, in name: ChannelName) async throws(ParleyError) {
    try note("typing \(name) \(isTyping)")
  }
  func history(of name: ChannelName, before cursor: UInt64?, limit: Int) async throws(ParleyError) -> [Message] {
    try note("history \(name)\(cursor.map { " before \($0)" } ?? "") \(limit)")
    return [Self.message("hello", cursor: 7, channel: name)]
  }
  func messages(with peer: String, before cursor: UInt64?, limit: Int) async throws(ParleyError) -> [Message] {
    try note("messages with \(peer)\(cursor.map { " before \($0)" } ?? "") \(limit)")
    return [Self.message("psst", cursor: 9, channel: nil)]
  }
  func search(_ text: String, in name: ChannelName?, limit: Int) async throws(ParleyError) -> [Message] {
    try note("search \(name?.text ?? "-") \(limit) \(text)")
    return [Self.message("found", cursor: 8, channel: name)]
  }
  func tell(_ draft: MessageDraft, peer: String) async throws(ParleyError) -> TellOutcome {
    try note("tell \(peer) \(draft.json)")
    return .queued(MessageID("m2")!)
  }

  static let verification = Verification(
    peer: ben, displayName: "Ben", code: "00001 00002 00003 00004 00005 00006", qrText: "parley://verify/a/b",
    isVerified: true)

  func verification(of peer: String) async throws(ParleyError) -> Verification {
    try note("verification \(peer)")
    return Self.verification
  }
  func verify(_ peer: String, scanned: String?) async throws(ParleyError) -> Verification {
    try note("verify \(peer) \(scanned ?? "-")")
    return Self.verification
  }
  func unverify(_ peer: String) async throws(ParleyError) -> Verification {
    try note("unverify \(peer)")
    return Self.verification
  }
  func block(_ peer: String) async throws(ParleyError) -> Contact {
    try note("block \(peer)")
    return Contact(peer: Self.ben, displayName: "Ben", verifiedAt: nil, isBlocked: true)
  }
  func unblock(_ peer: String) async throws(ParleyError) -> Contact {
    try note("unblock \(peer)")
    return Contact(peer: Self.ben, displayName: "Ben", verifiedAt: nil, isBlocked: false)
  }
  func contacts() async throws(ParleyError) -> [Contact] {
    try note("contacts")
    return [
      Contact(peer: Self.ben, displayName: "Ben", verifiedAt: Timestamp(milliseconds: 0), isBlocked: false)
    ]
  }

  func share(
    path: String, _ options: ShareOptions, in name: ChannelName,
    progress: @escaping @Sendable (ShareProgress) -> Void
  ) async throws(ParleyError) -> SharedMedia {
    let more = [options.seconds.map { "\($0) s" }, options.thumbnailPath, options.ext].compactMap {
      $0.map { " \($0)" }
    }
    try note("share \(path) \(options.kind?.rawValue ?? "-") \(name)\(more.joined())")
    progress(ShareProgress(hashedByteCount: 5, byteCount: 10, fileCount: 2))
    return SharedMedia(
      media: Self.media, fileCount: 2, skippedCount: 1,
      skipped: [SkippedFile(path: "a/link", reason: "is a symbolic link")])
  }
  func references(to ids: [MessageID], in name: ChannelName) async throws(ParleyError) -> [MessageReference] {
    try note("references \(name) \(ids.map(\.text).joined(separator: " "))")
    return ids.map { MessageReference(sender: Self.ben, id: $0) }
  }
  private static func list(_ messages: [MessageReference]) -> String {
    messages.map { "\($0.sender == ben ? "ben" : "ana")/\($0.id.text)" }.joined(separator: " ")
  }
  func forward(
    _ messages: [MessageReference], from name: ChannelName, to target: ForwardTarget
  ) async throws(ParleyError) -> [MessageID] {
    try note("forward \(name) \(Self.list(messages)) \(target)")
    return [MessageID("m3")!]
  }
  func combine(
    _ messages: [MessageReference], from name: ChannelName, to target: ChannelName?, _ draft: CombineDraft
  ) async throws(ParleyError) -> SendReceipt {
    let texts = "\(draft.title)|\(draft.summary)|\(draft.compatibleText)"
    try note("combine \(name) \(Self.list(messages)) \(target?.text ?? "-") \(texts)")
    return SendReceipt(id: MessageID("m4")!, deliveredTo: [], presentCount: 1)
  }
  func unpack(_ id: MediaID) async throws(ParleyError) -> [UnpackedMessage] {
    try note("unpack \(id)")
    return [
      UnpackedMessage(
        sender: Self.ben, senderName: "Ben", id: MessageID("m1")!, timestamp: "2021-03-12T09:05:16Z",
        body: .text("hi"), ext: nil, json: #"{"type":"text","body":"hi"}"#)
    ]
  }
  func unshare(_ id: MediaID) async throws(ParleyError) { try note("unshare \(id)") }
  func media(of name: ChannelName) async throws(ParleyError) -> [MediaSummary] {
    try note("media \(name)")
    return [
      MediaSummary(
        media: Self.media, kind: "file", sender: Self.ben, senderName: "Ben", holderCount: 2, isHeldHere: false)
    ]
  }
  func contents(of id: MediaID) async throws(ParleyError) -> MediaContents {
    try note("contents \(id)")
    return MediaContents(
      id: id, isFolder: true, byteCount: 3, files: [ContainedFile(path: "a/b", byteCount: 3, isExecutable: true)])
  }
  func download(
    _ id: MediaID, to target: DownloadTarget, _ choice: DownloadChoice
  ) async throws(ParleyError) -> (DownloadID, AsyncStream<DownloadEvent>) {
    try note("download \(id) \(target)" + (choice == .all ? "" : " \(choice.paths) \(choice.isApplyingExecutable)"))
    let (stream, continuation) = AsyncStream<DownloadEvent>.makeStream()
    let (events, isEndless) = state.withLock { ($0.downloadEvents, $0.isDownloadEndless) }
    for event in events { continuation.yield(event) }
    if !isEndless { continuation.finish() }
    return (DownloadID(9), stream)
  }
  func downloads() async throws(ParleyError) -> [DownloadSummary] {
    try note("downloads")
    return state.withLock { $0.downloads }
  }
  func pause(_ download: DownloadID) async throws(ParleyError) {
    try note("pause \(download.value)")
    state.withLock { $0.paused.append(download) }
    pauses.continuation.yield(download)
  }
  func resume(_ download: DownloadID) async throws(ParleyError) { try note("resume \(download.value)") }
  func cancel(_ download: DownloadID, keepingPart: Bool) async throws(ParleyError) {
    try note("cancel \(download.value) \(keepingPart)")
  }
  func bytes(of id: MediaID, range: ByteRange) async throws(ParleyError) -> MediaBytes {
    try note("bytes \(id) \(range)")
    let bytes = state.withLock { $0.bytes }
    let count = UInt64(bytes.count)
    let wanted: Range<UInt64> =
      switch range {
      case .all: 0..<count
      case .bytes(let range): range.clamped(to: 0..<count)
      case .from(let start): start..<count
      case .last(let last): count - last..<count
      }
    return MediaBytes(
      media: Self.media, download: DownloadID(9), byteCount: count, range: wanted,
      source: FakeBytes(Array(bytes[Int(wanted.lowerBound)..<Int(wanted.upperBound)])))
  }

  func events(bufferingCount: Int) async -> AsyncStream<NodeEvent> {
    let (stream, continuation) = AsyncStream<NodeEvent>.makeStream(bufferingPolicy: .bufferingNewest(bufferingCount))
    state.withLock { state in
      state.subscribers.append(continuation)
      state.bufferingCounts.append(bufferingCount)
    }
    subscriptions.continuation.yield()
    return stream
  }

  func events(
    since cursor: UInt64?, in channel: ChannelName?, bufferingCount: Int
  ) async throws(ParleyError) -> (cursor: UInt64, events: AsyncStream<NodeEvent>) {
    try note("events \(cursor.map { "\($0)" } ?? "-") \(channel?.text ?? "-")")
    return (cursor ?? 4_711, await events(bufferingCount: bufferingCount))
  }
}

/// Gives bytes in chunks of 100,000.
private final class FakeBytes: MediaByteSource {
  private let rest: Mutex<ArraySlice<UInt8>>

  init(_ bytes: [UInt8]) { rest = Mutex(bytes[...]) }

  func next() async throws(ParleyError) -> [UInt8]? {
    rest.withLock { rest in
      guard !rest.isEmpty else { return nil }
      defer { rest = rest.dropFirst(100_000) }
      return Array(rest.prefix(100_000))
    }
  }
}

extension FakeNode {
  func measures() async -> [Measure] {
    var histogram = Histogram()
    histogram.note(seconds: 0.003)
    return [
      .counts(
        "parley_members", .gauge, "Members.", [([(name: "channel", value: "a\"b\\c\nd")], 2)]),
      Measure("parley_store_commit_seconds", .histogram, "Commits.", [.init([], .histogram(histogram))]),
    ]
  }

  func diagnosis() async -> Diagnosis {
    Diagnosis(
      interfaces: [.init(name: "lo", addresses: ["127.0.0.1"], sentCount: 4, returnedCount: 4)],
      reached: [.init(peer: Self.ben, address: "127.0.0.1:4000")], unreachable: [],
      findings: [.init(.problem, "disk_nearly_full", "1 MB is free", advice: "make room")])
  }
}
