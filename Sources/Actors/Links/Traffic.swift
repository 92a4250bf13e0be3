import ParleyTransport
import ParleyVocabulary

/// What went out and came in since the node started: for people who wonder why they hear nobody, and for graphs. Of
/// what others can make many of, only the newest are kept.
package struct Traffic: Sendable, Equatable {
  /// Datagrams of one network interface.
  package struct Interface: Sendable, Equatable {
    /// To the group.
    package var sentCount: UInt64 = 0
    /// Our own that came back: multicast works as far as this machine goes.
    package var returnedCount: UInt64 = 0
    /// Of others, for whichever channel.
    package var heardCount: UInt64 = 0
    /// Of nodes that speak another version of the protocol.
    package var otherVersionCount: UInt64 = 0
    /// Hosts heard, each with when last.
    package var sources: [[UInt8]: Instant] = [:]

    package init() {}
  }

  /// A dial that came to nothing.
  package struct Failure: Sendable, Equatable {
    package let address: Address
    package let reason: String
    package let at: Instant
  }

  private static let sourcesMax = 64
  private static let failuresMax = 64

  package private(set) var interfaces: [String: Interface] = [:]
  /// By host: the newest, until a dial there succeeds.
  package private(set) var failures: [[UInt8]: Failure] = [:]
  package var datagramsSent: UInt64 = 0
  package var datagramBytesSent: UInt64 = 0
  package var datagramsHeard: UInt64 = 0
  package var datagramBytesHeard: UInt64 = 0
  /// Of channels that are none of ours.
  package var datagramsForeign: UInt64 = 0
  /// Let go because messaging was behind.
  package var datagramsDropped: UInt64 = 0
  package var chatBytesSent: UInt64 = 0
  package var chatBytesHeard: UInt64 = 0
  package var mediaBytesSent: UInt64 = 0
  package var mediaBytesHeard: UInt64 = 0
  package var sessionsOpened: UInt64 = 0
  package var dialsFailed: UInt64 = 0
  /// Questions for entries that were missed, and entries that came in answer.
  package var wantsSent: UInt64 = 0
  package var wantsHeard: UInt64 = 0
  package var entriesRepaired: UInt64 = 0
  package var entriesServed: UInt64 = 0

  package init() {}

  mutating func multicast(_ byteCount: Int, on states: [InterfaceState]) {
    for state in states where !state.addresses.isEmpty {
      interfaces[state.name, default: Interface()].sentCount += UInt64(state.addresses.count)
      datagramsSent += UInt64(state.addresses.count)
      datagramBytesSent += UInt64(byteCount * state.addresses.count)
    }
  }

  mutating func unicast(_ byteCount: Int) {
    datagramsSent += 1
    datagramBytesSent += UInt64(byteCount)
  }

  mutating func returned(on interface: String) { interfaces[interface, default: Interface()].returnedCount += 1 }

  mutating func heard(_ byteCount: Int, from address: Address, on interface: String, at now: Instant) {
    datagramsHeard += 1
    datagramBytesHeard += UInt64(byteCount)
    interfaces[interface, default: Interface()].heardCount += 1
    interfaces[interface]!.sources[address.host] = now
    guard interfaces[interface]!.sources.count > Self.sourcesMax,
      let oldest = interfaces[interface]!.sources.min(by: { $0.value < $1.value })
    else { return }
    interfaces[interface]!.sources[oldest.key] = nil
  }

  /// What is no datagram of this version of the protocol: one of another version begins alike.
  mutating func unknown(_ datagram: [UInt8], on interface: String) {
    guard datagram.count > 2, datagram[0] == 0x50, datagram[1] == 0x4C else { return }
    interfaces[interface, default: Interface()].otherVersionCount += 1
  }

  mutating func dialFailed(_ address: Address, _ reason: String, at now: Instant) {
    dialsFailed += 1
    failures[address.host] = Failure(address: address, reason: reason, at: now)
    guard failures.count > Self.failuresMax, let oldest = failures.min(by: { $0.value.at < $1.value.at })
    else { return }
    failures[oldest.key] = nil
  }

  mutating func sessionOpened(with address: Address) {
    sessionsOpened += 1
    failures[address.host] = nil
  }
}

/// How the node stands with the network now.
package struct LinksReport: Sendable {
  package struct Session: Sendable {
    package let peer: PeerID
    package let address: Address
  }
  package let traffic: Traffic
  package let interfaces: [InterfaceState]
  package let sendFailures: [String: SendFailures]
  /// One for each peer and purpose that has a session.
  package let sessions: [Session]
  package let halfOpenCount: Int
  package let now: Instant
}

extension LinksActor {
  package func report() -> LinksReport {
    let sessions = connections.values.compactMap { connection in
      connection.session.flatMap { session in
        session.purpose == .chat ? LinksReport.Session(peer: session.peer, address: connection.remote) : nil
      }
    }
    return LinksReport(
      traffic: traffic, interfaces: transport.interfaces, sendFailures: transport.sendFailures,
      sessions: sessions.sorted { $0.peer < $1.peer }, halfOpenCount: halfOpen.count, now: transport.now())
  }
}
