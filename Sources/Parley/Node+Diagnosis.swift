import Glibc
import ParleyActors
import ParleyVocabulary

/// Looks at what the node counted and at the machine it runs on.
extension Node {
  /// What works of the network and this machine, what does not, and what to try. Sends nothing; of a node that does not
  /// run it tells only what the machine is like.
  public func diagnosis() async -> Diagnosis {
    let status = await status()
    var facts = Diagnosing.Facts()
    facts.state = status.state
    facts.channelCount = status.channels.count
    facts.troubles = status.troubles
    facts.tcpPort = status.tcpPort
    facts.freeByteCount = Self.freeByteCount(at: settings.home)
    facts.clock = Int64(SystemClock.wallMilliseconds() / 1_000)
    facts.secondsAhead = await secondsAhead(in: status.channels.map(\.name))
    if let report = await engine?.links.report() {
      facts.interfaces = Self.interfaces(report)
      facts.reached = report.sessions.map { .init(peer: $0.peer, address: $0.address.description) }
      facts.unreachable = report.traffic.failures.values.sorted { $0.at > $1.at }
        .filter { Self.isRecent($0.at, report.now) }
        .map { .init(address: $0.address.description, reason: $0.reason) }
    }
    return Diagnosis(
      interfaces: facts.interfaces, reached: facts.reached, unreachable: facts.unreachable,
      findings: Diagnosing.findings(facts))
  }

  /// Whoever could not be reached long ago may be gone for good.
  private static func isRecent(_ moment: Instant, _ now: Instant) -> Bool { now - moment < .seconds(600) }

  private static func interfaces(_ report: LinksReport) -> [Diagnosis.Interface] {
    report.interfaces.map { state in
      let counted = report.traffic.interfaces[state.name] ?? Traffic.Interface()
      let sources = counted.sources.sorted { $0.value > $1.value }.map { host($0.key) }
      return Diagnosis.Interface(
        name: state.name.escapedLine, addresses: state.addresses.map { host($0.host) }, trouble: state.trouble,
        sentCount: counted.sentCount, returnedCount: counted.returnedCount, heardCount: counted.heardCount,
        otherVersionCount: counted.otherVersionCount, heardFrom: sources,
        sendFailure: report.sendFailures[state.name]?.reason)
    }
  }

  private static func host(_ bytes: [UInt8]) -> String {
    let text = Address(host: bytes, port: 0).description.dropLast(2)
    return text.hasPrefix("[") ? String(text.dropFirst().dropLast()) : String(text)
  }

  private static func freeByteCount(at path: String) -> UInt64? {
    var state = statvfs()
    guard statvfs(path, &state) == 0 else { return nil }
    let (bytes, overflow) = UInt64(state.f_bavail).multipliedReportingOverflow(by: UInt64(state.f_frsize))
    return overflow ? .max : bytes
  }

  /// By how much the newest messages of others are ahead of this clock; nil when by no more than 5 s.
  private func secondsAhead(in channels: [ChannelName]) async -> Int64? {
    let now = Int64(SystemClock.wallMilliseconds() / 1_000)
    var most: Int64 = 5
    for name in channels {
      for message in (try? await history(of: name, before: nil, limit: 50)) ?? [] where message.sender != peerID {
        guard let said = Timestamp(rfc3339: message.timestamp) else { continue }
        most = max(most, said.milliseconds / 1_000 - now)
      }
    }
    return most > 5 ? most : nil
  }
}
