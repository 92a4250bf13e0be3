/// A received file name made safe to create in a folder and to show, and kept recognisable: one path component, no
/// separators, no control or reordering characters, not `.` or `..`, not hidden, no name that Windows reserves, at most
/// 255 bytes of UTF-8, NFC. The same input gives the same name everywhere.
public struct SafeFileName: Hashable, Sendable, CustomStringConvertible {
  public let text: String
  public var description: String { text }

  public init(received: String) {
    // By scalars: a slash that carries a combining mark is another Character, but still a slash to the system.
    let components = received.unicodeScalars.split(whereSeparator: { $0 == "/" || $0 == "\\" })
    var scalars = String.UnicodeScalarView()
    for scalar in (components.last.map(String.init) ?? "").nfc.unicodeScalars {
      if scalar.isControl || scalar.isTreacherous && scalar.value != 0x200D && scalar.value != 0x200C {
        scalars.append("_")
      } else if ["<", ">", ":", "\"", "|", "?", "*"].contains(scalar) {
        scalars.append("_")
      } else {
        scalars.append(scalar)
      }
    }
    var name = String(scalars)
    while let last = name.unicodeScalars.last, last == "." || last.properties.isWhitespace {
      name.unicodeScalars.removeLast()
    }
    while let first = name.unicodeScalars.first, first.properties.isWhitespace { name.unicodeScalars.removeFirst() }
    if name.unicodeScalars.first == "." { name = "_" + name.unicodeScalars.dropFirst().map(String.init).joined() }
    if name.isEmpty { name = "file" }
    if Self.isReserved(name) { name = "_" + name }
    text = Self.shortened(name, byteCountMax: Limit.fileNameByteCountMax)
  }

  /// The name with ` (2)`, ` (3)` … before its extension, still within 255 bytes: for a name already taken.
  public func numbered(_ number: Int) -> String {
    let (stem, suffix) = Self.split(text)
    let tail = " (\(number))" + suffix
    return Self.shortened(stem, byteCountMax: Limit.fileNameByteCountMax - tail.utf8.count) + tail
  }

  private static func isReserved(_ name: String) -> Bool {
    let stem = name.prefix { $0 != "." }.uppercased()
    if ["CON", "PRN", "AUX", "NUL"].contains(stem) { return true }
    guard stem.count == 4, stem.hasPrefix("COM") || stem.hasPrefix("LPT") else { return false }
    return "123456789¹²³".contains(stem.last!)
  }

  /// Cuts between characters, keeping an extension of up to 16 bytes.
  private static func shortened(_ name: String, byteCountMax: Int) -> String {
    guard name.utf8.count > byteCountMax else { return name }
    let (stem, suffix) = split(name)
    var kept = ""
    var count = suffix.utf8.count
    for character in stem {
      count += character.utf8.count
      if count > byteCountMax { break }
      kept.append(character)
    }
    return kept.isEmpty ? String(decoding: name.utf8.prefix(byteCountMax & ~3), as: UTF8.self) : kept + suffix
  }

  private static func split(_ name: String) -> (stem: String, suffix: String) {
    guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return (name, "") }
    let suffix = String(name[dot...])
    guard suffix.utf8.count <= 16 else { return (name, "") }
    return (String(name[..<dot]), suffix)
  }
}
