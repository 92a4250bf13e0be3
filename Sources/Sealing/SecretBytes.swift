import CSodium
import ParleyHashing

/// Memory for secrets: guarded, locked where the system allows it, wiped and freed at the end (`sodium_malloc`).
struct SecretMemory: ~Copyable {
  let bytes: UnsafeMutableRawBufferPointer

  /// Zeros. A length that is a multiple of 16 is aligned to 16, for the memory ends at a page's end.
  init(byteCount: Int) {
    Sodium.requireReady()
    precondition(byteCount > 0, "a secret has bytes")
    guard let start = sodium_malloc(byteCount) else { preconditionFailure("the system has no memory for a secret") }
    bytes = UnsafeMutableRawBufferPointer(start: start, count: byteCount)
    sodium_memzero(start, byteCount)
  }

  deinit { sodium_free(bytes.baseAddress) }

  func copy(from source: UnsafeRawBufferPointer, at offset: Int = 0) {
    precondition(offset >= 0 && source.count <= bytes.count - offset, "the secret fits its memory")
    UnsafeMutableRawBufferPointer(rebasing: bytes[offset..<offset + source.count]).copyMemory(from: source)
  }
}

/// A secret. It is written once, before `init` returns, and its memory is read-only from then on.
///
/// Sendable without a lock, because the one stored property is a constant and the memory behind it never changes between
/// the end of `init` (nobody else has the reference yet) and `deinit` (nobody has it any more); the memory's protection
/// makes any other write a crash.
package final class SecretBytes: @unchecked Sendable {
  private let memory: SecretMemory

  package var byteCount: Int { memory.bytes.count }

  /// `fill` writes every byte; what it does not write is zero.
  package init(byteCount: Int, fill: (UnsafeMutableRawBufferPointer) -> Void) {
    memory = SecretMemory(byteCount: byteCount)
    fill(memory.bytes)
    sodium_mprotect_readonly(memory.bytes.baseAddress!)
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
