import CSodium
import Glibc
import ParleyHashing
import ParleyVocabulary
import Synchronization

/// A person's home: keys, channels, and what must outlive a run. One node at a time uses it. Calls wait for the disk.
///
/// | file | bytes |
/// |---|---|
/// | `lock` | the process ID in decimal and a line feed; locked with `flock` as long as the node runs |
/// | `identity` | `PARLEYID` ‖ Ed25519 seed (32) ‖ PeerID (32) |
/// | `channels/…` | `PARLEYCH` ‖ type (1) ‖ secret (32) ‖ ChannelID (32) ‖ name in UTF-8 |
/// | `incarnation` | decimal and a line feed |
/// | `display-name` | UTF-8 and a line feed |
/// | `exported`, `retired` | a 1 and a line feed: the person was exported; and was seen elsewhere since |
/// | `passphrase` | only with a passphrase: `PARLEYPW`, the master key as `PassphraseEnvelope` has it |
///
/// With a passphrase `identity`, `display-name` and `channels/…` are sealed, see `PrivateDirectory`.
///
/// The type of an open channel is 1, of one with a passphrase 0, of rooms 13 and 12. For an owned channel's file see
/// `OwnedChannelFile`.
///
/// A channel's file is named with the base32 of BLAKE2b-128(`parley/1/file` ‖ ChannelID), so a listing says no names.
package final class Profile: Sendable {
  private static let identityMark = Array("PARLEYID".utf8)
  private static let channelMark = Array("PARLEYCH".utf8)
  private static let channelHeadByteCount = 8 + 1 + 32 + 32

  package let identity: Identity
  let home: PrivateDirectory
  let channels: PrivateDirectory
  /// Held until `release()` or `deinit`; the system gives it back when the process ends in any way.
  private let lock: ProfileLock
  private let incarnation = Mutex<Void>(())

  package var path: String { home.path }

  private init(home: PrivateDirectory, channels: PrivateDirectory, lock: ProfileLock, identity: Identity) {
    self.home = home
    self.channels = channels
    self.lock = lock
    self.identity = identity
  }

  /// Opens the profile, making it and its identity when there is none. An identity that is there but damaged is an
  /// error: a new one in its place would be another person.
  ///
  /// `passphrase` is that of the home: throws `.passphraseNeeded` without it where there is one, `.wrongPassphrase`,
  /// and `.noPassphrase` where there is none. With it the call takes 64 MiB and some tenths of a second.
  package static func open(home path: String, passphrase: [UInt8]? = nil) throws(ProfileError) -> Profile {
    Sealing.initialize()
    let home = try PrivateDirectory(path: path)
    let lock = try ProfileLock(in: home)
    _ = try home.names()
    let channels = try PrivateDirectory(path: path + "/channels", folder: "channels")
    _ = try channels.names()
    try unlock(home, channels, passphrase)
    let identity: Identity
    if let stored = try home.read("identity") {
      identity = try read(identity: stored, path: home.path(of: "identity"))
    } else {
      identity = Identity.random()
      try write(identity, to: home)
    }
    return Profile(home: home, channels: channels, lock: lock, identity: identity)
  }

  /// Lets another node use the home. Nothing may be written through this profile afterwards.
  package func release() { lock.release() }

  static func read(identity stored: SecretBytes, path: String) throws(ProfileError) -> Identity {
    guard stored.byteCount == 72 else {
      throw .damaged(path: path, reason: "it is \(stored.byteCount) bytes long, not 72")
    }
    guard stored.withBytes(0..<8, { $0.elementsEqual(identityMark) }) else {
      throw .damaged(path: path, reason: "it does not begin with PARLEYID")
    }
    let seed = SecretBytes(byteCount: 32) { place in stored.withBytes(8..<40) { place.copyMemory(from: $0) } }
    let identity = Identity(seed: seed)
    guard stored.withBytes(40..<72, { $0.elementsEqual(identity.peerID.bytes) }) else {
      throw .damaged(path: path, reason: "its two halves do not belong together")
    }
    return identity
  }

  private static func write(_ identity: Identity, to home: PrivateDirectory) throws(ProfileError) {
    let file = SecretBytes(byteCount: 72) { place in
      place.copyBytes(from: identityMark)
      identity.withSeed { UnsafeMutableRawBufferPointer(rebasing: place[8..<40]).copyMemory(from: $0) }
      UnsafeMutableRawBufferPointer(rebasing: place[40..<72]).copyBytes(from: identity.peerID.bytes)
    }
    try home.write(file, to: "identity")
  }
}

// MARK: Channels

extension Profile {
  package func saveChannel(_ keys: ChannelKeys) throws(ProfileError) {
    if let file = OwnedChannelFile.encode(keys) { return try channels.write(file, to: Self.fileName(of: keys.id)) }
    let name = Array(keys.name.text.utf8)
    let file = SecretBytes(byteCount: Self.channelHeadByteCount + name.count) { place in
      place.copyBytes(from: Self.channelMark + [(keys.isOpen ? 1 : 0) + (keys.type == .room ? 12 : 0)])
      keys.withSecret { UnsafeMutableRawBufferPointer(rebasing: place[9..<41]).copyMemory(from: $0) }
      UnsafeMutableRawBufferPointer(rebasing: place[41...]).copyBytes(from: keys.id.bytes + name)
    }
    try channels.write(file, to: Self.fileName(of: keys.id))
  }

  /// Keeps what has changed of a channel that is saved; nothing when it has been left.
  package func updateChannel(_ keys: ChannelKeys) throws(ProfileError) {
    guard try channels.read(Self.fileName(of: keys.id)) != nil else { return }
    try saveChannel(keys)
  }

  /// False when the channel was not saved.
  @discardableResult
  package func removeChannel(_ id: ChannelID) throws(ProfileError) -> Bool {
    try channels.remove(Self.fileName(of: id))
  }

  /// All saved channels, by name. A damaged file is an error that names it; nothing is lost by moving it away.
  package func loadChannels() throws(ProfileError) -> [ChannelKeys] {
    var loaded: [ChannelKeys] = []
    for name in try channels.names() {
      guard let file = try channels.read(name) else { continue }
      loaded.append(try Self.channel(file, fileName: name, path: channels.path(of: name)))
    }
    return loaded.sorted { ($0.name, $0.id) < ($1.name, $1.id) }
  }

  private static func fileName(of id: ChannelID) -> String {
    Base32.encode(BLAKE2b.hash(Array("parley/1/file".utf8) + id.bytes, byteCount: 16))
  }

  private static func channel(
    _ file: SecretBytes, fileName: String, path: String
  ) throws(ProfileError) -> ChannelKeys {
    if let type = OwnedChannelFile.type(of: file) {
      let keys = try OwnedChannelFile.decode(file, type, path: path)
      guard Self.fileName(of: keys.id) == fileName else {
        throw .damaged(path: path, reason: "its identifier and its file's name do not belong together")
      }
      return keys
    }
    let nameByteCounts = 1...Limit.channelNameByteCountMax
    guard nameByteCounts.contains(file.byteCount - channelHeadByteCount) else {
      throw .damaged(path: path, reason: "it is \(file.byteCount) bytes long")
    }
    let mark = file.withBytes(0..<9) { Array($0) }
    guard mark.prefix(8).elementsEqual(channelMark), [0, 1, 12, 13].contains(mark[8]) else {
      throw .damaged(path: path, reason: "it does not begin with PARLEYCH")
    }
    let text = file.withBytes(channelHeadByteCount..<file.byteCount) { String(validating: $0, as: UTF8.self) }
    guard let text, let name = try? ChannelName(text), name.text.utf8.elementsEqual(text.utf8) else {
      throw .damaged(path: path, reason: "the channel's name is not one")
    }
    let secret = SecretBytes(byteCount: 32) { place in file.withBytes(9..<41) { place.copyMemory(from: $0) } }
    let type: ChannelType = mark[8] >= 12 ? .room : .group
    let keys = ChannelKeys(name: name, secret: secret, isOpen: mark[8] % 2 == 1, type: type)
    guard file.withBytes(41..<73, { $0.elementsEqual(keys.id.bytes) }), Self.fileName(of: keys.id) == fileName else {
      throw .damaged(path: path, reason: "its secret and its identifier do not belong together")
    }
    return keys
  }
}

// MARK: Incarnation and display name

extension Profile {
  /// One more than the greatest of what is stored and `reported` (what others say of this identity); on the disk before
  /// it returns.
  package func nextIncarnation(above reported: UInt64 = 0) throws(ProfileError) -> UInt64 {
    try incarnation.withLock { _ throws(ProfileError) in try increment(above: reported) }
  }

  private func increment(above reported: UInt64) throws(ProfileError) -> UInt64 {
    let path = home.path(of: "incarnation")
    var stored: UInt64 = 0
    if let line = try line(of: "incarnation") {
      guard let value = UInt64(line), value <= Limit.counterMax, "\(value)" == line else {
        throw .damaged(path: path, reason: "it is not a number")
      }
      stored = value
    }
    let greatest = max(stored, reported)
    guard greatest < Limit.counterMax else { throw .damaged(path: path, reason: "there is no greater number") }
    try home.write(SecretBytes(Array("\(greatest + 1)\n".utf8)), to: "incarnation")
    return greatest + 1
  }

  /// What `nextIncarnation` would give, where it cannot be kept. The next start gives it again, which others take for
  /// what it is: the same person, started anew.
  package func unkeptIncarnation() throws(ProfileError) -> UInt64 {
    guard let line = try line(of: "incarnation"), let stored = UInt64(line), stored < Limit.counterMax else { return 1 }
    return stored + 1
  }

  /// Nil when none was saved.
  package func loadDisplayName() throws(ProfileError) -> DisplayName? {
    guard let line = try line(of: "display-name") else { return nil }
    do throws(NameError) { return try DisplayName(line) } catch {
      throw .damaged(path: home.path(of: "display-name"), reason: error.description)
    }
  }

  package func saveDisplayName(_ name: DisplayName) throws(ProfileError) {
    try home.write(SecretBytes(Array("\(name.text)\n".utf8)), to: "display-name")
  }

  /// The file's one line.
  private func line(of name: String) throws(ProfileError) -> String? {
    guard let file = try home.read(name) else { return nil }
    let text = file.withBytes { String(validating: $0, as: UTF8.self) }
    guard let text, text.last == "\n" else {
      throw .damaged(path: home.path(of: name), reason: "it is not a line of UTF-8")
    }
    return String(text.dropLast())
  }
}
