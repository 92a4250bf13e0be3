import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

extension Members {
  fileprivate var typing: [Bool] {
    effects.compactMap { if case .typing(garden, ben, let isTyping) = $0 { isTyping } else { nil } }
  }

  fileprivate var liveCount: Int {
    told.count { event in
      guard case .links(.multicast(garden, let frames)) = event else { return false }
      return frames.contains { if case .live = $0 { true } else { false } }
    }
  }

  fileprivate mutating func benTypes(_ isTyping: Bool, _ counter: UInt64, run instance: Instance = run(2)) {
    let json = SchemaMessage(
      sender: Sender(peer: ben, displayName: name("Ben")), messageID: nil, timestamp: nil,
      content: TypingKind(isTyping: isTyping)
    ).encoded
    handle(.liveHeard(garden, LiveObject(author: ben, instance: instance, counter: counter, json: json)))
  }
}

@Suite struct TypingTests {
  @Test func typingIsToldOnceAndEndsWhenItIsSaid() {
    var members = Members()
    members.benComes()
    members.benTypes(true, 2)
    #expect(members.typing == [true])
    members.now = members.now.plus(3_000)
    members.benTypes(true, 3)
    #expect(members.typing == [])
    members.benTypes(false, 4)
    #expect(members.typing == [false])
    members.benTypes(false, 5)
    #expect(members.typing == [])
  }

  @Test func typingEndsByItself() {
    var members = Members()
    members.benComes()
    members.benTypes(true, 2)
    let wakes = members.effects.compactMap { if case .wake(let at) = $0 { at } else { nil } }
    #expect(wakes.allSatisfy { $0 <= members.now + MembershipRule.typingLasts })
    members.pass(7_999)
    #expect(members.typing == [])
    members.pass(1)
    #expect(members.typing == [false])
    members.pass(10_000)
    #expect(members.typing == [])
  }

  @Test func typingEndsWhenTheMemberGoes() {
    var members = Members()
    members.benComes()
    members.benTypes(true, 2)
    members.goodbye(3)
    #expect(members.typing == [false])
    members.benTypes(true, 4)
    #expect(members.typing == [], "who is not there is not listened to")
  }

  @Test func typingThatWasOvertakenSaysNothing() {
    var members = Members()
    members.benComes()
    members.benTypes(true, 2)
    members.benTypes(false, 4)
    members.benTypes(true, 3)
    #expect(members.typing == [])
    members.benTypes(true, 5, run: run(9))
    #expect(members.typing == [], "another run of Ben's is not the one that is here")
  }

  @Test func typingIsSentAtMostOnceInThreeSeconds() {
    var members = Members()
    members.handle(.typed(garden, isTyping: false))
    #expect(members.liveCount == 0, "there is nothing to end")
    members.handle(.typed(garden, isTyping: true))
    #expect(members.liveCount == 1)
    members.now = members.now.plus(2_999)
    members.handle(.typed(garden, isTyping: true))
    #expect(members.liveCount == 0)
    members.now = members.now.plus(1)
    members.handle(.typed(garden, isTyping: true))
    #expect(members.liveCount == 1)
    members.handle(.typed(garden, isTyping: false))
    #expect(members.liveCount == 1)
    members.handle(.typed(kitchen, isTyping: true))
    #expect(members.liveCount == 0)
  }
}
