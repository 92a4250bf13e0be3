import ParleyVocabulary

// What files hashed to.
extension Store {
  /// Paths and hashes of so many files and bytes are remembered: 64 MiB are the hashes of 2 TiB, or some 100,000 small
  /// files.
  package static let scanCountMax = 100_000
  package static let scanByteCountMax = 64 << 20
  /// Beside path and hashes.
  private static let scanByteCountEach = 64

  /// The hashes of the pieces of those files that are still as they were, by their place in `files`.
  package func hashes(
    of files: [(path: String, byteCount: UInt64, modifiedNanoseconds: Int64, inode: UInt64)]
  ) throws(StoreError) -> [Int: [UInt8]] {
    var found: [Int: [UInt8]] = [:]
    for (index, file) in files.enumerated() {
      let hashes = try database.first(
        "SELECT piece_hashes FROM scans WHERE path = ? AND byte_count = ? AND modified = ? AND inode = ?",
        cells.text(file.path, .scanPath, alike: true), .bits(file.byteCount), .integer(file.modifiedNanoseconds),
        .bits(file.inode)
      ) { cells.bytes($0.blob(0), .scanHashes(file.path)) }
      if let hashes, !hashes.isEmpty { found[index] = hashes }
    }
    return found
  }

  func set(_ scans: [StoredScan], countMax: Int = scanCountMax, byteCountMax: Int = scanByteCountMax) throws(StoreError)
  {
    for scan in scans {
      // Not updated in place: those hashed last have the highest id. AUTOINCREMENT is not needed, for the highest is
      // never removed alone.
      let path = cells.text(scan.path, .scanPath, alike: true)
      try database.run("DELETE FROM scans WHERE path = ?", path)
      try database.run(
        "INSERT INTO scans (path, byte_count, modified, inode, piece_hashes) VALUES (?, ?, ?, ?, ?)",
        path, .bits(scan.byteCount), .integer(scan.modifiedNanoseconds), .bits(scan.inode),
        cells.blob(scan.pieceHashes, .scanHashes(scan.path)))
    }
    try database.run(
      """
      DELETE FROM scans WHERE id <= (
        SELECT id FROM (
          SELECT id, row_number() OVER newest AS place,
            sum(? + length(CAST(path AS BLOB)) + length(piece_hashes)) OVER newest AS byte_count
          FROM scans WINDOW newest AS (ORDER BY id DESC))
        WHERE place > ? OR byte_count > ? ORDER BY id DESC LIMIT 1)
      """, .integer(Int64(Self.scanByteCountEach)), .integer(Int64(countMax)), .integer(Int64(byteCountMax)))
  }
}
