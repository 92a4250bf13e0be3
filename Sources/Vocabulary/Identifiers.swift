/// A person's public key (Ed25519, 32 bytes): who somebody is. As text, 52 characters of base32; the `sender_id` of the
/// JSON schema.
public struct PeerID: Hashable, Comparable, Sendable, CustomStringConvertible {
  public let value: Bytes32
  public init(_ value: Bytes32) { self.value = value }
  public init?(bytes: some Collection<UInt8>) {
    guard let value = Bytes32(bytes) else { return nil }
    self.value = value
  }
  public init?(text: String) {
    guard text.utf8.count == 52, let bytes = Base32.decode(text) else { return nil }
    self.init(bytes: bytes)
  }
  public var bytes: [UInt8] { value.bytes }
  public var text: String { Base32.encode(value.bytes) }
  /// The first eight characters of the text, in two groups: `abcd-efgh`. Shown wherever a name stands.
  public var fingerprint: String { Self.fingerprint(of: text) }
  public var description: String { text }
  public static func < (a: Self, b: Self) -> Bool { a.value < b.value }

  static func fingerprint(of text: String) -> String {
    let start = text.prefix(8)
    return start.prefix(4) + "-" + start.suffix(4)
  }
}

/// A channel's public identifier: BLAKE2b-256 of its first secret. Never travels in clear.
public struct ChannelID: Hashable, Comparable, Sendable, CustomStringConvertible {
  public let value: Bytes32
  public init(_ value: Bytes32) { self.value = value }
  public init?(bytes: some Collection<UInt8>) {
    guard let value = Bytes32(bytes) else { return nil }
    self.value = value
  }
  public var bytes: [UInt8] { value.bytes }
  public var text: String { Base32.encode(value.bytes) }
  public var description: String { text }
  public static func < (a: Self, b: Self) -> Bool { a.value < b.value }
}

/// An organiser's public key (Ed25519, 32 bytes), with which login tokens are signed. As text, 52 characters of base32.
public struct OrganiserKey: Hashable, Sendable, CustomStringConvertible {
  public let value: Bytes32
  public init(_ value: Bytes32) { self.value = value }
  public init?(bytes: some Collection<UInt8>) {
    guard let value = Bytes32(bytes) else { return nil }
    self.value = value
  }
  public init?(text: String) {
    guard text.utf8.count == 52, let bytes = Base32.decode(text) else { return nil }
    self.init(bytes: bytes)
  }
  public var bytes: [UInt8] { value.bytes }
  public var text: String { Base32.encode(value.bytes) }
  public var description: String { text }
}

/// What a shared file or folder is called everywhere: the SHA-256 hash of its manifest. As text, 52 characters of
/// base32.
public struct MediaID: Hashable, Comparable, Sendable, CustomStringConvertible {
  public let value: Bytes32
  public init(_ value: Bytes32) { self.value = value }
  public init?(bytes: some Collection<UInt8>) {
    guard let value = Bytes32(bytes) else { return nil }
    self.value = value
  }
  public init?(text: String) {
    guard text.utf8.count == 52, let bytes = Base32.decode(text) else { return nil }
    self.init(bytes: bytes)
  }
  public var bytes: [UInt8] { value.bytes }
  public var text: String { Base32.encode(value.bytes) }
  public var description: String { text }
  public static func < (a: Self, b: Self) -> Bool { a.value < b.value }
}

/// A hash of 32 bytes: BLAKE2b-256 of a body, SHA-256 of a piece.
public struct Hash32: Hashable, Comparable, Sendable {
  public let value: Bytes32
  public init(_ value: Bytes32) { self.value = value }
  public init?(bytes: some Collection<UInt8>) {
    guard let value = Bytes32(bytes) else { return nil }
    self.value = value
  }
  public var bytes: [UInt8] { value.bytes }
  public static func < (a: Self, b: Self) -> Bool { a.value < b.value }
}

/// Eight random bytes drawn at each start of a node; also names the log of everything signed in that run.
public struct Instance: Hashable, Comparable, Sendable, CustomStringConvertible {
  public let value: UInt64
  public init(_ value: UInt64) { self.value = value }
  public var description: String {
    let text = String(value, radix: 16)
    return String(repeating: "0", count: 16 - text.count) + text
  }
  public static func < (a: Self, b: Self) -> Bool { a.value < b.value }
}

/// An application's name for a message: 1 to 64 bytes of UTF-8. Together with the sender it is the key of the message.
/// Two are the same when their bytes are, here as on the disk and on the wire: texts that Unicode calls equivalent are
/// two names.
public struct MessageID: Hashable, Comparable, Sendable, CustomStringConvertible {
  public let text: String
  /// Nil when empty, longer than 64 bytes, or holding a control character.
  public init?(_ text: String) {
    guard (1...Limit.messageIDByteCountMax).contains(text.utf8.count) else { return nil }
    guard text.unicodeScalars.allSatisfy({ !$0.isControl }) else { return nil }
    self.text = text
  }
  /// From random bytes (16 of them by convention), as base32.
  public init(random bytes: [UInt8]) {
    precondition((1...40).contains(bytes.count), "40 bytes make 64 characters, the limit")
    text = Base32.encode(bytes)
  }
  public var description: String { text }
  public static func == (a: Self, b: Self) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }
  public static func < (a: Self, b: Self) -> Bool { a.text.utf8.lexicographicallyPrecedes(b.text.utf8) }
  public func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
  }
}

/// Names one log: what one author signed in one run for one channel.
public struct LogKey: Hashable, Comparable, Sendable {
  public let author: PeerID
  public let log: Instance
  public init(author: PeerID, log: Instance) {
    self.author = author
    self.log = log
  }
  public static func < (a: Self, b: Self) -> Bool { (a.author, a.log) < (b.author, b.log) }
}

/// The place of an entry in the one order that every node shares.
public struct OrderKey: Hashable, Comparable, Sendable {
  public let lamport: UInt64
  public let author: PeerID
  public let log: Instance
  public let number: UInt64
  public init(lamport: UInt64, author: PeerID, log: Instance, number: UInt64) {
    self.lamport = lamport
    self.author = author
    self.log = log
    self.number = number
  }
  public static func < (a: Self, b: Self) -> Bool {
    (a.lamport, a.author, a.log, a.number) < (b.lamport, b.author, b.log, b.number)
  }
}
