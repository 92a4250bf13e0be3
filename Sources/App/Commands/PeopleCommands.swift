import Parley
import ParleyLocalAPI

enum PeopleCommands {
  static func verify(_ invocation: Invocation) throws {
    let peer = invocation["PEER"]
    let ways = ["--confirm", "--scanned", "--undo"].filter { invocation.has($0) }
    guard ways.count <= 1 else { throw Failure.usage("give one of \(ways.joined(separator: " and "))") }
    let client = try NodeClient(home: Home.path(invocation))
    let address = ["peers", peer, "verification"]
    let answer =
      switch ways.first {
      case nil: try client.call("GET", address)
      case "--undo": try client.call("DELETE", address)
      default:
        try client.call(
          "POST", address, body: invocation.value("--scanned").map { ["scanned": .string($0)] } ?? [:])
      }
    if invocation.isJSON { return Terminal.line(answer.text) }
    let confirm = "parley verify \(peer.escapedLine) --confirm"
    for line in lines(ofVerification: answer, peer: peer, confirm: confirm) { Terminal.line(line) }
  }

  static func lines(ofVerification answer: JSON, peer: String, confirm: String) -> [String] {
    let name = answer["display_name"]?.string.flatMap { $0.isEmpty ? nil : $0.escapedLine } ?? "somebody not met yet"
    let who = "\(name) \(answer["fingerprint"]?.string?.escapedLine ?? "")"
    if answer["verified"]?.bool == true { return ["\(who) is verified.", "Code  \(code(answer))"] }
    return [
      who, "Code  \(code(answer))", "QR    \(answer["qr"]?.string?.escapedLine ?? "")",
      "If they see the same digits beside your name: \(confirm)",
    ]
  }

  private static func code(_ answer: JSON) -> String { answer["code"]?.string?.escapedLine ?? "" }

  static func block(_ invocation: Invocation) throws { try set(invocation, isBlocked: true) }
  static func unblock(_ invocation: Invocation) throws { try set(invocation, isBlocked: false) }

  private static func set(_ invocation: Invocation, isBlocked: Bool) throws {
    let contact = try NodeClient(home: Home.path(invocation)).call(
      "PUT", ["peers", invocation["PEER"], "block"], body: ["blocked": .bool(isBlocked)])
    Terminal.line(invocation.isJSON ? contact.text : line(ofContact: contact))
  }

  static func line(ofContact contact: JSON) -> String {
    let name = contact["display_name"]?.string.flatMap { $0.isEmpty ? nil : $0.escapedLine } ?? "somebody not met yet"
    var states: [String] = []
    if let moment = contact["verified_at"]?.string { states.append("verified \(Presenter.time(moment))") }
    states.append(contact["blocked"]?.bool == true ? "blocked" : "not blocked")
    return "\(name) \(contact["fingerprint"]?.string?.escapedLine ?? ""): \(states.joined(separator: ", "))"
  }

  static func contacts(_ invocation: Invocation) throws {
    let contacts = try NodeClient(home: Home.path(invocation)).call("GET", ["contacts"]).array ?? []
    if contacts.isEmpty, !invocation.isJSON { Terminal.note("Nobody yet: parley verify PEER, parley block PEER") }
    for contact in contacts { Terminal.line(invocation.isJSON ? contact.text : line(ofContact: contact)) }
  }
}
