import Parley
import ParleyLocalAPI

/// `parley doctor`: what works, what does not, what to try.
enum DoctorCommand {
  static func doctor(_ invocation: Invocation) throws {
    let client = try NodeClient(home: Home.path(invocation))
    let answer = try client.call("GET", ["doctor"])
    if invocation.isJSON {
      Terminal.line(answer.text)
    } else {
      for line in lines(of: answer) { Terminal.line(line) }
    }
    // All of it was said.
    guard answer["well"]?.bool == true else { throw Failure(.notWell, "") }
  }

  static func lines(of answer: JSON) -> [String] {
    var lines: [String] = []
    for interface in answer["interfaces"]?.array ?? [] { lines += self.lines(ofInterface: interface) }
    for session in answer["reached"]?.array ?? [] {
      lines.append(
        "Session     with \(session["fingerprint"]?.string?.escapedLine ?? "?") at "
          + "\(session["address"]?.string?.escapedLine ?? "?")")
    }
    for host in answer["unreachable"]?.array ?? [] {
      lines.append(
        "No session  with \(host["address"]?.string?.escapedLine ?? "?"): \(host["reason"]?.string?.escapedLine ?? "?")"
      )
    }
    if !lines.isEmpty { lines.append("") }
    for finding in answer["findings"]?.array ?? [] { lines += self.lines(ofFinding: finding) }
    let isWell = answer["well"]?.bool == true
    return lines + ["", isWell ? "All is well. (parley \(App.version))" : "Not all is well. (parley \(App.version))"]
  }

  private static func lines(ofInterface interface: JSON) -> [String] {
    func count(_ name: String) -> Int64 { interface[name]?.integer ?? 0 }
    func texts(_ name: String) -> [String] { (interface[name]?.array ?? []).map { $0.string?.escapedLine ?? "?" } }
    let name = interface["name"]?.string?.escapedLine ?? "?"
    let addresses = texts("addresses")
    var lines = [
      "Interface   \(name)  \(addresses.isEmpty ? "not used" : addresses.joined(separator: " "))",
      "            sent \(count("sent")), came back \(count("came_back")), heard \(count("heard")) of others",
    ]
    let heard = texts("heard_from")
    if !heard.isEmpty {
      let more = heard.count > 8 ? " and \(heard.count - 8) more" : ""
      lines.append("            heard from \(heard.prefix(8).joined(separator: ", "))\(more)")
    }
    return lines
  }

  private static func lines(ofFinding finding: JSON) -> [String] {
    let text = finding["text"]?.string?.escapedLine ?? "?"
    let mark =
      switch finding["level"]?.string {
      case "good": "ok      "
      case "notice": Terminal.bold("note    ")
      default: Terminal.loud("problem ")
      }
    guard let advice = finding["advice"]?.string else { return [mark + text] }
    return [mark + text, "        → \(advice.escapedLine)"]
  }
}
