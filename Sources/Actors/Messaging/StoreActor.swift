import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

package enum StoreMail: Sendable {
  case write(batch: UInt64, [MessagingRecord])
  case load(LoadID, ChannelID, [LogRange], byteCountMax: Int)
  case restore(ChannelID)
  case member(ChannelID, MemberRecord)
  /// Tell membership the newest hidden entry of each log.
  case tellHidden(ChannelID)
}

/// The disk's side of messaging and membership: one thread, one database. What gathers while a commit runs shares the
/// next one.
package actor StoreActor {
  private let executor: ThreadExecutor
  private let switchboard: Switchboard
  private let store: Store
  private let me: PeerID

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Opens the database on its own thread.
  package static func open(
    path: String, me: PeerID, executor: ThreadExecutor, switchboard: Switchboard
  ) async throws(StoreError) -> StoreActor {
    let store = try await Opener(executor: executor).open(path)
    return StoreActor(store: store, me: me, executor: executor, switchboard: switchboard)
  }

  private init(store: sending Store, me: PeerID, executor: ThreadExecutor, switchboard: Switchboard) {
    self.store = store
    self.me = me
    self.executor = executor
    self.switchboard = switchboard
  }

  /// A sentence for people when a damaged database was set aside at the start.
  package var setAside: String? {
    guard let path = store.setAside else { return nil }
    return "the message store was damaged (\(store.setAsideReason ?? "unreadable")); it was kept as "
      + "\(path.escapedLine) and a new one was begun: what others still have comes back from them"
  }

  /// Runs until the switchboard closes.
  package func run() async {
    while true {
      let mail = await switchboard.store.next()
      if mail.isEmpty { return }
      handle(mail)
    }
  }

  private func handle(_ mail: [StoreMail]) {
    var writes: [StoreWrite] = []
    for letter in mail {
      switch letter {
      case .write(let batch, let records):
        persist(batch, writes + records.map(Self.write), skipping: writes.count)
        writes = []
      case .member(let channel, let record):
        writes.append(
          .member(
            StoredMember(
              channel: channel, peer: record.peer, displayName: record.displayName.text, isOnline: record.isOnline,
              incarnation: record.incarnation)))
      case .load(let load, let channel, let ranges, let byteCountMax):
        switchboard.post(.messaging(.loaded(load, entries(channel, ranges, byteCountMax))))
      case .restore(let channel): restore(channel)
      case .tellHidden(let channel): tellHidden(channel)
      }
    }
    guard !writes.isEmpty else { return }
    do { _ = try store.apply(writes) } catch { report(error) }
  }

  private func persist(_ batch: UInt64, _ writes: [StoreWrite], skipping count: Int) {
    do {
      let cursors = try store.apply(writes)
      switchboard.post(.messaging(.persisted(batch: batch, cursors: Array(cursors.dropFirst(count)))))
    } catch {
      report(error)
      switchboard.post(.messaging(.persistFailed(batch: batch, reason: error.description)))
    }
  }

  private func report(_ error: StoreError) { switchboard.notices(.trouble(error.description)) }

  private static func write(_ record: MessagingRecord) -> StoreWrite {
    switch record {
    case .entry(let channel, let entry):
      .entry(
        StoredEntry(
          channel: channel, key: entry.key, number: entry.number, lamport: entry.lamport, isHidden: entry.isHidden,
          bytes: entry.encoded))
    case .peerMessage(let peer, let id, let json, let isOwn):
      .peerMessage(StoredPeerMessage(peer: peer, isOwn: isOwn, id: id, json: json))
    case .outboxAdd(let message, let queuedAt):
      .outboxAdd(
        OutboxItem(
          peer: message.peer, id: message.id, json: message.json, queuedAtMilliseconds: Int64(clamping: queuedAt)))
    case .outboxRemove(let peer, let id): .outboxRemove(peer, id)
    case .delivered(let channel, let log, let peer, let number):
      .delivered(channel, log: log, peer: peer, number: number)
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
    do {
      let logs = try store.logs(in: channel).map {
        RestoredLog(key: $0.key, contiguous: $0.contiguous, beyond: $0.beyond)
      }
      let lamport = LamportRule.restored(try store.lamportMaxima(in: channel), me: me)
      let members = try store.members(in: channel).compactMap { member -> MemberRecord? in
        guard let name = try? DisplayName(member.displayName) else { return nil }
        return MemberRecord(
          peer: member.peer, displayName: name, isOnline: false, incarnation: member.incarnation)
      }
      switchboard.post(.login(.restored(channel, logs: logs, lamport: lamport, members: members)))
    } catch {
      switchboard.post(.login(.restoreFailed(channel, reason: error.description)))
    }
  }

  /// Hands that were up when this node stopped still are, in the logs of those who run on.
  private func tellHidden(_ channel: ChannelID) {
    do {
      for stored in try store.lastHiddenEntries(in: channel) {
        guard let entry = try? Entry(decoding: stored.bytes[...]) else { continue }
        switchboard.post(.membership(.hiddenEntryStored(channel, entry)))
      }
    } catch {
      report(error)
    }
  }

  // MARK: Reading

  /// The last visible entries in the shared order, newest first; fewer than `limit` only when there are no more.
  package func history(of channel: ChannelID, limit: Int) throws(StoreError) -> [(entry: Entry, cursor: UInt64)] {
    try store.entriesBefore(nil, in: channel, limit: limit).compactMap { stored in
      (try? Entry(decoding: stored.bytes[...])).map { ($0, stored.cursor) }
    }
  }

  package func outbox() throws(StoreError) -> [OutboxMessage] {
    try store.outbox().map { OutboxMessage(peer: $0.peer, id: $0.id, json: $0.json) }
  }

  /// For each of our logs: who has it, up to which number.
  package func delivered(in channel: ChannelID) throws(StoreError) -> [LogDelivery] {
    try store.delivered(in: channel).map { LogDelivery(log: $0.0, peer: $0.1, number: $0.2) }
  }

  package func shares(in channel: ChannelID) throws(StoreError) -> [StoredShare] { try store.shares(in: channel) }

  package func apply(_ writes: [StoreWrite]) throws(StoreError) { _ = try store.apply(writes) }
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
  func open(_ path: String) throws(StoreError) -> sending Store { try Store(path: path) }
}
