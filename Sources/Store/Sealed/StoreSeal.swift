import ParleyVocabulary

/// Seals what the store keeps, with keys that the store never sees. Whoever opens a store gives it one, or none.
package protocol StoreSeal: Sendable {
  /// `identity`: which value of which row it is; it opens as nothing else.
  func seal(_ bytes: [UInt8], as identity: [UInt8]) -> [UInt8]
  /// The same for the same bytes and identity, to be looked up by.
  func sealAlike(_ bytes: [UInt8], as identity: [UInt8]) -> [UInt8]
  /// Nil when it was not sealed as this, or not by this key.
  func open(_ sealed: [UInt8], as identity: [UInt8]) -> [UInt8]?
}

/// Which value of which row.
struct Cell {
  let identity: [UInt8]

  private init(_ column: StaticString, _ parts: [UInt8]...) {
    var identity = column.withUTF8Buffer { Array($0) } + [0]
    for part in parts { identity += part }
    self.identity = identity
  }

  static func entry(_ channel: ChannelID, _ key: LogKey, _ number: UInt64) -> Cell {
    Cell("entries.bytes", channel.bytes, key.author.bytes, bytes(of: key.log.value), bytes(of: number))
  }
  static func peerMessage(_ peer: PeerID, isOwn: Bool, _ id: MessageID) -> Cell {
    Cell("peer_messages.json", peer.bytes, [isOwn ? 1 : 0], Array(id.text.utf8))
  }
  static func localMessage(_ channel: ChannelID, _ author: PeerID, _ id: MessageID) -> Cell {
    Cell("local_messages.json", channel.bytes, author.bytes, Array(id.text.utf8))
  }
  static func outbox(_ peer: PeerID, _ id: MessageID) -> Cell { Cell("outbox.json", peer.bytes, Array(id.text.utf8)) }
  static func memberName(_ channel: ChannelID, _ peer: PeerID) -> Cell {
    Cell("members.name", channel.bytes, peer.bytes)
  }
  static func contactName(_ peer: PeerID) -> Cell { Cell("contacts.name", peer.bytes) }
  static func token(_ channel: ChannelID, _ peer: PeerID, _ expires: Int64) -> Cell {
    Cell("tokens.token", channel.bytes, peer.bytes, bytes(of: UInt64(bitPattern: expires)))
  }
  static func share(_ column: StaticString, _ media: MediaID) -> Cell { Cell(column, media.bytes) }
  static let scanPath = Cell("scans.path")
  static func scanHashes(_ path: String) -> Cell { Cell("scans.piece_hashes", Array(path.utf8)) }
  /// Tells another key's store from this one's.
  static let proof = Cell("sealing.proof")

  private static func bytes(of number: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
  }
}

/// Values as they go into the file and come out of it: sealed, or as they are where there is no seal.
struct Cells {
  /// Each way of sealing adds as many bytes.
  static let overheadByteCount = 40

  let seal: (any StoreSeal)?

  func blob(_ bytes: [UInt8], _ cell: @autoclosure () -> Cell) -> Value {
    guard let seal else { return .blob(bytes) }
    return .blob(seal.seal(bytes, as: cell().identity))
  }

  /// In base32 when it is sealed: the columns hold text.
  func text(_ text: String, _ cell: @autoclosure () -> Cell, alike: Bool = false) -> Value {
    guard let seal else { return .text(text) }
    let (bytes, identity) = (Array(text.utf8), cell().identity)
    return .text(Base32.encode(alike ? seal.sealAlike(bytes, as: identity) : seal.seal(bytes, as: identity)))
  }

  /// Nothing for what does not open: a row that was damaged is for readers one that says nothing, as without a seal it
  /// is one that says nonsense.
  func bytes(_ stored: [UInt8], _ cell: @autoclosure () -> Cell) -> [UInt8] {
    guard let seal else { return stored }
    return seal.open(stored, as: cell().identity) ?? []
  }

  func string(_ stored: String, _ cell: @autoclosure () -> Cell) -> String { opened(stored, cell()) ?? "" }

  func opened(_ stored: [UInt8], _ cell: @autoclosure () -> Cell) -> [UInt8]? {
    guard let seal else { return stored }
    return seal.open(stored, as: cell().identity)
  }

  func opened(_ stored: String, _ cell: @autoclosure () -> Cell) -> String? {
    guard let seal else { return stored }
    guard let sealed = Base32.decode(stored), let bytes = seal.open(sealed, as: cell().identity) else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }
}
