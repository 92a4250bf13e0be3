import Parley
import ParleyLocalAPI

/// What messages carry beside what they say.
extension Presenter {
  /// In brackets behind the sender: who else has it, and what was asked for.
  static func beside(_ json: JSON) -> String {
    var words: [String] = []
    if let receivers = json["receivers"]?.array {
      words.append("only to " + receivers.map { fingerprint(ofPeer: $0.string) }.joined(separator: ", "))
    }
    if json["online_only"]?.bool == true { words.append("to those there") }
    if json["broadcast"]?.bool == true { words.append("to all rooms") }
    if json["needs_receipt"]?.bool == true { words.append("asks for receipts") }
    if let priority = json["priority"]?.string, ["high", "low"].contains(priority) {
      words.append("priority \(priority)")
    }
    return words.isEmpty ? "" : Terminal.dim(" (\(words.joined(separator: "; ")))")
  }

  static func remote(_ json: JSON, _ type: String) -> String {
    let name = json["file_name"]?.string?.escapedLine ?? ""
    let size = json["size"]?.number.map { ", \(byteCount($0))" } ?? ""
    return
      "\(type) \(name.isEmpty ? "without a name" : name)\(size) · at \(json["remote_url"]?.string?.escapedLine ?? "?")"
  }

  static func command(_ json: JSON, _ place: String) -> String {
    let who =
      "\(name(json["sender"]?["display_name"]?.string, json["recognition"])) "
      + fingerprint(ofPeer: json["sender"]?["sender_id"]?.string) + marks(json["recognition"])
    let texts = (json["params"]?.members ?? []).map {
      "\($0.name.escapedLine)=\($0.value.string?.escapedLine ?? "?")"
    }
    let words = ["command \(json["action"]?.string?.escapedLine ?? "?")"] + texts
    return Terminal.dim("· \(who)\(place): \(words.joined(separator: " "))")
  }

  static func hookFailed(_ json: JSON) -> String {
    let name = json["hook"]?.string?.escapedLine ?? "?"
    let end = json["sent"]?.bool == true ? "the message went out" : "the message was not sent"
    return "! the hook \(name) gave no answer: \(json["reason"]?.string?.escapedLine ?? "?"); \(end)"
  }
}
