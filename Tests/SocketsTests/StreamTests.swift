import Glibc
import ParleyTransport
import ParleyVocabulary
import Testing

@testable import ParleySockets

@Suite(.timeLimit(.minutes(1)))
struct StreamTests {
  /// Sends everything back; reads no faster than the other side takes it.
  private static let echo: Station.Reaction = { station, event in
    let transport = station.transport
    switch event {
    case .received(let id, let bytes):
      transport.write(bytes.copy, to: id)
      if transport.queuedByteCount(id) > 1 << 20 { transport.setReading(false, id) }
    case .writable(let id): transport.setReading(true, id)
    case .datagram, .accepted, .connected, .closed, .interfacesChanged, .starved, .woke: break
    }
  }

  private func pair(_ multicastPort: UInt16, _ reaction: @escaping Station.Reaction = { _, _ in }) async throws
    -> (dialler: Station, listener: Station, out: ConnectionID, in: ConnectionID)
  {
    let (dialler, listener) = (Station(), Station(reaction))
    for station in [dialler, listener] { try await station.start(multicastPort: multicastPort) }
    let out = await dialler.dial(port: await listener.run { $0.tcpPort })
    #expect(await dialler.connected() == out)
    return (dialler, listener, out, await listener.accepted())
  }

  private func stop(_ stations: Station...) async {
    for station in stations { await station.run { $0.stop() } }
  }

  @Test func fiveMegabytesComeBackWhole() async throws {
    let (dialler, listener, out, _) = try await pair(46_101, Self.echo)
    let bytes = pattern(byteCount: 5_000_000)
    await dialler.run { transport in
      for start in stride(from: 0, to: bytes.count, by: 32_000) {
        transport.write([UInt8](bytes[start..<min(bytes.count, start + 32_000)]), to: out)
      }
    }
    let back = await dialler.received(out, byteCount: bytes.count)
    #expect(back == bytes)
    await stop(dialler, listener)
  }

  @Test func acceptedAndDialledNumbersDiffer() async throws {
    let (dialler, listener, out, accepted) = try await pair(46_102)
    #expect(out.value < 1 << 63)
    #expect(accepted.value >= 1 << 63)
    await stop(dialler, listener)
  }

  @Test func closingAfterWritesDeliversEverything() async throws {
    let (dialler, listener, out, accepted) = try await pair(46_103)
    let bytes = pattern(byteCount: 4_000_000)
    // Unread bytes on the closing side would make a plain close reset the connection.
    await listener.run { $0.write([UInt8](repeating: 7, count: 300_000), to: accepted) }
    await dialler.run {
      $0.setReading(false, out)
      $0.write(bytes, to: out)
      $0.close(out, afterWrites: true)
      $0.write([9], to: out)
    }
    #expect(await listener.received(accepted, byteCount: bytes.count) == bytes)
    #expect(await listener.closed(accepted) == "the other side closed the connection")
    _ = await dialler.closed(out)
    await stop(dialler, listener)
  }

  @Test func writesBeforeTheConnectionStandsAreSent() async throws {
    let (dialler, listener) = (Station(), Station())
    for station in [dialler, listener] { try await station.start(multicastPort: 46_104) }
    let port = await listener.run { $0.tcpPort }
    let out = await dialler.run { transport in
      let id = transport.nextConnectionID()
      transport.connect(id, to: .loopback(port))
      transport.write([1, 2, 3], to: id)
      transport.close(id, afterWrites: true)
      return id
    }
    let accepted = await listener.accepted()
    #expect(await listener.received(accepted, byteCount: 3) == [1, 2, 3])
    _ = await listener.closed(accepted)
    _ = await dialler.closed(out)
    await stop(dialler, listener)
  }

  @Test func whoStopsSendingStillReceives() async throws {
    let listener = Station(Self.echo)
    try await listener.start(multicastPort: 46_105)
    let client = Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    defer { Glibc.close(client) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = await listener.run { $0.tcpPort }.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let connected = withUnsafeBytes(of: &address) {
      Glibc.connect(client, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
    }
    try #require(connected == 0)
    let question = pattern(byteCount: 50_000)
    try #require(Glibc.send(client, question, question.count, 0) == question.count)
    try #require(Glibc.shutdown(client, CInt(SHUT_WR)) == 0)
    let accepted = await listener.accepted()
    var answer: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while case let count = Glibc.recv(client, &chunk, chunk.count, 0), count > 0 { answer += chunk[..<count] }
    #expect(answer == question)
    #expect(await listener.closed(accepted) == "the other side closed the connection")
    await stop(listener)
  }

  @Test func aDialThatNobodyAnswersCloses() async throws {
    let (dialler, gone) = (Station(), Station())
    for station in [dialler, gone] { try await station.start(multicastPort: 46_106) }
    let port = await gone.run { transport in
      let port = transport.tcpPort
      transport.stop()
      return port
    }
    let id = await dialler.dial(port: port)
    #expect(await dialler.closed(id).hasPrefix("cannot connect: "))
    #expect(await dialler.run { $0.queuedByteCount(id) } == 0)
    await stop(dialler)
  }

  @Test func aFamilyWithoutInterfaceCannotBeDialled() async throws {
    let station = Station()
    try await station.start(multicastPort: 46_107)
    let id = await station.run { transport in
      let id = transport.nextConnectionID()
      transport.connect(id, to: Address(host: [UInt8](repeating: 0, count: 15) + [1], port: 9))
      return id
    }
    #expect(await station.closed(id) == "cannot connect: no interface in use has IPv6")
    await stop(station)
  }

  @Test func whatWaitsIsCountedAndItsEndIsTold() async throws {
    let (dialler, listener, out, accepted) = try await pair(46_108) { station, event in
      if case .accepted(let id, _) = event { station.transport.setReading(false, id) }
    }
    let chunk = pattern(byteCount: 256 << 10)
    let (chunkCount, queued) = await dialler.run { transport in
      var chunkCount = 0
      while transport.queuedByteCount(out) <= 2 << 20, chunkCount < 1_000 {
        transport.write(chunk, to: out)
        chunkCount += 1
      }
      return (chunkCount, transport.queuedByteCount(out))
    }
    #expect(queued > 2 << 20)
    await listener.run { $0.setReading(true, accepted) }
    await dialler.next { $0 == .writable(out) ? () : nil }
    #expect(await dialler.run { $0.queuedByteCount(out) } < 256 << 10)
    let bytes = await listener.received(accepted, byteCount: chunkCount * chunk.count)
    #expect(bytes == (0..<chunkCount).flatMap { _ in chunk })
    await stop(dialler, listener)
  }

  @Test func twoNodesCannotListenOnOnePort() async throws {
    let (first, second) = (Station(), Station())
    try await first.start(multicastPort: 46_109)
    let port = await first.run { $0.tcpPort }
    await #expect(throws: TransportError.cannotListen(port: port, reason: "address already in use")) {
      try await second.start(multicastPort: 46_109, tcpPort: port)
    }
    await stop(first, second)
  }

  @Test func moreCallersThanAllowedAreTurnedAway() async throws {
    let (dialler, listener) = (Station(), Station())
    for station in [dialler, listener] { try await station.start(multicastPort: 46_110) }
    let port = await listener.run { $0.tcpPort }
    let first = await dialler.dial(port: port)
    let firstAccepted = await listener.accepted()
    // So many more are let in while those that make room are being closed.
    let countMax = await listener.run { $0.acceptedCountMax } + StreamLimit.acceptedWhileClosingMax
    for _ in 1..<countMax {
      _ = await dialler.dial(port: port)
      _ = await listener.accepted()
    }
    let extra = await dialler.dial(port: port)
    _ = await dialler.closed(extra)
    // One leaves, another finds its place.
    await dialler.run { $0.close(first, afterWrites: true) }
    _ = await dialler.closed(first)
    _ = await listener.closed(firstAccepted)
    let late = await dialler.dial(port: port)
    let accepted = await listener.accepted()
    await listener.run { $0.write([1], to: accepted) }
    #expect(await dialler.received(late, byteCount: 1) == [1])
    await stop(dialler, listener)
  }
}
