import CCrypto
import CSodium
import ParleyVocabulary

/// SHA-256 by libcrypto (which uses the processor's SHA instructions), with one context for many hashes; by libsodium
/// where there is no libcrypto 3.
struct SHA256: ~Copyable {
  private let library: UnsafePointer<parley_sha256>?
  private let context: OpaquePointer?

  /// Loads libcrypto the first time.
  init(library: UnsafePointer<parley_sha256>? = parley_sha256_library()) {
    self.library = library
    context = library?.pointee.make()
    precondition(library == nil || context != nil, "no memory for a hash")
  }

  deinit { library?.pointee.end(context) }

  /// Writes the hash of `bytes` to 32 bytes at `result`, which may be the start of `bytes`.
  func hash(_ bytes: UnsafeRawBufferPointer, to result: UnsafeMutableRawPointer) {
    let result = result.assumingMemoryBound(to: UInt8.self)
    guard let library else {
      crypto_hash_sha256(result, bytes.bindMemory(to: UInt8.self).baseAddress, UInt64(bytes.count))
      return
    }
    let status = parley_sha256_hash(library, context, bytes.baseAddress, bytes.count, result)
    precondition(status == 1, "SHA-256 of memory fails only when libcrypto is broken")
  }

  func hash(_ bytes: UnsafeRawBufferPointer) -> Hash32 {
    withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { place in
      hash(bytes, to: place.baseAddress!)
      return Hash32(bytes: place)!
    }
  }
}
