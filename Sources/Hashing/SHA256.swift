import CCrypto
import ParleyVocabulary

/// SHA-256 by libcrypto (which uses the processor's SHA instructions), with one context for many hashes.
struct SHA256: ~Copyable {
  /// Fetched once: a fetch by name costs more than hashing 64 bytes.
  ///
  /// Unsafe only by type: an `EVP_MD` is never changed after it was fetched, and libcrypto documents it as shareable
  /// between threads; the reference is never given back.
  private nonisolated(unsafe) static let algorithm: OpaquePointer = {
    guard let algorithm = EVP_MD_fetch(nil, "SHA2-256", nil) else { preconditionFailure("libcrypto has SHA-256") }
    return algorithm
  }()

  private let context: OpaquePointer

  init() {
    guard let context = EVP_MD_CTX_new() else { preconditionFailure("no memory for a hash") }
    self.context = context
  }

  deinit { EVP_MD_CTX_free(context) }

  /// Writes the hash of `bytes` to 32 bytes at `result`, which may be the start of `bytes`.
  func hash(_ bytes: UnsafeRawBufferPointer, to result: UnsafeMutableRawPointer) {
    var status = EVP_DigestInit_ex2(context, Self.algorithm, nil)
    if !bytes.isEmpty { status &= EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) }
    status &= EVP_DigestFinal_ex(context, result.assumingMemoryBound(to: UInt8.self), nil)
    precondition(status == 1, "SHA-256 of memory fails only when libcrypto is broken")
  }

  func hash(_ bytes: UnsafeRawBufferPointer) -> Hash32 {
    withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { place in
      hash(bytes, to: place.baseAddress!)
      return Hash32(bytes: place)!
    }
  }
}
