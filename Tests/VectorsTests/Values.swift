import ParleyVocabulary
import ParleyWire

/// What the vectors say that an encoding means.
extension Presence {
  var value: JSONValue {
    .object([
      JSONMember("author", hex: author.bytes), JSONMember("instance", bits: instance.value),
      JSONMember("counter", counter), JSONMember("incarnation", incarnation),
      JSONMember("tcp_port", UInt64(tcpPort)), JSONMember("interval", intervalMilliseconds),
      JSONMember("nonce", bits: nonce), JSONMember("head", head), JSONMember("digest", hex: digest.bytes),
      JSONMember("lamport", lamport), JSONMember("wants_acknowledgement", wantsAcknowledgement),
      JSONMember("status_hash", bits: statusHash), JSONMember("status", String(decoding: status, as: UTF8.self)),
    ])
  }
}

extension LiveObject {
  var value: JSONValue {
    .object([
      JSONMember("author", hex: author.bytes), JSONMember("instance", bits: instance.value),
      JSONMember("counter", counter), JSONMember("json", String(decoding: json, as: UTF8.self)),
    ])
  }
}

extension Entry {
  var value: JSONValue {
    .object([
      JSONMember("author", hex: key.author.bytes), JSONMember("log", bits: key.log.value),
      JSONMember("number", number), JSONMember("lamport", lamport), JSONMember("timestamp", timestamp),
      JSONMember("hidden", isHidden),
      JSONMember(
        "messages",
        .array(
          items.map { item in
            .object([
              JSONMember("kind", item.kind), JSONMember("hash", hex: item.hash.bytes),
              JSONMember("body", item.body.map { .string(String(decoding: $0, as: UTF8.self)) } ?? .null),
            ])
          })), JSONMember("signature", hex: signature),
    ])
  }
}

extension Grant {
  var value: JSONValue {
    .object([
      JSONMember("inviter", hex: inviter.bytes), JSONMember("invite_id", hex: inviteID),
      JSONMember("role", role == .admin ? "admin" : "member"), JSONMember("issued", issued),
      JSONMember("expires", expires), JSONMember("uses", uses), JSONMember("signature", hex: signature),
    ])
  }
}

extension EntryFragment {
  var value: JSONValue {
    .object([
      JSONMember("group", bits: group), JSONMember("index", index), JSONMember("count", count),
      JSONMember("bytes", hex: bytes),
    ])
  }
}

extension DatagramFrame {
  var value: JSONValue {
    let members: [JSONMember] =
      switch self {
      case .presence(let signed): [JSONMember("type", "presence")] + signed.members
      case .live(let signed): [JSONMember("type", "live")] + signed.members
      case .entry(let bytes): [JSONMember("type", "entry"), JSONMember("bytes", hex: bytes)]
      case .fragment(let fragment): [JSONMember("type", "fragment"), JSONMember("fragment", fragment.value)]
      case .direct(let sealed): [JSONMember("type", "direct"), JSONMember("bytes", hex: sealed)]
      case .suspect(let peer, let incarnation):
        [
          JSONMember("type", "suspect"), JSONMember("peer", hex: peer.bytes), JSONMember("incarnation", incarnation),
        ]
      case .liveFragment(let fragment):
        [JSONMember("type", "live_fragment"), JSONMember("fragment", fragment.value)]
      case .whoHas(let media): [JSONMember("type", "who_has"), JSONMember("media", .array(media.map(\.value.json)))]
      }
    return .object(members)
  }
}

extension Signed {
  var members: [JSONMember] { [JSONMember("signature", hex: signature), JSONMember("object", hex: object)] }
}

extension Bytes32 {
  var json: JSONValue { .string(bytes.hex) }
}

extension DirectMessage.Part {
  var value: JSONValue {
    switch self {
    case .probe(let nonce): .object([JSONMember("type", "probe"), JSONMember("nonce", bits: nonce)])
    case .echo(let nonce): .object([JSONMember("type", "echo"), JSONMember("nonce", bits: nonce)])
    case .acknowledge(let log, let number):
      .object([
        JSONMember("type", "acknowledge"), JSONMember("log", bits: log.value), JSONMember("number", number),
      ])
    case .holding(let media):
      .object([JSONMember("type", "holding"), JSONMember("media", .array(media.map(\.value.json)))])
    }
  }
}

extension DirectMessage {
  var value: JSONValue {
    .object([JSONMember("counter", counter), JSONMember("parts", .array(parts.map(\.value)))])
  }
}

extension LogKey {
  var members: [JSONMember] { [JSONMember("author", hex: author.bytes), JSONMember("log", bits: log.value)] }
}

extension SessionMessage {
  var value: JSONValue {
    func type(_ name: String, _ members: [JSONMember]) -> JSONValue {
      .object([JSONMember("type", name)] + members)
    }
    switch self {
    case .heads(let channel, let buckets, let heads, let isLast, let answerWanted):
      let list = heads.map {
        JSONValue.object($0.key.members + [JSONMember("number", $0.number), JSONMember("floor", $0.floor)])
      }
      return type(
        "heads",
        [
          JSONMember("channel", hex: channel.bytes), JSONMember("buckets", hex: buckets.bytes),
          JSONMember("heads", .array(list)), JSONMember("last", isLast), JSONMember("answer_wanted", answerWanted),
        ])
    case .summary(let channel, let digests):
      let list = digests.sorted { $0.key < $1.key }.map {
        JSONValue.object([JSONMember("bucket", UInt64($0.key)), JSONMember("digest", hex: $0.value.bytes)])
      }
      return type("summary", [JSONMember("channel", hex: channel.bytes), JSONMember("buckets", .array(list))])
    case .generation(let channel, let signed, let secret):
      return type(
        "generation",
        [JSONMember("channel", hex: channel.bytes), JSONMember("secret", hex: secret.bytes)] + signed.members)
    case .refused(let channel, let reason):
      return type(
        "refused", [JSONMember("channel", hex: channel.bytes), JSONMember("reason", UInt64(reason.rawValue))])
    case .want(let channel, let request, let ranges):
      let list = ranges.map {
        JSONValue.object($0.key.members + [JSONMember("from", $0.from), JSONMember("through", $0.through)])
      }
      return type(
        "want",
        [
          JSONMember("channel", hex: channel.bytes), JSONMember("request", request), JSONMember("ranges", .array(list)),
        ])
    case .entries(let channel, let request, let entries, let isLast):
      return type(
        "entries",
        [
          JSONMember("channel", hex: channel.bytes), JSONMember("request", request), JSONMember("last", isLast),
          JSONMember("entries", .array(entries.map { .string($0.hex) })),
        ])
    case .peerMessage(let id, let json):
      return type(
        "peer_message",
        [JSONMember("message_id", id.text), JSONMember("json", String(decoding: json, as: UTF8.self))])
    case .livePeerMessage(let id, let json):
      return type(
        "live_peer_message",
        [JSONMember("message_id", id.text), JSONMember("json", String(decoding: json, as: UTF8.self))])
    case .peerStored(let id): return type("peer_stored", [JSONMember("message_id", id.text)])
    case .ping(let nonce): return type("ping", [JSONMember("nonce", bits: nonce)])
    case .pong(let nonce): return type("pong", [JSONMember("nonce", bits: nonce)])
    case .prove(let proofs): return type("prove", [JSONMember("proofs", .array(proofs.map(\.json)))])
    case .presence(let channel, let signed):
      return type("presence", [JSONMember("channel", hex: channel.bytes)] + signed.members)
    case .live(let channel, let signed):
      return type("live", [JSONMember("channel", hex: channel.bytes)] + signed.members)
    case .closing: return type("closing", [])
    case .direct(let channel, let parts):
      return type(
        "direct", [JSONMember("channel", hex: channel.bytes), JSONMember("parts", .array(parts.map(\.value)))])
    }
  }
}

extension MediaMessage {
  var value: JSONValue {
    switch self {
    case .request(let number, let request):
      .object([JSONMember("type", request.name), JSONMember("number", number)] + request.members)
    case .cancel(let number, let count):
      .object([JSONMember("type", "cancel"), JSONMember("number", number), JSONMember("count", count)])
    case .reply(let number, let reply):
      .object([JSONMember("type", reply.name), JSONMember("number", number)] + reply.members)
    }
  }
}

extension MediaRequest {
  fileprivate var name: String {
    switch self {
    case .manifest: "manifest"
    case .pieceHashes: "piece_hashes"
    case .block: "block"
    case .have: "have"
    }
  }

  fileprivate var members: [JSONMember] {
    let id = JSONMember("media", hex: media.bytes)
    switch self {
    case .manifest(_, let offset): return [id, JSONMember("offset", offset)]
    case .pieceHashes(_, let file, let first, let count):
      return [id, JSONMember("file", file), JSONMember("first", first), JSONMember("count", count)]
    case .block(_, let file, let index, let count):
      return [id, JSONMember("file", file), JSONMember("index", index), JSONMember("count", count)]
    case .have(_, let first): return [id, JSONMember("first", first)]
    }
  }
}

extension MediaReply {
  fileprivate var name: String {
    switch self {
    case .manifestPart: "manifest_part"
    case .pieceHashes: "piece_hashes_part"
    case .block: "block_data"
    case .holdingAll: "holding_all"
    case .holding: "holding_some"
    case .refused: "refused"
    }
  }

  fileprivate var members: [JSONMember] {
    switch self {
    case .manifestPart(let total, let offset, let bytes):
      [JSONMember("total", total), JSONMember("offset", offset), JSONMember("bytes", hex: bytes)]
    case .pieceHashes(let bytes), .block(let bytes): [JSONMember("bytes", hex: bytes)]
    case .holdingAll: []
    case .holding(let count, let first, let bitmap):
      [JSONMember("count", count), JSONMember("first", first), JSONMember("bitmap", hex: bitmap)]
    case .refused(let reason): [JSONMember("reason", Int(reason.rawValue))]
    }
  }
}

extension MediaManifest {
  var value: JSONValue {
    .object([
      JSONMember("mime", mimeType.map { .string($0) } ?? .null),
      JSONMember(
        "files",
        .array(
          files.map { file in
            .object([
              JSONMember("path", .array(file.path.map { .string($0) })), JSONMember("size", file.byteCount),
              JSONMember("root", hex: file.root.bytes), JSONMember("executable", file.isExecutable),
            ])
          })),
    ])
  }
}
