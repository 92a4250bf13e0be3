import ParleyStore
import ParleyVocabulary

/// Reading what was stored after a cursor.
extension StoreActor {
  /// The last cursor given; 0 before the first. Whoever goes on from a cursor may forget what came before it, so what
  /// has one is on the disk first.
  package func lastCursor() throws(StoreError) -> UInt64 {
    try sync()
    return try store.lastCursor
  }

  /// Before what the store holds is counted on.
  func sync() throws(StoreError) {
    let store = try store
    guard store.log?.isSynced == false else { return }
    do throws(StoreError) { try store.sync() } catch {
      syncFailed(error)
      throw error
    }
  }

  package func page(
    after cursor: UInt64, in channels: Set<ChannelID>, peerMessages: Bool, byteCountMax: Int
  ) throws(StoreError) -> StoredPage {
    try sync()
    return try store.page(after: cursor, in: channels, peerMessages: peerMessages, byteCountMax: byteCountMax)
  }
}
