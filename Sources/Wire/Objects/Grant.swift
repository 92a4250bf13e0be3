import ParleyVocabulary

/// What an inviter signed and an invitation carries: who holds it may join an owned channel. The signature is made as
/// that of other objects, under the context `grant`, with an instance of 0.
package struct Grant: Equatable, Hashable, Sendable {
  package static let context = "grant"
  package static let log = Instance(0)
  package static let inviteIDByteCount = 16
  /// inviter, invite ID, role, three counters of at most 8 bytes, signature.
  package static let byteCountMax = 32 + inviteIDByteCount + 1 + 3 * 8 + Signed.signatureByteCount

  package enum Role: UInt8, Sendable { case member = 0, admin = 1 }

  package let inviter: PeerID
  /// 16 random bytes: joiners by the same invitation are counted under it.
  package let inviteID: [UInt8]
  package let role: Role
  /// By the inviter's clock, milliseconds since 1970: whoever was removed needs one that was issued later.
  package let issued: UInt64
  /// Milliseconds since 1970; 0: never.
  package let expires: UInt64
  /// How many may join by it; 0: any number.
  package let uses: UInt64
  package var signature: [UInt8]

  package init(
    inviter: PeerID, inviteID: [UInt8], role: Role, issued: UInt64, expires: UInt64, uses: UInt64,
    signature: [UInt8] = []
  ) {
    precondition(inviteID.count == Self.inviteIDByteCount, "an invite ID has 16 bytes")
    self.inviter = inviter
    self.inviteID = inviteID
    self.role = role
    self.issued = issued
    self.expires = expires
    self.uses = uses
    self.signature = signature
  }

  /// What is signed.
  package var signedPart: [UInt8] {
    var out = ByteWriter(reserving: Self.byteCountMax)
    out.bytes32(inviter.value)
    out.raw(inviteID)
    out.uint8(role.rawValue)
    out.varint(issued)
    out.varint(expires)
    out.varint(uses)
    return out.bytes
  }

  package var encoded: [UInt8] {
    precondition(signature.count == Signed.signatureByteCount, "only signed grants are encoded")
    return signedPart + signature
  }

  /// Checks everything but the signature.
  package init(decoding bytes: ArraySlice<UInt8>) throws(WireError) {
    var reader = ByteReader(bytes)
    inviter = PeerID(try reader.bytes32("inviter"))
    inviteID = try reader.bytes(Self.inviteIDByteCount, "invite id")
    let code = try reader.uint8("role")
    guard let role = Role(rawValue: code) else { throw .outOfRange(field: "role", value: UInt64(code)) }
    self.role = role
    issued = try reader.varint("issued")
    expires = try reader.varint("expires")
    uses = try reader.varint("uses")
    signature = try reader.bytes(Signed.signatureByteCount, "signature")
    try reader.finish()
  }
}
