import CSodium
import ParleyHashing
import Synchronization

/// Slots of one size in memory from `sodium_malloc`: locked where the system allows it, left out of core dumps, guarded
/// at its ends. An allocation of its own for every key would cost each of them several system calls and four pages, of
/// which a process may lock only some megabytes; a handshake needs dozens of keys.
private final class SecretSlots: Sendable {
  static let small = SecretSlots(byteCount: 128)
  /// The key schedule of AES-GCM.
  static let large = SecretSlots(byteCount: 512)
  private static let regionByteCount = 64 << 10

  let byteCount: Int
  /// Addresses of slots that nobody has; all zeros. Regions are kept for the life of the process.
  private let free = Mutex<[UInt]>([])

  private init(byteCount: Int) { self.byteCount = byteCount }

  func take() -> UnsafeMutableRawPointer {
    let address = free.withLock { free in
      if free.isEmpty {
        let region = SecretMemory.allocate(Self.regionByteCount)
        for offset in stride(from: 0, to: Self.regionByteCount, by: byteCount) {
          free.append(UInt(bitPattern: region + offset))
        }
      }
      return free.removeLast()
    }
    return UnsafeMutableRawPointer(bitPattern: address)!
  }

  func give(back slot: UnsafeMutableRawPointer) {
    sodium_memzero(slot, byteCount)
    let address = UInt(bitPattern: slot)
    free.withLock { $0.append(address) }
  }
}

/// Memory for one secret: zeros at first, wiped at the end.
struct SecretMemory: ~Copyable {
  /// Aligned to 16.
  let bytes: UnsafeMutableRawBufferPointer
  private let slots: SecretSlots?

  init(byteCount: Int) {
    Sodium.requireReady()
    precondition(byteCount > 0, "a secret has bytes")
    slots = [SecretSlots.small, .large].first { byteCount <= $0.byteCount }
    // The end of an allocation lies at a page's end, so only whole sixteens begin at one.
    let start = slots?.take() ?? Self.allocate((byteCount + 15) & ~15)
    bytes = UnsafeMutableRawBufferPointer(start: start, count: byteCount)
  }

  deinit {
    if let slots { slots.give(back: bytes.baseAddress!) } else { sodium_free(bytes.baseAddress) }
  }

  fileprivate static func allocate(_ byteCount: Int) -> UnsafeMutableRawPointer {
    guard let start = sodium_malloc(byteCount) else { preconditionFailure("the system has no memory for a secret") }
    sodium_memzero(start, byteCount)
    return start
  }
}

/// A secret. It is written once, before `init` returns, and never changes again.
///
/// Sendable without a lock, because the one stored property is a constant and the memory behind it is written only in
/// `init` (nobody else has the reference yet) and in `deinit` (nobody has it any more); `withBytes` gives out no
/// mutable pointer.
package final class SecretBytes: @unchecked Sendable {
  private let memory: SecretMemory

  package var byteCount: Int { memory.bytes.count }

  /// `fill` writes every byte; what it does not write is zero.
  package init(byteCount: Int, fill: (UnsafeMutableRawBufferPointer) -> Void) {
    memory = SecretMemory(byteCount: byteCount)
    fill(memory.bytes)
  }

  /// A copy of bytes that are elsewhere too: for tests and for what was read in clear.
  package convenience init(_ bytes: [UInt8]) {
    self.init(byteCount: bytes.count) { place in bytes.withUnsafeBytes { place.copyMemory(from: $0) } }
  }

  package convenience init(randomByteCount: Int) {
    self.init(byteCount: randomByteCount) { randombytes_buf($0.baseAddress!, $0.count) }
  }

  package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    body(UnsafeRawBufferPointer(memory.bytes))
  }

  func withBytes<Result>(_ range: Range<Int>, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(memory.bytes)[range]))
  }
}

extension UnsafeRawBufferPointer {
  /// As libsodium wants it.
  var octets: UnsafePointer<UInt8> { baseAddress!.assumingMemoryBound(to: UInt8.self) }
}

extension UnsafeMutableRawBufferPointer {
  var octets: UnsafeMutablePointer<UInt8> { baseAddress!.assumingMemoryBound(to: UInt8.self) }
}
