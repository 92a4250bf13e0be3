import ParleyVocabulary
import ParleyWire

/// One channel's entries as far as the machine must know them: heads, holes, who has what.
struct ChannelLog: Sendable {
  struct Present: Equatable, Sendable {
    let instance: Instance
    var facts: PresenceFacts
    /// Our current log as far as this member has it on disk.
    var acknowledged: UInt64 = 0
  }

  struct Request: Sendable {
    let peer: PeerID
    let id: UInt64
    var deadline: Instant
    let ranges: [LogRange]
    /// The last of the ranges of which something came, and whether its end came.
    var reached: (index: Int, isWhole: Bool)?
    /// What had arrived in the channel when the deadline was set.
    var arrivalCount: UInt64
    var hasProgressed = false

    /// A part of the answer, which is in the order of the ranges: its last entry says how far it has come.
    mutating func came(_ entries: [[UInt8]]) {
      guard let last = entries.last else { return }
      hasProgressed = true
      reached = (0, false)
      guard let entry = try? Entry(decoding: last[...]),
        let index = ranges.firstIndex(where: {
          $0.key == entry.key && $0.from <= entry.number && entry.number <= $0.through
        })
      else { return }
      reached = (index, entry.number == ranges[index].through)
    }
  }

  private(set) var logs: [LogKey: LogState] = [:]
  private var index = HeadsIndex()
  private(set) var lacking: Set<LogKey> = []
  /// Logs of which nothing was ever here: others say that they exist.
  private var rumoured: Set<LogKey> = []
  /// Logs of which something waits for what comes before it.
  private var holed: Set<LogKey> = []
  /// Logs of which somebody has only what comes after a floor above what is here.
  private var floored: Set<LogKey> = []
  /// When what members said of floors so far is all there is to wait for, though they are few.
  private(set) var floorsDue: Instant?
  /// Whose heads were heard since the last log came to `floored`, and so where their copies begin.
  var headsHeard: Set<PeerID> = []
  private(set) var heldByteCount = 0
  var lamport: UInt64
  var lastTimestamp: UInt64 = 0
  private(set) var digest = HeadsDigest(of: [:])
  var submissions = SubmissionQueue()
  /// Requests answered once the entry of that number is on disk.
  var waiting: [UInt64: [RequestID]] = [:]
  var ownInFlight = false
  var present: [PeerID: Present] = [:]

  var acknowledgeAt: Instant?
  var toAcknowledge: Set<PeerID> = []
  var announceAt: Instant?
  var announceDelay = MessagingRule.announceFirst

  var request: Request?
  var repairAt: Instant?
  var repairDelay = MessagingRule.repairFirst
  /// Asked in vain since the last progress.
  private(set) var tried: Set<PeerID> = []
  /// Of these, who did answer.
  private var answered: Set<PeerID> = []
  /// Whose heads told what exists: asked first.
  var informant: PeerID?
  /// The last log that was asked for: the next question begins after it, so that none is forgotten over the others.
  private var lastAskedKey: LogKey?
  /// Whether all that is lacking has been asked for since asking last paused.
  private var hasAskedForAll = false
  /// What was asked for since the last progress.
  private var askedKeys: Set<LogKey> = []
  /// Our digest and a member's when the two were compared to the end, and nothing was lacking here: what differs still
  /// is what one of us has let go.
  private var settled: [PeerID: (mine: HeadsDigest, theirs: HeadsDigest)] = [:]
  /// Who named something that is lacking, in heads of which more parts are to come.
  private var namesMore: Set<PeerID> = []
  private var answeredHeadsAt: [PeerID: Instant] = [:]

  var syncAt: Instant?
  var syncDelay = MessagingRule.digestPatience
  /// With whom it was compared since all agreed: others come first.
  var comparedWith: Set<PeerID> = []
  /// How many more are to be compared with soon: one alone may lack what we lack.
  var hurriedCount = 0
  /// Until then arrivals put comparing off: where somebody always writes they must not do so for ever.
  var patientUntil: Instant?
  var hasSynced = false
  /// What links were told of an owned channel's people, and when refusals that wait are told.
  var toldTrust: ChannelTrust?
  var trustDue: Instant?
  var lastArrival: Instant?
  /// New and genuine entries so far.
  var arrivalCount: UInt64 = 0
  /// Who was asked last, and the count then.
  var lastAsked: (peer: PeerID, arrivals: UInt64)?

  init(logs restored: [RestoredLog], lamport: UInt64) {
    self.lamport = min(lamport, LamportRule.startMax)
    for log in restored {
      logs[log.key] = LogState(floor: log.floor, contiguous: log.contiguous, beyond: log.beyond)
      index.add(log.key)
      note(log.key)
    }
    refreshDigest()
  }

  /// The digest of what is on the disk, once a batch of entries is there.
  mutating func refreshDigest() { digest = index.digest(logs) }

  var bucketDigests: [UInt8: HeadsDigest] { index.digests }

  /// What is on the disk of these buckets. Of a log with a hole the highest number that is here: who lacks it asks for
  /// what we have of the rest. Of what has gone altogether only the author speaks.
  func heads(in buckets: BucketSet, own: LogKey) -> [Head] {
    let keys =
      buckets == .all
      ? Array(logs.keys) : (0...255).filter { buckets.contains($0) }.flatMap { index.keys(in: $0) }
    return keys.sorted().compactMap { key in
      guard let log = logs[key], log.highestStored > log.floor || key == own, log.highestStored > 0 else { return nil }
      return Head(key: key, number: log.highestStored, floor: log.floor)
    }
  }

  /// The clock that a new entry follows: a newcomer without history starts at the median of those present.
  var clock: UInt64 {
    guard !hasSynced, !present.isEmpty else { return lamport }
    let heard = present.values.map(\.facts.lamport).sorted()
    return max(lamport, min(heard[heard.count / 2], LamportRule.startMax))
  }

  mutating func hear(_ lamport: UInt64) {
    self.lamport = LamportRule.heard(lamport, by: self.lamport)
  }

  // MARK: Logs

  /// Whether there is room for another log, or this one is known.
  func accepts(_ key: LogKey) -> Bool {
    logs[key] != nil || logs.count - rumoured.count < MessagingRule.logsPerChannelMax
  }

  /// Of a log of which something genuine is here.
  private mutating func make(_ key: LogKey) {
    rumoured.remove(key)
    guard logs[key] == nil else { return }
    logs[key] = LogState()
    index.add(key)
  }

  private mutating func note(_ key: LogKey) {
    if logs[key]?.holeSince != nil { holed.insert(key) } else { holed.remove(key) }
    guard logs[key]?.isLacking != true else {
      lacking.insert(key)
      return
    }
    lacking.remove(key)
    guard floored.remove(key) != nil else { return }
    logs[key]?.forgetFloors()
  }

  /// Somebody says this number exists. Anybody can say so: names alone take bounded room, and none from real logs.
  mutating func announce(_ key: LogKey, _ number: UInt64) {
    guard number > logs[key]?.announced ?? 0 else { return }
    if logs[key] == nil {
      guard rumoured.count < MessagingRule.rumouredLogsMax else { return }
      make(key)
      rumoured.insert(key)
    }
    logs[key]!.announce(number)
    note(key)
  }

  /// Everybody present has answered without what is lacking. Unless its author is there and may have it yet, it is
  /// taken for something that does not exist, until somebody names it again.
  mutating func forgetRumours() {
    guard present.keys.allSatisfy({ answered.contains($0) }) else { return }
    for key in askedKeys where lacking.contains(key) && present[key.author]?.instance != key.log {
      if rumoured.remove(key) != nil {
        logs[key] = nil
        index.remove(key)
      } else {
        logs[key]!.forgetAnnounced()
      }
      note(key)
    }
  }

  /// The number of our next entry.
  mutating func takeOwnNumber(_ key: LogKey) -> UInt64 {
    make(key)
    logs[key]!.takeNext()
    return logs[key]!.queued
  }

  /// Numbers of ours that are on their way to the disk since before we left are taken, whatever the disk said.
  mutating func merge(_ key: LogKey, _ departed: LogState) {
    make(key)
    logs[key]!.merge(departed)
    index.changed(key)
    ownInFlight = logs[key]!.isInFlight
    refreshDigest()
  }

  /// A new and genuine entry of another: what may go to the disk now, in order. What comes after a hole waits for it,
  /// or is let go when too much waits: repair asks for it again, in order.
  mutating func take(_ entry: Entry, _ now: Instant) -> [Entry] {
    let wasLacking = lacking.contains(entry.key)
    make(entry.key)
    logs[entry.key]!.announce(entry.number)
    lastArrival = now
    hear(entry.lamport)
    defer { note(entry.key) }
    if entry.number == logs[entry.key]!.queued + 1 {
      logs[entry.key]!.takeNext()
      arrivalCount += 1
      if wasLacking { progressed() }
      return [entry] + released(entry.key, now)
    }
    if logs[entry.key]!.isNextBeyond(entry.number) {
      logs[entry.key]!.takeBeyond(entry.number)
      arrivalCount += 1
      return [entry]
    }
    let byteCount = MessagingRecord.byteCount(of: entry)
    guard heldByteCount + byteCount <= MessagingRule.heldByteCountMax else {
      // Whoever gave it has to be asked again.
      logs[entry.key]!.gaveAll = [:]
      return []
    }
    logs[entry.key]!.hold(entry, since: now)
    heldByteCount += byteCount
    arrivalCount += 1
    return []
  }

  /// What was held and is next now.
  private mutating func released(_ key: LogKey, _ now: Instant) -> [Entry] {
    var entries: [Entry] = []
    while let next = logs[key]!.release(logs[key]!.queued + 1) {
      heldByteCount -= MessagingRecord.byteCount(of: next)
      logs[key]!.takeNext()
      entries.append(next)
    }
    logs[key]!.holeSince = logs[key]!.held.isEmpty ? nil : now
    return entries
  }

  /// A hole that nobody can fill does not hide what comes after it.
  mutating func passHoles(_ now: Instant) -> [Entry] {
    var entries: [Entry] = []
    for key in holed.sorted() {
      guard let since = logs[key]?.holeSince, now - since >= holePatience else { continue }
      for number in logs[key]!.held.keys.sorted() {
        let entry = logs[key]!.release(number)!
        heldByteCount -= MessagingRecord.byteCount(of: entry)
        logs[key]!.takeBeyond(number)
        entries.append(entry)
      }
      logs[key]!.holeSince = nil
      note(key)
    }
    return entries
  }

  /// Longer while somebody has been asked.
  private var holePatience: Span {
    request == nil || present.isEmpty ? MessagingRule.holePatience : MessagingRule.holePatience * 2
  }

  /// An entry is on the disk.
  mutating func store(_ key: LogKey, _ number: UInt64) {
    make(key)
    logs[key]!.store(number)
    index.changed(key)
    note(key)
  }

  /// The disk has nothing up to the floor, or no more.
  mutating func raiseFloor(_ key: LogKey, _ floor: UInt64) {
    make(key)
    logs[key]!.raiseFloor(floor)
    index.changed(key)
    note(key)
  }

  // MARK: Asking

  mutating func triedInVain(_ peer: PeerID) { tried.insert(peer) }
  /// An answer may end where it gets too long: of a log without a later one in it more may be to come.
  mutating func answeredToTheEnd(_ request: Request) {
    answered.insert(request.peer)
    let whole = request.reached.map { $0.isWhole ? $0.index + 1 : $0.index } ?? request.ranges.count
    var keys = Set(request.ranges[..<whole].map(\.key))
    keys.subtract(request.ranges[whole...].map(\.key))
    for range in request.ranges where keys.contains(range.key) && floored.contains(range.key) {
      logs[range.key]!.gaveAll[request.peer] = range.through
    }
  }
  /// It may have more now.
  mutating func worthAsking(_ peer: PeerID) {
    tried.remove(peer)
    answered.remove(peer)
    for key in floored { logs[key]!.gaveAll[peer] = nil }
  }
  /// Whoever was asked in vain may be asked again.
  mutating func progressed() {
    tried = []
    answered = []
    askedKeys = []
    repairDelay = MessagingRule.repairFirst
  }

  /// Everybody was asked in vain: again later, of whoever is there then.
  mutating func pauseRepair(_ now: Instant) {
    let delay = hasAskedForAll ? repairDelay : MessagingRule.repairFirst
    let next = hasAskedForAll ? min(delay * 2, MessagingRule.repairSlowest) : repairDelay
    progressed()
    repairAt = now + delay
    repairDelay = next
    hasAskedForAll = false
  }

  /// What is to be asked for next: a bounded number of runs, after those of the last time.
  mutating func nextRanges(but heldBack: Set<PeerID>) -> [LogRange] {
    let keys = lacking.filter { !heldBack.contains($0.author) }.sorted()
    let start = lastAskedKey.flatMap { last in keys.firstIndex { $0 > last } } ?? 0
    var askedCount = 0
    var ranges: [LogRange] = []
    for key in keys[start...] + keys[..<start] {
      ranges += logs[key]!.missing(countMax: 8).map {
        LogRange(key: key, from: $0.lowerBound, through: $0.upperBound - 1)
      }
      lastAskedKey = key
      askedKeys.insert(key)
      askedCount += 1
      if ranges.count >= SessionMessage.rangesCountMax { break }
    }
    if start + askedCount >= keys.count { hasAskedForAll = true }
    return Array(ranges.prefix(SessionMessage.rangesCountMax))
  }

  // MARK: Comparing

  /// Whether comparing with this member may bring something.
  func differs(from peer: PeerID) -> Bool {
    guard let theirs = present[peer]?.facts.digest, theirs != digest else { return false }
    return settled[peer].map { $0 != (digest, theirs) } ?? true
  }

  /// A part of a member's heads.
  mutating func hear(_ heads: [Head], of peer: PeerID, own: LogKey, _ now: Instant) {
    for head in heads where head.number > 0 && head.key != own {
      announce(head.key, head.number)
      hearFloor(head, of: peer, now)
      if lacking.contains(head.key) { namesMore.insert(peer) }
    }
  }

  /// The last part was heard.
  mutating func heardAll(of peer: PeerID) {
    headsHeard.insert(peer)
    informant = peer
    hasSynced = true
    worthAsking(peer)
    repairDelay = MessagingRule.repairFirst
    if namesMore.remove(peer) == nil, let theirs = present[peer]?.facts.digest { settled[peer] = (digest, theirs) }
  }

  /// Heads cost more to name than to ask for: once a second to each.
  mutating func mayAnswerHeads(to peer: PeerID, _ now: Instant) -> Bool {
    if let at = answeredHeadsAt[peer], now - at < MessagingRule.headsAnswerEvery { return false }
    answeredHeadsAt[peer] = now
    return true
  }

  mutating func forget(_ peer: PeerID) {
    headsHeard.remove(peer)
    for key in floored { logs[key]!.gaveAll[peer] = nil }
    settled[peer] = nil
    namesMore.remove(peer)
    answeredHeadsAt[peer] = nil
  }

  // MARK: Floors

  /// A member says from where on it holds a log of which we lack something.
  mutating func hearFloor(_ head: Head, of peer: PeerID, _ now: Instant) {
    guard let queued = logs[head.key]?.queued, head.number > queued else { return }
    logs[head.key]!.floors[peer] = head.floor
    guard head.floor > queued, floored.insert(head.key).inserted else { return }
    // What others said before was not of this log.
    headsHeard = []
    logs[head.key]!.flooredSince = now
    floorsDue = floorsDue ?? now + MessagingRule.floorPatience
  }

  var hasFloors: Bool { !floored.isEmpty }

  /// Who is to be asked next where logs begin: anybody until there are enough witnesses, then authors who are there.
  var unheardForFloors: [PeerID] {
    let authors = floored.filter { present[$0.author]?.instance == $0.log }.map(\.author)
    let unheard = present.keys.filter { !headsHeard.contains($0) }
    if present.count - unheard.count < MessagingRule.floorWitnesses { return unheard.sorted() }
    return Set(authors).subtracting(headsHeard).sorted()
  }

  /// Takes the lowest floor that members told for the beginning of a log: what is below is gone everywhere. `isSure`:
  /// everybody present has been asked for it in vain. An author's word about the log that it writes is enough. For
  /// others' logs it must be shown that the log goes on above the floor, or one lying member could make us skip what is
  /// yet to be written: there must be a genuine entry.
  mutating func settleFloors(isSure: Bool, _ channel: ChannelID, _ now: Instant) -> [MessagingRecord] {
    var records: [MessagingRecord] = []
    for key in floored.sorted() {
      guard let floor = agreedFloor(key, isSure: isSure, now), floor > logs[key]!.queued else { continue }
      // What is here of it is kept, and must come to the disk first.
      let below = logs[key]!.releaseAll(through: floor)
      heldByteCount -= below.reduce(0) { $0 + MessagingRecord.byteCount(of: $1) }
      _ = logs[key]!.skip(through: floor)
      records += below.map { .entry(channel, $0) }
      records.append(.floor(channel, key, floor))
      records += released(key, now).map { .entry(channel, $0) }
      progressed()
      note(key)
      if floored.contains(key), logs[key]!.floors.values.allSatisfy({ $0 <= logs[key]!.queued }) {
        floored.remove(key)
        logs[key]!.forgetFloors()
      }
    }
    floorsDue = floored.compactMap { logs[$0]!.flooredSince.map { $0 + MessagingRule.floorPatience } }
      .filter { $0 > now }.min()
    return records
  }

  private func agreedFloor(_ key: LogKey, isSure: Bool, _ now: Instant) -> UInt64? {
    let log = logs[key]!
    let floors = log.floors.filter { present[$0.key] != nil }
    if present[key.author]?.instance == key.log, let floor = floors[key.author], log.gave(key.author, through: floor) {
      return floor
    }
    // While its author may still write it and keep it whole, cut off from us, the beginning is left open: what comes
    // after it is shown all the same, and nothing that the author has not let go is acknowledged to it.
    let isOver =
      present[key.author].map { $0.instance != key.log }
      ?? log.flooredSince.map { now - $0 >= MessagingRule.floorPatienceForAbsent } ?? false
    guard isOver else { return nil }
    let witnessCount = present.keys.count { headsHeard.contains($0) }
    let isHeard = isSure || witnessCount == present.count
    let hasWaited = log.flooredSince.map { now - $0 >= MessagingRule.floorPatience } ?? false
    guard witnessCount >= MessagingRule.floorWitnesses || (isHeard && hasWaited), let genuine = log.highestGenuine
    else { return nil }
    // Whoever said that it has what is missing, and when asked answered without it, is left out by then.
    let likely = floors.filter { !isSure || $0.value > log.queued || log.gaveAll[$0.key] == nil }
    guard let floor = likely.values.min().map({ min($0, genuine - 1) }) else { return nil }
    // What was kept from below its floor, such as a hand that is still up, has to be here first.
    return floors.keys.contains { log.gave($0, through: floor) } ? floor : nil
  }

  var nextDue: Instant? {
    [
      acknowledgeAt, announceAt, request?.deadline, repairAt, syncAt, floorsDue, trustDue,
      holed.isEmpty ? nil : holeDue,
    ]
    .compactMap { $0 }.min()
  }

  private var holeDue: Instant? {
    holed.lazy.compactMap { self.logs[$0]?.holeSince }.min().map { $0 + holePatience }
  }
}
