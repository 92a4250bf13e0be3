/// Everything a node does for its users: what `Node` promises, and what the local API serves. Tests of the local API
/// give another implementation.
public protocol NodeServing: ConversationServing {
  var peerID: PeerID { get async }
  func status() async -> NodeStatus
  /// What the node counts and measures of itself.
  func measures() async -> [Measure]
  /// What works of the network and this machine, what does not, and what to try.
  func diagnosis() async -> Diagnosis
  /// Leaves every channel properly and ends `run()`. Channels are joined again at the next start.
  func stop() async

  func join(
    _ name: ChannelName, as type: ChannelType, secret: ChannelSecret, organiser: OrganiserKey?
  ) async throws(ParleyError)
  /// Whose login tokens are asked for in the channel.
  func organiser(of name: ChannelName) async throws(ParleyError) -> OrganiserKey?
  func setOrganiser(_ key: OrganiserKey?, in name: ChannelName) async throws(ParleyError)
  /// In the place of an earlier one.
  func logIn(with token: LoginToken) async throws(ParleyError)
  func loginToken() async -> LoginToken?
  /// A new channel that this node owns.
  func create(_ name: ChannelName, as type: ChannelType) async throws(ParleyError)
  /// Joins an owned channel by the link of an invitation.
  func join(invitation: String) async throws(ParleyError) -> ChannelName
  func invite(
    to name: ChannelName, as role: InvitedRole, expiringAfter seconds: Int?, uses: Int?
  ) async throws(ParleyError) -> InvitationLink
  /// A new secret for the channel; the number of its generation.
  func rotate(_ name: ChannelName) async throws(ParleyError) -> UInt64
  func leave(_ name: ChannelName) async throws(ParleyError)
  func channels() async -> [ChannelSummary]
  /// Online members first, then offline; within each raised hands first, in the order of raising, then by name.
  func members(of name: ChannelName) async throws(ParleyError) -> [Member]
  /// Nodes heard in the last seconds whose channel is none of ours: explains an empty channel.
  func nodesHeardElsewhere() async -> Int

  func settings(of name: ChannelName) async throws(ParleyError) -> ChannelSettings
  func set(_ settings: ChannelSettings, of name: ChannelName) async throws(ParleyError)
  /// `peer` as in `tell`.
  func settings(ofPeer peer: String) async throws(ParleyError) -> PeerSettings
  func set(_ settings: PeerSettings, ofPeer peer: String) async throws(ParleyError)

  // Channels with an owner. What each throws beside: `.notAllowed`, `.excluded`.
  func setRole(_ role: RoleAssignment, of peer: String, in name: ChannelName) async throws(ParleyError) -> PeerID
  func unmute(_ peer: String, in name: ChannelName) async throws(ParleyError) -> PeerID
  func unban(_ peer: String, in name: ChannelName) async throws(ParleyError) -> PeerID
  func lowerHand(of peer: String, in name: ChannelName) async throws(ParleyError) -> PeerID
  func announce(_ text: String, in name: ChannelName) async throws(ParleyError)
  func announcement(in name: ChannelName) async throws(ParleyError) -> Announcement?
  func close(_ name: ChannelName) async throws(ParleyError)

  /// By key.
  func attributes(of name: ChannelName) async throws(ParleyError) -> [ChannelAttribute]
  func setAttribute(
    _ key: String, to value: String, isOverwriting: Bool, isUntilLeave: Bool, in name: ChannelName
  ) async throws(ParleyError)
  func removeAttribute(_ key: String, isOverwriting: Bool, in name: ChannelName) async throws(ParleyError)

  /// Returns once the message is stored and on the wire. `waiting`: seconds to wait until everybody present has it.
  func send(
    _ draft: MessageDraft, to name: ChannelName, waiting seconds: Double?
  ) async throws(ParleyError) -> SendReceipt
  /// To every room that this node helps to run.
  func broadcast(_ draft: MessageDraft) async throws(ParleyError) -> [BroadcastOutcome]
  func setHand(raised: Bool, in name: ChannelName) async throws(ParleyError)
  /// Sent at most once in 3 s, however often it is called.
  func setTyping(_ isTyping: Bool, in name: ChannelName) async throws(ParleyError)
  /// The last `limit` messages in the shared order, oldest first, with `cursor` those before it; hands are not shown.
  func history(of name: ChannelName, before cursor: UInt64?, limit: Int) async throws(ParleyError) -> [Message]
  /// The last `limit` messages between this node and one person, oldest first, with `cursor` those before it.
  func messages(with peer: String, before cursor: UInt64?, limit: Int) async throws(ParleyError) -> [Message]
  /// The newest messages with every word of `text`, at most `limit` (1 to 1,000), newest first; nil: in all channels.
  func search(_ text: String, in name: ChannelName?, limit: Int) async throws(ParleyError) -> [Message]
  /// `peer`: a PeerID's text, a unique prefix of it (4 characters or more), or a display name that only one person has.
  func tell(_ draft: MessageDraft, peer: String) async throws(ParleyError) -> TellOutcome

  /// Whose messages have these IDs.
  func references(to ids: [MessageID], in name: ChannelName) async throws(ParleyError) -> [MessageReference]
  /// The IDs of what is said again.
  func forward(
    _ messages: [MessageReference], from name: ChannelName, to target: ForwardTarget
  ) async throws(ParleyError) -> [MessageID]
  /// `target`: nil for the same channel.
  func combine(
    _ messages: [MessageReference], from name: ChannelName, to target: ChannelName?, _ draft: CombineDraft
  ) async throws(ParleyError) -> SendReceipt
  /// By the media ID of the bundle.
  func unpack(_ id: MediaID) async throws(ParleyError) -> [UnpackedMessage]

  /// `peer` as in `tell`.
  func verification(of peer: String) async throws(ParleyError) -> Verification
  func verify(_ peer: String, scanned: String?) async throws(ParleyError) -> Verification
  func unverify(_ peer: String) async throws(ParleyError) -> Verification
  func block(_ peer: String) async throws(ParleyError) -> Contact
  func unblock(_ peer: String) async throws(ParleyError) -> Contact
  func contacts() async throws(ParleyError) -> [Contact]

  /// Shares a file or a folder. `progress` is called in order while it is read, at most some 200 times; must not block.
  func share(
    path: String, _ options: ShareOptions, in name: ChannelName,
    progress: @escaping @Sendable (ShareProgress) -> Void
  ) async throws(ParleyError) -> SharedMedia
  func unshare(_ id: MediaID) async throws(ParleyError)
  func media(of name: ChannelName) async throws(ParleyError) -> [MediaSummary]
  /// What it stands for, before anything of it is downloaded.
  func contents(of id: MediaID) async throws(ParleyError) -> MediaContents
  /// Starts a download; events end with `.finished` or `.failed`.
  func download(
    _ id: MediaID, to target: DownloadTarget, _ choice: DownloadChoice
  ) async throws(ParleyError) -> (DownloadID, AsyncStream<DownloadEvent>)
  func downloads() async throws(ParleyError) -> [DownloadSummary]
  func pause(_ download: DownloadID) async throws(ParleyError)
  func resume(_ download: DownloadID) async throws(ParleyError)
  func cancel(_ download: DownloadID, keepingPart: Bool) async throws(ParleyError)
  /// The bytes of a file in order, verified, as they arrive.
  func bytes(of id: MediaID, range: ByteRange) async throws(ParleyError) -> MediaBytes

  /// Events from now on. A subscriber that does not keep up loses what does not fit `bufferingCount` and is told so
  /// by `.dropped`. The stream ends when the node has stopped.
  func events(bufferingCount: Int) async -> AsyncStream<NodeEvent>
  /// Every message stored after `cursor` (nil: from now on) once, then those to come; the cursor where that begins.
  func events(
    since cursor: UInt64?, in channel: ChannelName?, bufferingCount: Int
  ) async throws(ParleyError) -> (cursor: UInt64, events: AsyncStream<NodeEvent>)
}
