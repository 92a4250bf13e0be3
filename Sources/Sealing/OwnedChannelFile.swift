import ParleyHashing
import ParleyVocabulary

/// An owned channel as the profile keeps it:
///
/// `PARLEYCH` ‖ 2, of a room 26 (1) ‖ founder (32) ‖ salt (16) ‖ ChannelID (32) ‖ byte count of the name (1) ‖ name in
/// UTF-8 ‖ count of generations (1, at least 1) ‖ for each, the one to send under first: number (8) ‖ secret (32) ‖
/// when it was replaced, in milliseconds since 1970 (8, 0: it was not) ‖ byte count of its statement (2) ‖ statement.
enum OwnedChannelFile {
  private static func mark(_ type: ChannelType) -> [UInt8] {
    switch type {
    case .group: Array("PARLEYCH".utf8) + [2]
    case .room: Array("PARLEYCH".utf8) + [26]
    }
  }
  static let statementByteCountMax = 1_024

  /// Nil for another file.
  static func type(of file: SecretBytes) -> ChannelType? {
    ChannelType.allCases.first { type in
      let mark = mark(type)
      return file.byteCount >= mark.count && file.withBytes(0..<mark.count) { $0.elementsEqual(mark) }
    }
  }

  /// Nil for a channel that nobody owns.
  static func encode(_ keys: ChannelKeys) -> SecretBytes? {
    guard let ownership = keys.ownership else { return nil }
    let name = Array(keys.name.text.utf8)
    var head = mark(ownership.type)
    for part in [ownership.founder.bytes, ownership.salt, keys.id.bytes, [UInt8(name.count)], name] { head += part }
    let byteCount = head.count + 1 + keys.generations.reduce(0) { $0 + 50 + $1.statement.count }
    return SecretBytes(byteCount: byteCount) { place in
      var at = 0
      func put(_ bytes: [UInt8]) {
        UnsafeMutableRawBufferPointer(rebasing: place[at...]).copyBytes(from: bytes)
        at += bytes.count
      }
      put(head + [UInt8(keys.generations.count)])
      for generation in keys.generations {
        put(generation.id.number.bigEndianBytes)
        generation.withSecret { UnsafeMutableRawBufferPointer(rebasing: place[at..<at + 32]).copyMemory(from: $0) }
        at += 32
        put((generation.replacedAt ?? 0).bigEndianBytes)
        let statement = generation.statement
        put([UInt8(statement.count >> 8), UInt8(statement.count & 0xFF)] + statement)
      }
    }
  }

  static func decode(_ file: SecretBytes, _ type: ChannelType, path: String) throws(ProfileError) -> ChannelKeys {
    var at = mark(type).count
    func take(_ count: Int, _ what: String) throws(ProfileError) -> Range<Int> {
      guard count <= file.byteCount - at else { throw .damaged(path: path, reason: "it ends in the middle of \(what)") }
      defer { at += count }
      return at..<at + count
    }
    func bytes(_ count: Int, _ what: String) throws(ProfileError) -> [UInt8] {
      let range = try take(count, what)
      return file.withBytes(range) { Array($0) }
    }
    let ownership = ChannelOwnership(
      founder: PeerID(bytes: try bytes(32, "its founder"))!,
      salt: try bytes(ChannelOwnership.saltByteCount, "its salt"), type: type)!
    let id = try bytes(32, "its identifier")
    let nameByteCount = Int(try bytes(1, "its name")[0])
    let text = String(validating: try bytes(nameByteCount, "its name"), as: UTF8.self)
    guard let text, let name = try? ChannelName(text), name.text.utf8.elementsEqual(text.utf8) else {
      throw .damaged(path: path, reason: "the channel's name is not one")
    }
    guard ownership.id(of: name).bytes == id else {
      throw .damaged(path: path, reason: "its founder and its identifier do not belong together")
    }
    let count = Int(try bytes(1, "its generations")[0])
    guard (1...ChannelKeys.generationCountMax).contains(count) else {
      throw .damaged(path: path, reason: "it has \(count) generations; 1 to \(ChannelKeys.generationCountMax) can be")
    }
    var generations: [(number: UInt64, secret: SecretBytes, statement: [UInt8], replacedAt: UInt64?)] = []
    for _ in 0..<count {
      let number = Self.number(of: try bytes(8, "a generation"))
      let range = try take(32, "a secret")
      let secret = SecretBytes(byteCount: 32) { place in file.withBytes(range) { place.copyMemory(from: $0) } }
      let replacedAt = Self.number(of: try bytes(8, "a generation"))
      let statementByteCount = try bytes(2, "a statement").reduce(0) { $0 << 8 | Int($1) }
      guard number <= GenerationID.numberMax, statementByteCount <= statementByteCountMax else {
        throw .damaged(path: path, reason: "a generation's number or statement is too large")
      }
      let statement = try bytes(statementByteCount, "a statement")
      generations.append((number, secret, statement, replacedAt == 0 ? nil : replacedAt))
    }
    guard at == file.byteCount else { throw .damaged(path: path, reason: "there are bytes behind its end") }
    return .owned(name: name, ownership: ownership, generations: generations)
  }

  private static func number(of bytes: [UInt8]) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
