import ParleyDisk
import ParleyHashing
import ParleyMachines
import ParleySealing
import ParleyStore
import ParleyVocabulary
import ParleyWire

package enum StoreMail: Sendable {
  /// `keeping`: the places of entries that are never too old.
  case write(batch: UInt64, [MessagingRecord], keeping: Set<Int> = [])
  case load(LoadID, ChannelID, [LogRange], byteCountMax: Int)
  case restore(ChannelID)
  /// Give messaging what there is of acts; of all authors (nil) or of these.
  case loadActs(ChannelID, of: Set<PeerID>?)
  case member(ChannelID, MemberRecord)
  /// Shares and downloads. Nobody waits for it; trouble is told.
  case apply([StoreWrite])
  /// Tell membership the newest hidden entry of each log.
  case tellHidden(ChannelID)
  /// It is time to look for what is too old.
  case prune
  /// How much is kept of this channel from now on.
  case retain(ChannelID, Retention)
  /// Writes may have rested long enough for indexing.
  case index
  /// What was committed may not be on the disk.
  case syncFailed(StoreError)
}

/// The disk's side of messaging and membership: one thread, one database. What gathers while a commit runs shares the
/// next one.
package actor StoreActor {
  private let executor: ThreadExecutor
  let switchboard: Switchboard
  var opened: Store?
  private let path: String
  private let checks: SalvageChecks
  private let seal: (any StoreSeal)?
  /// What the disk refused last; nil while all is well. Told when it changes, not each time.
  private var refusal: StoreError?
  private let me: PeerID
  let retention: Retention
  /// Of channels for which the user wishes something else.
  var retentions: [ChannelID: Retention] = [:]
  let wake: @Sendable (Instant) -> Void
  let wakeIndexing: @Sendable (Instant) -> Void
  /// Channels in which there may be something to prune, in the order in which they were noticed.
  var toPrune: [ChannelID] = []
  /// When pruning may go on: what was read for a join is made use of first.
  var pruneFrom = Instant(microseconds: 0)
  /// A sync failed: nothing counts as kept until all of the log is in the file.
  private var isSyncBroken = false
  /// Indexing failed; it rests until somebody searches.
  var isIndexingBroken = false
  /// When writes will have rested long enough for indexing.
  var indexFrom = Instant(microseconds: 0)
  /// `.index` will be posted.
  var isIndexingAsked = false
  /// How long writes took.
  package private(set) var commitTimes = Histogram()

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Opens the database on its own thread. `channels`: those joined, for what a damaged one does not tell any more.
  /// At the moments given to `wake`, post `.prune`; at those given to `wakeIndexing`, `.index`.
  package static func open(
    path: String, me: PeerID, channels: [ChannelID], keys: RestKeys? = nil, retention: Retention,
    executor: ThreadExecutor, switchboard: Switchboard, wake: @escaping @Sendable (Instant) -> Void,
    wakeIndexing: @escaping @Sendable (Instant) -> Void
  ) async throws(StoreError) -> StoreActor {
    let checks = checks(me: me, channels: channels)
    let store = try await Opener(executor: executor).open(path, checks, keys)
    return StoreActor(
      store: store, path: path, checks: checks, seal: keys, me: me, retention: retention, executor: executor,
      switchboard: switchboard, wake: wake, wakeIndexing: wakeIndexing)
  }

  private init(
    store: sending Store, path: String, checks: SalvageChecks, seal: (any StoreSeal)?, me: PeerID, retention: Retention,
    executor: ThreadExecutor, switchboard: Switchboard, wake: @escaping @Sendable (Instant) -> Void,
    wakeIndexing: @escaping @Sendable (Instant) -> Void
  ) {
    opened = store
    self.path = path
    self.checks = checks
    self.seal = seal
    self.me = me
    self.retention = retention
    self.executor = executor
    self.switchboard = switchboard
    self.wake = wake
    self.wakeIndexing = wakeIndexing
  }

  var store: Store {
    get throws(StoreError) {
      guard let opened else { throw refusal ?? .closed }
      return opened
    }
  }

  /// Closes the database; another process may open it then. What is asked later fails.
  package func close() {
    opened = nil
    refusal = nil
  }

  /// A sentence for people when a damaged database was set aside at the start.
  package var setAside: String? {
    guard let opened, let path = opened.setAside else { return nil }
    let kept = opened.salvaged
    return "the message store was damaged (\(opened.setAsideReason ?? "unreadable")); it was kept as "
      + "\(path.escapedLine) and a new one was begun with what could be read of it: \(kept.entryCount) entries of "
      + "channels, \(kept.messageCount) messages between two, \(kept.waitingCount) that wait; what else others have "
      + "comes back from them"
  }

  /// What a damaged store is salvaged by: everything is verified before it is put back, as if it came from the network.
  package static func checks(me: PeerID, channels: [ChannelID]) -> SalvageChecks {
    SalvageChecks(
      channels: channels,
      entry: { channel, bytes in
        guard let entry = try? Entry(decoding: bytes[...]),
          Signature.verify(
            entry.signature, by: entry.key.author, context: Entry.context, channel: channel, log: entry.key.log,
            object: entry.signedPart)
        else { return nil }
        return stored(entry, in: channel, isKept: Act.isNeeded(entry), bytes)
      },
      message: { peer, isOwn, id, json in
        (try? SchemaMessage(decoding: json, author: isOwn ? me : peer))?.messageID == id
      })
  }

  /// Runs until the store's mailbox is closed.
  package func run() async {
    wake(SystemClock.now() + Self.pruneFirst)
    if let reason = opened?.readOnlyReason { refused(.readOnly(path: path, reason: reason)) }
    while true {
      await indexBehind()
      let mail = await switchboard.store.next()
      if mail.isEmpty { return switchboard.sync.close() }
      handle(mail)
      // Whoever waits for what was just committed has it.
      opened?.checkpointIfDue()
      pruneWhileIdle()
    }
  }

  private func handle(_ mail: [StoreMail]) {
    var writes: [StoreWrite] = []
    for letter in mail {
      switch letter {
      case .write(let batch, let records, let kept):
        let own = records.enumerated().map { Self.write($1, isKept: kept.contains($0)) }
        persist(batch, writes + own, skipping: writes.count)
        writes = []
      case .member(let channel, let record):
        writes.append(
          .member(
            StoredMember(
              channel: channel, peer: record.peer, displayName: record.displayName.text, isOnline: record.isOnline,
              incarnation: record.incarnation)))
      case .apply(let more): writes += more
      case .load(let load, let channel, let ranges, let byteCountMax):
        switchboard.post(.messaging(.loaded(load, entries(channel, ranges, byteCountMax))))
      case .restore(let channel): restore(channel)
      case .loadActs(let channel, let authors): loadActs(channel, of: authors)
      case .tellHidden(let channel): tellHidden(channel)
      case .prune: pruneEverything()
      case .retain(let channel, let retention): retain(channel, retention)
      case .index: isIndexingAsked = false
      case .syncFailed(let error): syncFailed(error)
      }
    }
    guard !writes.isEmpty else { return }
    do { _ = try write(writes) } catch { refused(error) }
  }

  func syncFailed(_ error: StoreError) {
    isSyncBroken = true
    refused(error)
    switchboard.post(.messaging(.syncFailed(reason: error.description)))
  }

  private func persist(_ batch: UInt64, _ writes: [StoreWrite], skipping count: Int) {
    do {
      let (cursors, isSynced) = try write(writes, isAwaited: writes.contains(where: isAwaited))
      let given = Array(cursors.dropFirst(count))
      tellActs(writes.dropFirst(count), given)
      if isSynced {
        switchboard.post(.messaging(.persisted(batch: batch, cursors: given)))
      } else {
        switchboard.post(.messaging(.committed(batch: batch, cursors: given)))
        if let log = try store.log { switchboard.sync.post(SyncMail(log: log, batch: batch)) }
      }
      noteSurplus(in: writes)
    } catch {
      refused(error)
      switchboard.post(.messaging(.persistFailed(batch: batch, reason: error.description)))
    }
  }

  /// Whether somebody waits for it to be on the disk: the caller of `send`, or whoever told us something in private.
  private func isAwaited(_ write: StoreWrite) -> Bool {
    switch write {
    case .entry(let entry): entry.key.author == me
    case .peerMessage, .localMessage, .outboxAdd: true
    default: false
    }
  }

  /// Also opens the store anew when that may help: one that could only be read and can be written now, and one that
  /// turns out to be damaged, which salvages what it holds.
  private func write(
    _ writes: [StoreWrite], isAwaited: Bool = true
  ) throws(StoreError) -> (cursors: [UInt64], isSynced: Bool) {
    if opened?.readOnlyReason != nil, Store.isWritable(path: path) { try reopen() }
    if opened == nil, refusal != nil { try reopen() }
    if isSyncBroken {
      try store.syncAnew()
      isSyncBroken = false
    }
    let done: (cursors: [UInt64], isSynced: Bool)
    let from = SystemClock.now()
    do throws(StoreError) {
      done = isAwaited ? (try store.apply(writes), true) : try store.commit(writes)
    } catch {
      guard case .damaged = error else { throw error }
      try reopen()
      done = (try store.apply(writes), true)
    }
    commitTimes.note(seconds: Double((SystemClock.now() - from).microseconds) / 1_000_000)
    if refusal != nil {
      refusal = nil
      switchboard.notices(.disk(nil))
    }
    noteWrite()
    return done
  }

  private func reopen() throws(StoreError) {
    let wasReadOnly = opened?.readOnlyReason
    // One at a time may have the file.
    opened = nil
    do throws(StoreError) {
      let store = try Store(path: path, checks: checks, seal: seal)
      opened = store
      if let trouble = setAside { switchboard.notices(.trouble(trouble)) }
    } catch {
      if let wasReadOnly { opened = try? Store(reading: path, because: wasReadOnly, seal: seal) }
      refused(error)
      throw error
    }
  }

  private func refused(_ error: StoreError) {
    if refusal == error { return }
    refusal = error
    switchboard.notices(.disk(error.description))
  }

  func report(_ error: StoreError) { switchboard.notices(.trouble(error.description)) }

  private static func write(_ record: MessagingRecord, isKept: Bool) -> StoreWrite {
    switch record {
    case .entry(let channel, let entry): .entry(stored(entry, in: channel, isKept: isKept, entry.encoded))
    case .peerMessage(let peer, let id, let json, let isOwn):
      .peerMessage(StoredPeerMessage(peer: peer, isOwn: isOwn, id: id, json: json))
    case .local(let message, _):
      .localMessage(
        StoredLocalMessage(
          channel: message.channel, author: message.author, id: message.id, lamport: message.lamport,
          kind: message.kind, json: message.json))
    case .outboxAdd(let message, _):
      .outboxAdd(OutboxItem(peer: message.peer, id: message.id, json: message.json))
    case .outboxRemove(let peer, let id): .outboxRemove(peer, id)
    case .delivered(let channel, let log, let peer, let number):
      .delivered(channel, log: log, peer: peer, number: number)
    case .floor(let channel, let key, let number): .floor(channel, key, number)
    }
  }

  private func entries(_ channel: ChannelID, _ ranges: [LogRange], _ byteCountMax: Int) -> [[UInt8]] {
    var found: [[UInt8]] = []
    var left = byteCountMax
    for range in ranges where left > 0 {
      do {
        let part = try store.entries(
          in: channel, key: range.key, from: range.from, through: range.through, byteCountMax: left)
        found += part.map(\.bytes)
        left -= part.reduce(0) { $0 + $1.bytes.count }
      } catch {
        report(error)
      }
    }
    return found
  }

  private func restore(_ channel: ChannelID) {
    pruneFrom = SystemClock.now() + Self.pruneAfterJoin
    do {
      // What it holds will be acknowledged.
      try sync()
      let logs = try store.logs(in: channel).map {
        RestoredLog(key: $0.key, floor: $0.floor, contiguous: $0.contiguous, beyond: $0.beyond)
      }
      let lamport = LamportRule.restored(try store.lamportMaxima(in: channel), me: me)
      let members = try store.members(in: channel).compactMap { member -> MemberRecord? in
        guard let name = try? DisplayName(member.displayName) else { return nil }
        return MemberRecord(
          peer: member.peer, displayName: name, isOnline: false, incarnation: member.incarnation)
      }
      try tellWaitingActs(channel)
      switchboard.post(.login(.restored(channel, logs: logs, lamport: lamport, members: members)))
    } catch {
      switchboard.post(.login(.restoreFailed(channel, reason: error.description)))
    }
  }

  /// Hands that were up when this node stopped still are, in the logs of those who run on.
  private func tellHidden(_ channel: ChannelID) {
    do {
      for stored in try store.lastHiddenEntries(in: channel) {
        guard let entry = try newestHand(stored) else { continue }
        switchboard.post(.membership(.hiddenEntryStored(channel, entry)))
      }
    } catch {
      report(error)
    }
  }

  // MARK: Reading

  /// The newest messages between this node and `peer` before `cursor` (nil: the last ones), the newest first, and which
  /// of them still wait for that peer.
  package func peerMessages(
    with peer: PeerID, before cursor: UInt64?, limit: Int
  ) throws(StoreError) -> (messages: [StoredPeerMessage], waiting: Set<MessageID>) {
    let store = try store
    return (
      try store.peerMessages(with: peer, before: cursor, limit: limit), Set(try store.outbox(for: peer).map(\.id))
    )
  }

  package func outbox() throws(StoreError) -> [RestoredOutboxMessage] {
    let store = try store
    return try store.outbox().map { item in
      let waited = max(0, min(store.age - item.queuedAt, Int64(Int32.max) * 1_000))
      return RestoredOutboxMessage(
        OutboxMessage(peer: item.peer, id: item.id, json: item.json), age: .milliseconds(Int(waited)))
    }
  }

  /// For each of our logs: who has it, up to which number.
  package func delivered(in channel: ChannelID) throws(StoreError) -> [LogDelivery] {
    try store.delivered(in: channel).map { LogDelivery(log: $0.0, peer: $0.1, number: $0.2) }
  }

  package func isShared(_ id: MediaID) throws(StoreError) -> Bool { try store.share(id) != nil }

  package func contacts() throws(StoreError) -> [StoredContact] { try store.contacts() }

  /// Whose login tokens are believed there, by the user's choice, and those that were shown.
  package func tokens(in channel: ChannelID) throws(StoreError) -> (organiser: OrganiserKey?, tokens: [String]) {
    (try store.organiser(of: channel), try store.tokens(in: channel).map(\.text))
  }

  /// Downloads of earlier runs that can be gone on with.
  package func downloads() throws(StoreError) -> [StoredDownload] { try store.downloads() }

  /// What is remembered of these files, by their place among them.
  package func hashes(of sources: ArraySlice<FileSource>) throws(StoreError) -> [Int: [Hash32]] {
    let files = sources.map {
      (
        path: $0.path, byteCount: $0.facts.byteCount, modifiedNanoseconds: $0.facts.modifiedNanoseconds,
        inode: $0.facts.inode
      )
    }
    var found: [Int: [Hash32]] = [:]
    for (index, bytes) in try store.hashes(of: files) {
      found[sources.startIndex + index] = stride(from: 0, to: bytes.count - 31, by: 32).map {
        Hash32(bytes: bytes[$0..<$0 + 32])!
      }
    }
    return found
  }

  package func shares(in channel: ChannelID) throws(StoreError) -> [StoredShare] { try store.shares(in: channel) }

  package func apply(_ writes: [StoreWrite]) throws(StoreError) { _ = try write(writes) }
}

package struct LogDelivery: Sendable, Equatable {
  package let log: Instance
  package let peer: PeerID
  package let number: UInt64
}

/// Opens the store where it will be used, so that no other thread ever touches it.
private actor Opener {
  private let executor: ThreadExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  init(executor: ThreadExecutor) { self.executor = executor }
  func open(
    _ path: String, _ checks: SalvageChecks, _ seal: (any StoreSeal)?
  ) throws(StoreError) -> sending Store {
    do throws(StoreError) {
      return try Store(path: path, checks: checks, seal: seal)
    } catch {
      guard case .readOnly(_, let reason) = error else { throw error }
      return try Store(reading: path, because: reason, seal: seal)
    }
  }
}
