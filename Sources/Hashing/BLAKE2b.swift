import CSodium
import ParleyVocabulary

/// libsodium, made ready once for the whole process. Everything that calls the library asks this first.
package enum Sodium {
  /// `sodium_init` may be called from any thread any number of times; a static's initializer runs once.
  package static let isReady: Bool = sodium_init() >= 0

  @inlinable package static func requireReady() {
    precondition(isReady, "libsodium found no source of randomness, so nothing can be sealed")
  }
}

/// BLAKE2b (RFC 7693), keyed or not.
package enum BLAKE2b {
  /// BLAKE2b-256 of the parts, one after the other with nothing between.
  package static func hash256(_ parts: [UInt8]...) -> Bytes32 {
    if parts.count == 1 { return parts[0].withUnsafeBytes { hash256($0) } }
    var stream = Stream(byteCount: 32)
    for part in parts { stream.update(part) }
    return Bytes32(stream.finish())!
  }

  /// BLAKE2b-256 of bytes that lie together: without a state on the heap.
  package static func hash256(_ bytes: UnsafeRawBufferPointer) -> Bytes32 {
    Sodium.requireReady()
    var result = (UInt64(0), UInt64(0), UInt64(0), UInt64(0))
    let status = withUnsafeMutableBytes(of: &result) { place in
      crypto_generichash(
        place.baseAddress!.assumingMemoryBound(to: UInt8.self), 32,
        bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt64(bytes.count), nil, 0)
    }
    precondition(status == 0, "the lengths are libsodium's own")
    return Bytes32(
      words: (
        UInt64(bigEndian: result.0), UInt64(bigEndian: result.1), UInt64(bigEndian: result.2),
        UInt64(bigEndian: result.3)
      ))
  }

  /// `byteCount` is 16 to 64 bytes, a key 16 to 64: what libsodium promises.
  package static func hash(_ bytes: [UInt8], byteCount: Int, key: [UInt8]? = nil) -> [UInt8] {
    var stream = Stream(byteCount: byteCount, key: key)
    stream.update(bytes)
    return stream.finish()
  }

  /// A hash of what comes in parts. The state, which may hold a key, is wiped when the stream goes.
  package struct Stream: ~Copyable {
    private let byteCount: Int
    private let state: UnsafeMutableRawPointer

    package init(byteCount: Int, key: [UInt8]? = nil) {
      let key = key ?? []
      state = Self.makeState()
      self.byteCount = byteCount
      key.withUnsafeBytes { Self.start(state, byteCount: byteCount, key: $0) }
    }

    /// An empty key means none.
    package init(byteCount: Int, keyBytes: UnsafeRawBufferPointer) {
      state = Self.makeState()
      self.byteCount = byteCount
      Self.start(state, byteCount: byteCount, key: keyBytes)
    }

    private static func makeState() -> UnsafeMutableRawPointer {
      .allocate(byteCount: crypto_generichash_statebytes(), alignment: 64)
    }

    private static func start(_ state: UnsafeMutableRawPointer, byteCount: Int, key: UnsafeRawBufferPointer) {
      Sodium.requireReady()
      precondition((16...64).contains(byteCount), "libsodium makes hashes of 16 to 64 bytes")
      precondition(key.isEmpty || (16...64).contains(key.count), "libsodium takes keys of 16 to 64 bytes")
      let start = key.isEmpty ? nil : key.baseAddress?.assumingMemoryBound(to: UInt8.self)
      let status = crypto_generichash_init(OpaquePointer(state), start, key.count, byteCount)
      precondition(status == 0, "the lengths were checked above")
    }

    deinit {
      sodium_memzero(state, crypto_generichash_statebytes())
      state.deallocate()
    }

    package mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
      guard let base = bytes.baseAddress, !bytes.isEmpty else { return }
      crypto_generichash_update(OpaquePointer(state), base.assumingMemoryBound(to: UInt8.self), UInt64(bytes.count))
    }

    package consuming func finish() -> [UInt8] {
      let count = byteCount
      return [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
        crypto_generichash_final(OpaquePointer(state), buffer.baseAddress!, count)
        written = count
      }
    }

    /// Writes into memory of exactly the hash's length, for results that are secrets.
    package consuming func finish(into bytes: UnsafeMutableRawBufferPointer) {
      precondition(bytes.count == byteCount, "the place is as long as the hash")
      let start = bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
      crypto_generichash_final(OpaquePointer(state), start, byteCount)
    }
  }
}
