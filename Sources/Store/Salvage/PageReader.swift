import Glibc

/// The pages of a database and of its write-ahead log, and the rows in them, read without SQLite: no header, schema or
/// tree is needed, so what is lost is what cannot be read itself. After the SQLite file format, sections 1.5, 1.6, 2.1.
final class PageReader {
  enum Field {
    case null
    case integer(Int64)
    case text([UInt8])
    case blob([UInt8])
  }

  struct Row {
    /// Nil in tables without.
    var id: Int64?
    var fields: [Field]
    /// Whether its page is the newest image of that page.
    var isCurrent: Bool
  }

  private let file: File?
  private let log: File?
  private let frames: [LogScan.Frame]
  /// Of each page that is in the log, where its newest image begins there.
  private var newest: [UInt32: Int] = [:]

  /// `path` and `path`-wal, either of which may be missing.
  init(path: String) {
    file = File(path: path)
    log = File(path: path + "-wal")
    frames = log.map { LogScan($0.descriptor, byteCount: $0.byteCount).frames } ?? []
    for frame in frames { newest[frame.page] = frame.offset }
  }

  /// Rows of every image of every page, older images first. Rows that were deleted may be among them.
  func eachRow(_ body: (Row) throws(StoreError) -> Void) throws(StoreError) {
    if let file {
      for index in 0..<file.byteCount / File.pageByteCount {
        let number = UInt32(truncatingIfNeeded: index + 1)
        let bytes = File.read(file.descriptor, at: index * File.pageByteCount, byteCount: File.pageByteCount)
        try rows(bytes, isFirst: index == 0, isCurrent: newest[number] == nil, body)
      }
    }
    guard let log else { return }
    for frame in frames {
      let bytes = File.read(log.descriptor, at: frame.offset, byteCount: File.pageByteCount)
      try rows(bytes, isFirst: frame.page == 1, isCurrent: newest[frame.page] == frame.offset, body)
    }
  }

  private func page(_ number: UInt32) -> [UInt8]? {
    if let log, let offset = newest[number] {
      return File.read(log.descriptor, at: offset, byteCount: File.pageByteCount)
    }
    guard let file, number > 0 else { return nil }
    return File.read(file.descriptor, at: Int(number - 1) * File.pageByteCount, byteCount: File.pageByteCount)
  }

  /// A page whose type is none of SQLite's may be one whose type was hit: it is tried as each that holds rows.
  private func rows(
    _ bytes: [UInt8]?, isFirst: Bool, isCurrent: Bool, _ body: (Row) throws(StoreError) -> Void
  ) throws(StoreError) {
    guard let bytes else { return }
    let start = isFirst ? 100 : 0
    let kinds: [Kind] =
      switch bytes[start] {
      case 5: []
      case let type: Kind(rawValue: type).map { [$0] } ?? [.tableLeaf, .indexLeaf]
      }
    for kind in kinds {
      // The array of pointers ends where the first cell begins at the latest. Its count is not needed: it may be wrong.
      var place = start + kind.headerByteCount
      var end = bytes.count
      while place + 2 <= end {
        let cell = Int(bytes[place]) << 8 | Int(bytes[place + 1])
        place += 2
        guard cell >= place, cell < bytes.count else { continue }
        guard var row = self.row(bytes, at: cell, kind) else { continue }
        end = min(end, cell)
        row.isCurrent = isCurrent
        try body(row)
      }
    }
  }

  private enum Kind: UInt8 {
    case indexInterior = 2
    case indexLeaf = 10
    case tableLeaf = 13

    var headerByteCount: Int { self == .indexInterior ? 12 : 8 }
    /// The most of a record that stands in the page itself.
    var localMax: Int {
      self == .tableLeaf ? File.pageByteCount - 35 : (File.pageByteCount - 12) * 64 / 255 - 23
    }
  }

  private func row(_ page: [UInt8], at start: Int, _ kind: Kind) -> Row? {
    var cell = Cursor(bytes: page, place: start + (kind == .indexInterior ? 4 : 0))
    guard let length = cell.varint(), length > 1, length <= 1 << 24 else { return nil }
    var id: Int64?
    if kind == .tableLeaf {
      guard let value = cell.varint() else { return nil }
      id = Int64(bitPattern: value)
    }
    guard let record = record(page, at: cell.place, Int(length), localMax: kind.localMax),
      let fields = Self.fields(of: record)
    else { return nil }
    return Row(id: id, fields: fields, isCurrent: true)
  }

  /// What does not fit goes on in overflow pages.
  private func record(_ page: [UInt8], at place: Int, _ byteCount: Int, localMax: Int) -> [UInt8]? {
    if byteCount <= localMax {
      return place + byteCount <= page.count ? Array(page[place..<place + byteCount]) : nil
    }
    let localMin = (File.pageByteCount - 12) * 32 / 255 - 23
    let wanted = localMin + (byteCount - localMin) % (File.pageByteCount - 4)
    let local = wanted <= localMax ? wanted : localMin
    guard place + local + 4 <= page.count else { return nil }
    var record = Array(page[place..<place + local])
    var next = File.number(page, at: place + local)
    while record.count < byteCount {
      guard next > 0, let page = self.page(next) else { return nil }
      record += page[4..<min(page.count, 4 + byteCount - record.count)]
      next = File.number(page, at: 0)
    }
    return record
  }

  private static func fields(of record: [UInt8]) -> [Field]? {
    var header = Cursor(bytes: record, place: 0)
    guard let headerByteCount = header.varint(), headerByteCount <= record.count else { return nil }
    var fields: [Field] = []
    var place = Int(headerByteCount)
    while header.place < Int(headerByteCount) {
      guard let type = header.varint(), type != 7, type != 10, type != 11 else { return nil }
      let byteCount =
        switch type {
        case 0, 8, 9: 0
        case 1...4: Int(type)
        case 5: 6
        case 6: 8
        default: Int(clamping: (type - 12) / 2)
        }
      guard byteCount <= record.count - place, fields.count < 32 else { return nil }
      let bytes = record[place..<place + byteCount]
      place += byteCount
      switch type {
      case 0: fields.append(.null)
      case 8, 9: fields.append(.integer(Int64(type) - 8))
      case 1...6:
        let bits = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let shift = UInt64(64 - 8 * byteCount)
        fields.append(.integer(Int64(bitPattern: bits << shift) >> Int64(shift)))
      default: fields.append(type.isMultiple(of: 2) ? .blob(Array(bytes)) : .text(Array(bytes)))
      }
    }
    guard header.place == Int(headerByteCount), place == record.count else { return nil }
    return fields
  }

  private struct Cursor {
    let bytes: [UInt8]
    var place: Int

    /// SQLite's own: big-endian groups of 7 bits, the ninth byte whole.
    mutating func varint() -> UInt64? {
      var value: UInt64 = 0
      for count in 1...9 {
        guard place < bytes.count else { return nil }
        let byte = bytes[place]
        place += 1
        if count == 9 { return value << 8 | UInt64(byte) }
        value = value << 7 | UInt64(byte & 0x7F)
        if byte < 0x80 { return value }
      }
      return nil
    }
  }
}
