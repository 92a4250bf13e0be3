import ParleyVocabulary

/// How much of each channel's history is kept.
package struct Retention: Sendable, Equatable {
  /// Since when an entry is here, by the store's age clock.
  package var days: Int
  package var entryCountMax: Int
  /// What an author does to a message with acts of this kind keeps it as long as the act.
  package var renewingKind: UInt64?

  package init(days: Int, entryCountMax: Int, renewingKind: UInt64? = nil) {
    self.days = days
    self.entryCountMax = entryCountMax
    self.renewingKind = renewingKind
  }
}

package struct PruneStep: Sendable {
  /// Of each log whose floor has risen.
  package var floors: [(key: LogKey, floor: UInt64)] = []
  package var removedCount = 0
  /// False when there is more to remove.
  package var isDone = true
}

// What is too old or too much goes.
extension Store {
  /// One step of removing what `retention` does not keep, at most about `countMax` entries in one transaction.
  ///
  /// An entry is out when it has been here longer than the days, or is not among the newest in the order that all
  /// members share. With it goes everything before it in its log, which its author wrote earlier still, so that one
  /// number says what is gone: the log's floor. The last hidden entry of a log stays, also below the floor, and so do
  /// those that are kept for ever.
  ///
  /// Both ends are found without reading what stays: the oldest by cursor, since ages rise with cursors, and the first
  /// in order by its index. A step costs what it removes, and a look at each hidden entry that stays.
  package func prune(
    _ channel: ChannelID, keeping retention: Retention, countMax: Int = 1_000
  ) throws(StoreError) -> PruneStep {
    precondition(retention.days > 0 && retention.entryCountMax > 0 && countMax > 1, "bounds are checked by the caller")
    guard let row = try row(of: channel) else { return PruneStep() }
    let excess = try entryCount(in: channel) - retention.entryCountMax
    let cutoff = age - Int64(retention.days) * 24 * 3_600 * 1_000
    return try committing { () throws(StoreError) in
      let localCount = try pruneLocalMessages(row, before: cutoff, keeping: retention.entryCountMax, countMax: countMax)
      var out = Outdated(countMax: countMax)
      out.renewal = retention.renewingKind.map { (row, $0, cutoff) }
      out.renewed = try renewed(out.renewal)
      if excess > 0 { try findSurplus(row, excess, &out) }
      if !out.isFull { try findOld(row, before: cutoff, &out) }
      var step = PruneStep(removedCount: localCount, isDone: !out.isFull && localCount < countMax)
      for (place, target) in out.targets.sorted(by: { $0.key.key < $1.key.key }) {
        try remove(place, through: target, out, &step)
      }
      return step
    }
  }

  /// What a step has found to go: of each log everything up to a number.
  private struct Outdated {
    let countMax: Int
    var count = 0
    var targets: [LogPlace: UInt64] = [:]
    /// Entries below their log's floor that stay for what was done to them since.
    var renewed: Set<UInt64> = []
    var renewal: (channel: Int64, kind: UInt64, cutoff: Int64)?
    var isFull: Bool { count >= countMax }

    init(countMax: Int) { self.countMax = countMax }

    mutating func add(_ place: LogPlace, _ number: UInt64) {
      count += 1
      targets[place] = max(targets[place] ?? 0, number)
    }
  }

  private func findSurplus(_ channel: Int64, _ excess: Int, _ out: inout Outdated) throws(StoreError) {
    var left = excess
    var found = out
    try database.each(
      """
      SELECT author, instance, number, hidden, cursor FROM entries WHERE channel = ?
      ORDER BY lamport, author, instance, number
      """, [.integer(channel)]
    ) { (row) throws(StoreError) in
      let isKept = row.integer(3) == 2 || found.renewed.contains(row.bits(4))
      guard let (place, number, isCounted) = try self.removable(row, isKept: isKept, channel) else { return true }
      found.add(place, number)
      left -= isCounted ? 1 : 0
      return left > 0 && !found.isFull
    }
    out = found
  }

  private func findOld(_ channel: Int64, before cutoff: Int64, _ out: inout Outdated) throws(StoreError) {
    var found = out
    try database.each(
      "SELECT author, instance, number, stored_at, hidden, cursor FROM entries WHERE channel = ? ORDER BY cursor",
      [.integer(channel)]
    ) { (row) throws(StoreError) in
      guard row.integer(3) < cutoff else { return false }
      let isKept = row.integer(4) == 2 || found.renewed.contains(row.bits(5))
      guard let (place, number, _) = try self.removable(row, isKept: isKept, channel) else { return true }
      found.add(place, number)
      return !found.isFull
    }
    out = found
  }

  /// Messages whose author did something of this kind to them since the cutoff: their time begins anew with that.
  private func renewed(_ renewal: (channel: Int64, kind: UInt64, cutoff: Int64)?) throws(StoreError) -> Set<UInt64> {
    guard let renewal else { return [] }
    return Set(
      try database.rows(
        """
        SELECT m.cursor FROM acts AS a JOIN entries AS e ON e.cursor = a.cursor
        JOIN message_keys AS k ON k.channel = a.channel AND k.key = a.target
        JOIN entries AS m ON m.cursor = k.place >> 8
        WHERE a.channel = ? AND a.kind = ? AND e.stored_at >= ? AND m.author = e.author
        """, .integer(renewal.channel), .bits(renewal.kind), .integer(renewal.cutoff)
      ) { $0.bits(0) })
  }

  /// Nil for an entry that stays below the floor. Counted is what is above it.
  private func removable(
    _ row: Row, isKept: Bool, _ channel: Int64
  ) throws(StoreError) -> (place: LogPlace, number: UInt64, isCounted: Bool)? {
    let place = LogPlace(channel: channel, key: LogKey(author: PeerID(try row.key(0)), log: try row.log(1)))
    let number = row.bits(2)
    guard let head = try head(of: place) else { throw row.damage("an entry of no known log") }
    if number <= head.floor, isKept || number == head.lastHidden { return nil }
    return (place, number, number > head.floor)
  }

  private func remove(
    _ place: LogPlace, through target: UInt64, _ out: Outdated, _ step: inout PruneStep
  ) throws(StoreError) {
    guard var head = try head(of: place) else { preconditionFailure("it was read a moment ago") }
    // More may lie before an old entry than was counted: what arrived after it.
    let next = try database.first(
      "SELECT number FROM entries WHERE log = ? AND number <= ? ORDER BY number LIMIT 1 OFFSET ?",
      .integer(head.row), .bits(target), .integer(Int64(out.countMax))
    ) { $0.bits(0) }
    let through = next.map { $0 - 1 } ?? target
    if next != nil { step.isDone = false }
    try removeEntries(head, through: through, out)
    step.removedCount += database.changeCount
    guard through > head.floor else { return }
    try raiseFloor(of: &head, to: through)
    update(place, head)
    step.floors.append((key: place.key, floor: head.floor))
    if head.keptCount == 0 { try forgetDeliveries(place) }
  }

  private func removeEntries(_ head: LogHead, through: UInt64, _ out: Outdated) throws(StoreError) {
    guard let renewal = out.renewal, !out.renewed.isEmpty else {
      return try database.run(
        "DELETE FROM entries WHERE log = ? AND number <= ? AND number <> ? AND hidden <> 2", .integer(head.row),
        .bits(through), .bits(head.lastHidden))
    }
    try database.run(
      """
      DELETE FROM entries WHERE log = ? AND number <= ? AND number <> ? AND hidden <> 2 AND cursor NOT IN (
        SELECT m.cursor FROM acts AS a JOIN entries AS e ON e.cursor = a.cursor
        JOIN message_keys AS k ON k.channel = a.channel AND k.key = a.target
        JOIN entries AS m ON m.cursor = k.place >> 8
        WHERE a.channel = ? AND a.kind = ? AND e.stored_at >= ? AND m.author = e.author)
      """, .integer(head.row), .bits(through), .bits(head.lastHidden), .integer(renewal.channel), .bits(renewal.kind),
      .integer(renewal.cutoff))
  }

  /// Who has what of a log of which nothing is left. Another author may have a log of the same number.
  private func forgetDeliveries(_ place: LogPlace) throws(StoreError) {
    try writeHeads()
    try database.run(
      """
      DELETE FROM delivered WHERE channel = ?1 AND instance = ?2 AND NOT EXISTS (
        SELECT 1 FROM logs WHERE channel = ?1 AND instance = ?2 AND contiguous + beyond > floor)
      """, .integer(place.channel), .log(place.key.log))
  }

  /// It goes when it is too old from now on, also where all around it has gone.
  func release(_ channel: ChannelID, _ key: LogKey, _ number: UInt64) throws(StoreError) {
    guard let row = try row(of: channel), let head = try head(of: LogPlace(channel: row, key: key)) else { return }
    try database.run(
      "UPDATE entries SET hidden = 1 WHERE log = ? AND number = ? AND hidden = 2", .integer(head.row), .bits(number))
  }

  /// Nobody has the numbers up to this any more: they are not waited for. What is here of them stays until it is out.
  func setFloor(_ channel: ChannelID, _ key: LogKey, _ number: UInt64) throws(StoreError) {
    _ = try Self.counter(number, field: "floor")
    let place = LogPlace(channel: try rowMade(for: channel), key: key)
    var head = try headMade(for: place)
    guard number > head.floor else { return }
    try raiseFloor(of: &head, to: number)
    update(place, head)
  }

  private func raiseFloor(of head: inout LogHead, to floor: UInt64) throws(StoreError) {
    head.floor = floor
    guard head.contiguous < floor else { return }
    head.contiguous = floor
    if head.beyondCount > 0 {
      head.beyondCount =
        try database.first(
          "SELECT count(*) FROM entries WHERE log = ? AND number > ?", .integer(head.row), .bits(floor)
        ) { $0.bits(0) } ?? 0
    }
    try goOn(&head)
  }
}
