import Parley
import ParleyLocalAPI

/// How what is known of people looks beside their names.
extension Presenter {
  /// The organiser's name for somebody with a check mark, while a login token is valid; else the one they gave
  /// themselves, in which no check mark is left.
  static func name(_ displayName: String?, _ recognition: JSON?) -> String {
    if let name = recognition?["organiser_name"]?.string { return withoutCheckMarks(name) + " ✓" }
    return withoutCheckMarks(displayName ?? "?")
  }

  /// Nobody gives themselves a check mark.
  private static func withoutCheckMarks(_ name: String) -> String {
    var plain = ""
    for scalar in name.escapedLine.unicodeScalars {
      switch scalar.value {
      case 0x2611, 0x2705, 0x2713, 0x2714, 0x221A, 0x237B, 0x1F5F8, 0x1F5F9:
        plain += "\\u{\(String(scalar.value, radix: 16))}"
      default: plain.unicodeScalars.append(scalar)
      }
    }
    return plain
  }

  /// After the fingerprint; empty when there is nothing to say.
  static func marks(_ recognition: JSON?) -> String {
    guard let recognition else { return "" }
    if recognition["blocked"]?.bool == true { return " blocked" }
    var marks = ""
    if recognition["verified"]?.bool == true { marks += " verified" }
    if let reason = recognition["token"]?.string, reason != "valid" {
      marks += " ✗ no valid token (\(reason.escapedLine))"
    }
    if let other = recognition["poses_as"]?.string {
      marks += Terminal.loud(" ‼ NOT the verified \(fingerprint(ofPeer: other))")
    }
    let others = recognition["looks_like"]?.array ?? []
    if !others.isEmpty {
      marks += " ⚠ looks like " + others.map { fingerprint(ofPeer: $0.string) }.joined(separator: ", ")
    }
    return marks
  }

  static func token(_ event: StreamEvent, _ place: String) -> String {
    let data = event.data
    let fingerprint = fingerprint(ofPeer: data["peer_id"]?.string)
    switch event.type {
    case "token_accepted":
      let role = data["organiser_role"]?.string.map { ", \($0.escapedLine)" } ?? ""
      return Terminal.dim("· \(fingerprint) is \(name(nil, data))\(role)\(place)")
    case "token_refused":
      let who = data["self"]?.bool == true ? "YOUR messages" : "what \(fingerprint) says"
      let line = "\(who)\(place) is not shown: \(data["detail"]?.string?.escapedLine ?? "")"
      return data["self"]?.bool == true ? Terminal.loud("‼ " + line) : Terminal.dim("· " + line)
    default:
      return Terminal.loud(
        "‼ your login token ends at \(time(data["expires"]?.string)): go on with a new one by parley token use FILE")
    }
  }

  static func impostor(_ data: JSON, _ place: String) -> String {
    let name =
      "\(name(data["display_name"]?.string, data["recognition"])) \(fingerprint(ofPeer: data["peer_id"]?.string))"
    let other = fingerprint(ofPeer: data["poses_as"]?.string)
    return Terminal.loud(
      "‼ TAKE CARE\(place): \(name) has the name of \(other), whom you verified, but ANOTHER KEY. It is somebody else, "
        + "or the same person with a new device. Compare codes: parley verify "
        + "\(data["fingerprint"]?.string?.escapedLine ?? "")")
  }
}
