import ParleyHashing
import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// Acts as tests write them, one a line: `A1.3@7 mute B 1:4 until=9`. A person is a capital letter, F the founder; then
/// come log, number and Lamport time (`max` for the largest); what is done; to whom; heads as log:number. `t=` is the
/// entry's timestamp, otherwise that of its Lamport time. `join` names the inviter: `B1.1@3 join F i=1 uses=2`.
struct Notation {
  static let founder = letter("F")
  static let ownership = ChannelOwnership(founder: founder, salt: [UInt8](repeating: 9, count: 16))!

  static func letter(_ text: Substring) -> PeerID { person(UInt64(text.utf8.first!)) }
  static func letter(_ text: String) -> PeerID { letter(text[...]) }

  /// `A1.3@7`.
  static func order(_ text: Substring) -> OrderKey {
    let parts = text.dropFirst().split { $0 == "." || $0 == "@" }
    return OrderKey(
      lamport: parts[2] == "max" ? Limit.counterMax : UInt64(parts[2])!, author: letter(text.prefix(1)),
      log: Instance(UInt64(parts[0])!), number: UInt64(parts[1])!)
  }

  static func acts(_ text: String) -> [Act] { text.split(separator: "\n").map { act($0) } }

  static func act(_ line: Substring) -> Act {
    var words = line.split(separator: " ")
    let order = order(words.removeFirst())
    var named: [Substring: Substring] = [:]
    var heads: [Instance: UInt64] = [:]
    for word in words.filter({ $0.contains("=") }) {
      let pair = word.split(separator: "=")
      named[pair[0]] = pair[1]
    }
    words.removeAll { $0.contains("=") }
    for word in words.filter({ $0.contains(":") }) {
      let pair = word.split(separator: ":")
      heads[Instance(UInt64(pair[0])!)] = UInt64(pair[1])!
    }
    words.removeAll { $0.contains(":") }
    let timestamp = named["t"].map { UInt64($0)! } ?? order.lamport
    return Act(
      place: Act.Place(order), timestamp: timestamp, content: content(words, named, ActHeads(heads)))
  }

  private static func content(
    _ words: [Substring], _ named: [Substring: Substring], _ heads: ActHeads
  ) -> Act.Content {
    let roles: [Substring: RoleKind.Role] = [
      "owner": .owner, "admin": .admin, "member": .member, "mute": .muted, "remove": .removed, "ban": .banned,
    ]
    if let role = roles[words[0]] {
      let until = named["until"].map { UInt64($0)! }
      return .role(RoleKind(target: letter(words[1]), role: role, until: until, heads: heads))
    }
    switch words[0] {
    case "lower": return .lowerHand(LowerHandKind(target: letter(words[1]), heads: heads))
    case "announce": return .announcement(words.count > 1 ? String(words[1]) : "")
    case "close": return .close
    case "generation": return .generation(number: UInt64(words[1])!, hash: hash(UInt64(words[2])!))
    case "organiser": return .organiser(words.count > 1 ? letter(words[1]) : nil)
    default:
      precondition(words[0] == "join", "a verb of the notation")
      return .joined(
        Grant(
          inviter: letter(words[1]), inviteID: [UInt8](repeating: named["i"].map { UInt8($0)! } ?? 1, count: 16),
          role: named["as"] == "admin" ? .admin : .member, issued: named["issued"].map { UInt64($0)! } ?? 0,
          expires: named["expires"].map { UInt64($0)! } ?? 0, uses: named["uses"].map { UInt64($0)! } ?? 0),
        isGenuine: named["altered"] == nil)
    }
  }

  static func hash(_ number: UInt64) -> Hash32 { Hash32(Bytes32(words: (number, 0, 0, 0))) }
}

extension Governance {
  init(_ text: String) {
    self.init(Notation.ownership)
    _ = take(Notation.acts(text))
  }

  mutating func take(_ text: String) -> Change { take(Notation.acts(text)) }

  func standing(_ letter: String) -> Standing { standing(of: Notation.letter(letter)) }

  /// Of a message at `A1.3@7`; `t`: its timestamp, otherwise that of its Lamport time.
  func void(_ text: String, t: UInt64? = nil, isHidden: Bool = false) -> VoidReason? {
    let order = Notation.order(text[...])
    return voidReason(EntryFacts(order: order, timestamp: t ?? order.lamport, isHidden: isHidden))
  }

  /// All that can be asked of these people's logs, and of the channel.
  struct Answers: Equatable {
    struct Said: Equatable {
      let early, late, hidden: VoidReason?
      let isLowered: Bool
    }
    var standings: [Standing] = []
    var mutes: [UInt64?] = []
    var said: [Said] = []
    var owner: PeerID?
    var isClosed = false
    var announcement: String?
    var organiser: PeerID?
    var generations: [UInt64: Set<Hash32>] = [:]
  }

  func answers(_ letters: [String], isOfAll: Bool = true) -> Answers {
    var answers = Answers()
    for letter in letters {
      let peer = Notation.letter(letter)
      let mute = mute(of: peer)
      answers.standings.append(standing(of: peer))
      answers.mutes.append(mute.isMuted ? mute.until ?? .max : nil)
      for log in 1...2 as ClosedRange<UInt64> {
        for number in [1, 2, 4, 7, 9] as [UInt64] {
          for lamport in [1, 20, Limit.counterMax] {
            let order = OrderKey(lamport: lamport, author: peer, log: Instance(log), number: number)
            func reason(_ timestamp: UInt64, _ isHidden: Bool) -> VoidReason? {
              voidReason(EntryFacts(order: order, timestamp: timestamp, isHidden: isHidden))
            }
            answers.said.append(
              .init(
                early: reason(10, false), late: reason(30, false), hidden: reason(10, true),
                isLowered: isHandLowered(order)))
          }
        }
      }
    }
    guard isOfAll else { return answers }
    answers.owner = owner
    answers.isClosed = isClosed
    answers.announcement = announcement?.body
    answers.organiser = organiser
    answers.generations = statedGenerations
    return answers
  }
}
