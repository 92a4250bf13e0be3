import ParleyHashing
import ParleyVocabulary

/// What is kept and reconciled: one or more messages of one author under one number and one signature. The signature
/// covers the hash of each body, so that a body can go and the rest still verifies.
package struct Entry: Equatable, Sendable {
  package static let context = "entry"

  package struct Item: Equatable, Sendable {
    package let kind: UInt64
    package let hash: Hash32
    /// Exactly the JSON bytes that were hashed; nil when they are gone.
    package let body: [UInt8]?

    package init(kind: UInt64, body: [UInt8]) {
      self.kind = kind
      self.hash = Hash32(BLAKE2b.hash256(body))
      self.body = body
    }

    fileprivate init(kind: UInt64, hash: Hash32, body: [UInt8]?) {
      self.kind = kind
      self.hash = hash
      self.body = body
    }
  }

  package let key: LogKey
  /// 1, 2, 3 … within the log.
  package let number: UInt64
  package let lamport: UInt64
  /// The author's clock, milliseconds since 1970; never decreases within a log.
  package let timestamp: UInt64
  /// Hidden from the history that people see (hands). All messages of an entry are alike in this.
  package let isHidden: Bool
  package let items: [Item]
  package var signature: [UInt8]

  package init(
    key: LogKey, number: UInt64, lamport: UInt64, timestamp: UInt64, isHidden: Bool, items: [Item],
    signature: [UInt8] = []
  ) {
    precondition((1...Limit.messagesPerEntryMax).contains(items.count), "an entry holds 1 to 256 messages")
    self.key = key
    self.number = number
    self.lamport = lamport
    self.timestamp = timestamp
    self.isHidden = isHidden
    self.items = items
    self.signature = signature
  }

  package var order: OrderKey { OrderKey(lamport: lamport, author: key.author, log: key.log, number: number) }

  /// What is signed.
  package var signedPart: [UInt8] {
    var out = ByteWriter(reserving: 64 + items.count * 34)
    writeSignedPart(to: &out)
    return out.bytes
  }

  private func writeSignedPart(to out: inout ByteWriter) {
    out.bytes32(key.author.value)
    out.uint64(key.log.value)
    out.varint(number)
    out.varint(lamport)
    out.varint(timestamp)
    out.uint8(isHidden ? 1 : 0)
    out.varint(UInt64(items.count))
    for item in items {
      out.varint(item.kind)
      out.bytes32(item.hash.value)
    }
  }

  package var encoded: [UInt8] {
    precondition(signature.count == Signed.signatureByteCount, "only signed entries are encoded")
    var out = ByteWriter(reserving: 160 + items.reduce(0) { $0 + 36 + ($1.body?.count ?? 0) })
    writeSignedPart(to: &out)
    out.raw(signature)
    for item in items { out.block(item.body ?? []) }
    return out.bytes
  }

  /// Bytes that one message adds to an entry, at most: kind, hash, length, body.
  package static func byteCount(ofBody byteCount: Int) -> Int { 1 + 32 + 4 + byteCount }
  /// Bytes of an entry without its messages, at most.
  package static let overheadByteCount = 32 + 8 + 8 + 8 + 8 + 1 + 2 + 64

  /// Checks everything but the signature: limits, and that each body there is has the hash that was signed.
  package init(decoding bytes: ArraySlice<UInt8>) throws(WireError) {
    guard bytes.count <= Limit.entryByteCountMax else {
      throw .tooLong(field: "entry", byteCount: UInt64(bytes.count), byteCountMax: Limit.entryByteCountMax)
    }
    var reader = ByteReader(bytes)
    key = LogKey(author: PeerID(try reader.bytes32("author")), log: Instance(try reader.uint64("log")))
    number = try reader.varint("number")
    guard number > 0 else { throw .outOfRange(field: "number", value: 0) }
    lamport = try reader.varint("lamport")
    timestamp = try reader.varint("timestamp")
    isHidden = try reader.flags("flags", max: 1) == 1
    let count = try reader.count("messages", countMax: Limit.messagesPerEntryMax, byteCountEach: 34)
    guard count > 0 else { throw .outOfRange(field: "messages", value: 0) }
    var heads: [(UInt64, Hash32)] = []
    for _ in 0..<count { heads.append((try reader.varint("kind"), Hash32(try reader.bytes32("hash")))) }
    signature = try reader.bytes(Signed.signatureByteCount, "signature")
    var items: [Item] = []
    for (kind, hash) in heads {
      let body = try reader.block("body", byteCountMax: Limit.messageByteCountMax)
      if body.isEmpty {
        items.append(Item(kind: kind, hash: hash, body: nil))
        continue
      }
      let item = Item(kind: kind, body: Array(body))
      guard item.hash == hash else { throw .malformed(field: "body", reason: "not the one that was signed") }
      items.append(item)
    }
    self.items = items
    try reader.finish()
  }
}
