import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// One node: its disk and its application, which outlive a crash, and the process that runs now.
final class SimulatedNode {
  let index: Int
  let name: DisplayName
  let sealer: NodeSealer
  var peer: PeerID { sealer.peer }
  let store: SimulatedStore
  /// Of owned channels; on the disk.
  var keyrings: [ChannelID: SimulatedKeyring] = [:]
  let clock: SimulatedClock
  let fault: SimulatedFault?
  unowned let network: SimulatedNetwork
  private(set) var process: SimulatedProcess?
  /// Counts the processes; what is addressed to an earlier one is dropped.
  private(set) var run = 0
  private(set) var isHostUp = true
  private(set) var isPaused = false
  private(set) var awakeSince = Instant(microseconds: 0)
  var host: [UInt8]
  var heldDatagrams: [SimulatedNetwork.Datagram] = []
  private var held: [() -> Void] = []
  var application = Application()
  /// Channels to be in, also after a restart.
  var wanted: [ChannelName] = []
  /// Since when it is in a channel no more: left, or crashed.
  var goneSince: [ChannelID: Instant] = [:]
  var traffic = SimulatedTraffic()
  /// Of all its runs so far.
  var effectCount = 0
  var diskFailsUntil = Instant(microseconds: 0)
  private var pendingCommits: [(id: UInt64, records: [MessagingRecord], batch: UInt64)] = []
  /// The last commit and batch that the next sync is for.
  private var committedThrough: (id: UInt64, batch: UInt64)?
  private var lastNewsAt = Instant(microseconds: 0)
  private var nextCommit: UInt64 = 1
  private var lastCommitAt = Instant(microseconds: 0)
  private var nextRequest: UInt64 = 1
  private var nextMessage: UInt64 = 1
  private var instances: UInt64 = 0

  init(
    _ index: Int, _ name: DisplayName, _ clock: SimulatedClock, _ fault: SimulatedFault?, in network: SimulatedNetwork
  ) {
    self.index = index
    self.name = name
    self.clock = clock
    self.fault = fault
    self.network = network
    sealer = NodeSealer(network.sealing, seed: network.seed, index: index)
    store = SimulatedStore(fault: fault)
    host = [10, 0, UInt8((index + 1) >> 8), UInt8((index + 1) & 0xFF)]
  }

  // MARK: Life

  func start() {
    guard process == nil else { return }
    run += 1
    isHostUp = true
    isPaused = false
    awakeSince = network.now
    if instances == 0 || fault != .keepsItsInstance { instances += 1 }
    application.members = [:]
    application.open = []
    // What an earlier process left to the system is synced before it is counted on.
    store.syncAll()
    let started = SimulatedProcess(self, incarnation: instances, seed: network.dice.next())
    process = started
    started.post(.messaging(.outboxRestored(store.outbox.map { RestoredOutboxMessage($0, age: .seconds(0)) })))
    started.post(.login(.loggedIn(name, incarnation: instances)))
    started.post(.login(.interfacesChanged(workingCount: 1)))
    if fault == .notifiesAgain { application.forgetWhatItWasTold() }
    network.checker.restarted(self, network)
    for channel in wanted { started.join(channel) }
  }

  /// The process ends at once; of the commits on their way some may have been made, and when the power is cut, of those
  /// not synced the last ones are lost.
  func crash(isHostDead: Bool) {
    guard let ended = process else { return }
    ended.isEnded = true
    process = nil
    for commit in pendingCommits {
      guard network.chance(0.5) else { break }
      _ = store.commit(commit.records, as: commit.id)
      network.checker.committed(commit.records, by: self, network)
    }
    pendingCommits = []
    committedThrough = nil
    if isHostDead { store.cutPower(losing: Int(network.dice.next() % UInt64(store.unsyncedCount + 1))) }
    application.unsynced = []
    held = []
    heldDatagrams = []
    isPaused = false
    if fault == .losesLastBatch { store.loseLastBatch() }
    if fault == .losesOutboxItem { store.loseNewestOutboxItem() }
    if isHostDead { isHostUp = false }
    network.closeStreams(of: index, run: run)
    network.checker.crashed(self, network)
  }

  func pause() { if process != nil { isPaused = true } }

  func resume() {
    guard isPaused else { return }
    isPaused = false
    awakeSince = network.now
    let waiting = held
    held = []
    let datagrams = heldDatagrams
    heldDatagrams = []
    for act in waiting { act() }
    for datagram in datagrams { process?.heard(datagram) }
  }

  // MARK: Events from outside

  func post(_ event: NodeEvent, run: Int) { later(run) { $0.post(event) } }
  func wake(_ room: Room, run: Int) { later(run) { $0.woke(room) } }

  func act(_ act: @escaping (SimulatedProcess) -> Void) { later(run, act) }

  private func later(_ run: Int, _ act: @escaping (SimulatedProcess) -> Void) {
    guard run == self.run, let process else { return }
    if isPaused { held.append { act(process) } } else { act(process) }
  }

  func hear(_ bytes: [UInt8], _ link: LinkID, _ process: SimulatedProcess, _ stream: StreamID, fromInitiator: Bool) {
    later(run) { $0.heard(bytes, link, stream, fromInitiator: fromInitiator) }
  }

  // MARK: The disk

  func persist(_ records: [MessagingRecord], batch: UInt64) {
    let id = nextCommit
    nextCommit += 1
    pendingCommits.append((id, records, batch))
    let delay = network.dice.span(network.conditions.diskDelay.lowerBound, network.conditions.diskDelay.upperBound)
    lastCommitAt = max(lastCommitAt, network.now) + delay
    network.queue.add(.commit(index, run: run, id), at: lastCommitAt)
    if fault == .acknowledgesBeforePersisting {
      let cursors = records.indices.map { UInt64(1) << 32 + nextCommit << 12 + UInt64($0) }
      process?.post(.messaging(.persisted(batch: batch, cursors: cursors)))
    }
  }

  func commit(_ id: UInt64, run: Int) {
    guard run == self.run, let at = pendingCommits.firstIndex(where: { $0.id == id }) else { return }
    let commit = pendingCommits.remove(at: at)
    if diskFailsUntil > network.now {
      post(.messaging(.persistFailed(batch: commit.batch, reason: "no space left on device")), run: run)
      return
    }
    let cursors = store.commit(commit.records, as: commit.id)
    network.checker.committed(commit.records, by: self, network)
    guard fault != .acknowledgesBeforePersisting else { return }
    // As the store does it: what somebody waits for is synced at once, the rest together, later.
    let isAwaited = commit.records.contains { self.isAwaited($0) }
    if isAwaited { store.sync(through: commit.id) }
    let isTakenForSynced = isAwaited || fault == .takesCommittedForSynced
    // Between the commit and the news of it a process may die.
    network.schedule(
      .event(
        index, run: run,
        .messaging(
          isTakenForSynced
            ? .persisted(batch: commit.batch, cursors: cursors) : .committed(batch: commit.batch, cursors: cursors))),
      after: newsDelay())
    guard !isTakenForSynced else { return }
    let isSyncAsked = committedThrough != nil
    committedThrough = (commit.id, commit.batch)
    if isSyncAsked { return }
    network.queue.add(.sync(index, run: run), at: network.now + network.dice.span(.milliseconds(1), .milliseconds(20)))
  }

  /// News come in the order of what happened.
  private func newsDelay() -> Span {
    lastNewsAt = max(lastNewsAt, network.now + network.dice.span(.milliseconds(0), .milliseconds(1)))
    return lastNewsAt - network.now
  }

  private func isAwaited(_ record: MessagingRecord) -> Bool {
    switch record {
    case .entry(_, let entry): entry.key.author == peer
    case .peerMessage, .local, .outboxAdd: true
    case .outboxRemove, .delivered, .floor: false
    }
  }

  func sync(run: Int) {
    guard run == self.run, let through = committedThrough else { return }
    committedThrough = nil
    let event: MessagingEvent
    if diskFailsUntil > network.now {
      event = .syncFailed(reason: "the disk failed")
    } else {
      store.sync(through: through.id)
      event = .synced(through: through.batch)
    }
    network.schedule(.event(index, run: run, .messaging(event)), after: newsDelay())
  }

  // MARK: What people do

  func takeRequest() -> RequestID {
    nextRequest += 1
    return RequestID(nextRequest)
  }

  func isGenuine(_ grant: Grant, in channel: ChannelID) -> Bool {
    sealer.verify(
      grant.signature, grant.signedPart, context: Grant.context, channel, Grant.log, by: grant.inviter)
  }

  var nextMessageID: MessageID { MessageID("\(name.text)-\(nextMessage)")! }

  func takeMessageID() -> MessageID {
    defer { nextMessage += 1 }
    return MessageID("\(name.text)-\(nextMessage)")!
  }

  func message(_ content: any MessageKind, id: MessageID?) -> [UInt8] {
    let timestamp = Timestamp(milliseconds: Int64(clock.milliseconds(at: network.now)))
    return SchemaMessage(
      sender: Sender(peer: peer, displayName: name), messageID: id, timestamp: id == nil ? nil : timestamp.text,
      content: content
    ).encoded
  }
}

/// What the application of a node was told: it keeps its place, as a subscriber with a cursor does, and so is told what
/// is on the disk. Another, without one, is shown what was committed.
struct Application {
  enum News {
    case entry(ChannelID, Entry, cursor: UInt64)
    case peerMessage(SimulatedStore.PeerKey, cursor: UInt64)

    var cursor: UInt64 {
      switch self {
      case .entry(_, _, let cursor), .peerMessage(_, let cursor): cursor
      }
    }
  }

  /// Shown, not told yet.
  var unsynced: [News] = []
  struct Told: Hashable {
    let channel: ChannelID
    let key: LogKey
    let number: UInt64
  }

  var told: Set<Told> = []
  var cursors: [ChannelID: UInt64] = [:]
  var resumedThrough: [ChannelID: UInt64] = [:]
  var peerMessages: Set<SimulatedStore.PeerKey> = []
  var peerCursor: UInt64 = 0
  /// What was to be said to whom, by the request.
  var said: [RequestID: SimulatedStore.PeerKey] = [:]
  var members: [ChannelID: [PeerID: MemberView]] = [:]
  /// Requests without an answer yet.
  var open: Set<RequestID> = []
  var failures: [RequestID: MessagingFailure] = [:]
  var delivered: [ChannelID: [LogKey: [PeerID: UInt64]]] = [:]

  mutating func forgetWhatItWasTold() {
    cursors = [:]
    peerCursor = 0
  }
}
