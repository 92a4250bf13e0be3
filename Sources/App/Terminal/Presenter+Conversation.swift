import Parley
import ParleyLocalAPI

/// What was done to messages, in few words.
extension Presenter {
  static func recalled(_ type: String, _ deed: JSON) -> String {
    Terminal.dim("(\(type.escapedLine) taken back by \(fingerprint(ofPeer: deed["operator_id"]?.string)))")
  }

  /// Behind a message; empty when nothing was done to it.
  static func state(_ json: JSON?) -> String {
    guard let json else { return "" }
    var words: [String] = []
    if let edited = json["edited"] {
      let count = edited["count"]?.integer ?? 1
      words.append(count == 1 ? "edited" : "edited \(count) times")
    }
    if json["pinned"] != nil { words.append("pinned") }
    let reactions = (json["reactions"]?.array ?? []).map { reaction in
      let count = reaction["peers"]?.array?.count ?? 0
      return (reaction["emoji"]?.string?.escapedLine ?? "?") + (count > 1 ? " \(count)" : "")
    }
    words += reactions
    if let readers = json["read_by"]?.array, !readers.isEmpty { words.append("read by \(readers.count)") }
    return words.isEmpty ? "" : " " + Terminal.dim("[\(words.joined(separator: ", "))]")
  }

  /// Nil for what is told too often to be shown to people: who has read what.
  static func change(_ data: JSON, _ place: String) -> String? {
    let who = fingerprint(ofPeer: data["operator_id"]?.string)
    let message = data["messages"]?.array?.first ?? .null
    let author = name(message["sender"]?["display_name"]?.string, message["recognition"])
    let isOn = data["on"]?.bool ?? true
    switch data["what"]?.string {
    case "recalled": return Terminal.dim("· \(who) took back a message of \(author)\(place)")
    case "edited":
      return Terminal.dim("· edited\(place): ") + self.message(message, isChannelShown: false)
    case "reacted":
      let emoji = data["emoji"]?.string?.escapedLine ?? "?"
      return Terminal.dim(
        "· \(who) \(isOn ? "put" : "took") \(emoji) \(isOn ? "on" : "off") a message of \(author)\(place)")
    case "pinned":
      return Terminal.dim("· \(who) \(isOn ? "pinned" : "took down") a message of \(author)\(place)")
    default: return nil
    }
  }
}
