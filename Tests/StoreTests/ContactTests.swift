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
}
