import ParleyVocabulary
import Testing

@testable import ParleyStore

struct ContactTests {
  let folder = Folder()

  @Test func decisionsAboutPeopleAreKept() throws {
    let verified = StoredContact(peer: peer(1), verifiedName: "", verifiedAt: 5)
    var both = StoredContact(peer: peer(2), verifiedName: "Ben'; DROP", verifiedAt: 6, isBlocked: true)
    do {
      let store = try Store(path: folder.store, clocks: TestClocks(wall: 5_000).clocks)
      try store.apply([
        .contact(both), .contact(verified), .contact(StoredContact(peer: peer(3), isBlocked: true)),
        .organiser(channel(1), OrganiserKey(peer(9).value)),
      ])
      #expect(try store.contacts().map(\.peer) == [peer(1), peer(2), peer(3)])
    }
    let store = try Store(path: folder.store, clocks: TestClocks(wall: 5_000).clocks)
    #expect(try store.contacts().prefix(2) == [verified, both])
    both.verifiedName = nil
    both.verifiedAt = 0
    try store.apply([.contact(both), .contact(StoredContact(peer: peer(3)))])
    #expect(try store.contacts() == [verified, both])
    #expect(try store.organiser(of: channel(1)) == OrganiserKey(peer(9).value))
    #expect(try store.organiser(of: channel(2)) == nil)
    try store.apply([.organiser(channel(2), OrganiserKey(peer(8).value)), .organiser(channel(1), nil)])
    #expect(try store.organiser(of: channel(1)) == nil)
    try store.apply([.forgetChannel(channel(2))])
    #expect(try store.organiser(of: channel(2)) == nil)
    #expect(try store.contacts().count == 2)
  }

  @Test func tokensThatLastLongestAreKept() throws {
    let store = try Store(path: folder.store, clocks: TestClocks(wall: 5_000).clocks)
    func token(_ number: UInt8, _ expires: Int64, in place: UInt8 = 1, _ text: String = "t") -> StoredToken {
      StoredToken(channel: channel(place), peer: peer(number), expires: expires, text: "\(text)\(expires)")
    }
    let given = [token(1, 20), token(1, 10), token(2, 5), token(1, 30), token(1, 25), token(1, 7, in: 2)]
    try store.apply(given.map { .token($0, countMax: 3) })
    #expect(try store.tokens(in: channel(1)) == [token(1, 20), token(1, 25), token(1, 30), token(2, 5)])
    // One more of the same end replaces it; a smaller count takes effect at once.
    try store.apply([.token(token(1, 30, in: 1, "new"), countMax: 1)])
    #expect(try store.tokens(in: channel(1)) == [token(1, 30, in: 1, "new"), token(2, 5)])
    try store.apply([.forgetChannel(channel(1))])
    #expect(try store.tokens(in: channel(1)).isEmpty)
    #expect(try store.tokens(in: channel(2)) == [token(1, 7, in: 2)])
  }
}
