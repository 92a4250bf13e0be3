import Glibc

// A passphrase seals a random master key, and this everything else, so that another passphrase rewrites one small file.
// That file, `passphrase`, is there before anything is sealed and until nothing is any more. Its note says what is
// under way, so that what a crash has cut short goes on at the next opening:
//
// | note | the profile's files |
// |---|---|
// | 0 | are sealed; a plain one is refused |
// | 1 | are being sealed |
// | 2 | are being opened; then the file goes |

private enum Note: UInt8 {
  case sealed = 0
  case sealing = 1
  case opening = 2
}

extension Profile {
  private static let passphraseName = "passphrase"
  private static let passphraseMark = "PARLEYPW"
  /// Of the home itself; all in `channels` as well. `PrivateDirectory.plainNames` stay.
  private static let sealedNames = ["identity", "display-name"]

  /// What the store is sealed with; nil for a profile without a passphrase.
  package var restKeys: RestKeys? { home.seal.withLock { $0?.keys } }

  /// Whether the home at this path has a passphrase. Also while a node is running.
  package static func hasPassphrase(home path: String) throws(ProfileError) -> Bool {
    let home: PrivateDirectory
    do throws(ProfileError) { home = try PrivateDirectory(existing: path) } catch {
      if case .system(_, _, let code) = error, code == ENOENT { return false }
      throw error
    }
    return try home.read(passphraseName) != nil
  }

  /// Seals the profile's files. A crash leaves a profile that opens with the passphrase, or without as before.
  /// `step` is called before each write: tests end there.
  package func setPassphrase(
    _ passphrase: [UInt8], cost: PassphraseCost = .standard, step: () throws(ProfileError) -> Void = {}
  ) throws(ProfileError) {
    guard restKeys == nil else { throw .hasPassphrase(path: path) }
    let keys = RestKeys.random()
    let salt = Sealing.randomBytes(PassphraseKey.saltByteCount)
    let key = try Self.key(passphrase, salt, cost)
    try step()
    try Self.keep(keys, .sealing, cost, salt, key, in: home)
    try Self.seal(home, channels, keys, cost, salt, key, step)
  }

  /// The master key, and so what is sealed, stays the same: one file is replaced.
  package func changePassphrase(
    to passphrase: [UInt8], cost: PassphraseCost = .standard, step: () throws(ProfileError) -> Void = {}
  ) throws(ProfileError) {
    guard let keys = restKeys else { throw .noPassphrase(path: path) }
    let salt = Sealing.randomBytes(PassphraseKey.saltByteCount)
    let key = try Self.key(passphrase, salt, cost)
    try step()
    try Self.keep(keys, .sealed, cost, salt, key, in: home)
  }

  /// The store is opened for good before: its key is gone afterwards. `passphrase` is the one the profile was opened
  /// with.
  package func removePassphrase(
    _ passphrase: [UInt8], step: () throws(ProfileError) -> Void = {}
  ) throws(ProfileError) {
    guard let keys = restKeys else { throw .noPassphrase(path: path) }
    let (envelope, _, key) = try Self.opened(home, passphrase)
    try step()
    try Self.keep(keys, .opening, envelope.cost, envelope.salt, key, in: home)
    try Self.unseal(home, channels, keys, step)
  }

  /// Gives the directories their key, and ends what was cut short.
  static func unlock(
    _ home: PrivateDirectory, _ channels: PrivateDirectory, _ passphrase: [UInt8]?
  ) throws(ProfileError) {
    guard try home.read(passphraseName) != nil else {
      if passphrase != nil { throw .noPassphrase(path: home.path) }
      return
    }
    guard let passphrase else { throw .passphraseNeeded(path: home.path) }
    let (envelope, keys, key) = try opened(home, passphrase)
    switch Note(rawValue: envelope.note) {
    case .sealed: use(keys, acceptsPlain: false, home, channels)
    case .sealing: try seal(home, channels, keys, envelope.cost, envelope.salt, key, { () throws(ProfileError) in })
    case .opening: try unseal(home, channels, keys, { () throws(ProfileError) in })
    case nil: throw .damaged(path: home.path(of: passphraseName), reason: "its note is \(envelope.note)")
    }
  }

  private static func opened(
    _ home: PrivateDirectory, _ passphrase: [UInt8]
  ) throws(ProfileError) -> (PassphraseEnvelope, RestKeys, PassphraseKey) {
    try checkLength(passphrase)
    let path = home.path(of: passphraseName)
    guard let file = try home.read(passphraseName) else { throw .noPassphrase(path: home.path) }
    do throws(PassphraseEnvelope.Failure) {
      let envelope = try PassphraseEnvelope(file.withBytes { Array($0) }, mark: passphraseMark)
      let (master, key) = try envelope.open(passphrase)
      guard master.byteCount == RestKeys.masterByteCount else { throw .damaged("its key is \(master.byteCount) bytes") }
      return (envelope, RestKeys(master: master), key)
    } catch { throw ProfileError(error, path: path, home: home.path) }
  }

  private static func key(
    _ passphrase: [UInt8], _ salt: [UInt8], _ cost: PassphraseCost
  ) throws(ProfileError) -> PassphraseKey {
    try checkLength(passphrase)
    guard let key = PassphraseKey(passphrase, salt: salt, cost: cost) else {
      throw .noMemory(kibibytes: Int(cost.memory))
    }
    return key
  }

  static func checkLength(_ passphrase: [UInt8]) throws(ProfileError) {
    guard (1...PassphraseKey.passphraseByteCountMax).contains(passphrase.count) else {
      throw .passphraseLength(byteCount: passphrase.count, byteCountMax: PassphraseKey.passphraseByteCountMax)
    }
  }

  private static func keep(
    _ keys: RestKeys, _ note: Note, _ cost: PassphraseCost, _ salt: [UInt8], _ key: PassphraseKey,
    in home: PrivateDirectory
  ) throws(ProfileError) {
    let envelope = keys.withMaster {
      PassphraseEnvelope(
        sealing: $0, mark: passphraseMark, note: note.rawValue, cost: cost, salt: salt, key: key)
    }
    try home.write(plain: envelope.bytes, to: passphraseName)
  }

  private static func use(
    _ keys: RestKeys, acceptsPlain: Bool, _ home: PrivateDirectory, _ channels: PrivateDirectory
  ) {
    for directory in [home, channels] {
      directory.seal.withLock { $0 = PrivateDirectory.SealState(keys: keys, acceptsPlain: acceptsPlain) }
    }
  }

  private static func seal(
    _ home: PrivateDirectory, _ channels: PrivateDirectory, _ keys: RestKeys, _ cost: PassphraseCost, _ salt: [UInt8],
    _ key: PassphraseKey, _ step: () throws(ProfileError) -> Void
  ) throws(ProfileError) {
    use(keys, acceptsPlain: true, home, channels)
    for (directory, names) in [(home, sealedNames), (channels, try channels.names())] {
      for name in names {
        guard let file = try directory.read(name) else { continue }
        try step()
        try directory.write(file, to: name)
      }
    }
    try step()
    try keep(keys, .sealed, cost, salt, key, in: home)
    use(keys, acceptsPlain: false, home, channels)
  }

  private static func unseal(
    _ home: PrivateDirectory, _ channels: PrivateDirectory, _ keys: RestKeys, _ step: () throws(ProfileError) -> Void
  ) throws(ProfileError) {
    use(keys, acceptsPlain: true, home, channels)
    for (directory, names) in [(home, sealedNames), (channels, try channels.names())] {
      for name in names {
        guard let file = try directory.read(name) else { continue }
        try step()
        try directory.writeUnsealed(file, to: name)
      }
    }
    try step()
    _ = try home.remove(passphraseName)
    for directory in [home, channels] { directory.seal.withLock { $0 = nil } }
  }
}

extension ProfileError {
  init(_ failure: PassphraseEnvelope.Failure, path: String, home: String) {
    switch failure {
    case .damaged(let reason): self = .damaged(path: path, reason: reason)
    case .newerVersion(let version): self = .newerVersion(path: path, version: Int(version))
    case .wrongPassphrase: self = .wrongPassphrase(path: home)
    case .noMemory(let kibibytes): self = .noMemory(kibibytes: Int(kibibytes))
    }
  }
}
