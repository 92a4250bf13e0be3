import ParleyHashing
import ParleyVocabulary

/// A person as one file, to move to another machine: what the profile's files say, in a `PassphraseEnvelope` with the
/// mark `PARLEYEX` and the note 0. Its content, big-endian:
///
/// incarnation (8) ‖ count of files (2) ‖ for each: length of its name (1) ‖ name ‖ length (2) ‖ what it says
///
/// Names are `identity`, `display-name`, and `channels/` ‖ 26 characters of base32.
package struct IdentityBundle: Equatable {
  package struct File: Equatable {
    package var name: String
    package var bytes: [UInt8]
  }

  package static let mark = "PARLEYEX"
  /// A node is in 64 channels; those that were left are not in it.
  static let fileCountMax = 1_024
  package var incarnation: UInt64
  package var files: [File]

  init(incarnation: UInt64, files: [File]) {
    self.incarnation = incarnation
    self.files = files
  }

  package var encoded: [UInt8] {
    var bytes = incarnation.bigEndianBytes + Self.two(files.count)
    for file in files {
      bytes.append(UInt8(file.name.utf8.count))
      bytes += Array(file.name.utf8)
      bytes += Self.two(file.bytes.count) + file.bytes
    }
    return bytes
  }

  private static func two(_ number: Int) -> [UInt8] { [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)] }

  /// Whoever gives somebody a file and its passphrase chose all that is in it. Nil for what no export writes.
  package init?(decoding bytes: [UInt8]) {
    var rest = bytes[...]
    func take(_ count: Int) -> ArraySlice<UInt8>? {
      guard rest.count >= count else { return nil }
      defer { rest = rest.dropFirst(count) }
      return rest.prefix(count)
    }
    func number(_ count: Int) -> UInt64? { take(count).map { $0.reduce(0) { $0 << 8 | UInt64($1) } } }
    guard let incarnation = number(8), incarnation < Limit.counterMax, let count = number(2), count >= 1,
      count <= Self.fileCountMax
    else { return nil }
    var files: [File] = []
    var names: Set<String> = []
    for _ in 0..<count {
      guard let nameCount = number(1), let nameBytes = take(Int(nameCount)),
        let name = String(validating: nameBytes, as: UTF8.self), Self.isName(name), names.insert(name).inserted,
        let byteCount = number(2), (1...PrivateDirectory.fileByteCountMax).contains(Int(byteCount)),
        let content = take(Int(byteCount))
      else { return nil }
      files.append(File(name: name, bytes: Array(content)))
    }
    guard rest.isEmpty, names.contains("identity") else { return nil }
    self.init(incarnation: incarnation, files: files)
  }

  private static func isName(_ name: String) -> Bool {
    if name == "identity" || name == "display-name" { return true }
    let parts = name.split(separator: "/", omittingEmptySubsequences: false)
    return parts.count == 2 && parts[0] == "channels" && parts[1].utf8.count == 26
      && Base32.decode(String(parts[1]))?.count == 16
  }
}

package enum IdentityExport {
  /// 1,024 files of 48 KiB, their names, and the envelope.
  package static let byteCountMax = 49 << 20
}

extension Profile {
  private static let exportedName = "exported"
  private static let retiredName = "retired"
  /// So far ahead of the old home's the new one begins: where both are started, the old one is the one that stops.
  static let incarnationLead: UInt64 = 1 << 20

  /// Everything that makes this person, sealed with a passphrase of 1 to 1,024 bytes. From now on the home says that it
  /// was exported. The history is not in it: others have it.
  package func export(
    _ passphrase: [UInt8], cost: PassphraseCost = .standard
  ) throws(ProfileError) -> [UInt8] {
    try Self.checkLength(passphrase)
    var files: [IdentityBundle.File] = []
    for name in ["identity", "display-name"] {
      if let file = try home.read(name) { files.append(.init(name: name, bytes: file.withBytes { Array($0) })) }
    }
    // Verified, and none that could not be read.
    _ = try loadChannels()
    for name in try channels.names() {
      guard let file = try channels.read(name) else { continue }
      files.append(.init(name: "channels/\(name)", bytes: file.withBytes { Array($0) }))
    }
    guard files.count <= IdentityBundle.fileCountMax else {
      throw .damaged(path: channels.path, reason: "it has \(files.count) files")
    }
    let content = SecretBytes(
      IdentityBundle(incarnation: try unkeptIncarnation() - 1, files: files).encoded)
    let salt = Sealing.randomBytes(PassphraseKey.saltByteCount)
    guard let key = PassphraseKey(passphrase, salt: salt, cost: cost) else {
      throw .noMemory(kibibytes: Int(cost.memory))
    }
    try home.write(SecretBytes(Array("1\n".utf8)), to: Self.exportedName)
    return content.withBytes {
      PassphraseEnvelope(sealing: $0, mark: IdentityBundle.mark, note: 0, cost: cost, salt: salt, key: key).bytes
    }
  }

  /// Makes the person of an export in a home that has none: one that is there is never replaced. Returns who it is.
  /// `path` names the file in errors.
  package static func importing(
    _ file: [UInt8], from path: String, _ passphrase: [UInt8], home homePath: String
  ) throws(ProfileError) -> PeerID {
    try checkLength(passphrase)
    let bundle: IdentityBundle?
    do throws(PassphraseEnvelope.Failure) {
      let envelope = try PassphraseEnvelope(file, mark: IdentityBundle.mark)
      let content = try envelope.open(passphrase).content
      bundle = IdentityBundle(decoding: content.withBytes { Array($0) })
    } catch { throw ProfileError(error, path: path, home: path) }
    guard let bundle else { throw .damaged(path: path, reason: "what is in it is no identity") }
    let home = try PrivateDirectory(path: homePath)
    let lock = try ProfileLock(in: home)
    defer { lock.release() }
    for name in ["passphrase", "identity"] where try home.read(name) != nil { throw .hasIdentity(path: homePath) }
    let channels = try PrivateDirectory(path: homePath + "/channels", folder: "channels")
    guard let seed = bundle.files.first(where: { $0.name == "identity" }) else {
      preconditionFailure("a bundle has an identity")
    }
    let identity = try read(identity: SecretBytes(seed.bytes), path: path)
    let incarnation = min(bundle.incarnation, Limit.counterMax - 2 * incarnationLead) + incarnationLead
    try home.write(SecretBytes(Array("\(incarnation)\n".utf8)), to: "incarnation")
    for file in bundle.files where file.name != "identity" {
      let bytes = SecretBytes(file.bytes)
      if file.name.hasPrefix("channels/") {
        try channels.write(bytes, to: String(file.name.dropFirst(9)))
      } else {
        try home.write(bytes, to: file.name)
      }
    }
    // Last: what is cut short before is no person yet, and may be imported again.
    try home.write(SecretBytes(seed.bytes), to: "identity")
    return identity.peerID
  }

  /// Whether this person may live elsewhere by now.
  package var isExported: Bool { get throws(ProfileError) { try home.read(Self.exportedName) != nil } }
  /// Whether this person was seen elsewhere after it was exported.
  package var isRetired: Bool { get throws(ProfileError) { try home.read(Self.retiredName) != nil } }

  /// The person was seen elsewhere: a home that was exported is not used again.
  package func retireIfExported() throws(ProfileError) {
    guard try isExported else { return }
    try home.write(SecretBytes(Array("1\n".utf8)), to: Self.retiredName)
  }
}
