import Glibc

/// What a write-ahead log holds, read without SQLite, which stops at the first frame that is not as it was written and
/// takes that for the end (SQLite file format, section 4).
struct LogScan {
  struct Frame {
    var page: UInt32
    /// Where the page's bytes begin in the log.
    var offset: Int
    /// Pages of the database after the commit that ends here; 0 within a transaction.
    var committedPageCount: UInt32
  }

  static let headerByteCount = 32
  static let frameHeaderByteCount = 24

  /// Every frame of the log's present round, sound or not.
  private(set) var frames: [Frame] = []
  /// So many of them are as they were written.
  private(set) var soundCount = 0
  /// Frames in whose place there is something else.
  private var brokenSlot: Int?

  /// Whether something that was synced, so acknowledged, is not as it was written. What is torn at the end of a log was
  /// being written, and is no damage: the mark says how far this round of the log was whole. Without a mark, by an
  /// earlier version, each commit was synced before the next frame came, so one with a frame after it was whole.
  private(set) var isDamaged = false

  init(_ descriptor: Int32, byteCount: Int, mark: LogSync.Mark? = nil) {
    guard let header = File.read(descriptor, at: 0, byteCount: Self.headerByteCount) else { return }
    var sum = Checksum(isBigEndian: header[3] & 1 == 1)
    sum.add(header[..<24])
    let isHeaderSound =
      File.number(header, at: 0) & ~1 == 0x377F_0682 && File.number(header, at: 8) == UInt32(File.pageByteCount)
      && sum.first == File.number(header, at: 24) && sum.second == File.number(header, at: 28)
    var salts = isHeaderSound ? Array(header[16..<24]) : nil
    var isSound = isHeaderSound
    let frameByteCount = Self.frameHeaderByteCount + File.pageByteCount
    var lostCommit = false
    for slot in 0..<max(0, (byteCount - Self.headerByteCount) / frameByteCount) {
      let offset = Self.headerByteCount + slot * frameByteCount
      guard let frame = File.read(descriptor, at: offset, byteCount: frameByteCount) else { break }
      salts = salts ?? Array(frame[8..<16])
      guard frame[8..<16].elementsEqual(salts!) else {
        isSound = false
        continue
      }
      if lostCommit, mark == nil { isDamaged = true }
      if isSound {
        sum.add(frame[..<8])
        sum.add(frame[24...])
        isSound = sum.first == File.number(frame, at: 16) && sum.second == File.number(frame, at: 20)
      }
      let commit = File.number(frame, at: 4)
      frames.append(
        Frame(
          page: File.number(frame, at: 0), offset: offset + Self.frameHeaderByteCount, committedPageCount: commit))
      if isSound { soundCount = frames.count } else if commit != 0 { lostCommit = true }
    }
    if let mark, let salts, mark.salts == salts, soundCount < mark.frameCount { isDamaged = true }
  }

  /// The sound frames up to the last commit: what SQLite would see.
  var committed: ArraySlice<Frame> {
    let end = frames[..<soundCount].lastIndex { $0.committedPageCount != 0 }
    return end.map { frames[...$0] } ?? []
  }

  /// Whether the log of the database at this path, if there is one, is damaged.
  static func isDamaged(path: String) -> Bool {
    guard let file = File(path: path + "-wal") else { return false }
    return LogScan(file.descriptor, byteCount: file.byteCount, mark: LogSync.Mark(path: path + LogSync.suffix))
      .isDamaged
  }

  private struct Checksum {
    let isBigEndian: Bool
    var first: UInt32 = 0
    var second: UInt32 = 0

    init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

    /// A multiple of 8 bytes.
    mutating func add(_ bytes: ArraySlice<UInt8>) {
      bytes.withUnsafeBytes { bytes in
        for offset in stride(from: 0, to: bytes.count & ~7, by: 8) {
          let words = (
            bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self),
            bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
          )
          first &+= (isBigEndian ? UInt32(bigEndian: words.0) : UInt32(littleEndian: words.0)) &+ second
          second &+= (isBigEndian ? UInt32(bigEndian: words.1) : UInt32(littleEndian: words.1)) &+ first
        }
      }
    }
  }
}

/// A file to read from, whatever is in it.
final class File {
  /// The store sets this size when it makes its file, so it is known where the header is lost.
  static let pageByteCount = 4_096

  let descriptor: Int32
  let byteCount: Int

  init?(path: String) {
    descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    var status = stat()
    byteCount = fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
  }

  deinit { close(descriptor) }

  /// Nil when the file ends before, or cannot be read there.
  static func read(_ descriptor: Int32, at offset: Int, byteCount: Int) -> [UInt8]? {
    let bytes = [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      while count < byteCount {
        let got = pread(descriptor, buffer.baseAddress! + count, byteCount - count, off_t(offset + count))
        if got < 0, errno == EINTR { continue }
        if got <= 0 { return }
        count += got
      }
    }
    return bytes.count == byteCount ? bytes : nil
  }

  static func number(_ bytes: some RandomAccessCollection<UInt8>, at offset: Int) -> UInt32 {
    bytes.dropFirst(offset).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
  }
}
