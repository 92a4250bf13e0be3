import ParleyVocabulary

/// How whoever opens a store tells what is genuine among the rows of a damaged one.
package struct SalvageChecks: Sendable {
  /// Where entries may belong of which the channel cannot be read any more.
  package var channels: [ChannelID]
  /// What these bytes are, by themselves: nil unless they are an entry that its author signed for this channel.
  package var entry: @Sendable (ChannelID, [UInt8]) -> StoredEntry?
  /// Whether this is a message under this ID, between this profile and the peer; the flag says that it is its own.
  package var message: @Sendable (PeerID, Bool, MessageID, [UInt8]) -> Bool

  package init(
    channels: [ChannelID], entry: @escaping @Sendable (ChannelID, [UInt8]) -> StoredEntry?,
    message: @escaping @Sendable (PeerID, Bool, MessageID, [UInt8]) -> Bool
  ) {
    self.channels = channels
    self.entry = entry
    self.message = message
  }
}

/// What was read of a damaged store and is in the new one.
package struct Salvaged: Sendable, Equatable {
  package var entryCount = 0
  /// Between two people.
  package var messageCount = 0
  /// Those that still wait for their receivers.
  package var waitingCount = 0
  package init() {}
}

/// Reads a damaged store row by row, page by page, and puts what is genuine into a new one. Only rows that are damaged
/// themselves are lost; of entries, others have the rest, and repair brings them back.
///
/// Rows keep their cursors, so that nobody who resumes from one sees anything twice, and new cursors begin well above
/// every one that can be read. Ages begin anew: a damaged age must delete nothing. Of older images of a page (there are
/// some in the log) come entries and messages, which are the same for ever, and nothing else: a file that was unshared
/// must not be shared again. A message that was delivered may wait again: its receiver knows it by its ID.
final class Salvage {
  /// Above the highest cursor that was read: more than the rows of many pages that could not be.
  static let cursorMargin: UInt64 = 1 << 20
  /// No store has given so many; a higher one was hit.
  private static let cursorMax: UInt64 = 1 << 44
  private static let batchCountMax = 1_000

  private let reader: PageReader
  private let store: Store
  private let checks: SalvageChecks?
  private let cells: Cells
  private var salvaged = Salvaged()

  private var channels: [Int64: [ChannelID]] = [:]
  /// Of those that an entry was signed for.
  private var provenChannels: [Int64: ChannelID] = [:]
  private var lastCursor: UInt64 = 0
  /// Floors, members and deliveries, by the row of their channel.
  private var facts: [(channel: Int64, write: (ChannelID) -> StoreWrite)] = []
  private var files: [Int64: (ChannelID) -> StoredShare] = [:]
  private var fileChannels: [(file: Int64, channel: Int64)] = []

  private var entries: [StoredEntry] = []
  private var messages: [StoredPeerMessage] = []
  private var waiting: [OutboxItem] = []
  private var locals: [StoredLocalMessage] = []

  /// From the files at `path` into `store`, which is new and empty.
  ///
  /// With a seal, rows that open are taken, and those that were not sealed yet.
  static func fill(
    _ store: Store, from path: String, checks: SalvageChecks?, seal: (any StoreSeal)? = nil
  ) throws(StoreError) -> Salvaged {
    let salvage = Salvage(
      reader: PageReader(path: path), store: store, checks: checks, cells: Cells(seal: seal))
    try salvage.readFacts()
    try salvage.readContents()
    try salvage.finish()
    return salvage.salvaged
  }

  private init(reader: PageReader, store: Store, checks: SalvageChecks?, cells: Cells) {
    self.cells = cells
    self.reader = reader
    self.store = store
    self.checks = checks
  }

  private func plain(_ stored: [UInt8], _ cell: @autoclosure () -> Cell) -> [UInt8] {
    cells.opened(stored, cell()) ?? stored
  }

  private func plain(_ stored: String, _ cell: @autoclosure () -> Cell) -> String {
    cells.opened(stored, cell()) ?? stored
  }

  // MARK: What stands in small tables

  private func readFacts() throws(StoreError) {
    try reader.eachRow { row in
      if let id = row.id { takeFact(id, row) } else if row.isCurrent { takePair(row.fields) }
    }
    store.skipCursors(to: lastCursor + Self.cursorMargin)
  }

  private func takeFact(_ id: Int64, _ row: PageReader.Row) {
    let fields = row.fields
    // Of cursors the highest counts, in whatever image.
    if fields.count >= 10 && fields[1].integer != nil || fields.count == 6 && fields[1].key != nil
      || fields.count == 8 && fields[1].integer != nil && fields[2].key != nil
    {
      noteCursor(id)
    }
    if id == 1, (2...4).contains(fields.count), fields.dropFirst().allSatisfy({ $0.integer != nil }) {
      noteCursor(fields[1].integer!)
    }
    if fields.count == 2, let key = fields[1].key, channels[id]?.contains(ChannelID(key)) != true {
      channels[id, default: []].append(ChannelID(key))
    }
    // A share that was stored by an earlier version has one field less.
    guard row.isCurrent, (9...10).contains(fields.count) else { return }
    if fields.count == 9, let channel = fields[1].integer, let author = fields[2].key, let log = fields[3].log,
      let contiguous = Self.counter(fields[4]), let floor = Self.counter(fields[8]), floor > 0, floor <= contiguous
    {
      facts.append((channel, { .floor($0, LogKey(author: PeerID(author), log: log), floor) }))
    }
    if let media = fields[1].key.map({ MediaID($0) }), let path = fields[2].text, let byteCount = fields[3].integer,
      let modified = fields[4].integer, let inode = fields[5].integer, let kind = fields[6].text,
      let manifest = fields[7].blob, let hashes = fields[8].blob
    {
      let members = fields.count == 10 ? fields[9].blob ?? [] : []
      let share = (
        path: plain(path, .share("share_files.path", media)),
        manifest: plain(manifest, .share("share_files.manifest", media)),
        hashes: plain(hashes, .share("share_files.piece_hashes", media)),
        members: plain(members, .share("share_files.members", media))
      )
      files[id] = {
        StoredShare(
          id: media, channel: $0, path: share.path, byteCount: UInt64(bitPattern: byteCount),
          modifiedNanoseconds: modified, inode: UInt64(bitPattern: inode), kind: kind, manifest: share.manifest,
          pieceHashes: share.hashes, members: share.members)
      }
    }
  }

  private func noteCursor(_ cursor: Int64) {
    if cursor > 0, cursor <= Self.cursorMax { lastCursor = max(lastCursor, UInt64(cursor)) }
  }

  private static func counter(_ field: PageReader.Field) -> UInt64? {
    field.integer.flatMap { UInt64(exactly: $0) }.flatMap { $0 <= Limit.counterMax ? $0 : nil }
  }

  /// Tables without row numbers.
  private func takePair(_ fields: [PageReader.Field]) {
    // Of share_channels_by_channel: the table's own rows look like those of other indexes.
    if fields.count == 3, let channel = fields[0].integer, let file = fields[2].integer, file > 0,
      fields[1].integer == -file
    {
      fileChannels.append((file, channel))
    }
    guard fields.count >= 4, let channel = fields[0].integer else { return }
    if fields.count == 5, let peer = fields[1].key, let name = fields[2].text, let online = fields[3].integer,
      let incarnation = Self.counter(fields[4])
    {
      facts.append(
        (
          channel,
          { [cells] in
            .member(
              StoredMember(
                channel: $0, peer: PeerID(peer),
                displayName: cells.opened(name, .memberName($0, PeerID(peer))) ?? name, isOnline: online == 1,
                incarnation: incarnation))
          }
        ))
    }
    if fields.count == 4, let log = fields[1].log, let peer = fields[2].key, let number = Self.counter(fields[3]) {
      facts.append((channel, { .delivered($0, log: log, peer: PeerID(peer), number: number) }))
    }
  }

  // MARK: Entries and messages

  private func readContents() throws(StoreError) {
    try reader.eachRow { (row) throws(StoreError) in
      if let id = row.id, id > 0 { takeContent(UInt64(id) <= Self.cursorMax ? UInt64(id) : 0, row.fields) }
      if entries.count + messages.count + waiting.count + locals.count >= Self.batchCountMax { try flush() }
    }
    try flush()
  }

  private func takeContent(_ cursor: UInt64, _ fields: [PageReader.Field]) {
    if fields.count >= 10, let channel = fields[6].integer, let bytes = fields[9].blob,
      var entry = genuine(fields, bytes, channel)
    {
      entry.cursor = cursor
      entries.append(entry)
    }
    if fields.count == 8, let channel = fields[1].integer, let local = localMessage(fields, cursor, channel) {
      locals.append(local)
    }
    if fields.count == 6, let peer = fields[1].key.map({ PeerID($0) }), let own = fields[2].integer, 0...1 ~= own,
      let id = fields[3].text.flatMap({ MessageID($0) }),
      let json = fields[5].blob.map({ plain($0, .peerMessage(peer, isOwn: own == 1, id)) }),
      checks?.message(peer, own == 1, id, json) ?? true
    {
      messages.append(StoredPeerMessage(peer: peer, isOwn: own == 1, id: id, json: json, cursor: cursor))
    }
    if fields.count == 5, let peer = fields[1].key.map({ PeerID($0) }), fields[3].integer != nil,
      let id = fields[2].text.flatMap({ MessageID($0) }),
      let json = fields[4].blob.map({ plain($0, .outbox(peer, id)) }), checks?.message(peer, true, id, json) ?? true
    {
      waiting.append(OutboxItem(peer: peer, id: id, json: json))
    }
  }

  /// A channel's row may be unreadable, or its number given to another later: the signature says which it is.
  private func genuine(_ fields: [PageReader.Field], _ bytes: [UInt8], _ row: Int64) -> StoredEntry? {
    var candidates = provenChannels[row].map { [$0] } ?? []
    candidates += channels[row] ?? []
    let named: (key: LogKey, number: UInt64)? =
      if let author = fields[7].key, let log = fields[8].log, let number = Self.counter(fields[2]), number > 0 {
        (LogKey(author: PeerID(author), log: log), number)
      } else { nil }
    func opened(_ channel: ChannelID) -> [UInt8] {
      guard cells.seal != nil, let named else { return bytes }
      return plain(bytes, .entry(channel, named.key, named.number))
    }
    guard let checks else {
      guard let channel = candidates.first, let named, let lamport = Self.counter(fields[3]),
        let hidden = fields[4].integer
      else { return nil }
      return StoredEntry(
        channel: channel, key: named.key, number: named.number, lamport: lamport, isHidden: hidden != 0,
        isKept: hidden == 2, bytes: opened(channel))
    }
    var tried: Set<ChannelID> = []
    for channel in candidates + checks.channels where tried.insert(channel).inserted {
      guard let entry = checks.entry(channel, opened(channel)) else { continue }
      provenChannels[row] = channel
      return entry
    }
    return nil
  }

  /// Nobody signed it for a channel: its row must say which, and what it says must be of its author and ID.
  private func localMessage(
    _ fields: [PageReader.Field], _ cursor: UInt64, _ row: Int64
  ) -> StoredLocalMessage? {
    guard let channel = channel(row), let author = fields[2].key.map({ PeerID($0) }),
      let id = fields[3].text.flatMap({ MessageID($0) }), let lamport = Self.counter(fields[4]),
      let kind = Self.counter(fields[5]), fields[6].integer != nil,
      let json = fields[7].blob.map({ plain($0, .localMessage(channel, author, id)) }),
      checks?.message(author, false, id, json) ?? true
    else { return nil }
    return StoredLocalMessage(
      channel: channel, author: author, id: id, lamport: lamport, kind: kind, json: json, cursor: cursor)
  }

  private func flush() throws(StoreError) {
    try store.committing { () throws(StoreError) in
      for entry in entries { try keep(entry) }
      for message in messages {
        let cursor = try store.hasCursor(message.cursor) ? 0 : message.cursor
        if try store.under(cursor, { () throws(StoreError) in try store.add(message) }) { salvaged.messageCount += 1 }
      }
      for local in locals {
        let cursor = try store.hasCursor(local.cursor) ? 0 : local.cursor
        if try store.under(cursor, { () throws(StoreError) in try store.add(local) }) { salvaged.messageCount += 1 }
      }
      for item in waiting {
        try store.add(item)
        if store.database.changeCount > 0 { salvaged.waitingCount += 1 }
      }
    }
    entries = []
    messages = []
    locals = []
    waiting = []
  }

  private func keep(_ entry: StoredEntry) throws(StoreError) {
    var cursor = entry.cursor
    if try store.hasCursor(cursor) {
      // As a rule the same, in another image of its page.
      let same = try store.entries(
        in: entry.channel, key: entry.key, from: entry.number, through: entry.number, byteCountMax: 0)
      if !same.isEmpty { return }
      cursor = 0
    }
    if try store.under(cursor, { () throws(StoreError) in try store.add(entry) }) { salvaged.entryCount += 1 }
  }

  // MARK: The rest

  private func finish() throws(StoreError) {
    try store.committing { () throws(StoreError) in
      for fact in facts {
        if let channel = channel(fact.channel) { _ = try store.apply(fact.write(channel)) }
      }
      for item in fileChannels.sorted(by: { ($0.file, $0.channel) < ($1.file, $1.channel) }) {
        if let channel = channel(item.channel), let share = files[item.file] { try store.set(share(channel)) }
      }
    }
  }

  private func channel(_ row: Int64) -> ChannelID? {
    provenChannels[row] ?? (channels[row]?.count == 1 ? channels[row]?.first : nil)
  }
}

extension PageReader.Field {
  fileprivate var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
  fileprivate var blob: [UInt8]? { if case .blob(let bytes) = self { bytes } else { nil } }
  fileprivate var key: Bytes32? { blob.flatMap { Bytes32($0) } }

  fileprivate var text: String? {
    if case .text(let bytes) = self { String(validating: bytes, as: UTF8.self) } else { nil }
  }

  fileprivate var log: Instance? {
    guard let bytes = blob, bytes.count == 8 else { return nil }
    return Instance(bytes.reduce(0) { $0 << 8 | UInt64($1) })
  }
}

extension Store {
  /// False for a cursor of 0, which is none.
  fileprivate func hasCursor(_ cursor: UInt64) throws(StoreError) -> Bool {
    if cursor == 0 { return false }
    return try database.first(
      """
      SELECT EXISTS (SELECT 1 FROM entries WHERE cursor = ?1)
        OR EXISTS (SELECT 1 FROM peer_messages WHERE cursor = ?1)
        OR EXISTS (SELECT 1 FROM local_messages WHERE cursor = ?1)
      """, .bits(cursor)
    ) { $0.flag(0) } ?? false
  }

  /// Adds something under the cursor that it had, or under a new one for 0. False when it was there.
  fileprivate func under(_ cursor: UInt64, _ add: () throws(StoreError) -> UInt64) throws(StoreError) -> Bool {
    let last = lastCursor
    if cursor > 0 { lastCursor = cursor - 1 }
    let given = try add()
    lastCursor = max(last, given)
    return given > 0
  }

  fileprivate func skipCursors(to cursor: UInt64) { lastCursor = cursor }
}
