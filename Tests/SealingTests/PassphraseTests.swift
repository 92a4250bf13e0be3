import Glibc
import ParleyVocabulary
import Testing

@testable import ParleySealing

@Suite struct PassphraseTests {
  private let directory = TemporaryDirectory()
  private var home: String { directory.path + "/home" }
  /// The least that Argon2 takes: what it costs is not tested here.
  private static let cheap = PassphraseCost(passCount: 1, memory: 8)
  private let first = Array("sieben nasse Hunde".utf8)
  private let second = Array("еще один пароль".utf8)

  private struct Cut: Error {}

  private func made() throws -> (peer: PeerID, channel: ChannelID) {
    let profile = try Profile.open(home: home)
    let garden = ChannelKeys.founded(name: try ChannelName("garden"), by: profile.identity.peerID)
    try profile.saveChannel(garden)
    try profile.saveChannel(.open(name: try ChannelName("kitchen")))
    try profile.saveDisplayName(try DisplayName("Ána"))
    _ = try profile.nextIncarnation()
    return (profile.identity.peerID, garden.id)
  }

  /// Whether the profile opens with this passphrase, as the same person in the same channels.
  private func opens(_ passphrase: [UInt8]?, as made: (peer: PeerID, channel: ChannelID)) -> Bool {
    guard let profile = try? Profile.open(home: home, passphrase: passphrase),
      let channels = try? profile.loadChannels(), let name = try? profile.loadDisplayName()
    else { return false }
    return profile.identity.peerID == made.peer && channels.map(\.name.text) == ["garden", "kitchen"]
      && channels[0].id == made.channel && name.text == "Ána"
  }

  private func set(_ passphrase: [UInt8]) throws {
    try Profile.open(home: home).setPassphrase(passphrase, cost: Self.cheap)
  }

  /// Every byte of the home, in every file.
  private func everything() -> [[UInt8]] {
    directory.names("home").filter { $0 != "channels" }.map { directory.read("home/" + $0) }
      + directory.names("home/channels").map { directory.read("home/channels/" + $0) }
  }

  @Test func aPassphraseSealsEverythingAndOpensIt() throws {
    let made = try made()
    let seed = Array(directory.read("home/identity")[8..<40])
    #expect(try Profile.hasPassphrase(home: home) == false)
    try set(first)
    #expect(try Profile.hasPassphrase(home: home))
    for secret in [seed, made.peer.bytes, Array("garden".utf8), Array("Ána".utf8), first] {
      #expect(everything().allSatisfy { !$0.contains(secret) })
    }
    #expect(directory.mode("home/passphrase") == 0o600 && directory.mode("home/identity") == 0o600)
    #expect(opens(first, as: made))
    #expect(throws: ProfileError.wrongPassphrase(path: home)) { try Profile.open(home: home, passphrase: second) }
    #expect(throws: ProfileError.passphraseNeeded(path: home)) { try Profile.open(home: home) }
    let profile = try Profile.open(home: home, passphrase: first)
    #expect(try profile.nextIncarnation() == 2)
    try profile.saveDisplayName(try DisplayName("Béla"))
    try profile.saveChannel(.open(name: try ChannelName("cellar")))
    #expect(everything().allSatisfy { !$0.contains(Array("Béla".utf8)) && !$0.contains(Array("cellar".utf8)) })
    #expect(throws: ProfileError.hasPassphrase(path: home)) { try profile.setPassphrase(first, cost: Self.cheap) }
  }

  @Test func anotherPassphraseRewritesOneSmallFile() throws {
    let made = try made()
    try set(first)
    let before = everything()
    do {
      let profile = try Profile.open(home: home, passphrase: first)
      try profile.changePassphrase(to: second, cost: Self.cheap)
    }
    let changed = zip(before, everything()).filter { $0.0 != $0.1 }
    #expect(changed.map(\.0.count) == [122], "the others are the same, byte for byte")
    #expect(opens(second, as: made))
    #expect(throws: ProfileError.wrongPassphrase(path: home)) { try Profile.open(home: home, passphrase: first) }
  }

  @Test func withoutThePassphraseItIsAsItWas() throws {
    let made = try made()
    let before = everything()
    try set(first)
    try Profile.open(home: home, passphrase: first).removePassphrase(first)
    #expect(everything() == before)
    #expect(try Profile.hasPassphrase(home: home) == false)
    #expect(opens(nil, as: made))
    #expect(throws: ProfileError.noPassphrase(path: home)) { try Profile.open(home: home, passphrase: first) }
  }

  /// Ended before any of its writes, setting, changing and removing leave a profile that opens.
  @Test func aCrashAnywhereLeavesAProfileThatOpens() throws {
    let made = try made()
    /// Runs it to the write at which it is ended; false when it has no more.
    func cut(_ passphrase: [UInt8]?, at count: Int, _ body: (Profile, () throws(ProfileError) -> Void) throws -> Void)
      throws -> Bool
    {
      let profile = try Profile.open(home: home, passphrase: passphrase)
      var left = count
      let ended = ProfileError.damaged(path: "", reason: "ended")
      do {
        try body(profile) { () throws(ProfileError) in
          if left == 0 { throw ended }
          left -= 1
        }
        return false
      } catch let error as ProfileError {
        guard error == ended else { throw error }
        return true
      }
    }
    var count = 0
    while try cut(nil, at: count, { try $0.setPassphrase(first, cost: Self.cheap, step: $1) }) {
      #expect(opens(nil, as: made) == (count == 0), "cut at \(count)")
      #expect(opens(first, as: made) == (count > 0), "cut at \(count)")
      // Whatever was cut short was ended by opening it.
      if count > 0 { try Profile.open(home: home, passphrase: first).removePassphrase(first) }
      count += 1
    }
    #expect(count == 6, "the key, four files, the key again")
    count = 0
    while try cut(first, at: count, { try $0.changePassphrase(to: second, cost: Self.cheap, step: $1) }) {
      #expect(opens(first, as: made) && opens(second, as: made) == false)
      count += 1
    }
    #expect(count == 1)
    #expect(opens(second, as: made) && opens(first, as: made) == false)
    count = 0
    while try cut(second, at: count, { try $0.removePassphrase(second, step: $1) }) {
      #expect(opens(second, as: made), "cut at \(count)")
      #expect(opens(nil, as: made) == (count > 0), "opening it has ended it")
      if count > 0 { try set(second) }
      count += 1
    }
    #expect(count == 6)
    #expect(opens(nil, as: made))
  }

  /// Half sealed, nothing that has its seal is taken for plain, and opening it ends it.
  @Test func halfSealedIsGoneOnWith() throws {
    let made = try made()
    var left = 3
    let ended = ProfileError.damaged(path: "", reason: "ended")
    #expect(throws: ended) {
      try Profile.open(home: home).setPassphrase(first, cost: Self.cheap) { () throws(ProfileError) in
        if left == 0 { throw ended }
        left -= 1
      }
    }
    let sealed = everything().filter { $0.starts(with: "PARLEYSF".utf8) }.count
    #expect(sealed == 2)
    #expect(opens(first, as: made))
    #expect(everything().filter { $0.starts(with: "PARLEYSF".utf8) }.count == 4)
  }

  @Test func whatIsDamagedOrPutThereIsRefusedAndKept() throws {
    let made = try made()
    let plain = directory.read("home/identity")
    try set(first)
    let names = ["passphrase", "identity"] + directory.names("home/channels").map { "channels/\($0)" }
    for name in names {
      let whole = directory.read("home/" + name)
      for damaged in [Array(whole.dropLast()), whole + [0]]
        + [0, 8, 9, 10, 20, whole.count - 1].map({ place in
          var copy = whole
          copy[place] ^= 4
          return copy
        })
      {
        directory.write("home/" + name, damaged)
        #expect(throws: ProfileError.self, "\(name)") {
          try Profile.open(home: home, passphrase: first).loadChannels()
        }
        #expect(directory.read("home/" + name) == damaged)
      }
      directory.write("home/" + name, whole)
    }
    // A damaged file is not called a wrong passphrase.
    let whole = directory.read("home/passphrase")
    directory.write("home/passphrase", whole.dropLast() + [whole.last! ^ 1])
    #expect(
      throws: ProfileError.damaged(path: home + "/passphrase", reason: "its sum is not that of its bytes")
    ) { try Profile.open(home: home, passphrase: first) }
    directory.write("home/passphrase", whole)
    // Another person's plain identity, or another file's seal, in the place of this one.
    let identity = directory.read("home/identity")
    for other in [plain, directory.read("home/display-name")] {
      directory.write("home/identity", other)
      #expect(throws: ProfileError.self) { try Profile.open(home: home, passphrase: first) }
    }
    directory.write("home/identity", identity)
    let channels = directory.names("home/channels")
    let kept = channels.map { directory.read("home/channels/" + $0) }
    directory.write("home/channels/" + channels[0], kept[1])
    #expect(throws: ProfileError.self) { try Profile.open(home: home, passphrase: first).loadChannels() }
    directory.write("home/channels/" + channels[0], kept[0])
    #expect(opens(first, as: made))
  }

  /// A file that asks for hours of work or all memory is refused before any of it.
  @Test(arguments: [(0, 8), (65, 8), (1, 7), (1, 4 << 20 + 1), (.max, .max)] as [(UInt32, UInt32)])
  func costsAreBounded(_ passCount: UInt32, _ memory: UInt32) throws {
    let key = try #require(PassphraseKey(first, salt: [UInt8](repeating: 1, count: 16), cost: Self.cheap))
    let content: [UInt8] = [1, 2, 3]
    let envelope = content.withUnsafeBytes {
      PassphraseEnvelope(
        sealing: $0, mark: "PARLEYPW", note: 0, cost: PassphraseCost(passCount: passCount, memory: memory),
        salt: [UInt8](repeating: 1, count: 16), key: key)
    }
    #expect {
      try PassphraseEnvelope(envelope.bytes, mark: "PARLEYPW")
    } throws: { error in
      guard case .damaged(let reason) = error as? PassphraseEnvelope.Failure else { return false }
      return reason.contains("\(passCount) passes")
    }
  }

  /// RFC 9106, Argon2id: what the file says is what is computed. Checked against OpenSSL (python-cryptography 48,
  /// Argon2id, one lane).
  @Test func theKeyIsArgon2id() throws {
    let salt = (0..<16).map { UInt8($0) }
    let key = try #require(
      PassphraseKey(Array("password".utf8), salt: salt, cost: PassphraseCost(passCount: 3, memory: 1_024)))
    #expect(key.bytes.withBytes { Array($0) } == Self.expectedKey)
  }

  private static let expectedKey = bytes("8f92a1acc0c0509e55d57b2be709a525017461f8f29d51008c6a0b247f0d1748")

  @Test func theCostIsThatOfTheRFC() {
    #expect(PassphraseCost.standard == PassphraseCost(passCount: 3, memory: 64 << 10))
  }

  @Test(arguments: [0, 1_025]) func passphrasesHaveALength(_ count: Int) throws {
    _ = try made()
    let error = ProfileError.passphraseLength(byteCount: count, byteCountMax: 1_024)
    let passphrase = [UInt8](repeating: 65, count: count)
    #expect(throws: error) { try set(passphrase) }
    try set(first)
    #expect(throws: error) { try Profile.open(home: home, passphrase: passphrase) }
  }
}

@Suite struct RestKeysTests {
  private let keys = RestKeys.random()

  @Test(arguments: [0, 1, 16, 300, 70_000]) func whatIsSealedOpensInItsPlaceOnly(_ count: Int) throws {
    let bytes = Sealing.randomBytes(count)
    let sealed = keys.seal(bytes, as: [1, 2])
    #expect(sealed.count == count + RestKeys.overheadByteCount)
    #expect(keys.open(sealed, as: [1, 2]) == bytes)
    #expect(keys.open(sealed, as: [1, 3]) == nil)
    #expect(keys.open(sealed, as: []) == nil)
    #expect(RestKeys.random().open(sealed, as: [1, 2]) == nil)
    #expect(keys.seal(bytes, as: [1, 2]) != sealed)
    for place in [0, 23, sealed.count - 1, sealed.count / 2] {
      var altered = sealed
      altered[place] ^= 0x80
      #expect(keys.open(altered, as: [1, 2]) == nil)
    }
    for short in [0, 1, 39, sealed.count - 1] where short < sealed.count {
      #expect(keys.open(Array(sealed.prefix(short)), as: [1, 2]) == nil)
    }
  }

  @Test func alikeIsAlikeInOnePlace() {
    let bytes = Array("/home/ana/a.jpg".utf8)
    let sealed = keys.sealAlike(bytes, as: [1])
    #expect(keys.sealAlike(bytes, as: [1]) == sealed)
    #expect(keys.sealAlike(bytes, as: [2]) != sealed)
    #expect(keys.sealAlike(bytes + [0], as: [1]).prefix(24) != sealed.prefix(24))
    #expect(keys.open(sealed, as: [1]) == bytes)
  }
}

extension Array<UInt8> {
  fileprivate func contains(_ part: [UInt8]) -> Bool {
    guard !part.isEmpty, count >= part.count else { return false }
    return (0...count - part.count).contains { self[$0..<$0 + part.count].elementsEqual(part) }
  }
}
