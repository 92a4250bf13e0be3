import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

private let gardenName = try! ChannelName("garden")

/// Logged in as Ana, with an interface that works.
private func login(incarnation: UInt64 = 3) -> LoginMachine {
  var machine = LoginMachine()
  _ = machine.handle(.loggedIn(name("Ana"), incarnation: incarnation), at: start)
  _ = machine.handle(.interfacesChanged(workingCount: 1), at: start)
  return machine
}

private func restored(_ channel: ChannelID) -> LoginEvent { .restored(channel, logs: [], lamport: 4, members: []) }

private let tellNetworkChanged: [LoginEffect] = [
  .tell(.links(.networkChanged)), .tell(.membership(.networkChanged)),
]

@Test func theStateFollowsTheInterfacesAndSaysWhy() {
  var machine = LoginMachine()
  #expect(machine.state == .disconnected)
  #expect(machine.handle(.interfacesChanged(workingCount: 1, using: "eth0"), at: start) == [])
  #expect(
    machine.handle(.loggedIn(name("Ana"), incarnation: 1), at: start) == [
      .stateChanged(.connecting, reason: "logging in")
    ])
  #expect(
    machine.handle(.interfacesChanged(workingCount: 2, .extended, using: "eth0, eth1"), at: start) == [
      .stateChanged(.connected, reason: "eth0, eth1")
    ])
  #expect(
    machine.handle(.interfacesChanged(workingCount: 0, .replaced, lost: "eth0: it is down"), at: start) == [
      .stateChanged(.reconnecting, reason: "eth0: it is down")
    ])
  #expect(
    machine.handle(.interfacesChanged(workingCount: 1, .extended, using: "eth0"), at: start) == [
      .stateChanged(.connected, reason: "eth0")
    ] + tellNetworkChanged)
  #expect(machine.handle(.loggedOut, at: start) == [.stateChanged(.disconnected, reason: "logged out")])
}

@Test func anAddressThatIsReplacedIsAReconnectionOneMoreIsNot() {
  var machine = login()
  #expect(machine.handle(.interfacesChanged(workingCount: 1, .kept, using: "eth0"), at: start) == [])
  #expect(
    machine.handle(.interfacesChanged(workingCount: 2, .extended, using: "eth0, eth1"), at: start)
      == tellNetworkChanged)
  #expect(
    machine.handle(.interfacesChanged(workingCount: 1, .replaced, lost: "eth0 lost 10.0.0.1", using: "eth1"), at: start)
      == [.stateChanged(.reconnecting, reason: "eth0 lost 10.0.0.1"), .stateChanged(.connected, reason: "eth1")]
      + tellNetworkChanged)
}

@Test func aSleepIsAReconnectionWhileThereIsANetwork() {
  var machine = login()
  #expect(
    machine.handle(.slept(.seconds(600)), at: start) == [
      .stateChanged(.reconnecting, reason: "this process did not run for 600 s"),
      .stateChanged(.connected, reason: "running again"),
    ] + tellNetworkChanged)
  _ = machine.handle(.interfacesChanged(workingCount: 0, .replaced), at: start)
  #expect(machine.handle(.slept(.seconds(600)), at: start) == [])
}

@Test func aJoinOpensOnceTheDiskHasAnsweredAndAnswersAllWhoAsked() {
  var machine = login()
  #expect(machine.handle(.joinRequested(RequestID(1), gardenName, garden), at: start) == [.restore(garden)])
  #expect(machine.handle(.joinRequested(RequestID(2), gardenName, garden), at: start) == [])
  let effects = machine.handle(restored(garden), at: start)
  #expect(effects.first == .opened(gardenName, garden))
  #expect(effects.contains(.tell(.messaging(.joined(garden, logs: [], lamport: 4)))))
  #expect(
    effects.contains(
      .tell(.membership(.joined(garden, displayName: name("Ana"), incarnation: 3, remembered: [])))))
  #expect(effects.suffix(2) == [.answer(RequestID(1), .done), .answer(RequestID(2), .done)])
  #expect(
    machine.handle(.joinRequested(RequestID(3), gardenName, garden), at: start) == [.answer(RequestID(3), .done)])
}

@Test func anotherSecretForTheSameNameIsRefused() {
  var machine = login()
  _ = machine.handle(.joinRequested(RequestID(1), gardenName, garden), at: start)
  #expect(
    machine.handle(.joinRequested(RequestID(2), gardenName, kitchen), at: start)
      == [.answer(RequestID(2), .otherSecret)])
  _ = machine.handle(restored(garden), at: start)
  #expect(
    machine.handle(.joinRequested(RequestID(3), gardenName, kitchen), at: start)
      == [.answer(RequestID(3), .otherSecret)])
}

@Test func aDiskThatCannotBeReadFailsTheJoinAndItMayBeTriedAgain() {
  var machine = login()
  _ = machine.handle(.joinRequested(RequestID(1), gardenName, garden), at: start)
  #expect(
    machine.handle(.restoreFailed(garden, reason: "damaged"), at: start) == [.answer(RequestID(1), .disk("damaged"))])
  #expect(machine.handle(.joinRequested(RequestID(2), gardenName, garden), at: start) == [.restore(garden)])
}

@Test func theSixtyFifthChannelIsRefused() throws {
  var machine = login()
  for number in 0..<UInt64(64) {
    let channel = ChannelID(Bytes32(words: (number, 0, 0, 0)))
    let effects = machine.handle(
      .joinRequested(RequestID(number), try ChannelName("c\(number)"), channel), at: start)
    #expect(effects == [.restore(channel)])
  }
  #expect(
    machine.handle(.joinRequested(RequestID(99), gardenName, garden), at: start)
      == [.answer(RequestID(99), .tooMany(countMax: 64))])
}

@Test func leavingTellsTheOthersAndIsRefusedTwice() {
  var machine = login()
  _ = machine.handle(.joinRequested(RequestID(1), gardenName, garden), at: start)
  _ = machine.handle(restored(garden), at: start)
  #expect(
    machine.handle(.leaveRequested(RequestID(2), gardenName), at: start) == [
      .tell(.membership(.left(garden))), .tell(.messaging(.left(garden))), .tell(.media(.channelClosed(garden))),
      .closed(gardenName, garden), .answer(RequestID(2), .done),
    ])
  #expect(
    machine.handle(.leaveRequested(RequestID(3), gardenName), at: start) == [.answer(RequestID(3), .notInChannel)])
}

@Test func whoIsStartedElsewhereUnderAHigherIncarnationEndsTheLogin() {
  var machine = login(incarnation: 3)
  _ = machine.handle(.joinRequested(RequestID(1), gardenName, garden), at: start)
  _ = machine.handle(restored(garden), at: start)
  #expect(machine.handle(.seenElsewhere(incarnation: 2, isAfterUs: true), at: start) == [])
  #expect(machine.handle(.seenElsewhere(incarnation: 3, isAfterUs: false), at: start) == [])
  let effects = machine.handle(.seenElsewhere(incarnation: 4, isAfterUs: false), at: start)
  #expect(effects.first == .tell(.membership(.left(garden))))
  #expect(effects.last == .stateChanged(.aborted, reason: "the same identity was started elsewhere"))
  #expect(
    machine.handle(.joinRequested(RequestID(2), gardenName, garden), at: start) == [.answer(RequestID(2), .aborted)])
}

@Test func aRaisedIncarnationIsOursFromThenOn() {
  var machine = login(incarnation: 3)
  #expect(machine.handle(.incarnationRaised(9), at: start) == [])
  #expect(machine.handle(.seenElsewhere(incarnation: 8, isAfterUs: true), at: start) == [])
  #expect(machine.state == .connected)
  _ = machine.handle(.seenElsewhere(incarnation: 9, isAfterUs: true), at: start)
  #expect(machine.state == .aborted)
}

/// They waited for ever.
@Test func joinsOnTheirWayAreAnsweredWhenTheLoginEnds() {
  var machine = login()
  _ = machine.handle(.joinRequested(RequestID(1), gardenName, garden), at: start)
  #expect(
    machine.handle(.loggedOut, at: start) == [
      .answer(RequestID(1), .aborted), .stateChanged(.disconnected, reason: "logged out"),
    ])
  #expect(machine.handle(restored(garden), at: start) == [])
}
