/// Draws conclusions from what was counted. No clock, no I/O: the same facts give the same findings.
struct Diagnosing {
  /// What was found out.
  struct Facts {
    var interfaces: [Diagnosis.Interface] = []
    var reached: [Diagnosis.Reached] = []
    var unreachable: [Diagnosis.Unreachable] = []
    var state = ConnectionState.connected
    var channelCount = 0
    var troubles: [String] = []
    var tcpPort: UInt16 = 0
    /// Where the home is; nil when that could not be asked.
    var freeByteCount: UInt64?
    /// Seconds that the newest message of somebody is ahead of this clock; nil when none is by more than 5.
    var secondsAhead: Int64?
    /// Seconds since 1970 of this clock.
    var clock: Int64 = 0
  }

  /// Datagrams of our own that must have come back before their lack says something.
  static let sentEnough: UInt64 = 3
  /// Below this the disk is told of, and below a tenth of it, it is a problem; bytes.
  static let freeLittle: UInt64 = 1_000_000_000
  /// 2025-01-01: whatever runs this was built later.
  static let clockMin: Int64 = 1_735_689_600

  static func findings(_ facts: Facts) -> [Diagnosis.Finding] {
    var findings = network(facts)
    for interface in facts.interfaces { findings += multicast(interface, facts) }
    findings += tcp(facts)
    findings += machine(facts)
    return findings
  }

  private static func network(_ facts: Facts) -> [Diagnosis.Finding] {
    if facts.state == .aborted {
      return [
        .init(
          .problem, "started_elsewhere", "this identity was started on another machine, where it goes on",
          advice: "use it there, or run a node of its own here with another --home")
      ]
    }
    guard facts.interfaces.contains(where: { !$0.addresses.isEmpty }) else {
      return [
        .init(
          .problem, "no_interface", "no network interface can be used",
          advice: "connect to a network; to try it out on this machine alone: parley up --interface lo")
      ]
    }
    guard facts.channelCount > 0 else {
      return [
        .init(
          .notice, "no_channel", "this node is in no channel, so it sends nothing and nobody can hear it",
          advice: "join one: parley join CHANNEL --open; then ask again")
      ]
    }
    return []
  }

  private static func multicast(_ interface: Diagnosis.Interface, _ facts: Facts) -> [Diagnosis.Finding] {
    let name = interface.name
    if let trouble = interface.trouble {
      let isUsed = !interface.addresses.isEmpty
      return [
        .init(isUsed ? .notice : .problem, "interface_trouble", "\(name): \(trouble)", advice: "see ip address")
      ]
    }
    if let failure = interface.sendFailure {
      return [
        .init(
          .problem, "send_refused", "\(name): the system does not send our datagrams: \(failure)",
          advice: "a firewall of this machine may forbid it: allow UDP to 239.255.80.76 port 45800 going out")
      ]
    }
    guard interface.sentCount >= sentEnough else { return [] }
    if interface.returnedCount == 0 {
      return [
        .init(
          .problem, "own_datagrams_lost",
          "\(name): \(interface.sentCount) datagrams were sent and none of them came back to this machine",
          advice: "a firewall of this machine most likely drops them: allow UDP port 45800 coming in (ufw allow "
            + "45800/udp; firewall-cmd --add-port=45800/udp)")
      ]
    }
    var findings: [Diagnosis.Finding] = []
    if interface.otherVersionCount > 0 {
      findings.append(
        .init(
          .problem, "other_version", "\(name): there are nodes that speak another version of the protocol",
          advice: "use the same version of Parley everywhere: parley --version"))
    }
    if interface.heardCount == 0 {
      findings.append(
        .init(
          .notice, "nobody_heard",
          "\(name): our datagrams come back, but no other node is heard: either nobody else runs one, or this network "
            + "keeps its members apart (client isolation, as guest Wi-Fi does)",
          advice: "try another Wi-Fi or a cable, or name a node: parley up --peer HOST:PORT (the port is in its parley "
            + "status)"))
    } else {
      let hosts = interface.heardFrom.count
      let nodes = hosts == 1 ? "one host" : "\(hosts) hosts"
      findings.append(
        .init(.good, "multicast_works", "\(name): our datagrams come back, and other nodes are heard from \(nodes)"))
    }
    return findings
  }

  private static func tcp(_ facts: Facts) -> [Diagnosis.Finding] {
    var findings: [Diagnosis.Finding] = []
    for host in facts.unreachable {
      findings.append(
        .init(
          .problem, "tcp_unreachable", "\(host.address) cannot be reached over TCP: \(host.reason)",
          advice: "a firewall over there may forbid it: fix a port with parley up --port N and allow it there; the "
            + "machine may also just be gone"))
    }
    if !facts.reached.isEmpty {
      let count = Set(facts.reached.map(\.peer)).count
      let people = count == 1 ? "one other node" : "\(count) other nodes"
      findings.append(.init(.good, "tcp_works", "a session stands with \(people)"))
    }
    return findings
  }

  private static func machine(_ facts: Facts) -> [Diagnosis.Finding] {
    var findings = facts.troubles.map {
      Diagnosis.Finding(.problem, "trouble", $0, advice: "see what the node printed; it tries again by itself")
    }
    if let free = facts.freeByteCount {
      let text = "\(free / 1_000_000) MB are free where the home is"
      if free < freeLittle {
        findings.append(
          .init(
            free < freeLittle / 10 ? .problem : .notice, "disk_nearly_full", text,
            advice: "make room: what cannot be kept is not confirmed to anybody"))
      } else {
        findings.append(.init(.good, "disk_has_room", text))
      }
    }
    findings.append(clock(facts))
    return findings
  }

  private static func clock(_ facts: Facts) -> Diagnosis.Finding {
    let advice = "set it by the network: timedatectl set-ntp true"
    if facts.clock < clockMin {
      return .init(.problem, "clock_wrong", "this machine's clock is years behind", advice: advice)
    }
    if let ahead = facts.secondsAhead {
      return .init(
        .problem, "clocks_differ",
        "somebody's newest message is \(ahead) s in the future by this machine's clock: one of the two clocks is wrong",
        advice: advice)
    }
    return .init(.good, "clock_right", "nothing that others sent is in the future by this clock")
  }
}
