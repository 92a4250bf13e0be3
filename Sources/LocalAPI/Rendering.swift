import Parley

/// How the node's values look as JSON: members in snake_case, those of messages as in the message schema.
extension JSON {
  package init(_ peer: PeerSummary) {
    self = [
      "peer_id": .string(peer.peer.text), "display_name": .string(peer.displayName),
      "fingerprint": .string(peer.peer.fingerprint), "status": .string(peer.isOnline ? "online" : "offline"),
    ]
  }

  package init(_ member: Member) {
    self = [
      "peer_id": .string(member.peer.text), "display_name": .string(member.displayName),
      "fingerprint": .string(member.peer.fingerprint), "status": .string(member.status.rawValue),
      "raise_hand": .bool(member.isHandRaised), "self": .bool(member.isSelf),
      "recognition": JSON(member.recognition),
      "over_limit": .array(member.excesses.map { .string($0.rawValue) }),
    ]
    if let role = member.role { self = .object((members ?? []) + Self.members(of: role)) }
  }

  package init(_ channel: ChannelSummary) {
    self = [
      "name": .string(channel.name.text), "open": .bool(channel.isOpen), "online": .count(channel.onlineCount),
      "members": .count(channel.memberCount), "type": .string(channel.type.rawValue),
      "dropped": .count(channel.droppedCount),
    ]
  }

  package init(_ status: NodeStatus) {
    self = [
      "peer_id": .string(status.peer.text), "display_name": .string(status.displayName),
      "fingerprint": .string(status.peer.fingerprint), "state": .string(status.state.rawValue),
      "tcp_port": .integer(Int64(status.tcpPort)), "interfaces": .array(status.interfaces.map { .string($0) }),
      "sessions": .count(status.sessionCount), "nodes_heard": .count(status.nodesHeardCount),
      "channels": .array(status.channels.map { JSON($0) }),
      "troubles": .array(status.troubles.map { .string($0) }),
    ]
  }

  /// The checked message as it travels, with what this node adds: `channel` (not for messages from peer to peer),
  /// `cursor`, `delivered_to`, `recognition`, `state`. A sender's own members of these names are overwritten.
  package init(_ message: Message) {
    let base = (try? JSON(parsing: message.json)) ?? .null
    var json = base.members == nil ? Self.fromFields(of: message) : base
    json = json.setting("channel", to: message.channel.map { .string($0.text) } ?? .null)
    json = json.setting("cursor", to: .count(message.cursor))
    if !message.fetched.isEmpty || json["fetched"] != nil {
      json = json.setting("fetched", to: .array(message.fetched.map { .string($0.text) }))
    }
    if let peer = message.peer { json = json.setting("peer", to: .string(peer.text)) }
    json = json.setting("delivered_to", to: .array(message.deliveredTo.map { .string($0.text) }))
    if message.isMuted { json = json.setting("muted", to: .bool(true)) }
    json = json.setting("recognition", to: JSON(message.recognition))
    // A sender's own member of this name says nothing.
    if let state = JSON(message.state) { json = json.setting("state", to: state) } else { json = json.without("state") }
    self = json
  }

  private static func fromFields(of message: Message) -> JSON {
    var members: [JSON.Field] = [
      .init("sender", ["display_name": .string(message.senderName), "sender_id": .string(message.sender.text)]),
      .init("message_id", .string(message.id.text)), .init("timestamp", .string(message.timestamp)),
    ]
    switch message.body {
    case .text(let text): members += [.init("type", "text"), .init("body", .string(text))]
    case .photo(let media): members += [.init("type", "photo")] + (JSON(media).members ?? [])
    case .video(let media): members += [.init("type", "video")] + (JSON(media).members ?? [])
    case .file(let media): members += [.init("type", "file")] + (JSON(media).members ?? [])
    case .voice(let media, let seconds):
      members += [.init("type", "voice")] + (JSON(media).members ?? []) + [.init("duration", .count(seconds))]
    case .location(let place):
      members += [
        .init("type", "location"), .init("latitude", .number(place.latitude)),
        .init("longitude", .number(place.longitude)),
      ]
      for case (let name, let text?) in [("address", place.address), ("building_name", place.buildingName)] {
        members.append(.init(name, .string(text)))
      }
    case .custom(let custom):
      members += [
        .init("type", "custom"), .init("event", .string(custom.event)),
        .init("custom_ext", .object(custom.fields.map { .init($0.name, .string($0.value)) })),
      ]
    case .combine(let combined):
      members += [
        .init("type", "combine"), .init("title", .string(combined.title)), .init("summary", .string(combined.summary)),
        .init("compatible_text", .string(combined.compatibleText)),
        .init("media_id", .string(combined.bundle.id.text)), .init("levels", .count(combined.levels)),
      ]
    case .remote(let media):
      members += [
        .init("type", .string(media.kind.rawValue)), .init("remote_url", .string(media.url)),
        .init("file_name", .string(media.fileName)),
      ]
    case .unknown(let kind), .recalled(let kind): members += [.init("type", .string(kind))]
    }
    return .object(members)
  }

  package init(_ media: MediaReference) {
    var members: [JSON.Field] = [
      .init("media_id", .string(media.id.text)), .init("file_name", .string(media.fileName)),
      .init("size", media.byteCount.map { .count($0) } ?? .null),
      .init("mime_type", media.mimeType.map { .string($0) } ?? .null),
    ]
    if let picture = media.picture { members += Self.members(of: picture) }
    self = .object(members)
  }

  /// As messages have them: those that are known, and flags that are set.
  private static func members(of picture: PictureReference) -> [JSON.Field] {
    var members: [JSON.Field] = []
    let numbers = [("duration", picture.duration), ("width", picture.width), ("height", picture.height)]
    for case (let name, let value?) in numbers { members.append(.init(name, .count(value))) }
    for (name, isSet) in [("original", picture.isOriginal), ("gif", picture.isGIF)] where isSet {
      members.append(.init(name, .bool(true)))
    }
    for case (let name, let id?) in [
      ("big_media_id", picture.bigID), ("thumbnail_media_id", picture.thumbnailID),
    ] { members.append(.init(name, .string(id.text))) }
    return members
  }

  package init(_ contents: MediaContents) {
    self = [
      "media_id": .string(contents.id.text), "folder": .bool(contents.isFolder), "size": .count(contents.byteCount),
      "files": .array(
        contents.files.map {
          ["path": .string($0.path), "size": .count($0.byteCount), "executable": .bool($0.isExecutable)]
        }),
    ]
  }

  package init(_ shared: SharedMedia) {
    self = .object(
      (JSON(shared.media).members ?? []) + [
        .init("files", .count(shared.fileCount)), .init("skipped_count", .count(shared.skippedCount)),
        .init("skipped", .array(shared.skipped.map { ["path": .string($0.path), "reason": .string($0.reason)] })),
        .init("notes", .array(shared.notes.map { .string($0) })),
      ])
  }

  package init(_ summary: MediaSummary) {
    self = .object(
      (JSON(summary.media).members ?? []) + [
        .init("type", .string(summary.kind)),
        .init(
          "sender",
          ["display_name": .string(summary.senderName), "sender_id": .string(summary.sender.text)]),
        .init("holders", .count(summary.holderCount)), .init("held_here", .bool(summary.isHeldHere)),
      ])
  }

  package init(_ receipt: SendReceipt) {
    self = [
      "message_id": .string(receipt.id.text), "delivered_to": .array(receipt.deliveredTo.map { .string($0.text) }),
      "present": .count(receipt.presentCount),
    ]
  }
}

/// An event as a server-sent event says it: its type, its data, and its cursor where it has one.
struct RenderedEvent {
  let type: String
  let data: JSON
  let cursor: UInt64?

  init(_ event: NodeEvent) {
    var cursor: UInt64?
    switch event {
    case .stateChanged(let state, let reason):
      (type, data) = ("state_changed", ["state": .string(state.rawValue), "reason": .string(reason)])
    case .joined(let name): (type, data) = ("joined", ["channel": .string(name.text)])
    case .left(let name): (type, data) = ("left", ["channel": .string(name.text)])
    case .memberChanged(let name, let member):
      (type, data) = ("member", JSON(member).setting("channel", to: .string(name.text)))
    case .message(let message): (type, data, cursor) = ("message", JSON(message), message.cursor)
    case .fetched(let name, let id):
      (type, data) = ("fetched", ["channel": .string(name.text), "media_id": .string(id.text)])
    case .messageChanged(let change): (type, data, cursor) = ("message_changed", JSON(change), change.cursor)
    case .hookFailed(let failure): (type, data) = ("hook_failed", JSON(failure))
    case .command(let command): (type, data) = ("command", JSON(command))
    case .impostor(let name, let member, let other):
      let member = JSON(member).setting("channel", to: .string(name.text))
      (type, data) = ("impostor", member.setting("poses_as", to: .string(other.text)))
    case .tokenAccepted, .tokenRefused, .tokenExpiring: (type, data) = Self.token(event)
    case .delivered(let name, let id, let peer):
      (type, data) = (
        "delivered",
        [
          "channel": name.map { .string($0.text) } ?? .null, "message_id": .string(id.text),
          "delivered_to": .string(peer.text),
        ]
      )
    case .expired(let id, let peer):
      (type, data) = ("expired", ["message_id": .string(id.text), "peer_id": .string(peer.text)])
    case .roleChanged(let name, let change):
      let base: [JSON.Field] = [
        .init("channel", .string(name.text)), .init("peer_id", .string(change.peer.text)),
        .init("fingerprint", .string(change.peer.fingerprint)), .init("self", .bool(change.isSelf)),
      ]
      (type, data) = ("role", .object(base + JSON.members(of: change.role)))
    case .voided(let name, let ids):
      (type, data) = (
        "voided", ["channel": .string(name.text), "message_ids": .array(ids.map { .string($0.text) })]
      )
    case .counted(let name, let messages):
      (type, data) = ("counted", ["channel": .string(name.text), "messages": .array(messages.map { JSON($0) })])
    case .announced(let name, let announcement): (type, data) = ("announcement", JSON(announcement, in: name))
    case .closed(let name): (type, data) = ("closed", ["channel": .string(name.text)])
    case .typing, .attributeChanged, .messageDropped: (type, data) = Self.room(event)
    case .keysChanged(let name, let generation):
      (type, data) = ("keys_changed", ["channel": .string(name.text), "generation": .count(generation)])
    case .refused(let name, let peer, let reason):
      (type, data) = (
        "refused",
        ["channel": .string(name.text), "peer_id": .string(peer.text), "reason": .string(reason.rawValue)]
      )
    case .memberOverLimit(let name, let peer, let excess):
      (type, data) = (
        "member_over_limit",
        ["channel": .string(name.text), "peer_id": .string(peer.text), "what": .string(excess.rawValue)]
      )
    case .equivocated(let name, let peer, let proof):
      (type, data) = (
        "equivocated",
        [
          "channel": .string(name.text), "peer_id": .string(peer.text), "log": .string("\(proof.log)"),
          "number": .count(proof.number),
          "entries": .array(proof.entries.map { .string(Base32.encode($0)) }),
        ]
      )
    case .dropped(let count, let cursor):
      (type, data) = ("dropped", ["count": .count(count), "since": .count(cursor)])
    }
    self.cursor = cursor
  }

  /// In the form of the HTML standard, section 9.2.
  var bytes: [UInt8] { Self.bytes(type: type, data: data, cursor: cursor) }

  static func bytes(type: String, data: JSON, cursor: UInt64? = nil) -> [UInt8] {
    var text = cursor.map { "id: \($0)\n" } ?? ""
    text += "event: \(type)\ndata: "
    return Array(text.utf8) + data.bytes + Array("\n\n".utf8)
  }
}
