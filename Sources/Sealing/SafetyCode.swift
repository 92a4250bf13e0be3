import ParleyHashing
import ParleyVocabulary

/// What two people read to each other to know that each has the other's key: the same 30 digits on both sides.
///
/// Derived as Signal's safety numbers are, by a hash that is repeated, so that each try of who looks for two keys with
/// the same code costs so much: h₀ = BLAKE2b-512(`parley/1/safety` ‖ a ‖ b), hᵢ = BLAKE2b-512(hᵢ₋₁ ‖ a ‖ b), where a is
/// the lower PeerID and b the higher. Of h₅₂₀₀ six groups of five bytes, each as a number modulo 100,000: 99.6 bits.
package enum SafetyCode {
  static let roundCount = 5_200
  package static let groupCount = 6

  /// Six groups of five digits. Takes some milliseconds.
  package static func groups(_ one: PeerID, _ other: PeerID) -> [String] {
    let keys = min(one, other).bytes + max(one, other).bytes
    var hash = BLAKE2b.hash(Array("parley/1/safety".utf8) + keys, byteCount: 64)
    for _ in 0..<roundCount { hash = BLAKE2b.hash(hash + keys, byteCount: 64) }
    return (0..<groupCount).map { group in
      let number = hash[5 * group..<5 * group + 5].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } % 100_000
      let digits = String(number)
      return String(repeating: "0", count: 5 - digits.count) + digits
    }
  }
}
