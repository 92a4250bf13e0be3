/// What may be done to messages, and how often.
package struct ConversationRule: Equatable, Sendable {
  /// Milliseconds after a message within which its author may take it back, the last one included.
  package var recallWithin: UInt64
  /// Whether who has read what is told.
  package var hasReceipts: Bool

  package init(recallWithin: UInt64 = Self.recallWithinDefault, hasReceipts: Bool = true) {
    self.recallWithin = recallWithin
    self.hasReceipts = hasReceipts
  }

  /// Two minutes; seven days at most.
  package static let recallWithinDefault: UInt64 = 120_000
  package static let recallWithinMax: UInt64 = 7 * 24 * 3_600 * 1_000
  /// Of a message, the first in order.
  package static let editCountMax = 10
  /// Different ones on a message at a time.
  package static let emojiCountMax = 20
  /// Of a channel at a time.
  package static let pinCountMax = 20
}
