import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

// What the machines do when addresses change, when this machine slept, and when the network was in two parts.

extension Members {
  /// Whether a beacon for all was just sent; full ones carry the status.
  fileprivate var beacons: [Presence] {
    told.compactMap { event in
      guard case .links(.multicast(garden, let frames)) = event, case .presence(let presence)? = frames.first else {
        return nil
      }
      return presence
    }
  }

  /// Goes on to the moments when something is due; milliseconds until each beacon, `count` of them.
  fileprivate mutating func beaconTimes(_ count: Int, within milliseconds: Int) -> [Int] {
    let began = now
    var times: [Int] = []
    while times.count < count, (now - began).microseconds < milliseconds * 1_000 {
      guard let due = effects.compactMap({ if case .wake(let at) = $0 { at } else { nil } }).last else { break }
      now = max(due, now.plus(1))
      handle(.woke)
      if !beacons.isEmpty { times.append(Int((now - began).microseconds / 1_000)) }
    }
    return times
  }

  /// Ben is silent until he is taken for gone.
  fileprivate mutating func loseBen() {
    var rounds = 0
    while list != "ana+ ben-", rounds < 400 {
      pass(500)
      rounds += 1
      if told.contains(.links(.check(ben))) { handle(.dialFailed(ben)) }
    }
  }
}

@Test func afterAChangeOfTheNetworkBeaconsComeAsAfterJoining() {
  var members = Members()
  members.benComes()
  _ = members.beaconTimes(30, within: 120_000)
  members.handle(.networkChanged)
  #expect(members.beacons.count == 1)
  #expect(members.beacons.first?.status.isEmpty == false)
  let times = members.beaconTimes(3, within: 1_000)
  #expect(times.count == 3)
  #expect(members.list == "ana+ ben+")
}

/// CLOCK_BOOTTIME goes on while the machine sleeps: the next event comes ten minutes late.
@Test(arguments: [6_000, 20_000, 600_000])
func afterASleepEverybodyIsAskedAndLoginIsTold(_ milliseconds: Int) {
  var members = Members()
  members.benComes()
  guard case .wake(let due)? = members.effects.last else {
    Issue.record("there is always a beacon to come")
    return
  }
  members.now = due.plus(milliseconds)
  members.handle(.woke)
  #expect(members.told.contains(.login(.slept(.milliseconds(milliseconds)))))
  #expect(members.beacons.count == 1)
  #expect(milliseconds < 20_000 || members.probes(to: ben).count == 1)
  members.handle(.networkChanged)
  #expect(members.beacons.count == 1)
  // He answers: nobody was taken for gone.
  members.hear(presence(ben, "Ben", run: run(2), counter: 9))
  #expect(members.list == "ana+ ben+")
  members.pass(100)
  #expect(members.told.contains { if case .login = $0 { true } else { false } } == false)
}

@Test func whoIsLateByLessThanASleepDoesNotSaySo() {
  var members = Members()
  guard case .wake(let due)? = members.effects.last else { return }
  members.now = due.plus(4_900)
  members.handle(.woke)
  #expect(members.told.contains { if case .login = $0 { true } else { false } } == false)
}

@Test func whileSomebodyIsLostTheSmallestPresentCallsEveryThreeSeconds() {
  var members = Members()
  members.benComes()
  members.loseBen()
  #expect(members.list == "ana+ ben-")
  let times = members.beaconTimes(20, within: 120_000)
  #expect(times.count == 20)
  for (before, after) in zip(times, times.dropFirst()) { #expect(after - before <= 3_000) }
  // After an hour and forty minutes of loss it is as quiet as ever.
  members.now = members.now.plus(6_000_000)
  members.handle(.woke)
  let later = members.beaconTimes(5, within: 400_000)
  #expect(later.count == 5)
  for (before, after) in zip(later, later.dropFirst()) { #expect(after - before > 9_000) }
}

@Test func whoSaidGoodbyeIsNotCalled() {
  var members = Members()
  members.benComes()
  members.goodbye(9)
  #expect(members.list == "ana+ ben-")
  _ = members.beaconTimes(20, within: 300_000)
  let times = members.beaconTimes(2, within: 120_000)
  #expect(times.count == 2 && times[1] - times[0] > 20_000)
}

@Test func whoComesBackIsAnsweredByAllSoon() {
  var members = Members()
  members.benComes()
  members.loseBen()
  members.hear(presence(ben, "Ben", run: run(2), counter: 50))
  members.handle(.echoed(garden, ben, nonce: members.probes(to: ben)[0]))
  #expect(members.list == "ana+ ben+")
  #expect(members.beaconTimes(1, within: 300).count == 1)
}

@Test func afterAChangeSessionsAreGivenUpWithinASecond() {
  var links = Links()
  let link = links.reachBen()
  links.handle(.networkChanged)
  guard case .ping(let nonce)? = links.sent.first else {
    Issue.record("it is asked whether it lives")
    return
  }
  links.pass(900)
  #expect(links.effects.contains(.close(link, afterWrites: false)) == false)
  links.handle(.sessionMessage(link, .pong(nonce)))
  links.pass(500)
  #expect(links.effects.contains(.close(link, afterWrites: false)) == false)
  links.handle(.networkChanged)
  links.pass(1_000)
  #expect(links.effects.contains(.close(link, afterWrites: false)))
  #expect(links.told.contains(.membership(.sessionLost(ben, run(2)))))
}

@Test func whoIsKeptAndWasLostIsDialledAtOnceAfterAChange() {
  var links = Links()
  let link = links.reachBen()
  links.handle(.sessionClosed(link, reason: "reset"))
  links.handle(.networkChanged)
  #expect(links.dials.count == 1)
}

@Test func aPeerAtAnotherAddressHasItsSessionLookedAt() {
  var links = Links()
  _ = links.reachBen()
  let first = DirectMessage(counter: 1, parts: [.probe(nonce: 1)])
  links.handle(.directOpened(garden, ben, run(2), from: address(2), first))
  #expect(links.sent == [])
  let second = DirectMessage(counter: 2, parts: [.probe(nonce: 2)])
  links.handle(.directOpened(garden, ben, run(2), from: address(9), second))
  #expect(links.sent.contains { if case .ping = $0 { true } else { false } })
}
