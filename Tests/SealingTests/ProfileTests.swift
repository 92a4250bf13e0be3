import Glibc
import ParleyVocabulary
import Testing

@testable import ParleySealing

/// A directory that goes with the test.
final class TemporaryDirectory {
  let path: String

  init() {
    var template = Array("/tmp/parley-profile-XXXXXX".utf8CString)
    precondition(mkdtemp(&template) != nil, "the system has a place for temporary files")
    path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }

  deinit { Self.remove(path) }

  private static func remove(_ path: String) {
    if let listing = opendir(path) {
      while let entry = readdir(listing) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) {
          String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != ".", name != ".." { remove(path + "/" + name) }
      }
      closedir(listing)
    }
    _ = Glibc.remove(path)
  }

  func mode(_ name: String) -> mode_t {
    var status = stat()
    precondition(stat(path + "/" + name, &status) == 0, "\(name) is there")
    return status.st_mode & 0o777
  }

  func read(_ name: String) -> [UInt8] {
    let file = open(path + "/" + name, O_RDONLY)
    precondition(file >= 0, "\(name) is there")
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 8_192)
    let count = Glibc.read(file, &bytes, bytes.count)
    return Array(bytes.prefix(max(0, count)))
  }

  func write(_ name: String, _ bytes: [UInt8]) {
    let file = open(path + "/" + name, O_WRONLY | O_CREAT | O_TRUNC, mode_t(0o600))
    precondition(file >= 0 && Glibc.write(file, bytes, bytes.count) == bytes.count, "\(name) can be written")
    close(file)
  }

  func names(_ name: String) -> [String] {
    guard let listing = opendir(path + "/" + name) else { return [] }
    defer { closedir(listing) }
    var names: [String] = []
    while let entry = readdir(listing) {
      names.append(
        withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
    }
    return names.filter { $0 != "." && $0 != ".." }.sorted()
  }
}

@Suite struct ProfileTests {
  private let directory = TemporaryDirectory()
  private var home: String { directory.path + "/a/home" }

  private func openAndClose() throws -> PeerID { try Profile.open(home: home).identity.peerID }

  @Test func aProfileIsPrivateAndStaysTheSamePerson() throws {
    let first = try openAndClose()
    #expect(try openAndClose() == first)
    #expect(directory.names("a/home") == ["channels", "identity", "lock"])
    #expect(directory.mode("a/home") == 0o700 && directory.mode("a/home/channels") == 0o700)
    #expect(directory.mode("a/home/identity") == 0o600 && directory.mode("a/home/lock") == 0o600)
    let file = directory.read("a/home/identity")
    #expect(file.count == 72)
    #expect(Array(file[..<8]) == Array("PARLEYID".utf8))
    #expect(Identity(seed: Array(file[8..<40])).peerID == first)
    #expect(Array(file[40...]) == first.bytes)
  }

  @Test func oneNodeAtATime() throws {
    var profile: Profile? = try Profile.open(home: home)
    #expect(directory.read("a/home/lock") == Array("\(getpid())\n".utf8))
    #expect(throws: ProfileError.inUse(path: home, processID: getpid())) { try Profile.open(home: home) }
    #expect(profile?.path == home)
    profile = nil
    #expect(throws: Never.self) { try Profile.open(home: home) }
  }

  /// As a program has one while it is being started.
  @Test func aCopyOfTheLockKeepsNobodyOut() throws {
    let profile = try Profile.open(home: home)
    let lock = home + "/lock"
    var copies: [Int32] = []
    defer { for copy in copies { close(copy) } }
    for descriptor in Int32(0)..<4_096 where copies.isEmpty {
      var target = [CChar](repeating: 0, count: 4_096)
      guard readlink("/proc/self/fd/\(descriptor)", &target, target.count - 1) > 0 else { continue }
      if String(decoding: target.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self) == lock {
        copies = [dup(descriptor)]
      }
    }
    try #require(copies.count == 1 && copies[0] >= 0)
    #expect(throws: ProfileError.inUse(path: home, processID: getpid())) { try Profile.open(home: home) }
    profile.release()
    _ = try Profile.open(home: home)
  }

  @Test(arguments: [0o770, 0o707, 0o701, 0o740] as [mode_t])
  func homesThatOthersCanUseAreRefused(_ mode: mode_t) {
    chmod(directory.path, mode)
    #expect(throws: ProfileError.notPrivate(path: directory.path, mode: mode)) {
      try Profile.open(home: directory.path)
    }
    #expect(directory.names("").isEmpty)
  }

  @Test(.enabled(if: geteuid() == 0)) func homesOfOthersAreRefused() {
    chown(directory.path, 12_345, 12_345)
    #expect(throws: ProfileError.ownedByAnother(path: directory.path, owner: 12_345)) {
      try Profile.open(home: directory.path)
    }
  }

  @Test func aLinkedHomeIsFineAndAFileIsNone() throws {
    let first = try openAndClose()
    let link = directory.path + "/link"
    symlink(home, link)
    #expect(try Profile.open(home: link).identity.peerID == first)
    directory.write("file", [1])
    #expect(throws: ProfileError.notADirectory(path: directory.path + "/file")) {
      try Profile.open(home: directory.path + "/file")
    }
  }

  @Test func aDamagedIdentityIsNeverReplaced() throws {
    _ = try openAndClose()
    let whole = directory.read("a/home/identity")
    for damaged in [[], Array(whole.dropLast()), whole + [0]] + [0, 8 * 8, 40 * 8].map(whole.flipping(bit:)) {
      directory.write("a/home/identity", damaged)
      #expect {
        try Profile.open(home: home)
      } throws: { error in
        guard case .damaged(path: home + "/identity", reason: _) = error as? ProfileError else { return false }
        return true
      }
      #expect(directory.read("a/home/identity") == damaged)
    }
    directory.write("a/home/identity", whole)
    chmod(home + "/identity", 0o640)
    #expect(throws: ProfileError.notPrivate(path: home + "/identity", mode: 0o640)) { try Profile.open(home: home) }
    unlink(home + "/identity")
    symlink("/dev/null", home + "/identity")
    #expect(throws: ProfileError.damaged(path: home + "/identity", reason: "it is a symbolic link")) {
      try Profile.open(home: home)
    }
  }

  @Test func channelsAreSavedLoadedAndRemoved() throws {
    let kitchen = ChannelKeys.open(name: try ChannelName("кухня"))
    let founder = Identity.random().peerID
    let garden = ChannelKeys.founded(name: try ChannelName("garden"), by: founder)
    do {
      let profile = try Profile.open(home: home)
      #expect(try profile.loadChannels().isEmpty)
      try profile.saveChannel(kitchen)
      try profile.saveChannel(garden)
      try profile.saveChannel(garden)
    }
    let names = directory.names("a/home/channels")
    #expect(names.count == 2)
    #expect(names.allSatisfy { directory.mode("a/home/channels/" + $0) == 0o600 && $0.utf8.count == 26 })
    let profile = try Profile.open(home: home)
    let loaded = try profile.loadChannels()
    #expect(loaded.map(\.name.text) == ["garden", "кухня"])
    #expect(loaded.map(\.id) == [garden.id, kitchen.id])
    #expect(loaded.map(\.isOpen) == [false, true])
    #expect(loaded[0].tag(of: Instance(3)) == garden.tag(of: Instance(3)))
    #expect(loaded.map { $0.ownership?.founder } == [founder, nil])
    #expect(try profile.removeChannel(garden.id))
    #expect(try profile.removeChannel(garden.id) == false)
    #expect(try profile.loadChannels().map(\.id) == [kitchen.id])
  }

  @Test func aDamagedChannelIsNamedAndKept() throws {
    let profile = try Profile.open(home: home)
    try profile.saveChannel(.open(name: try ChannelName("kitchen")))
    let name = "a/home/channels/" + directory.names("a/home/channels")[0]
    let whole = directory.read(name)
    for damaged in [Array(whole.prefix(73)), [1]] + [3, 9 * 8, 50 * 8, 8 * 8 + 1].map(whole.flipping(bit:)) {
      directory.write(name, damaged)
      #expect {
        try profile.loadChannels()
      } throws: { error in
        guard case .damaged(path: directory.path + "/" + name, reason: _) = error as? ProfileError else { return false }
        return true
      }
      #expect(directory.read(name) == damaged)
    }
    directory.write(name, whole)
    #expect(try profile.loadChannels().count == 1)
  }

  @Test func anOwnedChannelIsKeptWithItsGenerations() throws {
    let profile = try Profile.open(home: home)
    let founded = ChannelKeys.founded(name: try ChannelName("garden"), by: Identity.random().peerID)
    let next = founded.makeGeneration(number: 1, secret: SecretBytes(randomByteCount: 32), statement: [7, 8, 9])
    let rotated = founded.adding(next, sendingUnder: next.id, now: 1_000)
    try profile.updateChannel(rotated)
    #expect(try profile.loadChannels().isEmpty, "what was left stays left")
    try profile.saveChannel(founded)
    try profile.updateChannel(rotated)
    let loaded = try #require(try profile.loadChannels().first)
    #expect(loaded.id == founded.id)
    #expect(loaded.generations.map(\.id) == [next.id, founded.newest.id])
    #expect(loaded.generations.map(\.statement) == [[7, 8, 9], []])
    #expect(loaded.generations.map(\.replacedAt) == [nil, 1_000])
    for (a, b) in zip(loaded.generations, rotated.generations) {
      #expect(a.withSecret { Array($0) } == b.withSecret { Array($0) })
    }
    let name = "a/home/channels/" + directory.names("a/home/channels")[0]
    let whole = directory.read(name)
    // The mark, the founder, the salt, the ChannelID, the name, the count of generations; and cut anywhere.
    let altered = [0, 8, 9, 41, 57, 90, 97].map { whole.flipping(bit: $0 * 8) }
    for damaged in altered + (9..<whole.count).map({ Array(whole.prefix($0)) }) + [whole + [0]] {
      directory.write(name, damaged)
      #expect(throws: ProfileError.self) { try profile.loadChannels() }
    }
  }

  @Test func incarnationsOnlyGrow() throws {
    do {
      let profile = try Profile.open(home: home)
      #expect(try profile.nextIncarnation() == 1)
      #expect(try profile.nextIncarnation() == 2)
      #expect(try profile.nextIncarnation(above: 40) == 41)
    }
    let profile = try Profile.open(home: home)
    #expect(try profile.nextIncarnation(above: 7) == 42)
    #expect(directory.read("a/home/incarnation") == Array("42\n".utf8))
    for text in ["x\n", "-1\n", "42", "042\n", "4611686018427387904\n", "18446744073709551616\n"] {
      directory.write("a/home/incarnation", Array(text.utf8))
      #expect(throws: ProfileError.self) { try profile.nextIncarnation() }
    }
    directory.write("a/home/incarnation", Array("4611686018427387903\n".utf8))
    #expect(throws: ProfileError.self) { try profile.nextIncarnation() }
    #expect(directory.read("a/home/incarnation") == Array("4611686018427387903\n".utf8))
  }

  @Test func displayNamesAreKept() throws {
    let profile = try Profile.open(home: home)
    #expect(try profile.loadDisplayName() == nil)
    try profile.saveDisplayName(try DisplayName("Søren"))
    #expect(try profile.loadDisplayName()?.text == "Søren")
    directory.write("a/home/display-name", [0xFF, 0x0A])
    #expect(throws: ProfileError.self) { try profile.loadDisplayName() }
  }

  @Test func whatACrashLeftIsRemoved() throws {
    _ = try openAndClose()
    directory.write("a/home/.new-1", [1])
    directory.write("a/home/channels/.new-2", [1])
    _ = try openAndClose()
    #expect(directory.names("a/home") == ["channels", "identity", "lock"])
    #expect(directory.names("a/home/channels").isEmpty)
  }

  @Test func errorsSayPathReasonAndWhatWasKept() {
    let damaged = ProfileError.damaged(path: "/h/identity", reason: "it is 3 bytes long, not 72").description
    #expect(damaged.contains("/h/identity") && damaged.contains("3 bytes") && damaged.contains("kept"))
    #expect(ProfileError.inUse(path: "/h", processID: 12).description.contains("process 12"))
    let system = ProfileError.system(path: "/h", operation: "make", code: EACCES).description
    #expect(system.contains("/h") && system.contains("Permission denied") && system.contains("kept"))
    #expect(!ProfileError.notADirectory(path: "/\u{1B}[2J").description.contains("\u{1B}"))
  }
}
