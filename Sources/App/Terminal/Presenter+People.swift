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
    var marks = ""
    if recognition["blocked"]?.bool == true { marks += " blocked" }
    if recognition["verified"]?.bool == true { marks += " verified" }
    if let other = recognition["poses_as"]?.string {
      marks += Terminal.loud(" ‼ NOT the verified \(fingerprint(ofPeer: other))")
    }
    let others = recognition["looks_like"]?.array ?? []
    if !others.isEmpty {
      marks += " ⚠ looks like " + others.map { fingerprint(ofPeer: $0.string) }.joined(separator: ", ")
    }
    return marks
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
