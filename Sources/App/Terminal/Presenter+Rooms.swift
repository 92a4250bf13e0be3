import ParleyLocalAPI

/// Attributes, and who is writing.
extension Presenter {
  static func attribute(_ data: JSON, place: String) -> String {
    let key = data["key"]?.string?.escapedLine ?? "?"
    let who = fingerprint(ofPeer: data["by"]?.string)
    guard let value = data["value"]?.string else { return Terminal.dim("· \(key) is gone\(place), by \(who)") }
    return Terminal.dim("· \(key) = \(value.escapedLine)\(place), by \(who)")
  }

  static func dropped(_ data: JSON, place: String) -> String {
    let priority = data["priority"]?.string?.escapedLine ?? "?"
    return Terminal.dim("! a message of \(priority) priority was not sent\(place): too many at once")
  }

  /// Nil when somebody stops: the next line says what they wrote, or nothing.
  static func typing(_ data: JSON, place: String) -> String? {
    guard data["typing"]?.bool == true else { return nil }
    return Terminal.dim("· \(fingerprint(ofPeer: data["peer_id"]?.string)) is writing\(place)…")
  }
}
