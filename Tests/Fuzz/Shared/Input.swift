/// Takes choices, numbers and bytes off a fuzzer's input, so that what it changes steers what happens. Zeros once it is
/// used up.
struct Input {
  private let bytes: [UInt8]
  private var position = 0

  init(_ data: UnsafePointer<UInt8>, _ count: Int) { bytes = Array(UnsafeBufferPointer(start: data, count: count)) }

  var isAtEnd: Bool { position == bytes.count }
  /// What was not taken.
  var rest: [UInt8] { Array(bytes[position...]) }

  mutating func byte() -> UInt8 {
    guard position < bytes.count else { return 0 }
    defer { position += 1 }
    return bytes[position]
  }

  mutating func bool() -> Bool { byte() & 1 != 0 }
  mutating func choice(_ count: Int) -> Int { Int(byte()) % count }
  mutating func uint16() -> UInt16 { UInt16(byte()) << 8 | UInt16(byte()) }
  mutating func uint64() -> UInt64 { (0..<8).reduce(0) { value, _ in value << 8 | UInt64(byte()) } }

  /// Zeros at the end when there are not so many.
  mutating func take(_ count: Int) -> [UInt8] { (0..<count).map { _ in byte() } }

  /// As many as a first byte or two say, at most.
  mutating func block(_ countMax: Int) -> [UInt8] {
    let wanted = Int(uint16()) % (countMax + 1)
    let taken = bytes[position..<min(position + wanted, bytes.count)]
    position += taken.count
    return Array(taken)
  }

  /// Below 2⁶², with a liking for the edges.
  mutating func counter() -> UInt64 {
    let most: UInt64 = (1 << 62) - 1
    switch choice(8) {
    case 0: return 0
    case 1: return most
    case 2: return most - UInt64(byte())
    case 3: return uint64() & most
    case 4: return 1 << UInt64(choice(62))
    default: return UInt64(byte())
    }
  }
}

/// Cuts what is received into pieces as an input says; the last piece takes the rest.
func pieces(_ bytes: [UInt8], _ input: inout Input) -> [[UInt8]] {
  var pieces: [[UInt8]] = []
  var start = 0
  while start < bytes.count, pieces.count < 16 {
    let end = min(bytes.count, start + Int(input.byte()) * (input.bool() ? 1 : 200))
    pieces.append(Array(bytes[start..<end]))
    start = end
  }
  if start < bytes.count { pieces.append(Array(bytes[start...])) }
  return pieces
}
