import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// What a node's disk holds: survives its crashes. Batches are atomic, as a database's commits are. What was committed
/// and not synced a power cut takes, the last batches and none before them.
final class SimulatedStore {
  struct Row {
    let entry: Entry
    let bytes: [UInt8]
    let cursor: UInt64
  }

  struct PeerKey: Hashable {
    let peer: PeerID
    let id: MessageID
    let isOwn: Bool
  }

  private(set) var logs: [ChannelID: [LogKey: [UInt64: Row]]] = [:]
  private(set) var arrivals: [ChannelID: [Row]] = [:]
  private(set) var peerMessages: [PeerKey: UInt64] = [:]
  private var peerMessageKeys: [UInt64: PeerKey] = [:]
  private(set) var outbox: [OutboxMessage] = []
  /// Up to where a log was let go, or is to be had from nobody.
  private(set) var floors: [ChannelID: [LogKey: UInt64]] = [:]
  /// What was here and was let go: no loss.
  private var prunedLamport: [ChannelID: UInt64] = [:]
  private var pruned: [ChannelID: [LogKey: RangeSet<UInt64>]] = [:]
  private(set) var members: [ChannelID: [PeerID: MemberRecord]] = [:]
  private var nextCursor: UInt64 = 1
  private var lastBatch: [MessagingRecord] = []
  /// Batches that a power cut may take, with what undoes them.
  private var unsynced: [(id: UInt64, undo: [Undo])] = []

  private enum Undo {
    case entry(ChannelID, LogKey, UInt64)
    case peerMessage(PeerKey)
    case outboxAdd(PeerID, MessageID)
    case outbox([OutboxMessage])
    case floor(ChannelID, LogKey, UInt64?)
  }
  let fault: SimulatedFault?

  init(fault: SimulatedFault?) { self.fault = fault }

  /// A cursor for each record, 0 where it was there already. Never one that was given before, whatever was lost.
  func commit(_ records: [MessagingRecord], as id: UInt64) -> [UInt64] {
    lastBatch = records
    var undo: [Undo] = []
    let cursors = records.map { commit($0, &undo) }
    unsynced.append((id, undo))
    return cursors
  }

  /// Everything up to this batch is on the disk.
  func sync(through id: UInt64) { unsynced.removeAll { $0.id <= id } }

  /// Before what is read from the disk is counted on.
  func syncAll() { unsynced = [] }

  /// How many batches a power cut may take.
  var unsyncedCount: Int { unsynced.count }

  /// Takes so many batches, the last ones; the rest counts as synced.
  func cutPower(losing count: Int) {
    for batch in unsynced.suffix(count).reversed() {
      for undo in batch.undo.reversed() { carryOut(undo) }
    }
    unsynced = []
  }

  private func carryOut(_ undo: Undo) {
    switch undo {
    case .entry(let channel, let key, let number):
      logs[channel]?[key]?[number] = nil
      arrivals[channel]?.removeAll { $0.entry.key == key && $0.entry.number == number }
    case .peerMessage(let key): peerMessages[key] = nil
    case .outboxAdd(let peer, let id): outbox.removeAll { $0.peer == peer && $0.id == id }
    case .outbox(let before): outbox = before
    case .floor(let channel, let key, let before): floors[channel]?[key] = before
    }
  }

  private func commit(_ record: MessagingRecord, _ undo: inout [Undo]) -> UInt64 {
    switch record {
    case .entry(let channel, let entry):
      let isBelow = entry.number <= floors[channel]?[entry.key] ?? 0
      if isBelow || has(channel, entry.key, entry.number), fault != .storesWhatItHas { return 0 }
      let row = Row(entry: entry, bytes: entry.encoded, cursor: takeCursor())
      logs[channel, default: [:]][entry.key, default: [:]][entry.number] = row
      arrivals[channel, default: []].append(row)
      undo.append(.entry(channel, entry.key, entry.number))
      return row.cursor
    case .peerMessage(let peer, let id, _, let isOwn):
      let key = PeerKey(peer: peer, id: id, isOwn: isOwn)
      if peerMessages[key] != nil, fault != .storesWhatItHas { return 0 }
      let cursor = takeCursor()
      peerMessages[key] = cursor
      peerMessageKeys[cursor] = key
      undo.append(.peerMessage(key))
      return cursor
    // Histories are compared, and this is in nobody else's.
    case .local: return takeCursor()
    case .outboxAdd(let message, _):
      guard !outbox.contains(where: { $0.peer == message.peer && $0.id == message.id }) else { return 0 }
      outbox.append(message)
      undo.append(.outboxAdd(message.peer, message.id))
      return takeCursor()
    case .outboxRemove(let peer, let id):
      undo.append(.outbox(outbox))
      outbox.removeAll { $0.peer == peer && $0.id == id }
      return takeCursor()
    case .delivered: return takeCursor()
    case .floor(let channel, let key, let number):
      undo.append(.floor(channel, key, floors[channel]?[key]))
      floors[channel, default: [:]][key] = max(floors[channel]?[key] ?? 0, number)
      return takeCursor()
    }
  }

  private func takeCursor() -> UInt64 {
    defer { nextCursor += 1 }
    return nextCursor
  }

  func remember(_ record: MemberRecord, in channel: ChannelID) {
    members[channel, default: [:]][record.peer] = record
  }

  /// What a disk without syncing does at a power cut.
  func loseLastBatch() {
    for record in lastBatch {
      switch record {
      case .entry(let channel, let entry):
        logs[channel]?[entry.key]?[entry.number] = nil
        arrivals[channel]?.removeAll { $0.entry.key == entry.key && $0.entry.number == entry.number }
      case .peerMessage(let peer, let id, _, let isOwn):
        peerMessages[PeerKey(peer: peer, id: id, isOwn: isOwn)] = nil
      case .outboxAdd(let message, _):
        outbox.removeAll { $0.peer == message.peer && $0.id == message.id }
      case .local, .outboxRemove, .delivered, .floor: break
      }
    }
    lastBatch = []
  }

  func loseNewestOutboxItem() { _ = outbox.popLast() }

  /// Which peer message was stored under a cursor.
  func key(at cursor: UInt64) -> PeerKey? { peerMessageKeys[cursor] }

  /// Whether it is here, or was until it was let go.
  func has(_ channel: ChannelID, _ key: LogKey, _ number: UInt64) -> Bool {
    logs[channel]?[key]?[number] != nil || pruned[channel]?[key]?.contains(number) == true
  }

  /// Lets the oldest entries of each log go until so many are left, but not what comes after a gap, nor the newest
  /// hidden one.
  func prune(_ channel: ChannelID, keeping count: Int) -> [LogFloor] {
    // In the order of commits: what came before is synced with it.
    unsynced = []
    var raised: [LogFloor] = []
    for holding in holdings(channel) {
      let floor = floors[channel]?[holding.key] ?? 0
      guard holding.head - floor > UInt64(count) else { continue }
      let new = holding.head - UInt64(count)
      let hidden = logs[channel]![holding.key]!.values.map(\.entry)
        .filter { $0.isHidden && !MessageAct.isAll(of: $0) }.map(\.number).max()
      for number in floor + 1...new where number != hidden {
        guard let row = logs[channel]![holding.key]!.removeValue(forKey: number) else { continue }
        prunedLamport[channel] = max(prunedLamport[channel] ?? 0, row.entry.lamport)
        pruned[channel, default: [:]][holding.key, default: RangeSet()].insert(contentsOf: number..<number + 1)
      }
      arrivals[channel]!.removeAll {
        $0.entry.key == holding.key && $0.entry.number <= new && $0.entry.number != hidden
      }
      floors[channel, default: [:]][holding.key] = new
      raised.append(LogFloor(key: holding.key, floor: new))
    }
    return raised
  }

  func restored(_ channel: ChannelID) -> (logs: [RestoredLog], lamport: UInt64) {
    var lamport: UInt64 = 0
    let restored = holdings(channel).map { holding in
      let rows = logs[channel]?[holding.key] ?? [:]
      lamport = max(lamport, rows.values.map(\.entry.lamport).max() ?? 0, prunedLamport[channel] ?? 0)
      return RestoredLog(
        key: holding.key, floor: floors[channel]?[holding.key] ?? 0, contiguous: holding.head, beyond: holding.beyond)
    }
    return (restored, lamport)
  }

  private func holdings(_ channel: ChannelID) -> [HeadsDigest.Holding] {
    Set((logs[channel] ?? [:]).keys).union((floors[channel] ?? [:]).keys).sorted().map { key in
      let rows = logs[channel]?[key] ?? [:]
      var number = floors[channel]?[key] ?? 0
      while rows[number + 1] != nil { number += 1 }
      var beyond = RangeSet<UInt64>()
      for other in rows.keys where other > number { beyond.insert(contentsOf: other..<other + 1) }
      return HeadsDigest.Holding(key: key, head: number, beyond: beyond)
    }
  }

  func digest(_ channel: ChannelID) -> HeadsDigest {
    HeadsDigest(
      of: holdings(channel).filter { holding in
        holding.head > floors[channel]?[holding.key] ?? 0 || !holding.beyond.isEmpty
      })
  }

  /// Entries of the ranges in order of number, up to so many bytes, one at least.
  func load(_ channel: ChannelID, _ ranges: [LogRange], byteCountMax: Int) -> [[UInt8]] {
    var loaded: [[UInt8]] = []
    var byteCount = 0
    for range in ranges {
      guard let rows = logs[channel]?[range.key] else { continue }
      for number in rows.keys.filter({ range.from <= $0 && $0 <= range.through }).sorted() {
        let bytes = rows[number]!.bytes
        byteCount += bytes.count
        if byteCount > byteCountMax, !loaded.isEmpty { return loaded }
        loaded.append(bytes)
      }
    }
    return loaded
  }

  /// The newest hidden entry of every log.
  func newestHidden(_ channel: ChannelID) -> [Entry] {
    (logs[channel] ?? [:]).values.compactMap { rows in
      rows.values.lazy.map(\.entry).filter { $0.isHidden && !MessageAct.isAll(of: $0) }.max { $0.number < $1.number }
    }.sorted { $0.key < $1.key }
  }

  func acts(_ channel: ChannelID) -> [Entry] {
    (arrivals[channel] ?? []).map(\.entry).filter { Act.mayHoldActs($0) }
  }

  /// How far an author's logs go without a gap, but not beyond a Lamport time above `lamportMax`.
  func heads(of author: PeerID, in channel: ChannelID, lamportMax: UInt64) -> ActHeads {
    var heads: [Instance: UInt64] = [:]
    for (key, rows) in logs[channel] ?? [:] where key.author == author {
      var number = floors[channel]?[key] ?? 0
      while let row = rows[number + 1], row.entry.lamport <= lamportMax { number += 1 }
      heads[key.log] = number
    }
    return ActHeads(heads)
  }

  /// As people read it.
  func history(_ channel: ChannelID) -> [Entry] {
    let entries = (arrivals[channel] ?? []).map(\.entry)
    return fault == .ordersByArrival ? entries : entries.sorted { $0.order < $1.order }
  }
}
