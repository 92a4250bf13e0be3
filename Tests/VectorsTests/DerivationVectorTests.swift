import ParleyHashing
import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleySealing

@Suite struct DerivationVectorTests {
  @Test func channels() throws {
    var file = VectorFile("channels")
    // The second name is written with a combining diaeresis: NFC makes of both the same channel.
    for (index, name) in ["kitchen", "Ku\u{308}che", "K\u{FC}che", "会議室 😀"].enumerated() {
      let keys = ChannelKeys.open(name: try ChannelName(name))
      file.add("open \(index + 1)", [JSONMember("kind", "open"), JSONMember("given_name", name)] + members(keys))
    }
    for (name, passphrase) in [
      ("kitchen", Array("correct horse battery staple".utf8)), ("garden", Array("пароль".utf8)), ("garden", [0, 255]),
    ] {
      let keys = try ChannelKeys.passphrase(name: try ChannelName(name), passphrase)
      file.add(
        "passphrase \(name) \(passphrase.count)",
        [JSONMember("kind", "passphrase"), JSONMember("given_name", name), JSONMember("passphrase", hex: passphrase)]
          + members(keys))
    }
    for (kind, keys) in [
      ("open", ChannelKeys.open(name: try ChannelName("kitchen"), type: .room)),
      ("passphrase", try ChannelKeys.passphrase(name: try ChannelName("garden"), [0, 255], type: .room)),
    ] {
      let passphrase = kind == "open" ? [] : [JSONMember("passphrase", hex: [0, 255])]
      file.add(
        "\(kind), room",
        [JSONMember("kind", kind), JSONMember("given_name", keys.name.text), JSONMember("type", "room")]
          + passphrase + members(keys))
    }
    let secret = SecretBytes((0..<32).map { UInt8($0 * 7) })
    let keys = ChannelKeys(name: try ChannelName("given"), secret: secret, isOpen: false)
    file.add("secret", [JSONMember("kind", "secret"), JSONMember("given_name", "given")] + members(keys))
    try file.check()
  }

  @Test func ownedChannels() throws {
    var file = VectorFile("owned_channels")
    for (name, founder, number, type) in [
      ("class", Facts.ana, UInt64(0), ChannelType.group), ("会議室 😀", Facts.ben, 70_000, .group),
      ("stage", Facts.ana, 0, .room),
    ] {
      let origin = ChannelOwnership(founder: founder.peerID, salt: (0..<16).map { UInt8($0 * 11) }, type: type)!
      let secret = SecretBytes((0..<32).map { UInt8($0 * 5 + 1) })
      let keys = ChannelKeys.owned(name: try ChannelName(name), ownership: origin, number: number, secret: secret)
      file.add(
        "generation \(number) of \(name)",
        [
          JSONMember("given_name", name), JSONMember("founder", hex: origin.founder.bytes),
          JSONMember("salt", hex: origin.salt), JSONMember("generation", number),
          JSONMember("hash", hex: keys.newest.id.hash.bytes),
        ] + (type == .room ? [JSONMember("type", "room")] : []) + members(keys))
    }
    try file.check()
  }

  private func members(_ keys: ChannelKeys) -> [JSONMember] {
    let tags = [0, 1, Facts.instance.value, UInt64.max].map { instance in
      JSONValue.object([
        JSONMember("instance", bits: instance), JSONMember("tag", bits: keys.tag(of: Instance(instance))),
      ])
    }
    return [
      JSONMember("name_bytes", hex: Array(keys.name.text.utf8)),
      JSONMember("secret", hex: keys.withSecret { Array($0) }), JSONMember("channel_id", hex: keys.id.bytes),
      JSONMember("datagram_key", hex: keys.newest.withDatagramKey { Array($0) }),
      JSONMember("proof_key", hex: keys.newest.withProofKey { Array($0) }), JSONMember("tags", .array(tags)),
    ]
  }

  @Test func identities() throws {
    var file = VectorFile("identities")
    for byte in [UInt8(0), 1, 2, 255] {
      let seed = [UInt8](repeating: byte, count: 32)
      let peer = Identity(seed: seed).peerID
      file.add(
        "seed \(byte)",
        [
          JSONMember("seed", hex: seed), JSONMember("peer_id", hex: peer.bytes), JSONMember("text", peer.text),
          JSONMember("fingerprint", peer.fingerprint),
        ])
    }
    try file.check()
  }

  @Test func safetyCodes() throws {
    var file = VectorFile("safety_codes")
    let (low, high) = ([UInt8](repeating: 0, count: 32), [UInt8](repeating: 255, count: 32))
    for (name, one, other) in [
      ("counted", Array(0..<32), Array(32..<64)), ("turned", Array(32..<64), Array(0..<32)),
      ("highest and lowest", high, low),
    ] {
      let groups = SafetyCode.groups(PeerID(bytes: one)!, PeerID(bytes: other)!)
      file.add(
        name,
        [
          JSONMember("one", hex: one), JSONMember("other", hex: other),
          JSONMember("code", groups.joined(separator: " ")),
        ])
    }
    try file.check()
  }

  @Test func pairwiseKeys() throws {
    var file = VectorFile("pairwise_keys")
    let garden = ChannelKeys.open(name: try ChannelName("garden"))
    for channel in [Facts.kitchen, garden] {
      for (from, to, seed, name) in [
        (Facts.ana, Facts.ben, UInt8(1), "ana to ben"), (Facts.ben, Facts.ana, 2, "ben to ana"),
      ] {
        let key = from.withPairwiseKey(with: to.peerID, in: channel.id, sending: true) { Array($0) }
        let other = to.withPairwiseKey(with: from.peerID, in: channel.id, sending: false) { Array($0) }
        #expect(key == other)
        file.add(
          "\(name) in \(channel.name.text)",
          [
            JSONMember("sender_seed", hex: [UInt8](repeating: seed, count: 32)),
            JSONMember("sender", hex: from.peerID.bytes), JSONMember("receiver", hex: to.peerID.bytes),
            JSONMember("channel_id", hex: channel.id.bytes), JSONMember("key", hex: try #require(key)),
          ])
      }
    }
    try file.check()
  }

  @Test func signatures() throws {
    var file = VectorFile("signatures")
    let objects: [(String, [UInt8])] = [
      (Presence.context, Facts.presence(status: []).encoded),
      (LiveObject.context, Facts.live(Facts.offline, counter: 9).encoded),
      (Entry.context, Facts.plainEntry.signedPart), (Entry.context, Facts.handEntry.signedPart),
    ]
    for (index, (context, object)) in objects.enumerated() {
      file.add(
        "\(context) \(index + 1)",
        [
          JSONMember("seed", hex: [UInt8](repeating: 1, count: 32)), JSONMember("context", context),
          JSONMember("channel_id", hex: Facts.kitchen.id.bytes), JSONMember("instance", bits: Facts.instance.value),
          JSONMember("object", hex: object), JSONMember("signature", hex: Facts.sign(context, object).signature),
        ])
    }
    for (name, grant) in [("grant 1", Facts.grant), ("grant 2", Facts.adminGrant)] {
      file.add(
        name,
        [
          JSONMember("seed", hex: [UInt8](repeating: 1, count: 32)), JSONMember("context", Grant.context),
          JSONMember("channel_id", hex: Facts.kitchen.id.bytes), JSONMember("instance", bits: Grant.log.value),
          JSONMember("object", hex: grant.signedPart), JSONMember("signature", hex: grant.signature),
        ])
    }
    try file.check()
  }

  @Test func digests() throws {
    var file = VectorFile("heads_digests")
    let (ana, ben) = (Facts.ana.peerID, Facts.ben.peerID)
    func log(_ author: PeerID, _ log: Instance, _ head: UInt64, _ beyond: [Range<UInt64>] = []) -> HeadsDigest.Holding {
      HeadsDigest.Holding(key: LogKey(author: author, log: log), head: head, beyond: RangeSet(beyond))
    }
    let sets: [(String, [HeadsDigest.Holding])] = [
      ("nothing", []), ("one", [log(ana, Facts.instance, 1)]),
      (
        "several, one of them at 0",
        [
          log(ben, Facts.otherInstance, 70_000), log(ana, Facts.instance, 3), log(ben, Instance(.max), 1),
          log(ben, Facts.instance, 0),
        ]
      ),
      (
        "with gaps",
        [
          log(ben, Facts.instance, 0, [5..<6]), log(ana, Facts.instance, 3, [8..<12, 70_000..<70_001]),
          log(ben, Facts.otherInstance, 2),
        ]
      ),
    ]
    for (name, holdings) in sets {
      let list = holdings.map { holding in
        let runs = holding.beyond.ranges.map {
          JSONValue.object([JSONMember("from", $0.lowerBound), JSONMember("through", $0.upperBound - 1)])
        }
        return JSONValue.object(
          holding.key.members + [JSONMember("number", holding.head), JSONMember("beyond", .array(runs))])
      }
      file.add(
        name, [JSONMember("heads", .array(list)), JSONMember("digest", hex: HeadsDigest(of: holdings).bytes)])
    }
    try file.check()
  }
}
