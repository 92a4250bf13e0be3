import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

// What messaging needs of the disk for owned channels.
extension StoreActor {
  /// In pages: the grants in them are verified on the transport's thread.
  private static let actsAtOnce = 128

  func loadActs(_ channel: ChannelID, of authors: Set<PeerID>?) {
    var cursor: UInt64 = 0
    do {
      while true {
        let page = try store.keptEntries(in: channel, after: cursor, limit: Self.actsAtOnce)
        guard let last = page.last else { return }
        cursor = last.cursor
        let entries = page.filter { authors?.contains($0.key.author) ?? true }
          .compactMap { try? Entry(decoding: $0.bytes[...]) }.filter { Act.mayHoldActs($0) }
        if !entries.isEmpty { switchboard.post(.messaging(.actsStored(channel, entries))) }
      }
    } catch {
      switchboard.notices(.trouble(error.description))
    }
  }

  /// The newest entry of a log with a hand in it, its newest hidden one or one before: others may hold acts.
  func newestHand(_ newest: StoredEntry) throws(StoreError) -> Entry? {
    if let entry = Self.hand(newest) { return entry }
    let earlier = try store.hiddenEntries(in: newest.channel, of: newest.key, before: newest.number, limit: 256)
    for stored in earlier {
      if let entry = Self.hand(stored) { return entry }
    }
    return nil
  }

  private static func hand(_ stored: StoredEntry) -> Entry? {
    guard let entry = try? Entry(decoding: stored.bytes[...]) else { return nil }
    return entry.items.contains { $0.kind == RaiseHandKind.code } ? entry : nil
  }

  /// Some entries with attributes that are kept, and where to read on; nil: there are no more.
  package func attributeEntries(
    in channel: ChannelID, after cursor: UInt64
  ) throws(StoreError) -> (entries: [Entry], next: UInt64?) {
    let page = try store.keptEntries(in: channel, after: cursor, limit: Self.actsAtOnce)
    let entries = page.compactMap { try? Entry(decoding: $0.bytes[...]) }.filter { AttributeAct.mayHold($0) }
    return (entries, page.count < Self.actsAtOnce ? nil : page.last?.cursor)
  }

  package func settings() throws(StoreError) -> [StoredSetting] { try store.settings() }

  /// How far an author's logs go that count, as the author of an act names them.
  package func heads(
    of author: PeerID, in channel: ChannelID, lamportMax: UInt64
  ) throws(StoreError) -> [Instance: UInt64] {
    try store.heads(of: author, in: channel, lamportMax: lamportMax)
  }
}
