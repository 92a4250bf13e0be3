import ParleyTransport
import ParleyVocabulary
import Testing

@Suite(.timeLimit(.minutes(1)))
struct LoopTests {
  @Test func jobsFromElsewhereRunOnTheLoop() async {
    let station = Station()
    #expect(station.transport.executor.isIsolatingCurrentContext() == false)
    let answers = await withTaskGroup(of: Bool?.self) { group in
      for _ in 0..<1_000 {
        group.addTask { await station.run { $0.executor.isIsolatingCurrentContext() } }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(answers.count == 1_000)
    #expect(answers.allSatisfy { $0 == true })
    await station.run { $0.stop() }
  }

  @Test func jobsStillRunOnceStopped() async throws {
    let station = Station()
    try await station.start(multicastPort: 46_201)
    await station.run {
      $0.stop()
      $0.stop()
    }
    for _ in 0..<100 { await Task.yield() }
    // Each may find the thread gone; one job must not run beside another.
    let answers = await withTaskGroup(of: Bool?.self) { group in
      for _ in 0..<100 { group.addTask { await station.run { $0.executor.isIsolatingCurrentContext() } } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(answers.allSatisfy { $0 == true })
    await station.run {
      $0.multicast([1])
      $0.stop()
    }
    #expect(await station.unread == [])
  }

  @Test func wakesComeWhenDueAndTheLastCallCounts() async throws {
    let station = Station()
    try await station.start(multicastPort: 46_202)
    for milliseconds in [0, 20, 5] {
      let due = await station.run { transport in
        transport.wake(at: transport.now() + .seconds(50))
        transport.wake(at: nil)
        let due = transport.now() + .milliseconds(milliseconds)
        transport.wake(at: due)
        return due
      }
      await station.next { $0 == .woke ? () : nil }
      #expect(await station.run { $0.now() } >= due)
    }
    #expect(await station.unread == [])
    await station.run { $0.stop() }
  }

  /// A node whose timer is due all the time must still hear its sockets.
  @Test func wakesSetForNowDoNotStarveTheSockets() async throws {
    let restless = Station { station, event in
      if event == .woke { station.transport.wake(at: station.transport.now()) }
    }
    let dialler = Station()
    for station in [restless, dialler] { try await station.start(multicastPort: 46_204) }
    await restless.run { $0.wake(at: $0.now()) }
    await restless.next { $0 == .woke ? () : nil }
    let out = await dialler.dial(port: await restless.run { $0.tcpPort })
    #expect(await dialler.connected() == out)
    _ = await restless.accepted()
    for station in [restless, dialler] { await station.run { $0.stop() } }
  }

  @Test func stoppingEndsOpenConnectionsAndEvents() async throws {
    let (dialler, listener) = (Station(), Station())
    for station in [dialler, listener] { try await station.start(multicastPort: 46_203) }
    let out = await dialler.dial(port: await listener.run { $0.tcpPort })
    _ = await dialler.connected()
    _ = await listener.accepted()
    await listener.run {
      $0.wake(at: $0.now() + .seconds(5))
      $0.stop()
    }
    _ = await dialler.closed(out)
    #expect(await listener.unread == [])
    #expect(await listener.run { $0.interfaces } == [])
    await dialler.run { $0.stop() }
  }
}
