import ParleyMachines
import ParleyVocabulary
import Testing

/// A room's second, as tests write it: `l`, `n`, `h` for a message of low, normal or high priority that is to be said,
/// capitals for one that others said. What comes back is what was said, a dot for what was not.
private func said(_ text: String, _ rate: inout RoomRate, at now: Instant = start) -> String {
  let ranks: [Character: RoomRate.Rank] = ["l": .low, "n": .normal, "h": .high]
  return String(
    text.map { sign in
      if sign.isUppercase {
        rate.note(ranks[Character(sign.lowercased())]!, at: now)
        return sign
      }
      return rate.admit(ranks[sign]!, at: now) ? sign : "."
    })
}

private func said(_ text: String) -> String {
  var rate = RoomRate()
  return said(text, &rate)
}

private func many(_ sign: Character, _ count: Int) -> String { String(repeating: sign, count: count) }

@Suite struct RoomRateTests {
  @Test func priorityOf20MessagesASecondNoneIsDroppedAndOf21TheLast() {
    for sign: Character in ["l", "n"] {
      #expect(said(many(sign, 20)) == many(sign, 20))
      #expect(said(many(sign, 21)) == many(sign, 20) + ".")
    }
    #expect(said(many("N", 19) + "n") == many("N", 19) + "n")
    #expect(said(many("N", 20) + "n") == many("N", 20) + ".", "what others say counts, too")
  }

  @Test func priorityLowIsDroppedFirst() {
    #expect(said(many("N", 20) + "lnh") == many("N", 20) + "..h")
    #expect(said(many("L", 20) + "lnh") == many("L", 20) + ".nh")
    #expect(said(many("h", 20) + "lnh") == many("h", 20) + "..h")
    #expect(said(many("l", 10) + many("n", 10) + "ln") == many("l", 10) + many("n", 10) + ".n")
  }

  @Test func priorityHighIsNotDroppedBelow200ASecond() {
    #expect(said(many("N", 300) + many("h", 200)) == many("N", 300) + many("h", 200))
    #expect(said(many("h", 201)) == many("h", 200) + ".")
  }

  @Test func prioritySlidesWithTheLastSecond() {
    var rate = RoomRate()
    #expect(said(many("n", 20), &rate) == many("n", 20))
    #expect(said("n", &rate, at: start.plus(999)) == ".")
    #expect(said(many("n", 21), &rate, at: start.plus(1_000)) == many("n", 20) + ".")
  }

  @Test func whatIsDroppedDoesNotCount() {
    var rate = RoomRate()
    #expect(said(many("n", 20) + many("n", 100), &rate) == many("n", 20) + many(".", 100))
    #expect(said("n", &rate, at: start.plus(1_001)) == "n")
  }
}
