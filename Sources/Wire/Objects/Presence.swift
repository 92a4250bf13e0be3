import ParleyHashing
import ParleyVocabulary

/// A member's beacon in one channel, signed. The full form, with the status JSON, is sent on join, on change and in
/// answers; the brief form repeats only the JSON's hash.
package struct Presence: Equatable, Sendable {
  package static let context = "presence"

  package var author: PeerID
  package var instance: Instance
  /// Shared by all signed live things of one instance in one channel; never repeated.
  package var counter: UInt64
  package var incarnation: UInt64
  package var tcpPort: UInt16
  /// How long until the next beacon at the latest, in milliseconds.
  package var intervalMilliseconds: UInt64
  /// Whoever echoes this, sealed to us, is there now.
  package var nonce: UInt64
  /// The highest number in this instance's own log; 0 when it has said nothing.
  package var head: UInt64
  package var digest: HeadsDigest
  /// The author's Lamport clock in this channel; a newcomer starts at the median of those present.
  package var lamport: UInt64
  /// Set while somebody present has not acknowledged `head`: whoever has it says so again.
  package var wantsAcknowledgement: Bool
  /// First 8 bytes of BLAKE2b-256 of the status JSON.
  package var statusHash: UInt64
  /// Exactly the JSON of the schema; empty in the brief form.
  package var status: [UInt8]

  package init(
    author: PeerID, instance: Instance, counter: UInt64, incarnation: UInt64, tcpPort: UInt16,
    intervalMilliseconds: UInt64, nonce: UInt64, head: UInt64, digest: HeadsDigest, lamport: UInt64,
    wantsAcknowledgement: Bool, status: [UInt8], statusHash: UInt64
  ) {
    self.author = author
    self.instance = instance
    self.counter = counter
    self.incarnation = incarnation
    self.tcpPort = tcpPort
    self.intervalMilliseconds = intervalMilliseconds
    self.nonce = nonce
    self.head = head
    self.digest = digest
    self.lamport = lamport
    self.wantsAcknowledgement = wantsAcknowledgement
    self.statusHash = statusHash
    self.status = status
  }

  package static func hash(ofStatus json: [UInt8]) -> UInt64 {
    BLAKE2b.hash256(json).words.0
  }

  /// What is signed.
  package var encoded: [UInt8] {
    var out = ByteWriter(reserving: 128 + status.count)
    out.bytes32(author.value)
    out.uint64(instance.value)
    out.varint(counter)
    out.varint(incarnation)
    out.uint16(tcpPort)
    out.varint(intervalMilliseconds)
    out.uint64(nonce)
    out.varint(head)
    out.raw(digest.bytes)
    out.varint(lamport)
    out.uint8(wantsAcknowledgement ? 1 : 0)
    out.uint64(statusHash)
    out.block(status)
    return out.bytes
  }

  package init(decoding bytes: ArraySlice<UInt8>) throws(WireError) {
    var reader = ByteReader(bytes)
    author = PeerID(try reader.bytes32("author"))
    instance = Instance(try reader.uint64("instance"))
    counter = try reader.varint("counter")
    incarnation = try reader.varint("incarnation")
    tcpPort = try reader.uint16("tcp port")
    intervalMilliseconds = try reader.varint("interval")
    nonce = try reader.uint64("nonce")
    head = try reader.varint("head")
    digest = HeadsDigest(try reader.bytes(HeadsDigest.byteCount, "digest"))
    lamport = try reader.varint("lamport")
    wantsAcknowledgement = try reader.flags("flags", max: 1) == 1
    statusHash = try reader.uint64("status hash")
    status = Array(try reader.block("status", byteCountMax: 512))
    try reader.finish()
    if !status.isEmpty, Self.hash(ofStatus: status) != statusHash {
      throw .malformed(field: "status hash", reason: "not that of the status beside it")
    }
  }
}

/// A signed thing for whoever is there now, stored for nobody: status offline is the goodbye.
package struct LiveObject: Equatable, Sendable {
  package static let context = "live"
  package var author: PeerID
  package var instance: Instance
  package var counter: UInt64
  package var json: [UInt8]

  package init(author: PeerID, instance: Instance, counter: UInt64, json: [UInt8]) {
    self.author = author
    self.instance = instance
    self.counter = counter
    self.json = json
  }

  package var encoded: [UInt8] {
    var out = ByteWriter(reserving: 56 + json.count)
    out.bytes32(author.value)
    out.uint64(instance.value)
    out.varint(counter)
    out.block(json)
    return out.bytes
  }

  package init(decoding bytes: ArraySlice<UInt8>) throws(WireError) {
    var reader = ByteReader(bytes)
    author = PeerID(try reader.bytes32("author"))
    instance = Instance(try reader.uint64("instance"))
    counter = try reader.varint("counter")
    json = Array(try reader.block("json", byteCountMax: Limit.messageByteCountMax))
    try reader.finish()
  }
}

/// An object and the author's signature over it: 64 bytes, then the object.
package struct Signed: Equatable, Sendable {
  package static let signatureByteCount = 64
  package let signature: [UInt8]
  package let object: [UInt8]

  package init(signature: [UInt8], object: [UInt8]) {
    precondition(signature.count == Self.signatureByteCount, "Ed25519 signatures have 64 bytes")
    self.signature = signature
    self.object = object
  }

  package init(decoding bytes: ArraySlice<UInt8>) throws(WireError) {
    var reader = ByteReader(bytes)
    signature = try reader.bytes(Self.signatureByteCount, "signature")
    object = Array(reader.rest)
  }

  package var encoded: [UInt8] { signature + object }
}
