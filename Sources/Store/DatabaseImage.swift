import CSQLite
import Glibc

/// A database with what its write-ahead log has committed, in memory that SQLite can take over.
final class DatabaseImage {
  private var bytes: UnsafeMutablePointer<UInt8>?
  private let byteCount: Int

  /// Nil when there is nothing in a log.
  init?(path: String) throws(StoreError) {
    guard let log = File(path: path + "-wal") else { return nil }
    let frames = LogScan(log.descriptor, byteCount: log.byteCount).committed
    guard let last = frames.last else { return nil }
    guard let file = File(path: path) else { throw Opening.systemFailure(path: path) }
    byteCount = Int(last.committedPageCount) * File.pageByteCount
    guard byteCount <= 1 << 31, let memory = sqlite3_malloc64(UInt64(byteCount)) else {
      throw .cannotOpen(path: path, reason: "\(byteCount) bytes do not fit the memory")
    }
    let bytes = memory.assumingMemoryBound(to: UInt8.self)
    self.bytes = bytes
    memset(bytes, 0, byteCount)
    try Self.copy(file.descriptor, at: 0, byteCount: min(file.byteCount, byteCount), to: bytes, path: path)
    for frame in frames where frame.page > 0 && frame.page <= last.committedPageCount {
      try Self.copy(
        log.descriptor, at: frame.offset, byteCount: File.pageByteCount,
        to: bytes + Int(frame.page - 1) * File.pageByteCount, path: path)
    }
    // "Legacy" in place of WAL for reading and for writing, which no database in memory has (file format, 1.3.3).
    bytes[18] = 1
    bytes[19] = 1
  }

  deinit { sqlite3_free(bytes) }

  /// For who frees it with sqlite3_free.
  func release() -> (bytes: UnsafeMutablePointer<UInt8>, byteCount: Int64) {
    guard let bytes else { preconditionFailure("an image is released once") }
    self.bytes = nil
    return (bytes, Int64(byteCount))
  }

  private static func copy(
    _ descriptor: Int32, at offset: Int, byteCount: Int, to target: UnsafeMutablePointer<UInt8>, path: String
  ) throws(StoreError) {
    var count = 0
    while count < byteCount {
      let got = pread(descriptor, target + count, byteCount - count, off_t(offset + count))
      if got < 0, errno == EINTR { continue }
      guard got > 0 else { throw .inputOutput(path: path, reason: "it ends early, or cannot be read") }
      count += got
    }
  }
}
