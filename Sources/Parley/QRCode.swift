import CQREncode

/// A text as a QR code (ISO/IEC 18004, error correction level L), made by libqrencode.
public struct QRCode: Sendable, Equatable {
  /// Light modules that scanners need on every side.
  public static let quietZone = 4

  /// Modules on each side, without the quiet zone.
  public let side: Int
  private let dark: [Bool]

  /// Nil when libqrencode is not installed or the text is too long (some 2,900 bytes).
  public init?(_ text: String) {
    guard let code = parley_qr_encode(text) else { return nil }
    defer { parley_qr_release(code) }
    side = Int(code.pointee.width)
    // The lowest bit of each byte says whether the module is dark.
    dark = UnsafeBufferPointer(start: code.pointee.data, count: side * side).map { $0 & 1 == 1 }
  }

  /// False outside: the quiet zone is light.
  public func isDark(column: Int, row: Int) -> Bool {
    guard (0..<side).contains(column), (0..<side).contains(row) else { return false }
    return dark[row * side + column]
  }

  /// With its quiet zone, two rows in a line of half blocks. A full block is a light module: black ground is taken for
  /// granted, so whoever draws on another sets the colours.
  public var halfBlocks: [String] {
    let range = -Self.quietZone..<side + Self.quietZone
    return stride(from: range.lowerBound, to: range.upperBound, by: 2).map { row in
      String(
        range.map { column -> Character in
          // Below the last row there is nothing more to be light.
          let isLowerLight = row + 1 < range.upperBound && !isDark(column: column, row: row + 1)
          return switch (!isDark(column: column, row: row), isLowerLight) {
          case (true, true): "█"
          case (true, false): "▀"
          case (false, true): "▄"
          case (false, false): " "
          }
        })
    }
  }

  /// A picture of one path, quiet zone included, a unit a module.
  public var svg: String {
    let whole = side + 2 * Self.quietZone
    var path = ""
    for row in 0..<side {
      for column in 0..<side where isDark(column: column, row: row) {
        path += "M\(column + Self.quietZone) \(row + Self.quietZone)h1v1h-1z"
      }
    }
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(whole) \(whole)" shape-rendering="crispEdges">\
      <path fill="#fff" d="M0 0h\(whole)v\(whole)h-\(whole)z"/><path d="\(path)"/></svg>
      """
  }
}
