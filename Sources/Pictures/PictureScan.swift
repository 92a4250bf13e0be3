import Glibc

/// What a picture's own structure says, and which of its bytes may be shared: those that make the picture. What says
/// where, when, by whom and with what it was made (EXIF with GPS, XMP, IPTC, comments, makers' notes, whatever hangs
/// behind its end) is left out without touching a pixel. Colour profiles stay, and the orientation, in an EXIF block of
/// its own that says nothing else.
package struct PictureScan: Equatable, Sendable {
  /// A stretch of the file, or bytes to put there.
  enum Part: Equatable, Sendable {
    case range(Range<UInt64>)
    case bytes([UInt8])
  }

  package let format: PictureFormat
  package internal(set) var storedWidth = 0
  package internal(set) var storedHeight = 0
  /// As EXIF numbers them: 1 upright to 8.
  package internal(set) var orientation = 1
  /// Whether it holds a colour profile, without which colours are those of sRGB.
  package internal(set) var hasProfile = false
  /// False when its structure breaks off or makes no sense.
  package internal(set) var isWhole = true
  private(set) var parts: [Part] = []
  /// It breaks off in what is left out.
  var breaksOffHidden = false

  /// More stretches than any picture needs: what lies behind them counts as broken.
  static let partCountMax = 100_000
  /// Found in what cannot be understood, the rest is not shared.
  private static let telltales: [StaticString] = [
    "Exif\0\0", "http://ns.adobe.com/", "<x:xmpmeta", "Photoshop 3.0", "XML:com.adobe.xmp", "Raw profile type", "eXIf",
    "EXIF", "GPSLatitude",
  ]

  /// Nil when it is none of the formats known. Reads the whole file at most once.
  package init?(_ source: inout ByteSource) {
    guard let head = source.bytes(at: 0, count: Int(min(source.byteCount, 12))), let format = PictureFormat(head: head)
    else { return nil }
    self.format = format
    let end: UInt64?
    switch format {
    case .jpeg: end = walkJPEG(&source)
    case .png: end = walkPNG(&source)
    case .gif: end = walkGIF(&source)
    case .webp: end = walkWebP(&source)
    }
    guard let brokenAt = end else { return }
    isWhole = false
    if !breaksOffHidden, !source.contains(anyOf: Self.telltales, from: brokenAt) { keep(brokenAt..<source.byteCount) }
  }

  /// As people see it, upright.
  package var width: Int { orientation >= 5 ? storedHeight : storedWidth }
  package var height: Int { orientation >= 5 ? storedWidth : storedHeight }

  /// Whether the file holds nothing that is left out.
  package func isClean(byteCount: UInt64) -> Bool { parts == [.range(0..<byteCount)] }

  mutating func keep(_ range: Range<UInt64>) {
    guard !range.isEmpty else { return }
    if case .range(let last)? = parts.last, last.upperBound == range.lowerBound {
      parts[parts.count - 1] = .range(last.lowerBound..<range.upperBound)
    } else {
      parts.append(.range(range))
    }
  }

  mutating func insert(_ bytes: [UInt8]) { parts.append(.bytes(bytes)) }

  /// `place`: within the first stretch, which begins the file.
  mutating func insert(_ bytes: [UInt8], at place: UInt64) {
    guard case .range(let first)? = parts.first, first.lowerBound == 0, first.upperBound >= place else { return }
    let rest = place == first.upperBound ? [] : [Part.range(place..<first.upperBound)]
    parts.replaceSubrange(0..<1, with: [.range(0..<place), .bytes(bytes)] + rest)
  }

  mutating func replaceHead(_ bytes: [UInt8], byteCount: UInt64) {
    guard case .range(let first)? = parts.first, first.upperBound >= byteCount else { return }
    parts.replaceSubrange(0..<1, with: [.bytes(bytes), .range(byteCount..<first.upperBound)])
  }

  var hasRoom: Bool { parts.count < Self.partCountMax }

  /// Of what is shared.
  var cleanByteCount: UInt64 {
    parts.reduce(0) { sum, part in
      switch part {
      case .range(let range): sum + UInt64(range.count)
      case .bytes(let bytes): sum + UInt64(bytes.count)
      }
    }
  }

  /// Writes what is shared from the file it was scanned from to another. Returns 0, or what the system refused
  /// (`errno`); `EIO` also when the file has become shorter.
  package func write(from source: Int32, to target: Int32) -> Int32 {
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    for part in parts {
      switch part {
      case .bytes(let bytes):
        let code = Self.writeAll(bytes[...], target)
        if code != 0 { return code }
      case .range(let range):
        var offset = range.lowerBound
        while offset < range.upperBound {
          let count = pread(source, &buffer, Int(min(UInt64(buffer.count), range.upperBound - offset)), off_t(offset))
          if count < 0, errno == EINTR { continue }
          guard count > 0 else { return count == 0 ? EIO : errno }
          let code = Self.writeAll(buffer[..<count], target)
          if code != 0 { return code }
          offset += UInt64(count)
        }
      }
    }
    return 0
  }

  /// What is shared of bytes that are in memory.
  package func bytes(from source: [UInt8]) -> [UInt8] {
    parts.flatMap { part in
      switch part {
      case .bytes(let bytes): bytes
      case .range(let range): Array(source[Int(range.lowerBound)..<Int(range.upperBound)])
      }
    }
  }

  private static func writeAll(_ bytes: ArraySlice<UInt8>, _ target: Int32) -> Int32 {
    bytes.withUnsafeBytes { bytes in
      var done = 0
      while done < bytes.count {
        let count = Glibc.write(target, bytes.baseAddress! + done, bytes.count - done)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return count == 0 ? EIO : errno }
        done += count
      }
      return 0
    }
  }
}

/// TIFF structures inside EXIF: only the orientation is read, and only the orientation is written.
enum Orientation {
  private static let tag = 0x0112

  /// A TIFF file with one entry, the orientation (CIPA DC-008, 4.6.4).
  static func block(_ orientation: Int) -> [UInt8] {
    [
      0x4D, 0x4D, 0, 0x2A, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(orientation), 0, 0, 0, 0, 0, 0,
    ]
  }

  static let blockByteCount: UInt64 = 26

  /// Of the TIFF structure at `start`, which ends at `end`; 1 when it says none or nonsense.
  static func read(_ source: inout ByteSource, _ start: UInt64, _ end: UInt64) -> Int {
    guard end >= start, end - start >= 8, let order = source.bytes(at: start, count: 4) else { return 1 }
    let isBig = Array(order) == [0x4D, 0x4D, 0, 0x2A]
    guard isBig || Array(order) == [0x49, 0x49, 0x2A, 0] else { return 1 }
    func number(_ source: inout ByteSource, _ offset: UInt64, _ count: Int) -> Int? {
      guard offset <= end, UInt64(count) <= end - offset else { return nil }
      return isBig ? source.bigEndian(at: offset, count: count) : source.littleEndian(at: offset, count: count)
    }
    guard let first = number(&source, start + 4, 4), let count = number(&source, start + UInt64(first), 2) else {
      return 1
    }
    for entry in 0..<count {
      let place = start + UInt64(first) + 2 + UInt64(entry) * 12
      guard let found = number(&source, place, 2) else { return 1 }
      guard found == tag else { continue }
      guard let value = number(&source, place + 8, 2), (1...8).contains(value) else { return 1 }
      return value
    }
    return 1
  }
}
