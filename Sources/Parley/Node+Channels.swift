import Glibc
import ParleyActors
import ParleyMachines
import ParleySealing
import ParleyVocabulary
import ParleyWire

extension Node {
  /// Joins a channel, and again at every start until `leave`. Joining twice with the same secret changes nothing.
  /// A room and a group of one name are two channels, and everybody who joins says which one they mean.
  ///
  /// `organiser`: what is said without a login token of theirs is not shown (see `setOrganiser(_:in:)`); nil leaves
  /// that as it was. Throws `.otherSecret`, `.tooManyChannels`, `.badPassphrase`.
  public func join(
    _ name: ChannelName, as type: ChannelType = .group, secret: ChannelSecret, organiser: OrganiserKey? = nil
  ) async throws(ParleyError) {
    let engine = try await running()
    let keys: ChannelKeys
    switch secret {
    case .open: keys = ChannelKeys.open(name: name, type: type)
    case .passphrase(let bytes):
      do { keys = try await derive(name, bytes, type) } catch { throw .badPassphrase(error.description) }
    }
    if let organiser { try await choose(organiser, keys.id, engine) }
    try await enterAndKeep(keys, engine)
  }

  /// Argon2id takes a tenth of a second and 64 MiB: on a thread of its own.
  private func derive(
    _ name: ChannelName, _ bytes: [UInt8], _ type: ChannelType
  ) async throws(SealingError) -> ChannelKeys {
    let thread = ThreadExecutor()
    defer { thread.stop() }
    return try await Deriver(executor: thread).passphrase(name, bytes, type)
  }

  func enter(_ keys: ChannelKeys, _ engine: Engine) async throws(ParleyError) {
    hub.remember(keys)
    keepHistory(of: keys.id, engine)
    await restoreTokens((keys.id, keys.name), engine)
    switchboard.links.post(.install(keys))
    if let ownership = keys.ownership {
      hub.rulebook.begin(keys.id, ownership)
      switchboard.messaging.post(.owned(keys.id, ownership))
      switchboard.store.post(.loadActs(keys.id, of: nil))
    }
    let answer = await engine.login.join(keys.name, keys.id)
    switchboard.links.post(.uninstall(keys.id))
    hub.forgetUnjoined(keys.id)
    switch answer {
    case nil: throw .stopped
    case .done: break
    case .otherSecret: throw .otherSecret(keys.name)
    case .tooMany(let countMax): throw .tooManyChannels(countMax: countMax)
    case .notInChannel: throw .notInChannel(keys.name)
    case .disk(let reason): throw .profileDamaged(path: settings.home, reason: reason)
    case .aborted: throw .aborted
    }
    if let deliveries = try? await engine.store.delivered(in: keys.id) {
      hub.restoreDeliveries(deliveries, in: keys.id)
    }
    if let joined = hub.channel(named: keys.name) {
      await restoreAnnouncements(engine, in: joined)
      await restoreShares(engine, in: joined)
      await restoreAttributes(engine, in: joined)
    }
  }

  /// In pages: the last 10,000 entries at once would be 20 MiB and more, for the few of them that announce media.
  func restoreAnnouncements(_ engine: Engine, in joined: Hub.Joined) async {
    let pageEntryCount = 100
    var announcements: [Message] = []
    var next: OrderKey?
    var byteCount = 0
    for _ in 0..<AnnouncedMedia.countMax / pageEntryCount {
      let page = try? await engine.store.history(of: joined.id, before: next, limit: pageEntryCount)
      for (entry, cursor) in page?.entries ?? [] {
        let messages = hub.messages(entry, channel: joined.id, name: joined.name, cursor: cursor)
        for message in messages.reversed() where message.media != nil || message.bundle != nil {
          announcements.append(message)
          byteCount += AnnouncedMedia.byteCount(message)
        }
      }
      next = page?.next
      // Older ones would be forgotten again at once.
      if next == nil || byteCount > AnnouncedMedia.byteCountMax { break }
    }
    for message in announcements.reversed() { hub.note(message, in: joined.id) }
  }

  /// Lowers our hand, says goodbye, and does not join again at the next start. History stays on disk; downloads from
  /// this channel end. Throws `.notInChannel`.
  public func leave(_ name: ChannelName) async throws(ParleyError) {
    let engine = try await running()
    let joined = try channel(name)
    if let members = try? await members(of: name), members.contains(where: { $0.isSelf && $0.isHandRaised }) {
      try? await setHand(raised: false, in: name)
    }
    await removeOwnAttributes(in: joined, engine)
    switch await engine.login.leave(name) {
    case .done: break
    case nil: throw .stopped
    case .aborted: throw .aborted
    case .otherSecret, .tooMany, .notInChannel, .disk: throw .notInChannel(name)
    }
    guard self.engine != nil else { throw .stopped }
    do { _ = try profile.removeChannel(joined.id) } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
  }

  func channel(_ name: ChannelName) throws(ParleyError) -> Hub.Joined {
    guard let joined = hub.channel(named: name) else { throw .notInChannel(name) }
    return joined
  }

  /// The channels this node is in, by name.
  public func channels() async -> [ChannelSummary] {
    var summaries: [ChannelSummary] = []
    for joined in hub.channels {
      let members = await engine?.membership.members(of: joined.id) ?? []
      summaries.append(
        ChannelSummary(
          name: joined.name, isOpen: joined.isOpen, onlineCount: members.count(where: \.isOnline),
          memberCount: members.count, type: joined.type, droppedCount: hub.droppedCount(in: joined.id)))
    }
    return summaries
  }

  /// Online first, then offline; within each those with a raised hand first, in the order in which all members see
  /// them raised, then by name. Throws `.notInChannel`.
  public func members(of name: ChannelName) async throws(ParleyError) -> [Member] {
    let engine = try await running()
    let joined = try channel(name)
    let members = await engine.membership.members(of: joined.id).map { hub.value($0, in: joined.id) }
    let hands = members.lazy.filter(\.isHandRaised).map(\.peer)
    let places = Dictionary(uniqueKeysWithValues: zip(hands, 0...))
    return members.sorted { a, b in
      if a.status != b.status { return a.status == .online }
      if a.isHandRaised != b.isHandRaised { return a.isHandRaised }
      if let first = places[a.peer], let second = places[b.peer] { return first < second }
      return (a.displayName, a.peer) < (b.displayName, b.peer)
    }
  }

  /// Everybody met in any channel, present ones first.
  func peers(_ engine: Engine) async -> [PeerSummary] {
    var found: [PeerID: PeerSummary] = [:]
    for joined in hub.channels {
      for view in await engine.membership.members(of: joined.id) where view.peer != peerID {
        let isOnline = view.isOnline || found[view.peer]?.isOnline == true
        found[view.peer] = PeerSummary(
          peer: view.peer, displayName: view.displayName.text, isOnline: isOnline)
      }
    }
    return found.values.sorted { a, b in
      (a.isOnline ? 0 : 1, a.displayName, a.peer) < (b.isOnline ? 0 : 1, b.displayName, b.peer)
    }
  }

  static var loginName: String {
    guard let entry = getpwuid(getuid()), let name = entry.pointee.pw_name else { return "somebody" }
    return String(cString: name)
  }
}

private actor Deriver {
  private let executor: ThreadExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  init(executor: ThreadExecutor) { self.executor = executor }
  func passphrase(
    _ name: ChannelName, _ bytes: [UInt8], _ type: ChannelType
  ) throws(SealingError) -> ChannelKeys {
    try ChannelKeys.passphrase(name: name, bytes, type: type)
  }
}
