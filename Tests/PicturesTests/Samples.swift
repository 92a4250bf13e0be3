import Glibc
import ParleyPictures
import Testing

/// Pictures made here, byte by byte, and by the programs that decode them.
enum Samples {
  /// Nobody shall learn this.
  static let secret = "48.8583N,2.2945E"

  // MARK: PNG

  /// A gradient, compressed not at all.
  static func png(_ width: Int, _ height: Int) -> [UInt8] {
    var rows: [UInt8] = []
    rows.reserveCapacity(height * (width * 3 + 1))
    for y in 0..<height {
      rows.append(0)
      for x in 0..<width {
        rows += [
          UInt8(truncatingIfNeeded: x * 255 / width), UInt8(truncatingIfNeeded: y * 255 / height),
          UInt8(truncatingIfNeeded: x ^ y),
        ]
      }
    }
    return pngHead(width, height) + chunk("IDAT", stored(rows)) + chunk("IEND", [])
  }

  /// Rows of one colour, compressed not at all.
  static func blue(_ width: Int, _ height: Int) -> [UInt8] {
    stored((0..<height).flatMap { _ in [0] + (0..<width).flatMap { _ in [0, 0, 255] as [UInt8] } })
  }

  static func pngHead(_ width: Int, _ height: Int) -> [UInt8] {
    [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
      + chunk("IHDR", number(width, 4) + number(height, 4) + [8, 2, 0, 0, 0])
  }

  static func chunk(_ name: String, _ body: [UInt8]) -> [UInt8] {
    let checked = Array(name.utf8) + body
    return number(body.count, 4) + checked + number(Int(crc(checked)), 4)
  }

  private static let crcTable: [UInt32] = (0..<256).map { byte in
    (0..<8).reduce(UInt32(byte)) { sum, _ in sum >> 1 ^ (sum & 1 == 1 ? 0xEDB8_8320 : 0) }
  }
  private static func crc(_ bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(~0) { crcTable[Int(($0 ^ UInt32($1)) & 0xFF)] ^ $0 >> 8 }
  }

  /// zlib with stored blocks (RFC 1950, 1951).
  private static func stored(_ bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = [0x78, 0x01]
    var start = 0
    repeat {
      let part = bytes[start..<min(start + 65_535, bytes.count)]
      start += part.count
      let count = number(part.count, 2)
      result += [start == bytes.count ? 1 : 0, count[1], count[0], ~count[1], ~count[0]] + part
    } while start < bytes.count
    let (a, b) = bytes.reduce((1, 0)) { sum, byte in
      let a = (sum.0 + Int(byte)) % 65_521
      return (a, (sum.1 + a) % 65_521)
    }
    return result + number(b, 2) + number(a, 2)
  }

  static func number(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
  }

  // MARK: EXIF and XMP

  /// A TIFF structure with an orientation and a place.
  static func exif(orientation: Int) -> [UInt8] {
    func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: [UInt8]) -> [UInt8] {
      number(tag, 2) + number(type, 2) + number(count, 4) + value + [UInt8](repeating: 0, count: 4 - value.count)
    }
    let place = Array("ASCII\0\0\0".utf8) + Array(secret.utf8)
    let degrees = [48, 51, 29].flatMap { number($0, 4) + number(1, 4) }
    // The first IFD at 8 with two entries ends at 38; that of GPS with three at 80.
    return Array("MM".utf8) + number(42, 2) + number(8, 4) + number(2, 2)
      + entry(0x0112, 3, 1, number(orientation, 2)) + entry(0x8825, 4, 1, number(38, 4)) + number(0, 4)
      + number(3, 2) + entry(1, 2, 2, Array("N\0".utf8)) + entry(2, 5, 3, number(80, 4))
      + entry(0x1B, 7, place.count, number(104, 4)) + number(0, 4) + degrees + place
  }

  static let xmp = Array("<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><exif:GPSLatitude>\(secret)</exif:GPSLatitude>".utf8)

  // MARK: JPEG

  static func jpeg(_ width: Int, _ height: Int) throws -> [UInt8] {
    try converted(png(width, height), to: "jpg[Q=90,strip]")
  }

  /// With all the places where metadata can hide, and a colour profile's first bytes.
  static func dirtyJPEG(_ width: Int, _ height: Int, orientation: Int = 1) throws -> [UInt8] {
    let plain = try jpeg(width, height)
    func segment(_ marker: UInt8, _ body: [UInt8]) -> [UInt8] { [0xFF, marker] + number(body.count + 2, 2) + body }
    return [0xFF, 0xD8] + segment(0xE1, Array("Exif\0\0".utf8) + exif(orientation: orientation))
      + segment(0xE1, Array("http://ns.adobe.com/xap/1.0/\0".utf8) + xmp)
      + segment(0xED, Array("Photoshop 3.0\0".utf8) + Array(secret.utf8)) + segment(0xFE, Array(secret.utf8))
      + plain[2...] + Array("ftypmp4 \(secret)".utf8)
  }

  // MARK: GIF

  static func gif(comment: Bool) -> [UInt8] {
    let head = Array("GIF89a".utf8) + [20, 0, 10, 0, 0x80, 0, 0, 0, 0, 0, 255, 255, 255]
    let hidden =
      [0x21, 0xFE, UInt8(secret.utf8.count)] + Array(secret.utf8) + [0] + [0x21, 0xFF, 11] + Array("XMP DataXMP".utf8)
      + xmp + [1] + (0...255).map { UInt8(255 - $0) } + [0]
    // One frame of 20 × 10 dots, uncompressed: a clear code before every second colour keeps the codes 3 bits wide.
    var bits: [Int] = []
    for _ in 0..<100 { bits += [4, 0, 1] }
    bits.append(5)
    var coded: [UInt8] = []
    var (store, held) = (0, 0)
    for code in bits {
      store |= code << held
      held += 3
      while held >= 8 {
        coded.append(UInt8(store & 0xFF))
        (store, held) = (store >> 8, held - 8)
      }
    }
    coded.append(UInt8(store & 0xFF))
    return head + (comment ? hidden : []) + [0x2C, 0, 0, 0, 0, 20, 0, 10, 0, 0, 2, UInt8(coded.count)] + coded
      + [0, 0x3B]
  }

  // MARK: With the programs

  /// `ending`: a format of vips with its options.
  static func converted(_ bytes: [UInt8], to ending: String) throws -> [UInt8] {
    let file = TemporaryFile(bytes)
    return try ConfinedTool("vipsthumbnail").run(
      ["stdin", "--size", "100000x100000>", "--output", ".\(ending)"], input: file.descriptor)
  }

  /// Everything that vips finds in the picture's headers.
  static func headers(_ bytes: [UInt8]) throws -> String {
    let file = TemporaryFile(bytes)
    return String(
      decoding: try ConfinedTool("vipsheader").run(["-a", "stdin"], input: file.descriptor), as: UTF8.self)
  }

  static func clean(_ bytes: [UInt8]) throws -> [UInt8] {
    let (from, to) = (TemporaryFile(bytes), TemporaryFile([]))
    var source = ByteSource(file: from.descriptor)
    let found = PictureScan(&source)
    let scan = try #require(found)
    #expect(scan.write(from: from.descriptor, to: to.descriptor) == 0)
    return to.bytes
  }
}

/// An open file without a name.
final class TemporaryFile {
  let descriptor: Int32

  init(_ bytes: [UInt8]) {
    var template = Array("/tmp/parley-picture-XXXXXX".utf8CString)
    descriptor = mkstemp(&template)
    unlink(template)
    var done = 0
    while done < bytes.count {
      done += bytes.withUnsafeBytes { max(0, write(descriptor, $0.baseAddress! + done, $0.count - done)) }
    }
    lseek(descriptor, 0, SEEK_SET)
  }

  deinit { close(descriptor) }

  var bytes: [UInt8] {
    var status = stat()
    fstat(descriptor, &status)
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    let count = pread(descriptor, &bytes, bytes.count, 0)
    return Array(bytes.prefix(max(0, count)))
  }
}

extension [UInt8] {
  func holds(_ text: String) -> Bool {
    let wanted = Array(text.utf8)
    guard count >= wanted.count else { return false }
    return (0...count - wanted.count).contains { self[$0] == wanted[0] && self[$0..<$0 + wanted.count] == wanted[...] }
  }
}

func scan(_ bytes: [UInt8]) -> PictureScan? {
  var source = ByteSource(bytes: bytes)
  return PictureScan(&source)
}
