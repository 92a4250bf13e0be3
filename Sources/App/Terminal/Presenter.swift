import Glibc
import Parley
import ParleyLocalAPI

/// How the node's answers look to people. Everything that others wrote goes through `escapedLine` or `escapedText`.
enum Presenter {
  /// Time, name, short fingerprint and what was said. Further lines of a message are indented, so that none can pass
  /// for a message of its own.
  ///
  /// `isInBundle`: one of those that somebody put together, so that nothing is known of who wrote it.
  static func message(_ json: JSON, isChannelShown: Bool, isInBundle: Bool = false) -> String {
    let sender = json["sender"]
    let name = name(sender?["display_name"]?.string, json["recognition"])
    let fingerprint = fingerprint(ofPeer: sender?["sender_id"]?.string) + marks(json["recognition"])
    var place = ""
    if let channel = json["channel"]?.string {
      if isChannelShown { place = " in \(channel.escapedLine)" }
    } else if !isInBundle {
      place = " to you"
    }
    let who = "\(Terminal.bold(name)) \(Terminal.dim(fingerprint))\(place)"
    return
      "\(Terminal.dim(time(json["timestamp"]?.string))) \(who)\(beside(json)): \(content(json))\(state(json["state"]))"
  }

  private static func content(_ json: JSON) -> String {
    let type = json["type"]?.string ?? ""
    if let recalled = json["state"]?["recalled"] { return self.recalled(type, recalled) }
    switch type {
    case "photo" where json["remote_url"] != nil, "video" where json["remote_url"] != nil,
      "file" where json["remote_url"] != nil, "voice" where json["remote_url"] != nil:
      return remote(json, type)
    case "text":
      let body = json["body"]?.string?.escapedText ?? ""
      return body.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\n    ")
    case "photo", "video", "file", "voice":
      let name = json["file_name"]?.string?.escapedLine ?? "without a name"
      let size = json["size"]?.number.map { ", \(byteCount($0))" } ?? ""
      let what = json["mime"]?.string == "inode/directory" ? "folder" : type
      let length = json["duration"]?.number.map { ", \(duration($0))" } ?? ""
      return "\(what) \(name)\(size)\(length) · parley download \(json["media_id"]?.string?.escapedLine ?? "?")"
    case "location": return place(json)
    case "custom":
      let texts = (json["custom_ext"]?.members ?? []).map {
        "\($0.name.escapedLine)=\($0.value.string?.escapedLine ?? "?")"
      }
      return (["custom \(json["event"]?.string?.escapedLine ?? "?")"] + texts).joined(separator: " ")
    case "combine":
      let summary = json["summary"]?.string?.escapedLine ?? ""
      return "combined \(json["title"]?.string?.escapedLine ?? "?")\(summary.isEmpty ? "" : ": \(summary)")"
        + " · parley unpack \(json["media_id"]?.string?.escapedLine ?? "?")"
    default:
      if let text = json["compatible_text"]?.string { return text.escapedLine }
      return "something of the kind \(type.escapedLine), which this version cannot show"
    }
  }

  private static func place(_ json: JSON) -> String {
    let words = ["building_name", "address"].compactMap { json[$0]?.string?.escapedLine }.joined(separator: ", ")
    let (latitude, longitude) = (json["latitude"]?.number ?? .nan, json["longitude"]?.number ?? .nan)
    return "location \(latitude), \(longitude)\(words.isEmpty ? "" : " · \(words)")"
  }

  static func member(_ json: JSON, nameWidth: Int) -> String {
    let hand = json["raise_hand"]?.bool == true ? "✋" : "  "
    let name = name(json["display_name"]?.string, json["recognition"])
    let own = json["self"]?.bool == true ? "  (you)" : ""
    let role = role(json).map { "  \($0)" } ?? ""
    let fingerprint = json["fingerprint"]?.string?.escapedLine ?? ""
    let excesses = json["over_limit"]?.array?.map { excess($0.string) } ?? []
    let over = excesses.isEmpty ? "" : "  ! \(excesses.joined(separator: ", "))"
    let line = "  \(hand) \(Help.padded(name, to: nameWidth))  \(fingerprint)\(marks(json["recognition"]))"
    return "\(line)\(own)\(role)\(over)"
  }

  /// What is worth a word: nil for a plain member.
  static func role(_ json: JSON) -> String? {
    var words: [String] = []
    switch json["role"]?.string {
    case nil, "member": break
    case "not_admitted": words.append("not invited")
    case let role?: words.append(role.escapedLine)
    }
    if json["muted"]?.bool == true {
      words.append(json["muted_until"]?.string.map { "muted until \(time($0))" } ?? "muted")
    }
    return words.isEmpty ? nil : words.joined(separator: ", ")
  }

  static func members(_ members: [JSON]) -> [String] {
    let width = members.map { name($0["display_name"]?.string, $0["recognition"]).columnCount }.max() ?? 0
    var lines: [String] = []
    for (title, status) in [("Online", "online"), ("Offline", "offline")] {
      let section = members.filter { $0["status"]?.string == status }
      if section.isEmpty, status == "offline" { continue }
      lines.append("\(title) (\(section.count))")
      lines += section.map { member($0, nameWidth: width) }
    }
    return lines
  }

  /// A line for an event; nil when people need not see it.
  static func event(_ event: StreamEvent, isChannelShown: Bool) -> String? {
    let data = event.data
    let channel = data["channel"]?.string?.escapedLine ?? ""
    let place = isChannelShown && !channel.isEmpty ? " in \(channel)" : ""
    switch event.type {
    case "message": return message(data, isChannelShown: isChannelShown)
    case "message_changed": return change(data, place)
    case "command": return command(data, place)
    case "hook_failed": return hookFailed(data)
    case "impostor": return impostor(data, place)
    case "token_accepted", "token_refused", "token_expiring": return token(event, place)
    case "member":
      if data["recognition"]?["blocked"]?.bool == true { return nil }
      let fingerprint = (data["fingerprint"]?.string?.escapedLine ?? "") + marks(data["recognition"])
      let name = "\(name(data["display_name"]?.string, data["recognition"])) \(fingerprint)"
      let status = data["status"]?.string == "online" ? "online" : "offline"
      let hand = data["raise_hand"]?.bool == true ? ", hand up" : ""
      return Terminal.dim("· \(name) is \(status)\(place)\(hand)")
    case "joined": return Terminal.dim("· joined \(channel)")
    case "left": return Terminal.dim("· left \(channel)")
    case "state_changed":
      let reason = data["reason"]?.string.map { " (\($0.escapedLine))" } ?? ""
      return Terminal.dim("· this node is \(data["state"]?.string?.escapedLine ?? "?")\(reason)")
    case "delivered":
      let peer = fingerprint(ofPeer: data["delivered_to"]?.string)
      return Terminal.dim("· \(peer) has your message \(data["message_id"]?.string?.escapedLine ?? "?")\(place)")
    case "expired":
      let peer = fingerprint(ofPeer: data["peer_id"]?.string)
      let id = data["message_id"]?.string?.escapedLine ?? "?"
      return Terminal.dim("· \(peer) was away for too long: your message \(id) is no longer tried (it is kept here)")
    case "role":
      let who =
        data["self"]?.bool == true ? "you are" : "\(fingerprint(ofPeer: data["peer_id"]?.string)) is"
      return Terminal.dim("· \(who) now \(role(data) ?? "a member")\(place)")
    case "voided":
      let count = Int64(data["message_ids"]?.array?.count ?? 0)
      return Terminal.dim("· \(number(count, "message", "messages")) shown before does not count\(place)")
    case "counted":
      let lines = (data["messages"]?.array ?? []).map { message($0, isChannelShown: isChannelShown) }
      return ([Terminal.dim("· these count after all\(place):")] + lines).joined(separator: "\n")
    case "announcement":
      guard let body = data["body"]?.string else { return Terminal.dim("· the announcement\(place) was taken away") }
      let author = fingerprint(ofPeer: data["author"]?.string)
      let text = body.escapedText.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\n    ")
      return Terminal.bold("· announcement\(place) by \(author): ") + text
    case "attribute": return attribute(data, place: place)
    case "typing": return typing(data, place: place)
    case "message_dropped": return dropped(data, place: place)
    case "closed": return Terminal.dim("· \(channel) is closed: only its owner can still write in it")
    case "keys_changed":
      return Terminal.dim("· \(channel) has a new key (generation \(data["generation"]?.integer ?? 0))")
    case "refused":
      let peer = fingerprint(ofPeer: data["peer_id"]?.string)
      return Terminal.dim("· \(peer) tells you nothing of \(channel): \(refusal(data["reason"]?.string))")
    case "member_over_limit":
      let peer = fingerprint(ofPeer: data["peer_id"]?.string)
      return "! \(peer) does more than a member may\(place): \(excess(data["what"]?.string)); it is slowed"
    case "equivocated":
      let peer = fingerprint(ofPeer: data["peer_id"]?.string)
      return "! \(peer) signed two different things under one number\(place): what it wrote since is not shown"
    case "dropped":
      return Terminal.dim(
        "· \(data["count"]?.integer ?? 0) events other than messages are missing here: this was too slow"
      )
    default: return nil
    }
  }

  private static func refusal(_ reason: String?) -> String {
    switch reason {
    case "removed": "you were removed"
    case "banned": "you are banned"
    default: "no invitation of yours counts"
    }
  }

  /// In words, of a member's `over_limit`.
  static func excess(_ what: String?) -> String {
    switch what {
    case "entries": "too many entries"
    case "entry_bytes": "too many bytes"
    case "live_objects": "too many live objects"
    case "presences": "too many presences"
    case "handshakes": "too many handshakes"
    case "shares": "too many shared files"
    case "equivocation": "two entries under one number"
    case "forbidden_acts": "what it may not do to messages"
    default: what?.escapedLine ?? "?"
    }
  }

  static func fingerprint(ofPeer text: String?) -> String {
    guard let text, let peer = PeerID(text: text) else { return "????-????" }
    return peer.fingerprint
  }

  /// A sender's RFC 3339 time in UTC, in this machine's zone: hours and minutes today, the date before.
  static func time(_ text: String?) -> String {
    guard let text, text.utf8.count >= 19 else { return "--:--" }
    let parts = text.utf8.split { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }.map {
      Int32(String($0)!) ?? 0
    }
    guard parts.count >= 6, (1_900...9_999).contains(parts[0]) else { return text.escapedLine }
    var moment = tm()
    (moment.tm_year, moment.tm_mon, moment.tm_mday) = (parts[0] - 1_900, parts[1] - 1, parts[2])
    (moment.tm_hour, moment.tm_min, moment.tm_sec) = (parts[3], parts[4], parts[5])
    var seconds = timegm(&moment)
    var now = Glibc.time(nil)
    var (local, today) = (tm(), tm())
    localtime_r(&seconds, &local)
    localtime_r(&now, &today)
    let isToday = local.tm_year == today.tm_year && local.tm_yday == today.tm_yday
    var buffer = [CChar](repeating: 0, count: 32)
    strftime(&buffer, buffer.count, isToday ? "%H:%M" : "%Y-%m-%d %H:%M", &local)
    return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
  }

  /// In decimal units, as file managers show it.
  static func byteCount(_ count: Double) -> String {
    if count < 1_000 { return "\(Int(count)) bytes" }
    var value = count / 1_000
    for unit in ["kB", "MB", "GB"] {
      if value < 1_000 { return "\(oneDecimal(value)) \(unit)" }
      value /= 1_000
    }
    return "\(oneDecimal(value)) TB"
  }

  /// Such as 45 s, 3 min, 2 h.
  static func duration(_ seconds: Double) -> String {
    guard seconds.isFinite, seconds < 1e9 else { return "?" }
    if seconds < 120 { return "\(Int(seconds.rounded(.up))) s" }
    if seconds < 7_200 { return "\(Int(seconds / 60)) min" }
    return "\(Int(seconds / 3_600)) h"
  }

  static func oneDecimal(_ value: Double) -> String {
    guard value.isFinite, value < 1e15 else { return "?" }
    let tenths = Int(value * 10)
    return "\(tenths / 10).\(tenths % 10)"
  }

  static func number(_ count: Int64, _ one: String, _ many: String) -> String { "\(count) \(count == 1 ? one : many)" }
}
