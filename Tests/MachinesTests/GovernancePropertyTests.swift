import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

/// Random acts of an owner, admins, members and strangers, hostile ones among them.
@Suite struct GovernancePropertyTests {
  private static let people = ["F", "A", "B", "C", "D", "E"]

  /// One log's numbers rise; its Lamport times mostly, but some are backdated or at the end of time.
  private static func acts(_ jitter: inout Jitter, count: Int, authors: [String], from first: Int = 1) -> [String] {
    var numbers: [String: Int] = [:]
    return (0..<count).map { step in
      let author = authors.randomElement(using: &jitter)!
      let log = "\(author)\(Int.random(in: 1...2, using: &jitter))"
      numbers[log, default: first - 1] += 1
      let lamport =
        switch Int.random(in: 0..<10, using: &jitter) {
        case 0: "1"
        case 1: "max"
        case 2: "\(Int.random(in: 0...40, using: &jitter))"
        default: "\(step / 2 + 3)"
        }
      return "\(log).\(numbers[log]!)@\(lamport) t=\(step) " + deed(&jitter)
    }
  }

  private static func deed(_ jitter: inout Jitter) -> String {
    let target = people.randomElement(using: &jitter)!
    let heads = (1...2).map { "\($0):\(Int.random(in: 1...8, using: &jitter))" }
      .prefix(Int.random(in: 0...2, using: &jitter)).joined(separator: " ")
    switch Int.random(in: 0..<16, using: &jitter) {
    case 0: return "owner \(target) \(heads)"
    case 1, 2, 3: return "admin \(target) \(heads)"
    case 4, 5: return "member \(target) \(heads)"
    case 6: return "mute \(target) \(heads)"
    case 7: return "mute \(target) \(heads) until=\(Int.random(in: 5...40, using: &jitter))"
    case 8: return "remove \(target) \(heads)"
    case 9: return "ban \(target) \(heads)"
    case 10: return "lower \(target) \(heads)"
    case 11: return "announce \(Int.random(in: 0...9, using: &jitter))"
    case 12: return Int.random(in: 0..<8, using: &jitter) == 0 ? "close" : "organiser \(target)"
    case 13:
      return "generation \(Int.random(in: 1...3, using: &jitter)) \(Int.random(in: 1...9, using: &jitter))"
    default:
      let role = Bool.random(using: &jitter) ? "as=admin" : "as=member"
      let issued = Int.random(in: 0...40, using: &jitter)
      return "join \(target) i=\(Int.random(in: 1...2, using: &jitter)) uses=\(Int.random(in: 0...2, using: &jitter)) "
        + "issued=\(issued) \(role)"
    }
  }

  @Test func whateverOrderActsComeInTheResultIsTheSame() {
    for seed in 1...100 {
      var jitter = Jitter(seed: UInt64(seed))
      let acts = Self.acts(&jitter, count: 60, authors: ["F", "F", "F", "A", "A", "B", "B", "C", "D", "E"])
        .map { Notation.act($0[...]) }
      var whole = Governance(Notation.ownership)
      _ = whole.take(acts)
      let answers = whole.answers(Self.people)
      for _ in 0..<3 {
        var piecemeal = Governance(Notation.ownership)
        var rest = acts.shuffled(using: &jitter)[...]
        while !rest.isEmpty {
          let part = rest.prefix(Int.random(in: 1...12, using: &jitter))
          _ = piecemeal.take(Array(part))
          // Some come twice.
          _ = piecemeal.take([part.randomElement(using: &jitter)!])
          rest = rest.dropFirst(part.count)
        }
        #expect(piecemeal.answers(Self.people) == answers, "seed \(seed)")
      }
    }
  }

  /// Whatever is not in `peers` of a change, and not all, was not changed.
  @Test func changesNameEverybodyConcerned() {
    for seed in 1...20 {
      var jitter = Jitter(seed: UInt64(seed))
      var governance = Governance(Notation.ownership)
      for line in Self.acts(&jitter, count: 40, authors: Self.people) {
        let before = Self.people.map { governance.answers([$0], isOfAll: false) }
        let change = governance.take(line)
        guard !change.isOfAll else { continue }
        for (index, letter) in Self.people.enumerated() where !change.peers.contains(Notation.letter(letter)) {
          #expect(governance.answers([letter], isOfAll: false) == before[index], "seed \(seed): \(line), \(letter)")
        }
      }
    }
  }

  /// Somebody without a right changes nothing about anybody else, but for places that an invitation still has.
  @Test func aPlainMembersActsChangeNobodyElse() {
    for seed in 1...60 {
      var jitter = Jitter(seed: UInt64(seed))
      let others = ["F", "A", "B", "C"]
      let honest = Self.acts(&jitter, count: 30, authors: others).filter { !$0.hasSuffix("D") && !$0.contains(" D") }
      let hostile = Self.acts(&jitter, count: 30, authors: ["D"]).filter { !$0.contains("join") }
      let without = Governance((honest + ["D3.1@2 join F i=9"]).joined(separator: "\n"))
      let with = Governance((honest + ["D3.1@2 join F i=9"] + hostile).joined(separator: "\n"))
      #expect(without.answers(others) == with.answers(others), "seed \(seed)")
    }
  }

  /// What an admin signs after it was demoted, under whatever time, is as if it had not been said.
  @Test func beyondTheHeadsOfItsDemotionAnAdminChangesNobody() {
    for seed in 1...60 {
      var jitter = Jitter(seed: UInt64(seed))
      let base = ["F9.1@1 admin A", "F9.2@2 admin B", "C9.1@2 join F i=8", "D9.1@2 join F i=8"]
      let before = Self.acts(&jitter, count: 8, authors: ["A"]).filter { !$0.contains("join") }
      let demotion = ["F9.3@30 \(Bool.random(using: &jitter) ? "member" : "ban") A 1:8 2:8"]
      let after = Self.acts(&jitter, count: 20, authors: ["A"], from: 9).filter { !$0.contains("join") }
      let without = Governance((base + before + demotion).joined(separator: "\n"))
      let with = Governance((base + before + demotion + after).joined(separator: "\n"))
      let others = ["F", "B", "C", "D", "E"]
      #expect(without.answers(others) == with.answers(others), "seed \(seed)")
    }
  }

  @Test func tenThousandActsOnAThousandMembers() {
    let founder = Notation.founder
    func act(_ author: PeerID, _ log: UInt64, _ number: UInt64, _ lamport: UInt64, _ content: Act.Content) -> Act {
      let order = OrderKey(lamport: lamport, author: author, log: Instance(log), number: number)
      return Act(place: Act.Place(order), timestamp: lamport, content: content)
    }
    func member(_ index: UInt64) -> PeerID { person(1_000 + index) }
    let grant = Grant(
      inviter: founder, inviteID: [UInt8](repeating: 1, count: 16), role: .member, issued: 0, expires: 0, uses: 1_000)
    var acts = (0..<1_000).map { act(member($0), 1, 1, 2 + $0, .joined(grant, isGenuine: true)) }
    for number in UInt64(1)...9_000 {
      let heads = ActHeads([Instance(1): number])
      let role: RoleKind.Role = number % 2 == 0 ? .member : .muted
      let kind = RoleKind(target: member(number % 999), role: role, heads: heads)
      acts.append(act(founder, 1, number, 2_000 + number, .role(kind)))
    }
    var governance = Governance(Notation.ownership)
    #expect(governance.take(Array(acts.dropFirst(5_000).shuffled())).peers.count > 900)
    _ = governance.take(Array(acts.prefix(5_000)))
    let muted = (UInt64(0)..<1_000).count { governance.standing(of: member($0)) == .muted(until: nil) }
    // The last 999 acts are one for each of 999, every other one a mute; 9,000 is even.
    #expect(muted == 499)
    let late = act(founder, 1, 9_001, 3, .role(RoleKind(target: member(999), role: .banned, heads: ActHeads([:]))))
    #expect(governance.take([late]).peers == [member(999)])
    #expect(governance.standing(of: member(999)) == .banned)
  }
}
