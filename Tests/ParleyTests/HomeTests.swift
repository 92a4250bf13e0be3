import Glibc
import Parley
import Testing

/// Homes with a passphrase, and identities that move.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct HomeTests {
  private static let sentence = "Sieben nasse Hunde, 七只湿狗, сім псів"
  private let passphrase = Array("correct horse".utf8)

  /// Of every file below the folder that holds the words; sockets are passed over.
  private func holding(_ words: [UInt8], below folder: String) throws -> [String] {
    guard let listing = opendir(folder) else { return [] }
    defer { closedir(listing) }
    var found: [String] = []
    while let entry = readdir(listing) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name == "." || name == ".." { continue }
      let path = folder + "/" + name
      var status = stat()
      guard lstat(path, &status) == 0 else { continue }
      if status.st_mode & S_IFMT == S_IFDIR { found += try holding(words, below: path) }
      guard status.st_mode & S_IFMT == S_IFREG else { continue }
      let bytes = try TemporaryHome.read(path)
      if bytes.holds(words) { found.append(path) }
    }
    return found
  }

  @Test func whatWasSaidIsSealedSearchedAndFreedAgain() async throws {
    let home = TemporaryHome()
    let path = home.path + "/home"
    let channel = try name("home-tests")
    let file = try home.write(Array("content".utf8), "Sieben nasse Hunde.txt")
    let plain = try await RunningNode("Anastasia", home: home)
    try await plain.node.join(channel, secret: .passphrase(passphrase))
    _ = try await plain.node.send(Self.sentence, to: channel, waiting: nil)
    _ = try await plain.node.share(path: file, in: channel)
    let peer = plain.node.peerID
    #expect(throws: ParleyError.profileInUse(home: path, processID: getpid())) {
      try HomePassphrase.set(passphrase, home: path)
    }
    try await plain.stop()
    let words = ["Sieben nasse", "七只湿狗", "сім псів", "Anastasia", "home-tests"].map { Array($0.utf8) }
    for word in words { #expect(try !holding(word, below: path).isEmpty, "the test sees what is plain") }

    try HomePassphrase.set(passphrase, home: path)
    #expect(try HomePassphrase.isSet(home: path))
    for word in words { #expect(try holding(word, below: path) == []) }
    #expect(throws: ParleyError.homePassphraseNeeded(home: path)) { try Node(NodeSettings(home: path)) }
    var wrong = NodeSettings(home: path)
    wrong.passphrase = Array("wrong".utf8)
    #expect(throws: ParleyError.wrongHomePassphrase(home: path)) { try Node(wrong) }

    let sealed = try await RunningNode("Anastasia", home: home) { $0.passphrase = passphrase }
    #expect(sealed.node.peerID == peer)
    _ = try await sealed.node.send(Self.sentence + " again", to: channel, waiting: nil)
    let found = try await sealed.node.search("nasse hun", in: channel, limit: 10)
    #expect(found.count == 3, "two messages and the file")
    for word in words { #expect(try holding(word, below: path) == [], "also while it runs") }
    try await sealed.stop()
    for word in words { #expect(try holding(word, below: path) == []) }

    let other = Array("another".utf8)
    #expect(throws: ParleyError.wrongHomePassphrase(home: path)) {
      try HomePassphrase.change(from: other, to: passphrase, home: path)
    }
    try HomePassphrase.change(from: passphrase, to: other, home: path)
    #expect(throws: ParleyError.homePassphraseMismatch(home: path, hasPassphrase: true)) {
      try HomePassphrase.set(other, home: path)
    }
    try HomePassphrase.remove(other, home: path)
    #expect(throws: ParleyError.homePassphraseMismatch(home: path, hasPassphrase: false)) {
      try HomePassphrase.remove(other, home: path)
    }
    let again = try await RunningNode("Anastasia", home: home)
    #expect(again.node.peerID == peer)
    #expect(try await again.node.history(of: channel, limit: 10).count == 3)
    #expect(try await again.node.search("湿狗", in: channel, limit: 10).count == 2)
    try await again.stop()
  }

  /// One identity in two homes: the old one ends, says why, and does not start again.
  @Test func theOldHomeOfAnIdentityIsRetired() async throws {
    let channel = try name("home-tests-moving")
    let old = TemporaryHome()
    let new = TemporaryHome()
    let first = try await RunningNode("Ana", home: old)
    try await first.node.join(channel, secret: .open)
    let peer = first.node.peerID
    try await first.stop()
    let file = try HomeIdentity.export(home: old.path + "/home", filePassphrase: passphrase)
    #expect(throws: ParleyError.wrongHomePassphrase(home: "file")) {
      try HomeIdentity.importing(file, path: "file", filePassphrase: [1], home: new.path + "/home")
    }
    #expect(
      try HomeIdentity.importing(file, path: "file", filePassphrase: passphrase, home: new.path + "/home") == peer)
    #expect(throws: ParleyError.homeHasIdentity(home: new.path + "/home")) {
      try HomeIdentity.importing(file, path: "file", filePassphrase: passphrase, home: new.path + "/home")
    }
    let left = try await RunningNode("Ana", home: old)
    let moved = try await RunningNode("Ana", home: new)
    #expect(moved.node.peerID == peer && left.node.peerID == peer)
    let error = await #expect(throws: ParleyError.self) { try await left.ended() }
    #expect(error == .aborted)
    #expect(await moved.node.status().state == .connected, "the one that moved goes on")
    #expect(throws: ParleyError.homeRetired(home: old.path + "/home")) {
      try Node(NodeSettings(home: old.path + "/home"))
    }
    try await moved.stop()
    let stays = try await RunningNode("Ana", home: new)
    try await stays.stop()
  }
}

extension Array<UInt8> {
  fileprivate func holds(_ part: [UInt8]) -> Bool {
    withUnsafeBytes { all in
      guard let start = all.baseAddress, let first = part.first, all.count >= part.count else { return false }
      var place = 0
      while let hit = memchr(start + place, Int32(first), all.count - part.count + 1 - place) {
        place = UnsafeRawPointer(hit) - start
        if memcmp(hit, part, part.count) == 0 { return true }
        place += 1
        if place > all.count - part.count { return false }
      }
      return false
    }
  }
}
