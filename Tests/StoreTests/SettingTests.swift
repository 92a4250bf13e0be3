import ParleyVocabulary
import Testing

@testable import ParleyStore

struct SettingTests {
  let folder = Folder()

  @Test func settingsAreReplacedTakenAwayAndReadAgain() throws {
    func setting(_ subject: StoredSetting.Subject, _ name: String, _ value: Int64?) -> StoreWrite {
      .setting(StoredSetting(subject: subject, name: name, value: value))
    }
    // A channel and a person of the same bytes are two.
    let (place, person) = (StoredSetting.Subject.channel(channel(1)), StoredSetting.Subject.peer(peer(1)))
    do {
      let store = try Store(path: folder.store)
      try store.apply([
        setting(place, "muted", 1), setting(person, "muted", 0), setting(place, "days", 7),
        setting(place, "muted", 0), setting(person, "receipts", 1), setting(person, "none", nil),
      ])
      try store.apply([setting(person, "receipts", nil)])
    }
    let store = try Store(path: folder.store)
    #expect(
      try store.settings() == [
        StoredSetting(subject: place, name: "days", value: 7),
        StoredSetting(subject: place, name: "muted", value: 0),
        StoredSetting(subject: person, name: "muted", value: 0),
      ])
  }

  @Test func attributesThatAreNeededNoMoreGoLikeOthers() throws {
    let store = try Store(path: folder.store)
    let key = entry(1).key
    try store.add((1...10).map { entry($0, hidden: $0 == 3, kept: $0 <= 2) })
    try store.apply([.release(channel(1), key, 2), .release(channel(1), key, 9), .release(channel(1), key, 77)])
    #expect(try store.keptEntries(in: channel(1), after: 0, limit: 10).map(\.number) == [1])
    func rows() throws -> [UInt64] {
      _ = try store.prune(channel(1), keeping: Retention(days: 30, entryCountMax: 1))
      return try store.entries(in: channel(1), key: key, from: 0, through: .max, byteCountMax: .max).map(\.number)
    }
    #expect(try rows() == [1, 3, 10], "what is kept, the last hidden one, the newest")
    #expect(try store.add([entry(11)]) != [0])
    try store.apply([.release(channel(1), key, 1)])
    #expect(try rows() == [3, 11], "also where all around it has gone")
  }
}
