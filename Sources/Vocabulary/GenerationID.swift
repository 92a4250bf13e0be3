/// One generation of an owned channel's secret. Two that were made at once have the same number and differ by hash.
package struct GenerationID: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// From 0 on, at most `numberMax`.
  package let number: UInt64
  /// Of number and secret, see Sealing's `ChannelGeneration`; says nothing of the secret.
  package let hash: Bytes32

  package static let numberMax: UInt64 = 0xFFFF_FFFF
  /// How far ahead of what is known a number may be. So nobody can use up the numbers in one step.
  package static let stepMax: UInt64 = 1_000

  package init(number: UInt64, hash: Bytes32) {
    self.number = number
    self.hash = hash
  }

  /// True when `b` takes the place of `a`: a higher number, or the lower hash of two with one number.
  package static func < (a: Self, b: Self) -> Bool {
    a.number != b.number ? a.number < b.number : a.hash > b.hash
  }

  package var description: String { "generation \(number)" }
}
