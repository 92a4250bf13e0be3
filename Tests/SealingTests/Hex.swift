/// Facts are written as hexadecimal digits.
func bytes(_ hex: String) -> [UInt8] {
  let digits = Array(hex)
  precondition(digits.count.isMultiple(of: 2), "two digits make a byte")
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0...$0 + 1]), radix: 16)! }
}

extension Collection<UInt8> {
  var hex: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}

extension [UInt8] {
  /// With one bit turned.
  func flipping(bit: Int) -> [UInt8] {
    var copy = self
    copy[bit / 8] ^= 1 << UInt8(bit % 8)
    return copy
  }
}
