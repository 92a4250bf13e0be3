import ParleyStore
import ParleyVocabulary

/// Reading what was stored after a cursor.
extension StoreActor {
  /// The last cursor given; 0 before the first.
  package func lastCursor() throws(StoreError) -> UInt64 { try store.lastCursor }

  package func page(
    after cursor: UInt64, in channels: Set<ChannelID>, peerMessages: Bool, byteCountMax: Int
  ) throws(StoreError) -> StoredPage {
    try store.page(after: cursor, in: channels, peerMessages: peerMessages, byteCountMax: byteCountMax)
  }
}
