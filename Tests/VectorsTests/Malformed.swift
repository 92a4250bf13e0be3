import ParleyVocabulary
import ParleyWire

@testable import ParleySealing

/// Bytes that must be refused, and why.
struct Malformed {
  let name: String
  let layout: String
  let bytes: [UInt8]
  let reason: String
  let field: String

  init(_ name: String, _ layout: String, _ bytes: [UInt8], _ reason: String, _ field: String) {
    self.name = name
    self.layout = layout
    self.bytes = bytes
    self.reason = reason
    self.field = field
  }

  /// What refuses it; nil when nothing does.
  var refusal: WireError? {
    do throws(WireError) {
      switch layout {
      case "presence": _ = try Presence(decoding: bytes[...])
      case "live": _ = try LiveObject(decoding: bytes[...])
      case "entry": _ = try Entry(decoding: bytes[...])
      case "grant": _ = try Grant(decoding: bytes[...])
      case "direct": _ = try DirectMessage(decoding: bytes)
      case "frames": _ = try DatagramFrame.decodeAll(bytes)
      case "session": _ = try SessionMessage.decode(bytes)
      case "media": _ = try MediaMessage(decoding: bytes)
      case "manifest": _ = try MediaManifest(decoding: bytes)
      case "bundle": _ = try MessageBundle(decoding: bytes, levels: Self.bundleLevels)
      default: _ = try SchemaMessage(decoding: bytes, author: Facts.ana.peerID)
      }
      return nil
    } catch { return error }
  }

  /// What bundles among these were announced with.
  static let bundleLevels = 5

  static func bytes(_ write: (inout ByteWriter) -> Void) -> [UInt8] {
    var out = ByteWriter()
    write(&out)
    return out.bytes
  }

  static func replacing(_ bytes: [UInt8], at index: Int, with byte: UInt8) -> [UInt8] {
    var copy = bytes
    copy[index < 0 ? copy.count + index : index] = byte
    return copy
  }

  static var all: [Malformed] { objects + grants + frames + session + media + manifests + json + bundles }

  // MARK: Objects

  private static var objects: [Malformed] {
    let presence = Facts.presence(status: Facts.online).encoded
    // author 32, instance 8, counter 1, incarnation 1, port 2, interval 2, nonce 8, head 4, digest 16, lamport 8
    let flags = 32 + 8 + 1 + 1 + 2 + 2 + 8 + 4 + 16 + 8
    let live = Facts.live(Facts.offline, counter: 1).encoded
    let entry = Facts.plainEntry.encoded
    let signed = Facts.plainEntry.signedPart
    // author 32, log 8, number 1, lamport 2, timestamp 8
    let entryFlags = 32 + 8 + 1 + 2 + 8
    let manyBodies = bytes { out in
      out.raw(signed[..<(entryFlags + 1)])
      out.varint(257)
      out.raw([UInt8](repeating: 0, count: 257 * 34))
    }
    return [
      Malformed("presence cut short", "presence", Array(presence[..<50]), "truncated", "nonce"),
      Malformed("presence of nothing", "presence", [], "truncated", "author"),
      Malformed("presence with a byte more", "presence", presence + [0], "trailing", ""),
      Malformed(
        "presence, unknown flag", "presence", replacing(presence, at: flags, with: 2), "out_of_range", "flags"),
      Malformed(
        "presence, another status's hash", "presence", replacing(presence, at: flags + 1, with: 0xFF), "malformed",
        "status hash"),
      Malformed(
        "presence, status of 513 bytes", "presence",
        bytes { out in
          out.raw(presence[..<(flags + 9)])
          out.block([UInt8](repeating: 0x20, count: 513))
        }, "too_long", "status"),
      Malformed(
        "presence, counter not in its shortest form", "presence",
        presence[..<40] + [0x40, 0x01] + presence[41...], "malformed", "counter"),
      Malformed("live object cut short", "live", Array(live.dropLast()), "truncated", "json"),
      Malformed("live object with a byte more", "live", live + [0], "trailing", ""),
      Malformed(
        "live object, JSON of 30,001 bytes", "live",
        bytes { out in
          out.raw(live[..<41])
          out.block([UInt8](repeating: 0x20, count: 30_001))
        }, "too_long", "json"),
      Malformed("entry of 31,601 bytes", "entry", [UInt8](repeating: 0, count: 31_601), "too_long", "entry"),
      Malformed("entry number 0", "entry", replacing(entry, at: 40, with: 0), "out_of_range", "number"),
      Malformed(
        "entry, unknown flag", "entry", replacing(entry, at: entryFlags, with: 2), "out_of_range", "flags"),
      Malformed(
        "entry without a message", "entry", signed[..<(entryFlags + 1)] + [0] + [UInt8](repeating: 0, count: 64),
        "out_of_range", "messages"),
      Malformed("entry with 257 messages", "entry", manyBodies, "too_many", "messages"),
      Malformed(
        "entry with more messages than bytes", "entry", signed[..<(entryFlags + 1)] + [0x40, 0xFF] + [1, 2, 3],
        "truncated", "messages"),
      Malformed("entry, no signature", "entry", signed + [0], "truncated", "signature"),
      Malformed("entry, no body", "entry", signed + Facts.plainEntry.signature, "truncated", "body"),
      Malformed("entry, another body", "entry", replacing(entry, at: -1, with: 0x20), "malformed", "body"),
      Malformed("entry with a byte more", "entry", entry + [0], "trailing", ""),
      Malformed(
        "entry, body of 30,001 bytes", "entry",
        bytes { out in
          out.raw(signed + Facts.plainEntry.signature)
          out.block([UInt8](repeating: 0x20, count: 30_001))
        }, "too_long", "body"),
    ]
  }

  private static var grants: [Malformed] {
    let grant = Facts.grant.encoded
    let unlimited = Facts.adminGrant.encoded
    return [
      Malformed("grant of nothing", "grant", [], "truncated", "inviter"),
      Malformed("grant, short invite ID", "grant", Array(grant[..<47]), "truncated", "invite id"),
      Malformed("grant of an owner", "grant", replacing(grant, at: 48, with: 2), "out_of_range", "role"),
      Malformed(
        "grant, uses not in the shortest form", "grant", unlimited[..<51] + [0x40, 0] + unlimited[52...], "malformed",
        "uses"),
      Malformed("grant cut short", "grant", Array(grant.dropLast()), "truncated", "signature"),
      Malformed("grant with a byte more", "grant", grant + [0], "trailing", ""),
    ]
  }

  // MARK: Datagrams

  private static func frame(_ type: UInt64, _ content: [UInt8]) -> [UInt8] {
    bytes { out in
      out.varint(type)
      out.block(content)
    }
  }

  private static var frames: [Malformed] {
    let group: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
    let peer = Facts.ben.peerID.bytes
    return [
      Malformed("frame without length", "frames", [1], "truncated", "frame"),
      Malformed("frame longer than the body", "frames", [1, 5, 1, 2, 3, 4], "truncated", "frame"),
      Malformed("frame longer than a datagram", "frames", [1, 0x44, 0xD1], "too_long", "frame"),
      Malformed("frame type not in its shortest form", "frames", [0x40, 1, 0], "malformed", "frame type"),
      Malformed("frame type cut short", "frames", [0xC0, 0, 0], "truncated", "frame type"),
      Malformed(
        "signature of 63 bytes", "frames", frame(1, [UInt8](repeating: 0, count: 63)), "truncated", "signature"),
      Malformed(
        "a malformed frame behind a good one", "frames", frame(7, []) + frame(2, [0]), "truncated", "signature"),
      Malformed("fragment 0 of 0", "frames", frame(4, group + [0, 0, 1]), "out_of_range", "fragment index"),
      Malformed("fragment 3 of 3", "frames", frame(4, group + [3, 3, 1]), "out_of_range", "fragment index"),
      Malformed("fragment of 41", "frames", frame(4, group + [0, 41, 1]), "out_of_range", "fragment index"),
      Malformed("fragment of nothing", "frames", frame(4, group + [0, 1]), "truncated", "fragment"),
      Malformed("live fragment 3 of 3", "frames", frame(8, group + [3, 3, 1]), "out_of_range", "fragment index"),
      Malformed("live fragment of nothing", "frames", frame(8, group + [0, 1]), "truncated", "fragment"),
      Malformed("fragment cut short", "frames", frame(4, group), "truncated", "fragment index"),
      Malformed("suspect cut short", "frames", frame(6, Array(peer[..<31])), "truncated", "suspect"),
      Malformed("suspect with a byte more", "frames", frame(6, peer + [1, 0]), "trailing", ""),
      Malformed("31 bytes of media ID", "frames", frame(7, Array(peer[..<31])), "malformed", "media IDs"),
      Malformed(
        "33 media IDs", "frames", frame(7, [UInt8](repeating: 0, count: 33 * 32)), "malformed", "media IDs"),
      Malformed("direct message of nothing", "direct", [], "truncated", "counter"),
      Malformed("direct part cut short", "direct", [1, 1, 8, 0], "truncated", "part"),
      Malformed("probe of 7 bytes", "direct", [1, 1, 7, 0, 0, 0, 0, 0, 0, 0], "truncated", "nonce"),
      Malformed("probe of 9 bytes", "direct", [1, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0], "trailing", ""),
      Malformed("acknowledgement without number", "direct", [1, 3, 8, 0, 0, 0, 0, 0, 0, 0, 0], "truncated", "number"),
      Malformed(
        "33 media held", "direct", [1] + frame(4, [UInt8](repeating: 0, count: 33 * 32)), "malformed", "media IDs"),
    ]
  }

  // MARK: Sessions

  private static var session: [Malformed] {
    let channel = Facts.kitchen.id.bytes
    let key = Facts.ana.peerID.bytes + Facts.instance.bytes
    let secretAndSignature = [UInt8](repeating: 3, count: 32 + 64)
    return [
      Malformed("session message of nothing", "session", [], "truncated", "message type"),
      Malformed("heads, no channel", "session", [1, 0], "truncated", "channel"),
      Malformed("heads, unknown flag", "session", [1] + channel + [8, 0], "out_of_range", "flags"),
      Malformed("heads, buckets cut", "session", [1] + channel + [4, 0], "truncated", "buckets"),
      Malformed("heads, more than there are", "session", [1] + channel + [0, 2] + key + [1, 0], "truncated", "heads"),
      Malformed("head below its floor", "session", [1] + channel + [0, 1] + key + [1, 2], "out_of_range", "floor"),
      Malformed("501 heads", "session", [1] + channel + [0, 0x41, 0xF5], "too_many", "heads"),
      Malformed(
        "summary, a bucket twice", "session",
        [13] + channel + [7] + [UInt8](repeating: 1, count: 16) + [7] + [UInt8](repeating: 2, count: 16), "malformed",
        "bucket"),
      Malformed(
        "generation, statement cut", "session", [14] + channel + secretAndSignature + [1], "truncated", "author"),
      Malformed(
        "generation, number too large", "session",
        [14] + channel + secretAndSignature + channel + [0xC0, 0, 0, 1, 0, 0, 0, 0] + channel, "out_of_range",
        "generation"),
      Malformed(
        "generation with a byte more", "session", [14] + channel + secretAndSignature + channel + [1] + channel + [0],
        "trailing", ""),
      Malformed("refused without a reason", "session", [15] + channel, "truncated", "reason"),
      Malformed("refused for no reason", "session", [15] + channel + [0], "out_of_range", "reason"),
      Malformed("refused for an unknown reason", "session", [15] + channel + [4], "out_of_range", "reason"),
      Malformed("refused with a byte more", "session", [15] + channel + [1, 0], "trailing", ""),
      Malformed("summary, a digest cut", "session", [13] + channel + [7, 1, 2], "truncated", "digest"),
      Malformed("heads with a byte more", "session", [1] + channel + [0, 0, 0], "trailing", ""),
      Malformed("257 ranges", "session", [2] + channel + [0, 0x41, 0x01], "too_many", "ranges"),
      Malformed("range from 0", "session", [2] + channel + [0, 1] + key + [0, 1], "out_of_range", "from"),
      Malformed("range backwards", "session", [2] + channel + [0, 1] + key + [3, 2], "out_of_range", "from"),
      Malformed("entries, unknown flag", "session", [3] + channel + [0, 2], "out_of_range", "flags"),
      Malformed("entries, one cut short", "session", [3] + channel + [0, 1, 5, 0], "truncated", "entry"),
      Malformed(
        "entries, one of 31,601 bytes", "session", [3] + channel + [0, 1, 0x80, 0, 0x7B, 0x71], "too_long", "entry"),
      Malformed("peer message without ID", "session", [4, 0, 0], "malformed", "message ID"),
      Malformed("live peer message without ID", "session", [16, 0, 0], "malformed", "message ID"),
      Malformed("live peer message without JSON", "session", [16, 1, 0x61], "truncated", "json"),
      Malformed("peer message, ID with a newline", "session", [4, 1, 10, 0], "malformed", "message ID"),
      Malformed("peer message, ID is not UTF-8", "session", [4, 1, 0xFF, 0], "not_utf8", "message ID"),
      Malformed("peer message, ID of 65 bytes", "session", [4, 0x40, 65], "too_long", "message ID"),
      Malformed(
        "peer message, JSON of 30,001 bytes", "session", [4, 1, 0x61, 0x80, 0, 0x75, 0x31], "too_long", "json"),
      Malformed("peer stored with a byte more", "session", [5, 1, 0x61, 0], "trailing", ""),
      Malformed("ping of 7 bytes", "session", [6, 0, 0, 0, 0, 0, 0, 0], "truncated", "nonce"),
      Malformed("pong of 9 bytes", "session", [7, 0, 0, 0, 0, 0, 0, 0, 0, 0], "trailing", ""),
      Malformed("proof of 31 bytes", "session", [8] + [UInt8](repeating: 1, count: 31), "truncated", "proof"),
      Malformed("65 proofs", "session", [8] + [UInt8](repeating: 1, count: 65 * 32), "too_many", "proofs"),
      Malformed("presence without signature", "session", [9] + channel + [0], "truncated", "signature"),
      Malformed("live without channel", "session", [10, 0], "truncated", "channel"),
      Malformed("closing with a byte more", "session", [11, 0], "trailing", ""),
      Malformed("direct without counter", "session", [12] + channel, "truncated", "counter"),
      Malformed("direct with a counter", "session", [12] + channel + [1], "out_of_range", "counter"),
    ]
  }

  // MARK: Media

  private static var media: [Malformed] {
    let id = Facts.media.bytes
    func large(_ value: UInt64) -> [UInt8] { bytes { $0.varint(value) } }
    return [
      Malformed("media message of nothing", "media", [], "truncated", "media.type"),
      Malformed("media message of 31,901 bytes", "media", [UInt8](repeating: 0, count: 31_901), "too_long", "media"),
      Malformed("media message of an unknown type", "media", [6, 0], "out_of_range", "media.type"),
      Malformed("media message without number", "media", [5], "truncated", "media.number"),
      Malformed("cancel with a byte more", "media", [5, 0, 2, 0], "trailing", ""),
      Malformed("cancel of 1, written out", "media", [5, 0, 1], "out_of_range", "cancel.count"),
      Malformed("cancel of 65", "media", [5, 0] + large(65), "out_of_range", "cancel.count"),
      Malformed("no block", "media", [3, 0] + id + [0, 0, 0], "out_of_range", "block.count"),
      Malformed("65 blocks", "media", [3, 0] + id + [0, 0] + large(65), "out_of_range", "block.count"),
      Malformed(
        "blocks whose last answer has no number", "media", [3] + large(Limit.counterMax) + id + [0, 0, 2],
        "out_of_range", "media.number"),
      Malformed("manifest of no ID", "media", [1, 0, 1], "truncated", "media.id"),
      Malformed(
        "manifest past its largest size", "media", [1, 0] + id + large(16_777_217), "out_of_range",
        "manifest.offset"),
      Malformed("piece hashes, none", "media", [2, 0] + id + [0, 0, 0], "out_of_range", "pieceHashes.count"),
      Malformed(
        "piece hashes, 701", "media", [2, 0] + id + [0, 0] + large(701), "out_of_range", "pieceHashes.count"),
      Malformed(
        "block past the largest", "media", [3, 0] + id + [0] + large((1 << 32) + 1), "out_of_range", "block.index"),
      Malformed("have from 4", "media", [4, 0] + id + [4], "out_of_range", "have.first"),
      Malformed("manifest part of nothing", "media", [0x81, 0, 5, 5], "truncated", "manifestPart.bytes"),
      Malformed("manifest part past its end", "media", [0x81, 0, 5, 4, 1, 2], "malformed", "manifestPart.bytes"),
      Malformed("manifest part beyond its total", "media", [0x81, 0, 5, 6, 1], "out_of_range", "manifestPart.offset"),
      Malformed(
        "piece hashes of 33 bytes", "media", [0x82, 0] + [UInt8](repeating: 0, count: 33), "malformed",
        "pieceHashes.bytes"),
      Malformed("block of nothing", "media", [0x83, 0], "truncated", "block.bytes"),
      Malformed(
        "block of 16,385 bytes", "media", [0x83, 0] + [UInt8](repeating: 0, count: 16_385), "too_long",
        "block.bytes"),
      Malformed("holding all with a byte more", "media", [0x84, 0, 0], "trailing", ""),
      Malformed("holding, bitmap too short", "media", [0x85, 0, 9, 0, 0xFF], "malformed", "holding.bitmap"),
      Malformed("holding, bit past the end", "media", [0x85, 0, 7, 0, 0xFF], "malformed", "holding.bitmap"),
      Malformed("holding from 4", "media", [0x85, 0, 9, 4, 0xFF], "out_of_range", "holding.first"),
      Malformed("refused for no known reason", "media", [0x86, 0, 5], "out_of_range", "refused.reason"),
      Malformed("refused without reason", "media", [0x86, 0], "truncated", "refused.reason"),
    ]
  }

  private static var manifests: [Malformed] {
    let root = [UInt8](repeating: 7, count: 32)
    func manifest(
      _ paths: [[String]], flags: UInt8 = 0, size: UInt64 = 5, root: [UInt8] = root, mime: String = ""
    ) -> [UInt8] {
      bytes { out in
        out.uint8(1)
        out.text(mime)
        out.varint(UInt64(paths.count))
        for path in paths {
          out.uint8(flags)
          out.varint(UInt64(path.count))
          for component in path { out.text(component) }
          out.varint(size)
          out.raw(root)
        }
      }
    }
    let name = "manifest.component"
    let two = Limit.counterMax / 2 + 1
    return [
      Malformed(
        "manifest version 2", "manifest", replacing(manifest([["a"]]), at: 0, with: 2), "out_of_range",
        "manifest.version"),
      Malformed("manifest without files", "manifest", [1, 0, 0], "malformed", "manifest.files"),
      Malformed("manifest of more files than bytes", "manifest", [1, 0, 9, 0], "truncated", "manifest.files"),
      Malformed("manifest with a byte more", "manifest", manifest([["a"]]) + [0], "trailing", ""),
      Malformed("manifest, unknown flag", "manifest", manifest([["a"]], flags: 2), "out_of_range", "manifest.flags"),
      Malformed("manifest, no path", "manifest", manifest([[], ["abcdefgh"]]), "malformed", "manifest.path"),
      Malformed("manifest, empty component", "manifest", manifest([["a", ""]]), "malformed", name),
      Malformed("manifest, ..", "manifest", manifest([["..", "a"]]), "malformed", name),
      Malformed("manifest, .", "manifest", manifest([["."]]) + [], "malformed", name),
      Malformed("manifest, separator", "manifest", manifest([["a/b"]]), "malformed", name),
      Malformed("manifest, NUL", "manifest", manifest([["a\u{0}"]]), "malformed", name),
      Malformed(
        "manifest, name of 256 bytes", "manifest", manifest([[String(repeating: "n", count: 256)]]), "too_long", name),
      Malformed(
        "manifest, name is not UTF-8", "manifest", [1, 0, 1, 0, 1, 1, 0xFF, 5] + root, "not_utf8", name),
      Malformed(
        "manifest, root of an empty file", "manifest", manifest([["a"]], size: 0), "malformed", "manifest.root"),
      Malformed("manifest, one path twice", "manifest", manifest([["a"], ["a"]]), "malformed", "manifest.path"),
      Malformed("manifest, out of order", "manifest", manifest([["b"], ["a"]]), "malformed", "manifest.files"),
      Malformed(
        "manifest, file and folder", "manifest", manifest([["a"], ["a", "b"]]), "malformed", "manifest.path"),
      Malformed(
        "manifest, sizes above 2^62", "manifest", manifest([["a"], ["b"]], size: two), "out_of_range",
        "manifest.byteCount"),
      Malformed(
        "manifest, type with a newline", "manifest", manifest([["a"]], mime: "text/\n"), "malformed",
        "manifest.mimeType"),
      Malformed(
        "manifest, type of 128 bytes", "manifest", manifest([["a"]], mime: String(repeating: "t", count: 128)),
        "too_long", "manifest.mimeType"),
      Malformed(
        "manifest, 65 components", "manifest", manifest([[String](repeating: "a", count: 65)]), "too_many",
        "manifest.path"),
    ]
  }
}
