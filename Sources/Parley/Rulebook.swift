import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Synchronization

/// What counts in the owned channels this node is in, for whoever shows something; and what was shown lately, to say
/// so when an act that comes late changes it. Asked from any thread.
final class Rulebook: Sendable {
  /// What acts changed of what was told before.
  struct News: Sendable {
    /// Shown, and void now.
    var voided: [MessageID] = []
    /// Void when they came, and not any more.
    var counted: [Message] = []
    var changes: [RoleChange] = []
    var announcement: Announcement??
    var isClosed = false
  }

  private struct Shown {
    let facts: EntryFacts
    let ids: [MessageID]
    /// While it is void.
    var held: [Message]
    var byteCount: Int { held.reduce(64 * ids.count) { $0 + 512 + 2 * $1.json.utf8.count } }
  }

  private struct Book {
    var governance: Governance
    /// The last ones, in the order in which they came.
    var shown: [Shown] = []
    var byteCount = 0
  }

  private let books = Mutex<[ChannelID: Book]>([:])
  /// What is remembered of a channel.
  private static let shownCountMax = 2_048
  private static let shownByteCountMax = 2 << 20

  func governance(of channel: ChannelID) -> Governance? { books.withLock { $0[channel]?.governance } }
  /// Before anything is asked about the channel.
  func begin(_ channel: ChannelID, _ ownership: ChannelOwnership) {
    books.withLock { if $0[channel] == nil { $0[channel] = Book(governance: Governance(ownership)) } }
  }
  func forget(_ channel: ChannelID) { books.withLock { $0[channel] = nil } }

  func isVoid(_ entry: Entry, in channel: ChannelID) -> Bool { isVoid(EntryFacts(entry), in: channel) }

  func isVoid(_ facts: EntryFacts, in channel: ChannelID) -> Bool {
    books.withLock { $0[channel]?.governance.voidReason(facts) != nil }
  }

  /// An entry came with these messages. False when they are not to be shown.
  func note(_ entry: Entry, _ messages: [Message], in channel: ChannelID) -> Bool {
    books.withLock { books in
      guard var book = books.removeValue(forKey: channel) else { return true }
      defer { books[channel] = book }
      let facts = EntryFacts(entry)
      let isVoid = book.governance.voidReason(facts) != nil
      let shown = Shown(facts: facts, ids: messages.map(\.id), held: isVoid ? messages : [])
      book.shown.append(shown)
      book.byteCount += shown.byteCount
      var surplus = max(0, book.shown.count - Self.shownCountMax)
      var byteCount = book.shown[..<surplus].reduce(0) { $0 + $1.byteCount }
      while book.byteCount - byteCount > Self.shownByteCountMax, surplus < book.shown.count - 1 {
        byteCount += book.shown[surplus].byteCount
        surplus += 1
      }
      // Not one by one: the array would move with each.
      if surplus > 256 || book.byteCount > Self.shownByteCountMax {
        book.shown.removeFirst(surplus)
        book.byteCount -= byteCount
      }
      return !isVoid
    }
  }

  func take(_ governance: Governance, _ change: Governance.Change, in channel: ChannelID, me: PeerID) -> News {
    books.withLock { books in
      guard var book = books.removeValue(forKey: channel) else {
        books[channel] = Book(governance: governance)
        return News()
      }
      defer { books[channel] = book }
      let before = book.governance
      book.governance = governance
      var news = News()
      for peer in change.peers.union(change.isOfAll ? [before.owner, governance.owner] : []).sorted() {
        let (old, new) = (before.role(of: peer), governance.role(of: peer))
        guard old != new else { continue }
        news.changes.append(RoleChange(peer: peer, role: new, isSelf: peer == me))
      }
      if change.isAnnouncement { news.announcement = .some(governance.announcement.map { Announcement($0) }) }
      news.isClosed = governance.isClosed && !before.isClosed
      guard change.isOfAll || !change.peers.isEmpty else { return news }
      for index in book.shown.indices
      where change.isOfAll || change.peers.contains(book.shown[index].facts.order.author) {
        let shown = book.shown[index]
        let isVoid = governance.voidReason(shown.facts) != nil
        if isVoid, shown.held.isEmpty, before.voidReason(shown.facts) == nil { news.voided += shown.ids }
        guard !isVoid, !shown.held.isEmpty else { continue }
        news.counted += shown.held
        book.byteCount -= shown.byteCount
        book.shown[index].held = []
        book.byteCount += book.shown[index].byteCount
      }
      return news
    }
  }
}

extension Governance {
  func role(of peer: PeerID) -> MemberRole {
    let mute = mute(of: peer)
    let until = mute.until.map { Timestamp(milliseconds: Int64(clamping: $0)) }
    let rank: MemberRole.Rank =
      switch standing(of: peer) {
      case .owner: .owner
      case .admin: .admin
      case .member, .muted: .member
      case .removed: .removed
      case .banned: .banned
      case .notAdmitted: .notAdmitted
      }
    return MemberRole(rank: rank, isMuted: rank != .owner && mute.isMuted, mutedUntil: rank == .owner ? nil : until)
  }
}

extension Announcement {
  init(_ announcement: (body: String, author: PeerID, timestamp: UInt64)) {
    self.init(
      text: announcement.body, author: announcement.author,
      timestamp: Timestamp(milliseconds: Int64(clamping: announcement.timestamp)))
  }
}
