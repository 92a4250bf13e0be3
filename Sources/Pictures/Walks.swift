// A walk over each format's structure: what is kept, how large the picture is, how it is turned. Each returns nil at
// its proper end, or where it breaks off; what lies behind the proper end is not kept.

extension PictureScan {
  // MARK: JPEG (ISO/IEC 10918-1, annex B)

  mutating func walkJPEG(_ source: inout ByteSource) -> UInt64? {
    keep(0..<2)
    var offset: UInt64 = 2
    var ownBlock = false
    while hasRoom {
      // Any number of 0xFF may stand before a marker's code.
      guard source.byte(at: offset) == 0xFF else { return offset }
      var start = offset
      while source.byte(at: start + 1) == 0xFF { start += 1 }
      // Zero is no marker: within coded data it means that the 0xFF before it is one of them.
      guard let marker = source.byte(at: start + 1), marker != 0 else { return offset }
      if marker == 0xD9 {
        keep(offset..<start + 2)
        if orientation != 1, !ownBlock { insertEXIF(afterStart: 2) }
        return nil
      }
      if marker == 0x01 || (0xD0...0xD7).contains(marker) {
        keep(offset..<start + 2)
        offset = start + 2
        continue
      }
      guard let length = source.bigEndian(at: start + 2, count: 2), length >= 2 else { return offset }
      var end = start + 2 + UInt64(length)
      guard end <= source.byteCount else {
        breaksOffHidden = !Self.isKept(marker, &source, start)
        return offset
      }
      if (0xC0...0xCF).contains(marker), ![0xC4, 0xC8, 0xCC].contains(marker), length >= 7 {
        storedHeight = source.bigEndian(at: start + 5, count: 2) ?? 0
        storedWidth = source.bigEndian(at: start + 7, count: 2) ?? 0
      }
      if marker == 0xE1, source.starts(with: "Exif\0\0", at: start + 4) {
        // Of several the first counts, as it does for those who show it.
        if orientation == 1 { orientation = Orientation.read(&source, start + 10, end) }
        if isOwnEXIF(&source, start, end) {
          ownBlock = true
          keep(offset..<end)
        }
      } else if Self.isKept(marker, &source, start) {
        if marker == 0xDA {
          guard let next = Self.endOfScan(&source, end) else { return offset }
          end = next
        }
        if marker == 0xE2 { hasProfile = true }
        keep(offset..<end)
      }
      offset = end
    }
    return offset
  }

  private static func isKept(_ marker: UInt8, _ source: inout ByteSource, _ start: UInt64) -> Bool {
    switch marker {
    case 0xE0: source.starts(with: "JFIF\0", at: start + 4)
    case 0xE2: source.starts(with: "ICC_PROFILE\0", at: start + 4)
    case 0xEE: source.starts(with: "Adobe", at: start + 4)
    case 0xE1...0xEF, 0xFE: false
    default: true
    }
  }

  /// Coded data ends at a marker that is neither a stuffed zero nor a restart.
  private static func endOfScan(_ source: inout ByteSource, _ start: UInt64) -> UInt64? {
    var offset = start
    while let found = source.next(0xFF, from: offset) {
      guard let code = source.byte(at: found + 1) else { return nil }
      if code != 0, code != 0xFF, !(0xD0...0xD7).contains(code) { return found }
      offset = found + (code == 0xFF ? 1 : 2)
    }
    return nil
  }

  private func isOwnEXIF(_ source: inout ByteSource, _ start: UInt64, _ end: UInt64) -> Bool {
    orientation != 1 && end - start == Orientation.blockByteCount + 10
      && source.bytes(at: start + 10, count: Int(Orientation.blockByteCount)).map(Array.init)
        == Orientation.block(orientation)
  }

  private mutating func insertEXIF(afterStart byteCount: UInt64) {
    let block = Orientation.block(orientation)
    let segment = [0xFF, 0xE1, 0, UInt8(block.count + 8)] + Array("Exif\0\0".utf8) + block
    insert(segment, at: byteCount)
  }

  // MARK: PNG (W3C, third edition, 5 and 11)

  mutating func walkPNG(_ source: inout ByteSource) -> UInt64? {
    keep(0..<8)
    var offset: UInt64 = 8
    var ownBlock = false
    while hasRoom {
      guard let length = source.bigEndian(at: offset, count: 4), length < 1 << 31,
        let name = source.bytes(at: offset + 4, count: 4).map({ String(decoding: $0, as: UTF8.self) })
      else { return offset }
      // The header comes first and is of one size: an orientation is put behind it.
      guard offset > 8 || (name == "IHDR" && length == 13) else { return offset }
      let end = offset + 12 + UInt64(length)
      guard end <= source.byteCount else {
        breaksOffHidden = !Self.isKept(chunk: name)
        return offset
      }
      if offset == 8 {
        storedWidth = source.bigEndian(at: offset + 8, count: 4) ?? 0
        storedHeight = source.bigEndian(at: offset + 12, count: 4) ?? 0
      }
      if name == "eXIf" {
        orientation = Orientation.read(&source, offset + 8, end - 4)
        if length == Int(Orientation.blockByteCount), orientation != 1,
          source.bytes(at: offset, count: 12 + length).map(Array.init) == Self.chunkEXIF(orientation)
        {
          ownBlock = true
          keep(offset..<end)
        }
      } else if Self.isKept(chunk: name) {
        if name == "iCCP" { hasProfile = true }
        keep(offset..<end)
      }
      if name == "IEND" {
        // Behind the signature and the header, which is of a fixed size.
        if orientation != 1, !ownBlock { insert(Self.chunkEXIF(orientation), at: 33) }
        return nil
      }
      offset = end
    }
    return offset
  }

  /// Critical chunks, and those that say how to show the picture (transparency, colours, size of a dot, animation).
  private static func isKept(chunk name: String) -> Bool {
    guard let first = name.utf8.first else { return false }
    return first & 0x20 == 0
      || [
        "tRNS", "cHRM", "gAMA", "iCCP", "sBIT", "sRGB", "cICP", "mDCv", "cLLi", "bKGD", "hIST", "pHYs", "sPLT", "acTL",
        "fcTL", "fdAT",
      ].contains(name)
  }

  private static func chunkEXIF(_ orientation: Int) -> [UInt8] {
    let body = Array("eXIf".utf8) + Orientation.block(orientation)
    let check = CRC32.value(of: body)
    return [0, 0, 0, UInt8(Orientation.blockByteCount)] + body
      + (0..<4).map { UInt8(truncatingIfNeeded: check >> (24 - 8 * $0)) }
  }

  // MARK: GIF (CompuServe, 1990)

  mutating func walkGIF(_ source: inout ByteSource) -> UInt64? {
    guard let width = source.littleEndian(at: 6, count: 2), let height = source.littleEndian(at: 8, count: 2),
      let flags = source.byte(at: 10)
    else { return 0 }
    (storedWidth, storedHeight) = (width, height)
    var offset: UInt64 = 13 + Self.tableByteCount(flags)
    guard offset <= source.byteCount else { return 0 }
    keep(0..<offset)
    while hasRoom {
      switch source.byte(at: offset) {
      case 0x3B:
        keep(offset..<offset + 1)
        return nil
      case 0x21:
        guard let label = source.byte(at: offset + 1) else { return offset }
        // Comments, and XMP, which is written so that its bytes can be passed over as blocks.
        let isXMP = label == 0xFF && source.starts(with: "XMP DataXMP", at: offset + 3)
        guard let end = Self.endOfBlocks(&source, offset + 2) else {
          breaksOffHidden = label == 0xFE || isXMP
          return offset
        }
        if label != 0xFE, !isXMP { keep(offset..<end) }
        offset = end
      case 0x2C:
        guard let flags = source.byte(at: offset + 9),
          let end = Self.endOfBlocks(&source, offset + 11 + Self.tableByteCount(flags))
        else { return offset }
        keep(offset..<end)
        offset = end
      default: return offset
      }
    }
    return offset
  }

  private static func tableByteCount(_ flags: UInt8) -> UInt64 { flags & 0x80 == 0 ? 0 : 3 << (UInt64(flags & 7) + 1) }

  private static func endOfBlocks(_ source: inout ByteSource, _ start: UInt64) -> UInt64? {
    var offset = start
    while let count = source.byte(at: offset) {
      offset += 1 + UInt64(count)
      if count == 0 { return offset }
    }
    return nil
  }

  // MARK: WebP (RFC 9649)

  mutating func walkWebP(_ source: inout ByteSource) -> UInt64? {
    guard let size = source.littleEndian(at: 4, count: 4) else { return 0 }
    let end = 8 + UInt64(size) + UInt64(size & 1)
    guard end <= source.byteCount else { return 0 }
    keep(0..<12)
    orientation = Self.orientationOfWebP(&source, end)
    var offset: UInt64 = 12
    while offset < end {
      guard hasRoom, let name = source.bytes(at: offset, count: 4).map({ String(decoding: $0, as: UTF8.self) }),
        let length = source.littleEndian(at: offset + 4, count: 4)
      else { return offset }
      let next = offset + 8 + UInt64(length) + UInt64(length & 1)
      guard next <= end else {
        breaksOffHidden = !["VP8 ", "VP8L", "VP8X", "ALPH", "ANIM", "ANMF", "ICCP"].contains(name)
        return offset
      }
      switch name {
      case "VP8X": extended(&source, offset, next)
      case "VP8 ":
        // Key frame header (RFC 6386, 9.1): 14 bits each.
        if storedWidth == 0, length >= 10 {
          storedWidth = (source.littleEndian(at: offset + 14, count: 2) ?? 0) & 0x3FFF
          storedHeight = (source.littleEndian(at: offset + 16, count: 2) ?? 0) & 0x3FFF
        }
        keep(offset..<next)
      case "VP8L":
        if storedWidth == 0, length >= 5, let bits = source.littleEndian(at: offset + 9, count: 4) {
          (storedWidth, storedHeight) = (bits & 0x3FFF + 1, bits >> 14 & 0x3FFF + 1)
        }
        keep(offset..<next)
      case "ALPH", "ANIM", "ANMF", "ICCP":
        if name == "ICCP" { hasProfile = true }
        keep(offset..<next)
      case "EXIF" where orientation != 1:
        let chunk = Array("EXIF".utf8) + [UInt8(Orientation.blockByteCount), 0, 0, 0] + Orientation.block(orientation)
        let isOwn = next - offset == UInt64(chunk.count) && source.bytes(at: offset, count: chunk.count) == chunk[...]
        if isOwn { keep(offset..<next) } else { insert(chunk) }
      default: break
      }
      offset = next
    }
    if !isClean(byteCount: source.byteCount) { fixSize() }
    return nil
  }

  /// Of the chunk that comes last.
  private static func orientationOfWebP(_ source: inout ByteSource, _ end: UInt64) -> Int {
    var offset: UInt64 = 12
    while offset < end, let length = source.littleEndian(at: offset + 4, count: 4) {
      let body = offset + 8
      if source.starts(with: "EXIF", at: offset) {
        let start = source.starts(with: "Exif\0\0", at: body) ? body + 6 : body
        return Orientation.read(&source, start, min(end, body + UInt64(length)))
      }
      offset = body + UInt64(length) + UInt64(length & 1)
    }
    return 1
  }

  /// Its flags for EXIF and XMP go with these.
  private mutating func extended(_ source: inout ByteSource, _ offset: UInt64, _ next: UInt64) {
    guard next - offset >= 18, let flags = source.byte(at: offset + 8),
      let width = source.littleEndian(at: offset + 12, count: 3),
      let height = source.littleEndian(at: offset + 15, count: 3)
    else { return }
    (storedWidth, storedHeight) = (width + 1, height + 1)
    let rightFlags = flags & ~0x0C | (orientation == 1 ? 0 : 0x08)
    keep(offset..<offset + 8)
    if flags == rightFlags { keep(offset + 8..<offset + 9) } else { insert([rightFlags]) }
    keep(offset + 9..<next)
  }

  /// The container says how long it is.
  private mutating func fixSize() {
    let size = cleanByteCount - 8
    replaceHead(Array("RIFF".utf8) + (0..<4).map { UInt8(truncatingIfNeeded: size >> (8 * $0)) }, byteCount: 8)
  }
}

/// The check of PNG's chunks (W3C PNG, annex D).
private enum CRC32 {
  static func value(of bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(~0) { sum, byte in
      (0..<8).reduce(sum ^ UInt32(byte)) { sum, _ in sum >> 1 ^ (sum & 1 == 1 ? 0xEDB8_8320 : 0) }
    }
  }
}
