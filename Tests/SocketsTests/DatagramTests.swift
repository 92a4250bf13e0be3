import ParleyTransport
import ParleyVocabulary
import Testing

@Suite(.timeLimit(.minutes(1)))
struct DatagramTests {
  @Test func multicastReachesEveryNodeOnTheHostItselfIncluded() async throws {
    let stations = [Station(), Station(), Station()]
    for station in stations { try await station.start(multicastPort: 46_001) }
    for (number, sender) in stations.enumerated() {
      let word = [UInt8](repeating: UInt8(number), count: 1_232)
      await sender.run { $0.multicast(word) }
      let address = try #require(await sender.run { $0.interfaces.first?.addresses.first })
      for hearer in stations {
        let heard = await hearer.datagram()
        #expect(heard == Heard(bytes: word, from: address, interface: "lo"))
      }
    }
    for station in stations { await station.run { $0.stop() } }
  }

  @Test func answersGoToTheNodeThatAskedAndToNoOther() async throws {
    let (asker, bystander, answerer) = (Station(), Station(), Station())
    for station in [asker, bystander, answerer] { try await station.start(multicastPort: 46_002) }
    await asker.run { $0.multicast([1]) }
    let question = await answerer.datagram()
    #expect(await bystander.datagram() == question)
    await answerer.run { $0.send([2], to: question.from) }
    #expect(await asker.datagram { $0 == [2] }.bytes == [2])
    // What the bystander would have got by mistake would have come before this.
    await answerer.run { $0.multicast([3]) }
    #expect(await bystander.datagram().bytes == [3])
    for station in [asker, bystander, answerer] { await station.run { $0.stop() } }
  }

  @Test func unicastToTheMulticastPortIsNotHeard() async throws {
    let (sender, hearer) = (Station(), Station())
    for station in [sender, hearer] { try await station.start(multicastPort: 46_003) }
    await sender.run {
      $0.send([1], to: .loopback(46_003))
      $0.multicast([2])
    }
    #expect(await hearer.datagram().bytes == [2])
    for station in [sender, hearer] { await station.run { $0.stop() } }
  }

  @Test func aBurstArrivesInOrder() async throws {
    let (sender, hearer) = (Station(), Station())
    for station in [sender, hearer] { try await station.start(multicastPort: 46_004) }
    let address = try #require(await hearer.run { $0.interfaces.first?.addresses.first })
    // 100 datagrams fit into any system's default receive buffer.
    await sender.run { transport in
      for number in 0..<100 { transport.send([UInt8](repeating: UInt8(number), count: 200), to: address) }
    }
    for number in 0..<100 { #expect(await hearer.datagram().bytes == [UInt8](repeating: UInt8(number), count: 200)) }
    for station in [sender, hearer] { await station.run { $0.stop() } }
  }

  @Test func theLoopbackInterfaceHasOneAddressAndNoTrouble() async throws {
    let station = Station()
    try await station.start(multicastPort: 46_005, interfaces: ["lo", "lo"])
    let states = await station.run { $0.interfaces }
    #expect(states.map(\.name) == ["lo"])
    #expect(states.first?.trouble == nil)
    #expect(states.first?.addresses.map(\.host) == [[127, 0, 0, 1]])
    #expect(states.first?.addresses.first?.port != 46_005)
    await station.run { $0.stop() }
  }

  @Test func anUnknownInterfaceIsRefusedWithTheNamesThereAre() async {
    let station = Station()
    do throws(TransportError) {
      try await station.start(multicastPort: 46_006, interfaces: ["lo", "nothere0"])
      Issue.record("started without its interface")
    } catch {
      guard case .noSuchInterface(let name, let existing) = error else {
        Issue.record("\(error)")
        return
      }
      #expect(name == "nothere0")
      #expect(existing.contains("lo"))
    }
    await station.run { $0.stop() }
  }
}
