import ParleyHashing
import ParleyVocabulary

/// Why a text is no invitation.
package enum InvitationError: Error, Equatable, Sendable, CustomStringConvertible {
  case notALink
  case tooLong(byteCount: Int, byteCountMax: Int)
  case badName(String)
  /// Other characters than an invitation has, or another check sum.
  case altered
  case unknownVersion(UInt8)
  case malformed(WireError)

  package var description: String {
    switch self {
    case .notALink: "this is no invitation: one begins with parley://join/"
    case .tooLong(let byteCount, let byteCountMax):
      "this is no invitation: it has \(byteCount) bytes, and the longest one \(byteCountMax)"
    case .badName(let reason): "the invitation names a channel that cannot be: \(reason)"
    case .altered: "the invitation was altered or is not whole: copy it once more, or ask for another"
    case .unknownVersion(let version):
      "the invitation is of version \(version), which this program does not know: get a newer one"
    case .malformed(let error): "the invitation makes no sense (\(error)): ask for another"
    }
  }
}

/// What lets somebody into an owned channel: what the channel is named after, its newest secret, and a grant. As a link
///
///     parley://join/NAME#PAYLOAD
///
/// where NAME is percent-encoded (RFC 3986, only unreserved characters stand for themselves, in upper case digits) and
/// PAYLOAD the base32 of: version (1: to a group, 2: to a room) ‖ founder (32) ‖ salt (16) ‖ generation (varint) ‖
/// secret (32) ‖ grant ‖ check sum (4): the first bytes of BLAKE2b-256(`parley/1/link` ‖ name ‖ 0 ‖ all before it). One
/// invitation has one link, in lower case, and the same with its payload in upper case, which is shorter as a QR code.
package struct Invitation: Equatable, Sendable {
  package static let start = "parley://join/"
  package static let linkByteCountMax = 1_024
  private static let checkByteCount = 4

  package let name: ChannelName
  package let ownership: ChannelOwnership
  package let generation: UInt64
  /// Of that generation.
  package let secret: Bytes32
  package let grant: Grant

  package init(
    name: ChannelName, ownership: ChannelOwnership, generation: UInt64, secret: Bytes32, grant: Grant
  ) {
    self.name = name
    self.ownership = ownership
    self.generation = generation
    self.secret = secret
    self.grant = grant
  }

  package var link: String { Self.start + Self.percentEncoded(name.text) + "#" + Base32.encode(payload) }

  /// The same invitation; shorter as a QR code, which has a mode for capitals.
  package var linkInCapitals: String {
    Self.start + Self.percentEncoded(name.text) + "#" + Base32.encode(payload).uppercased()
  }

  private var payload: [UInt8] {
    var out = ByteWriter(reserving: 256)
    out.uint8(ownership.type == .room ? 2 : 1)
    out.bytes32(ownership.founder.value)
    out.raw(ownership.salt)
    out.varint(generation)
    out.bytes32(secret)
    out.raw(grant.encoded)
    return out.bytes + Self.checkSum(name, out.bytes[...])
  }

  private static func checkSum(_ name: ChannelName, _ bytes: ArraySlice<UInt8>) -> [UInt8] {
    var hashed = Array("parley/1/link".utf8)
    hashed += name.text.utf8
    hashed.append(0)
    hashed += bytes
    return Array(BLAKE2b.hash(hashed, byteCount: 32).prefix(checkByteCount))
  }

  /// Reads what people paste: white space around it does not count. Nothing else is forgiven.
  package init(link text: String) throws(InvitationError) {
    let bytes = Self.trimmed(Array(text.utf8))
    guard bytes.count <= Self.linkByteCountMax else {
      throw .tooLong(byteCount: bytes.count, byteCountMax: Self.linkByteCountMax)
    }
    guard bytes.starts(with: Self.start.utf8) else { throw .notALink }
    let parts = bytes.dropFirst(Self.start.utf8.count).split(
      separator: UInt8(ascii: "#"), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { throw .altered }
    let name = try Self.name(parts[0])
    let payload = try Self.payload(parts[1])
    guard payload.count > Self.checkByteCount else { throw .altered }
    let body = payload.dropLast(Self.checkByteCount)
    guard payload.suffix(Self.checkByteCount).elementsEqual(Self.checkSum(name, body)) else { throw .altered }
    self = try Self.read(body, name)
  }

  private static func read(_ body: ArraySlice<UInt8>, _ name: ChannelName) throws(InvitationError) -> Invitation {
    var reader = ByteReader(body)
    do throws(WireError) {
      let version = try reader.uint8("version")
      guard let type: ChannelType = [1: .group, 2: .room][version] else {
        throw WireError.outOfRange(field: "version", value: UInt64(version))
      }
      let founder = PeerID(try reader.bytes32("founder"))
      let salt = try reader.bytes(ChannelOwnership.saltByteCount, "salt")
      let generation = try reader.varint("generation")
      guard generation <= GenerationID.numberMax else {
        throw WireError.outOfRange(field: "generation", value: generation)
      }
      let secret = try reader.bytes32("secret")
      let grant = try Grant(decoding: reader.rest)
      return Invitation(
        name: name, ownership: ChannelOwnership(founder: founder, salt: salt, type: type)!, generation: generation,
        secret: secret, grant: grant)
    } catch {
      if case .outOfRange("version", let version) = error { throw .unknownVersion(UInt8(version)) }
      throw .malformed(error)
    }
  }

  private static func trimmed(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
    func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
    let start = bytes.firstIndex { !isSpace($0) } ?? bytes.endIndex
    let end = bytes.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? bytes.endIndex
    return bytes[min(start, end)..<end]
  }

  private static func name(_ encoded: ArraySlice<UInt8>) throws(InvitationError) -> ChannelName {
    guard let text = percentDecoded(encoded) else { throw .altered }
    let name: ChannelName
    do throws(NameError) { name = try ChannelName(text) } catch { throw .badName(error.description) }
    // Not in NFC, or what need not be encoded was: not what an inviter writes.
    guard percentEncoded(name.text).utf8.elementsEqual(encoded) else { throw .altered }
    return name
  }

  /// All in lower case, or all in upper case.
  private static func payload(_ encoded: ArraySlice<UInt8>) throws(InvitationError) -> [UInt8] {
    let capitals = UInt8(ascii: "A")...UInt8(ascii: "Z")
    let isInCapitals = encoded.contains { capitals.contains($0) }
    let small = isInCapitals ? encoded.map { capitals.contains($0) ? $0 | 0x20 : $0 } : Array(encoded)
    let isMixed = isInCapitals && encoded.contains { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
    guard !isMixed, let bytes = Base32.decode(String(decoding: small, as: UTF8.self)) else { throw .altered }
    return bytes
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"):
      true
    default: false
    }
  }

  private static func percentEncoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    let bytes = text.utf8.flatMap { byte in
      isUnreserved(byte) ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Nil for what is not percent-encoded UTF-8.
  private static func percentDecoded(_ encoded: ArraySlice<UInt8>) -> String? {
    var bytes: [UInt8] = []
    var rest = encoded
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst(), let low = rest.popFirst(),
        let value = UInt8(String(decoding: [high, low], as: UTF8.self), radix: 16)
      else { return nil }
      bytes.append(value)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
