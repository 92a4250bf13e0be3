import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleyMachines

// What members keep of a log below its floor, such as a hand that is still up, must be had before the floor is taken.

private let benKey = LogKey(author: ben, log: run(2))
private let danKey = LogKey(author: person(9), log: run(9))

/// An answer about something else says nothing of what a member kept: a hand stayed wrong for ever.
@Test func aFloorWaitsForWhatItsAuthorKeptOfThatVeryLog() throws {
  var messages = Messages()
  let hand = entry(ben, run: run(2), 2)
  messages.come(ben, run: run(2))
  messages.heads([Head(key: danKey, number: 1, floor: 0)], of: ben)
  let first = try #require(messages.question(to: ben))
  messages.heads([Head(key: benKey, number: 5, floor: 5)], of: ben)
  messages.handle(.sessionMessage(ben, .entries(garden, request: first.request, [], isLast: true)))
  messages.pass(100, answering: [ben: [hand]], times: 30)
  #expect(messages.commitAll() == [2])
  #expect(messages.machine.channels[garden]!.logs[benKey]!.stored == 5)
}

/// Somebody had been asked for one number only when its floor turned out to be above others that were missing.
@Test func aFloorWaitsForWhatItsAuthorKeptOfAllThatIsMissing() throws {
  var messages = Messages()
  let hand = entry(ben, run: run(2), 5)
  messages.come(ben, run: run(2))
  messages.hear(entry(ben, run: run(2), 1))
  #expect(messages.commitAll() == [1])
  messages.heads([Head(key: benKey, number: 2, floor: 2)], of: ben)
  let first = try #require(messages.question(to: ben))
  #expect(first.ranges == [LogRange(key: benKey, from: 2, through: 2)])
  messages.heads([Head(key: benKey, number: 5, floor: 5)], of: ben)
  messages.handle(.sessionMessage(ben, .entries(garden, request: first.request, [], isLast: true)))
  messages.pass(100, answering: [ben: [hand]], times: 30)
  #expect(messages.commitAll() == [5])
  #expect(messages.machine.channels[garden]!.logs[benKey]!.stored == 5)
}

/// An answer ends where it gets too long.
@Test func aFloorWaitsForAnAnswerThatIsNotCutShort() throws {
  var messages = Messages()
  let kept = [entry(ben, run: run(2), 2), entry(ben, run: run(2), 4)]
  messages.come(ben, run: run(2))
  messages.heads([Head(key: benKey, number: 5, floor: 5)], of: ben)
  let first = try #require(messages.question(to: ben))
  messages.handle(.sessionMessage(ben, .entries(garden, request: first.request, [kept[0].encoded], isLast: true)))
  messages.handle(.entryVerified(garden, kept[0], isGenuine: true))
  messages.pass(100, answering: [ben: kept], times: 30)
  #expect(messages.commitAll() == [2, 4])
  #expect(messages.machine.channels[garden]!.logs[benKey]!.stored == 5)
}
