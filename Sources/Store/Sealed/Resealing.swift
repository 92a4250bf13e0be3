import Glibc
import ParleyVocabulary

/// Brings a store from plain to sealed, and back: row by row, a bounded number in a transaction that also says how far
/// it has come, so that it goes on where it was cut short. Nobody uses the store before it is done. At the end
/// everything is copied to a file without free pages, in which plain text would still stand, and that takes the store's
/// place.
///
/// The table `sealing` is there from the first time on until a store is plain again: `target` 1 for sealed, `phase` the
/// place in `Step.all`, `place` the last row done there, `proof` something sealed.
struct Resealing {
  private static let rowCountMax = 500
  /// Frames of the log: 8 MiB.
  private static let checkpointFrames: UInt32 = 2_000
  private static let proofBytes = Array("parley".utf8)

  private struct State {
    var isSealed: Bool
    var phase: Int
    var place: Int64
    var proof: [UInt8]

    var isSettled: Bool { phase > Step.all.count }
    var isCompactionDue: Bool { phase == Step.all.count }
  }

  /// A table, or what must go.
  private struct Step {
    /// Brings some of the rows after `place` over; the last of them, nil when there was none.
    let run: (Resealing, _ place: Int64) throws(StoreError) -> Int64?
    static var all: [Step] {
      [
        Step { (work, place) throws(StoreError) in try work.entries(place) },
        Step { (work, place) throws(StoreError) in try work.messages(place) },
        Step { (work, place) throws(StoreError) in try work.outbox(place) },
        Step { (work, place) throws(StoreError) in try work.members(place) },
        Step { (work, place) throws(StoreError) in try work.shares(place) },
        Step { (work, place) throws(StoreError) in try work.downloads(place) },
        Step { (work, place) throws(StoreError) in try work.scans(place) },
        Step { (work, place) throws(StoreError) in try work.tokens(place) },
        Step { (work, place) throws(StoreError) in try work.contacts() },
        Step { (work, place) throws(StoreError) in try work.index() },
      ]
    }
  }

  private let database: Database
  private let from: Cells
  private let to: Cells

  private init(_ database: Database, _ seal: any StoreSeal, isSealed: Bool) {
    self.database = database
    from = Cells(seal: isSealed ? nil : seal)
    to = Cells(seal: isSealed ? seal : nil)
  }

  // MARK: From outside

  /// True when the store is as wanted. False when all of its rows are, and it is to be compacted.
  static func settle(
    _ database: Database, _ seal: (any StoreSeal)?, isSealed target: Bool, _ isNew: Bool
  ) throws(StoreError) -> Bool {
    var state = try state(of: database)
    guard let seal else {
      if state != nil { throw .sealed(path: database.path) }
      return true
    }
    if let state, seal.open(state.proof, as: Cell.proof.identity) != proofBytes {
      throw .otherSeal(path: database.path)
    }
    if state == nil {
      if !target { return true }
      state = State(isSealed: true, phase: isNew ? Step.all.count + 1 : 0, place: 0, proof: [])
      try begin(database, state!, seal)
    }
    // What was cut short is ended before anything else: rows before its place are of one kind, rows after it of the
    // other.
    if !state!.isSettled { try Resealing(database, seal, isSealed: state!.isSealed).run(&state!) }
    if state!.isSealed != target {
      state!.isSealed = target
      state!.phase = 0
      state!.place = 0
      try database.transaction { () throws(StoreError) in try write(state!, database) }
      try Resealing(database, seal, isSealed: target).run(&state!)
    }
    return !state!.isCompactionDue
  }

  static func isCompactionDue(_ database: Database) throws(StoreError) -> Bool {
    try state(of: database)?.isCompactionDue ?? false
  }

  static func checkForReading(_ database: Database, _ seal: (any StoreSeal)?) throws(StoreError) {
    let state = try state(of: database)
    guard let seal else {
      if state != nil { throw .sealed(path: database.path) }
      return
    }
    guard let state, state.isSealed, state.isSettled || state.isCompactionDue else {
      throw .readOnly(path: database.path, reason: "it is to be sealed first, and that needs writing")
    }
    if seal.open(state.proof, as: Cell.proof.identity) != proofBytes { throw .otherSeal(path: database.path) }
  }

  private static func newPath(_ path: String) -> String { path + ".compact" }

  /// Beside the store and as private; synced.
  static func writeCompact(_ database: Database) throws(StoreError) {
    guard let state = try state(of: database) else { preconditionFailure("there is something to compact") }
    let new = newPath(database.path)
    for suffix in ["", "-journal", "-wal"] { unlink(new + suffix) }
    // SQLite writes into an empty file, and would make one that everybody may read.
    let descriptor = Glibc.open(new, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw Opening.systemFailure(path: new) }
    defer { close(descriptor) }
    do throws(StoreError) {
      try database.run("VACUUM INTO ?", .text(new))
      let copy = try Database(path: new, busyMilliseconds: 0)
      if state.isSealed {
        try copy.run("UPDATE sealing SET phase = ?", .integer(Int64(Step.all.count + 1)))
      } else {
        try copy.script("DROP TABLE sealing")
      }
      copy.close()
      guard fsync(descriptor) == 0 else { throw Opening.systemFailure(path: new) }
    } catch {
      unlink(new)
      throw error
    }
  }

  /// The store was closed, its log is in it.
  static func takeCompact(path: String) throws(StoreError) {
    guard access(path + "-wal", F_OK) != 0 else {
      throw .inputOutput(path: path, reason: "its write-ahead log did not go when it was closed")
    }
    LogSync.forgetMarkWithoutLog(path: path)
    guard rename(newPath(path), path) == 0 else { throw Opening.systemFailure(path: newPath(path)) }
    syncFolder(of: path)
  }

  // MARK: The work

  private static func state(of database: Database) throws(StoreError) -> State? {
    let exists = try database.first("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'sealing'") { _ in true
    }
    guard exists != nil else { return nil }
    let state = try database.first("SELECT target, phase, place, proof FROM sealing") { row in
      State(isSealed: row.flag(0), phase: Int(clamping: row.integer(1)), place: row.integer(2), proof: row.blob(3))
    }
    guard let state, (0...Step.all.count + 1).contains(state.phase) else {
      throw .damaged(path: database.path, reason: "it does not say how far it is sealed")
    }
    return state
  }

  private static func begin(_ database: Database, _ state: State, _ seal: any StoreSeal) throws(StoreError) {
    try database.transaction { () throws(StoreError) in
      try database.script(
        """
        CREATE TABLE sealing (
          id INTEGER PRIMARY KEY CHECK (id = 1), target INTEGER NOT NULL, phase INTEGER NOT NULL,
          place INTEGER NOT NULL, proof BLOB NOT NULL) STRICT;
        """)
      try database.run(
        "INSERT INTO sealing VALUES (1, 0, 0, 0, ?)", .blob(seal.seal(proofBytes, as: Cell.proof.identity)))
      try write(state, database)
    }
  }

  private static func write(_ state: State, _ database: Database) throws(StoreError) {
    try database.run(
      "UPDATE sealing SET target = ?, phase = ?, place = ?", .flag(state.isSealed), .integer(Int64(state.phase)),
      .integer(state.place))
  }

  private func run(_ state: inout State) throws(StoreError) {
    let steps = Step.all
    while state.phase < steps.count {
      var next = state
      try database.transaction { () throws(StoreError) in
        if let place = try steps[state.phase].run(self, state.place) {
          next.place = place
        } else {
          next.phase += 1
          next.place = 0
        }
        try Self.write(next, database)
      }
      state = next
      try database.checkpointIfLong(frameCount: Self.checkpointFrames)
    }
  }

  private func blob(_ stored: [UInt8], _ cell: Cell) -> Value { to.blob(from.opened(stored, cell) ?? stored, cell) }

  private func text(_ stored: String, _ cell: Cell, alike: Bool = false) -> Value {
    to.text(from.opened(stored, cell) ?? stored, cell, alike: alike)
  }

  private func entries(_ place: Int64) throws(StoreError) -> Int64? {
    let rows = try database.rows(
      """
      SELECT e.cursor, c.channel, e.author, e.instance, e.number, e.bytes
      FROM entries AS e JOIN channels AS c ON c.id = e.channel WHERE e.cursor > ? ORDER BY e.cursor LIMIT ?
      """, .integer(place), .integer(Int64(Self.rowCountMax))
    ) { (row) throws(StoreError) in
      let key = LogKey(author: PeerID(try row.key(2)), log: try row.log(3))
      return (id: row.integer(0), bytes: blob(row.blob(5), .entry(ChannelID(try row.key(1)), key, row.bits(4))))
    }
    for row in rows { try database.run("UPDATE entries SET bytes = ? WHERE cursor = ?", row.bytes, .integer(row.id)) }
    return rows.last?.id
  }

  /// From peer to peer, and of channels that are no entries: one sequence of cursors, and one step, so that stores
  /// which were settled before there were the latter still are.
  private func messages(_ place: Int64) throws(StoreError) -> Int64? {
    let (peers, locals) = (try peerMessages(after: place), try localMessages(after: place))
    let through = [peers, locals].filter { $0.count == Self.rowCountMax }.compactMap { $0.last?.id }.min() ?? .max
    for row in peers where row.id <= through {
      try database.run("UPDATE peer_messages SET json = ? WHERE cursor = ?", row.json, .integer(row.id))
    }
    for row in locals where row.id <= through {
      try database.run("UPDATE local_messages SET json = ? WHERE cursor = ?", row.json, .integer(row.id))
    }
    return (peers + locals).map(\.id).filter { $0 <= through }.max()
  }

  private func peerMessages(after place: Int64) throws(StoreError) -> [(id: Int64, json: Value)] {
    try database.rows(
      "SELECT cursor, peer, own, id, json FROM peer_messages WHERE cursor > ? ORDER BY cursor LIMIT ?",
      .integer(place), .integer(Int64(Self.rowCountMax))
    ) { (row) throws(StoreError) in
      let cell = Cell.peerMessage(PeerID(try row.key(1)), isOwn: row.flag(2), try row.messageID(3))
      return (id: row.integer(0), json: blob(row.blob(4), cell))
    }
  }

  private func outbox(_ place: Int64) throws(StoreError) -> Int64? {
    let rows = try database.rows(
      "SELECT place, peer, id, json FROM outbox WHERE place > ? ORDER BY place LIMIT ?", .integer(place),
      .integer(Int64(Self.rowCountMax))
    ) { (row) throws(StoreError) in
      (id: row.integer(0), json: blob(row.blob(3), .outbox(PeerID(try row.key(1)), try row.messageID(2))))
    }
    for row in rows { try database.run("UPDATE outbox SET json = ? WHERE place = ?", row.json, .integer(row.id)) }
    return rows.last?.id
  }

  private func localMessages(after place: Int64) throws(StoreError) -> [(id: Int64, json: Value)] {
    try database.rows(
      """
      SELECT m.cursor, c.channel, m.author, m.id, m.json
      FROM local_messages AS m JOIN channels AS c ON c.id = m.channel WHERE m.cursor > ? ORDER BY m.cursor LIMIT ?
      """, .integer(place), .integer(Int64(Self.rowCountMax))
    ) { (row) throws(StoreError) in
      let cell = Cell.localMessage(ChannelID(try row.key(1)), PeerID(try row.key(2)), try row.messageID(3))
      return (id: row.integer(0), json: blob(row.blob(4), cell))
    }
  }

  private func channel(after place: Int64) throws(StoreError) -> (id: Int64, value: ChannelID)? {
    try database.first("SELECT id, channel FROM channels WHERE id > ? ORDER BY id LIMIT 1", .integer(place)) {
      (row) throws(StoreError) in (id: row.integer(0), value: ChannelID(try row.key(1)))
    }
  }

  /// Those of a channel at once, as its members.
  private func tokens(_ place: Int64) throws(StoreError) -> Int64? {
    guard let channel = try channel(after: place) else { return nil }
    let rows = try database.rows("SELECT peer, expires, token FROM tokens WHERE channel = ?", .integer(channel.id)) {
      (row) throws(StoreError) in
      let (peer, expires) = (PeerID(try row.key(0)), row.integer(1))
      return (peer: peer, expires: expires, token: text(row.text(2), .token(channel.value, peer, expires)))
    }
    for row in rows {
      try database.run(
        "UPDATE tokens SET token = ? WHERE channel = ? AND peer = ? AND expires = ?", row.token, .integer(channel.id),
        .key(row.peer.value), .integer(row.expires))
    }
    return channel.id
  }

  /// The members of a channel at once: the protocol bounds them.
  private func members(_ place: Int64) throws(StoreError) -> Int64? {
    guard let channel = try channel(after: place) else { return nil }
    let rows = try database.rows("SELECT peer, name FROM members WHERE channel = ?", .integer(channel.id)) {
      (row) throws(StoreError) in
      let peer = PeerID(try row.key(0))
      return (peer: peer, name: text(row.text(1), .memberName(channel.value, peer)))
    }
    for row in rows {
      try database.run(
        "UPDATE members SET name = ? WHERE channel = ? AND peer = ?", row.name, .integer(channel.id),
        .key(row.peer.value))
    }
    return channel.id
  }

  private func shares(_ place: Int64) throws(StoreError) -> Int64? {
    let rows = try database.rows(
      "SELECT id, media, path, manifest, piece_hashes, members FROM share_files WHERE id > ? ORDER BY id LIMIT 16",
      .integer(place)
    ) { (row) throws(StoreError) in
      let media = MediaID(try row.key(1))
      return (
        id: row.integer(0), path: text(row.text(2), .share("share_files.path", media), alike: true),
        manifest: blob(row.blob(3), .share("share_files.manifest", media)),
        hashes: blob(row.blob(4), .share("share_files.piece_hashes", media)),
        members: blob(row.blob(5), .share("share_files.members", media))
      )
    }
    for row in rows {
      try database.run(
        "UPDATE share_files SET path = ?, manifest = ?, piece_hashes = ?, members = ? WHERE id = ?", row.path,
        row.manifest, row.hashes, row.members, .integer(row.id))
    }
    return rows.last?.id
  }

  private func downloads(_ place: Int64) throws(StoreError) -> Int64? {
    let rows = try database.rows(
      """
      SELECT id, media, target, part, manifest, piece_hashes, selected FROM downloads WHERE id > ? ORDER BY id LIMIT 16
      """, .integer(place)
    ) { (row) throws(StoreError) in
      let media = MediaID(try row.key(1))
      return (
        id: row.integer(0), target: text(row.text(2), .share("downloads.target", media)),
        part: text(row.text(3), .share("downloads.part", media)),
        manifest: blob(row.blob(4), .share("downloads.manifest", media)),
        hashes: blob(row.blob(5), .share("downloads.piece_hashes", media)),
        selected: blob(row.blob(6), .share("downloads.selected", media))
      )
    }
    for row in rows {
      try database.run(
        "UPDATE downloads SET target = ?, part = ?, manifest = ?, piece_hashes = ?, selected = ? WHERE id = ?",
        row.target, row.part, row.manifest, row.hashes, row.selected, .integer(row.id))
    }
    return rows.last?.id
  }

  private func scans(_ place: Int64) throws(StoreError) -> Int64? {
    let rows = try database.rows(
      "SELECT id, path, piece_hashes FROM scans WHERE id > ? ORDER BY id LIMIT 100", .integer(place)
    ) { row in
      let path = from.opened(row.text(1), .scanPath) ?? row.text(1)
      return (
        id: row.integer(0), path: to.text(path, .scanPath, alike: true), hashes: blob(row.blob(2), .scanHashes(path))
      )
    }
    for row in rows {
      try database.run(
        "UPDATE scans SET path = ?, piece_hashes = ? WHERE id = ?", row.path, row.hashes, .integer(row.id))
    }
    return rows.last?.id
  }

  /// All at once: the user made each of them.
  private func contacts() throws(StoreError) -> Int64? {
    let rows = try database.rows("SELECT peer, name FROM contacts") { (row) throws(StoreError) in
      let peer = PeerID(try row.key(0))
      return (peer: peer, name: text(row.text(1), .contactName(peer)))
    }
    for row in rows {
      try database.run("UPDATE contacts SET name = ? WHERE peer = ?", row.name, .key(row.peer.value))
    }
    return nil
  }

  /// Begun anew when it is next wanted: of a sealed store in memory.
  private func index() throws(StoreError) -> Int64? {
    if try database.first("SELECT 1 FROM sqlite_schema WHERE name = 'search_data'", read: { _ in true }) != nil {
      // As `repairing` leaves it: a damaged one can not be dropped.
      try database.run("DELETE FROM search_data")
      try database.run("DELETE FROM search_idx")
      try database.run("INSERT INTO search_data VALUES (1, x''), (10, x'00000000000000')")
      try database.script("DROP TABLE search")
    }
    try database.run("DELETE FROM search_removals")
    try database.run("UPDATE search_state SET indexed = 0")
    return nil
  }
}
