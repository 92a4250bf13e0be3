import CLinux
import Glibc

/// A picture's bytes, read where they are wanted: whatever its headers claim, no more than a window is in memory.
package struct ByteSource: ~Copyable {
  package let byteCount: UInt64
  private let file: Int32
  private var window: [UInt8] = []
  private var windowStart: UInt64 = 0
  private static let windowByteCount = 1 << 16

  /// An open file, which must stay open for as long as this is used.
  package init(file: Int32) {
    var status = stat()
    byteCount = fstat(file, &status) == 0 ? UInt64(clamping: status.st_size) : 0
    self.file = file
  }

  package init(bytes: [UInt8]) {
    byteCount = UInt64(bytes.count)
    file = -1
    window = bytes
  }

  /// Nil when there are not so many. `count`: at most 65,536.
  mutating func bytes(at offset: UInt64, count: Int) -> ArraySlice<UInt8>? {
    guard let start = place(offset, count) else { return nil }
    return window[start..<start + count]
  }

  mutating func byte(at offset: UInt64) -> UInt8? { place(offset, 1).map { window[$0] } }

  /// A number of 2 or 4 bytes, the most significant first.
  mutating func bigEndian(at offset: UInt64, count: Int) -> Int? {
    bytes(at: offset, count: count)?.reduce(0) { $0 << 8 | Int($1) }
  }

  /// The least significant first.
  mutating func littleEndian(at offset: UInt64, count: Int) -> Int? {
    bytes(at: offset, count: count)?.reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  mutating func starts(with text: StaticString, at offset: UInt64) -> Bool {
    guard let found = bytes(at: offset, count: text.utf8CodeUnitCount) else { return false }
    return text.withUTF8Buffer { found.elementsEqual($0) }
  }

  /// Where this byte is next; nil when it is not in the file any more.
  mutating func next(_ byte: UInt8, from offset: UInt64) -> UInt64? {
    var offset = offset
    while let start = place(offset, 1) {
      if let found = window[start...].firstIndex(of: byte) { return windowStart + UInt64(found) }
      offset = windowStart + UInt64(window.count)
    }
    return nil
  }

  /// Whether one of these stands at or behind `offset`.
  mutating func contains(anyOf texts: [StaticString], from offset: UInt64) -> Bool {
    let longest = texts.map(\.utf8CodeUnitCount).max() ?? 0
    guard longest > 0 else { return false }
    var offset = offset
    while offset < byteCount {
      let count = Int(min(UInt64(Self.windowByteCount), byteCount - offset))
      guard let part = bytes(at: offset, count: count) else { return false }
      let isFound = part.withUnsafeBytes { part in
        texts.contains { text in
          memmem(part.baseAddress!, part.count, text.utf8Start, text.utf8CodeUnitCount) != nil
        }
      }
      if isFound { return true }
      // Texts that begin in this part and end in the next.
      guard count > longest else { return false }
      offset += UInt64(count - longest + 1)
      if offset + UInt64(longest) > byteCount { return false }
    }
    return false
  }

  /// Where in the window the bytes are, which is moved when they are not.
  private mutating func place(_ offset: UInt64, _ count: Int) -> Int? {
    precondition(count <= Self.windowByteCount, "no caller asks for more than a window")
    guard offset <= byteCount, UInt64(count) <= byteCount - offset else { return nil }
    if offset >= windowStart, offset - windowStart + UInt64(count) <= UInt64(window.count) {
      return Int(offset - windowStart)
    }
    guard file >= 0 else { return nil }
    let wanted = Int(min(UInt64(Self.windowByteCount), byteCount - offset))
    window = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, filled in
      while filled < wanted {
        let part = pread(file, buffer.baseAddress! + filled, wanted - filled, off_t(offset) + off_t(filled))
        if part < 0, errno == EINTR { continue }
        guard part > 0 else { return }
        filled += part
      }
    }
    windowStart = offset
    return window.count >= count ? 0 : nil
  }
}
