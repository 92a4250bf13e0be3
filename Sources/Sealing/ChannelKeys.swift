import CSodium
import ParleyHashing
import ParleyVocabulary

/// A channel's secrets of 32 bytes and what is derived from them.
///
/// - open secret = BLAKE2b-256(`parley/1/channel/open` ‖ name)
/// - passphrase secret = Argon2id (RFC 9106, version 0x13; 3 passes, 65,536 KiB, one lane, 32 bytes) of the passphrase
///   with salt BLAKE2b-128(`parley/1/channel/salt` ‖ name)
/// - of rooms these two begin with `parley/1/room/` in place of `parley/1/channel/`, so that a room and a group of the
///   same name are two channels
/// - ChannelID = BLAKE2b-256 under the secret of `parley/1/channel/id`; for owned channels see `ChannelOwnership`
/// - discovery key = BLAKE2b-256 under the secret of `parley/1/channel/discovery`
/// - datagram key = BLAKE2b-256 under the secret of `parley/1/channel/datagram`
/// - proof key = BLAKE2b-256 under the secret of `parley/1/channel/proof`
///
/// The name is its UTF-8 bytes in NFC. An owned channel has one random secret after the other, its generations; the
/// ChannelID is hashed into their keys behind the label.
///
/// A value: what another generation changes is another `ChannelKeys`.
package final class ChannelKeys: Sendable {
  package static let secretByteCount = 32
  package static let passphraseByteCountMax = 1_024
  /// Generations kept; beyond that the oldest go.
  package static let generationCountMax = 64
  /// How long an older generation is known after a newer one took its place, in milliseconds: 30 days. Who was away for
  /// longer needs an invitation.
  package static let generationAgeMax: UInt64 = 30 * 86_400_000

  package let name: ChannelName
  package let id: ChannelID
  /// The secret follows from the name: whoever guesses the name can read.
  package let isOpen: Bool
  package let type: ChannelType
  /// Of an owned channel.
  package let ownership: ChannelOwnership?
  /// Never empty; the first is the one to send under, the others newest first.
  package let generations: [ChannelGeneration]

  package var newest: ChannelGeneration { generations[0] }

  package init(name: ChannelName, secret: SecretBytes, isOpen: Bool, type: ChannelType = .group) {
    precondition(secret.byteCount == Self.secretByteCount, "a channel's secret has 32 bytes")
    self.name = name
    self.isOpen = isOpen
    self.type = type
    ownership = nil
    id = secret.withBytes { ChannelID(bytes: Self.identifierBytes(of: $0))! }
    generations = [ChannelGeneration(number: 0, secret: secret, channel: id, context: [])]
  }

  fileprivate init(name: ChannelName, ownership: ChannelOwnership, id: ChannelID, generations: [ChannelGeneration]) {
    precondition(!generations.isEmpty, "a channel has a secret")
    self.name = name
    self.id = id
    self.ownership = ownership
    type = ownership.type
    self.generations = generations
    isOpen = false
  }

  /// The channel that anybody who knows its name can read.
  package static func open(name: ChannelName, type: ChannelType = .group) -> ChannelKeys {
    let secret = SecretBytes(byteCount: secretByteCount) { place in
      var stream = BLAKE2b.Stream(byteCount: 32)
      stream.update(type.label("open"))
      stream.update(Array(name.text.utf8))
      stream.finish(into: place)
    }
    return ChannelKeys(name: name, secret: secret, isOpen: true, type: type)
  }

  /// The channel of those who know the name and the passphrase, 1 to 1,024 bytes. Takes 64 MiB and some tenths of a
  /// second: not for a thread that others wait for.
  package static func passphrase(
    name: ChannelName, _ passphrase: [UInt8], type: ChannelType = .group
  ) throws(SealingError) -> ChannelKeys {
    Sodium.requireReady()
    guard (1...passphraseByteCountMax).contains(passphrase.count) else {
      throw .passphraseLength(byteCount: passphrase.count, byteCountMax: passphraseByteCountMax)
    }
    let salt = BLAKE2b.hash(type.label("salt") + Array(name.text.utf8), byteCount: 16)
    var status: Int32 = -1
    let secret = SecretBytes(byteCount: secretByteCount) { place in
      passphrase.withUnsafeBytes { characters in
        status = crypto_pwhash_argon2id(
          place.octets, UInt64(place.count), characters.baseAddress!.assumingMemoryBound(to: CChar.self),
          UInt64(characters.count), salt, 3, 64 << 20, crypto_pwhash_argon2id_alg_argon2id13())
      }
    }
    guard status == 0 else { throw .noMemoryForPassphrase }
    return ChannelKeys(name: name, secret: secret, isOpen: false, type: type)
  }

  /// That of the newest generation.
  package func withSecret<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result { newest.withSecret(body) }

  /// What our datagrams carry, see `ChannelGeneration.tag(of:)`.
  package func tag(of instance: Instance) -> UInt64 { newest.tag(of: instance) }

  /// The generation that a datagram with this tag was sealed under.
  package func generation(tag: UInt64, of instance: Instance) -> ChannelGeneration? {
    generations.first { $0.tag(of: instance) == tag }
  }

  package func generation(_ id: GenerationID) -> ChannelGeneration? { generations.first { $0.id == id } }

  private static func identifierBytes(of secret: UnsafeRawBufferPointer) -> [UInt8] {
    var stream = BLAKE2b.Stream(byteCount: 32, keyBytes: secret)
    stream.update(Array("parley/1/channel/id".utf8))
    return stream.finish()
  }
}

// MARK: Owned channels

extension ChannelKeys {
  /// A new channel of `founder`, with a random salt and secret.
  package static func founded(name: ChannelName, by founder: PeerID, type: ChannelType = .group) -> ChannelKeys {
    let salt = Sealing.randomBytes(ChannelOwnership.saltByteCount)
    let ownership = ChannelOwnership(founder: founder, salt: salt, type: type)!
    return owned(name: name, ownership: ownership, number: 0, secret: SecretBytes(randomByteCount: secretByteCount))
  }

  /// The channel as somebody knows it who has one generation: from an invitation.
  package static func owned(
    name: ChannelName, ownership: ChannelOwnership, number: UInt64, secret: SecretBytes, statement: [UInt8] = []
  ) -> ChannelKeys {
    let id = ownership.id(of: name)
    let generation = ChannelGeneration(
      number: number, secret: secret, channel: id, context: id.bytes, statement: statement)
    return ChannelKeys(name: name, ownership: ownership, id: id, generations: [generation])
  }

  /// From the profile's file, where they stand in order.
  static func owned(
    name: ChannelName, ownership: ChannelOwnership,
    generations: [(number: UInt64, secret: SecretBytes, statement: [UInt8], replacedAt: UInt64?)]
  ) -> ChannelKeys {
    let id = ownership.id(of: name)
    return ChannelKeys(
      name: name, ownership: ownership, id: id,
      generations: generations.map {
        ChannelGeneration(
          number: $0.number, secret: $0.secret, channel: id, context: id.bytes, statement: $0.statement,
          replacedAt: $0.replacedAt)
      })
  }

  /// A new secret; `state` gives the signed statement that it gets.
  package func drawGeneration(number: UInt64, state: (GenerationID) -> [UInt8]) -> ChannelGeneration {
    let drawn = makeGeneration(
      number: number, secret: SecretBytes(randomByteCount: Self.secretByteCount), statement: [])
    return drawn.stated(state(drawn.id))
  }

  /// With the founder's word for the first generation.
  package func stated(_ state: (GenerationID) -> [UInt8]) -> ChannelKeys {
    guard let ownership else { preconditionFailure("only owned channels have generations") }
    return ChannelKeys(
      name: name, ownership: ownership, id: id,
      generations: [newest.stated(state(newest.id))] + generations.dropFirst())
  }

  /// A generation of this owned channel, to be added.
  package func makeGeneration(number: UInt64, secret: SecretBytes, statement: [UInt8]) -> ChannelGeneration {
    ChannelGeneration(number: number, secret: secret, channel: id, context: id.bytes, statement: statement)
  }

  /// With one generation more, sending under `current`, which is the new one or one of those known. `now` is in
  /// milliseconds since 1970. What is too old goes.
  package func adding(_ new: ChannelGeneration?, sendingUnder current: GenerationID, now: UInt64) -> ChannelKeys {
    guard let ownership else { preconditionFailure("only owned channels have generations") }
    var all = generations
    if let new {
      if let at = all.firstIndex(where: { $0.id == new.id }) {
        // Known from an invitation: now it is known who made it.
        if all[at].statement.isEmpty { all[at] = all[at].stated(new.statement) }
      } else {
        all.append(new)
      }
    }
    guard let newest = all.first(where: { $0.id == current }) else {
      preconditionFailure("the generation to send under is known")
    }
    let oldest = now - min(now, Self.generationAgeMax)
    let older = all.filter { $0.id != current }
      .map { $0.replacedAt == nil ? $0.replaced(at: now) : $0 }
      .filter { $0.replacedAt! >= oldest }
      .sorted { $0.id > $1.id }
    return ChannelKeys(
      name: name, ownership: ownership, id: id,
      generations: [newest.replaced(at: nil)] + older.prefix(Self.generationCountMax - 1))
  }
}
