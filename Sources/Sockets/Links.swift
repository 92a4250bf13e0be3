import CUV
import Glibc
import ParleyTransport
import ParleyVocabulary

/// The sockets of one address of one interface.
final class Endpoint {
  let local: LocalAddress
  let unicast: DatagramSocket
  let hearing: DatagramSocket
  var listener: Listener?

  init(_ local: LocalAddress, multicastPort: UInt16, _ transport: UVTransport) throws(SocketError) {
    self.local = local
    unicast = try DatagramSocket.unicast(local, transport)
    do throws(SocketError) {
      hearing = try DatagramSocket.hearing(local, port: multicastPort, transport)
    } catch {
      unicast.close()
      throw error
    }
  }

  func close() {
    unicast.close()
    hearing.close()
    listener?.close()
  }
}

/// The interfaces in use and their sockets, kept in step with what the system has.
final class Links {
  /// Milliseconds.
  private static let watchInterval: UInt64 = 2_000
  /// How many ports to try when one that is free on one address is taken on another.
  private static let portTryCountMax = 20

  private let settings: TransportSettings
  private unowned let transport: UVTransport
  private var endpoints: [Endpoint] = []
  private var timer: LoopTimer?
  private var watch: InterfaceWatch?
  private(set) var states: [InterfaceState] = []
  /// The common port of all listeners; 0 until there is one.
  private(set) var tcpPort: UInt16

  init(_ settings: TransportSettings, _ transport: UVTransport) {
    self.settings = settings
    self.transport = transport
    tcpPort = settings.tcpPort
  }

  func start() throws(TransportError) {
    let existing: [NetworkInterface]
    do throws(SocketError) { existing = try NetworkInterface.all() } catch { throw .system(error.description) }
    for name in settings.interfaces where !existing.contains(where: { $0.name == name }) {
      throw .noSuchInterface(name: name, existing: existing.map(\.name))
    }
    let failure = reconcile(existing)
    if let failure, failure.code == -EADDRINUSE || failure.code == -EACCES || endpoints.isEmpty {
      close()
      throw .cannotListen(port: settings.tcpPort, reason: failure.reason)
    }
    let timer = LoopTimer(transport.loop.loop) { [unowned self] in look() }
    timer.start(milliseconds: Self.watchInterval, repeating: Self.watchInterval)
    self.timer = timer
    // Without it the timer alone finds changes.
    watch = try? InterfaceWatch(transport.loop.loop) { [unowned self] in changed($0) }
  }

  func close() {
    for endpoint in endpoints { endpoint.close() }
    endpoints = []
    timer?.close()
    watch?.close()
    timer = nil
    watch = nil
  }

  private func changed(_ removals: Set<InterfaceWatch.Removal>) {
    endpoints.removeAll { endpoint in
      let isLost = removals.contains {
        $0.index == endpoint.local.index && ($0.host == nil || $0.host == endpoint.local.host)
      }
      if isLost { endpoint.close() }
      return isLost
    }
    look()
  }

  private func look() {
    let before = states
    // When the system cannot list its interfaces now (no descriptor left), what we have goes on.
    if let existing = try? NetworkInterface.all() { _ = reconcile(existing) }
    if states != before { transport.deliver(.interfacesChanged(states)) }
    transport.wakeIfDue()
  }

  var sendFailures: [String: SendFailures] {
    var failures: [String: SendFailures] = [:]
    for endpoint in endpoints {
      guard let reason = endpoint.unicast.sendFailure else { continue }
      failures[endpoint.local.interface, default: SendFailures(count: 0, reason: reason)].count +=
        endpoint.unicast.sendFailureCount
    }
    return failures
  }

  // MARK: datagrams and routes

  func multicast(_ datagram: [UInt8]) {
    for endpoint in endpoints {
      let group = MulticastGroup.address(for: endpoint.local, port: settings.multicastPort)
      endpoint.unicast.send(datagram, to: group)
    }
  }

  /// Where to send from, and the address with the scope the system needs.
  func route(to address: Address) -> (Endpoint, Address)? {
    let family = endpoints.filter { $0.local.isIPv6 == address.isIPv6 }
    if address.host.needsScope {
      guard let endpoint = family.first(where: { address.scope == 0 || $0.local.index == address.scope }) else {
        return nil
      }
      return (endpoint, Address(host: address.host, port: address.port, scope: endpoint.local.index))
    }
    return (family.first { $0.local.subnetContains(address) } ?? family.first).map { ($0, address) }
  }

  // MARK: keeping in step

  /// Closes what is gone, opens what is new, tries again what failed. Returns why listening failed, if it did.
  private func reconcile(_ existing: [NetworkInterface]) -> SocketError? {
    let chosen = existing.filter {
      settings.interfaces.isEmpty ? $0.isChosenUnnamed : settings.interfaces.contains($0.name)
    }
    let wanted = chosen.flatMap(\.locals)
    for endpoint in endpoints where !wanted.contains(endpoint.local) { endpoint.close() }
    endpoints.removeAll { !wanted.contains($0.local) }

    var troubles: [String: [String]] = [:]
    var fresh: [Endpoint] = []
    for local in wanted where !endpoints.contains(where: { $0.local == local }) {
      do throws(SocketError) {
        fresh.append(try Endpoint(local, multicastPort: settings.multicastPort, transport))
      } catch {
        // A link-local address that is new is tentative for a second or two (RFC 4862, 5.4); it tells when it is ready.
        if local.isIPv6, error.code == -EADDRNOTAVAIL { continue }
        troubles[local.interface, default: []].append(error.description)
      }
    }
    let (listening, failures) = listen(fresh)
    endpoints += listening
    for (local, error) in failures { troubles[local.interface, default: []].append(error.description) }
    // The system's order, so that the same interfaces give the same states.
    endpoints.sort { (wanted.firstIndex(of: $0.local) ?? 0) < (wanted.firstIndex(of: $1.local) ?? 0) }
    describe(chosen, troubles)
    return failures.first?.1
  }

  /// Opens a listener for each, all on the common port; those that get none are closed.
  private func listen(_ fresh: [Endpoint]) -> ([Endpoint], [(LocalAddress, SocketError)]) {
    var failures: [(LocalAddress, SocketError)] = []
    for attempt in 1...Self.portTryCountMax {
      var port = tcpPort
      var isTaken = false
      failures = []
      for endpoint in fresh {
        do throws(SocketError) {
          let listener = try Listener(endpoint.local, port: port, transport)
          endpoint.listener = listener
          port = listener.port
        } catch {
          isTaken = isTaken || error.code == -EADDRINUSE
          failures.append((endpoint.local, error))
        }
      }
      if tcpPort != 0 || !isTaken || attempt == Self.portTryCountMax {
        if fresh.contains(where: { $0.listener != nil }) { tcpPort = port }
        break
      }
      for endpoint in fresh {
        endpoint.listener?.close()
        endpoint.listener = nil
      }
    }
    for endpoint in fresh where endpoint.listener == nil { endpoint.close() }
    return (fresh.filter { $0.listener != nil }, failures)
  }

  private func describe(_ chosen: [NetworkInterface], _ troubles: [String: [String]]) {
    states = chosen.map { interface in
      let addresses = endpoints.filter { $0.local.interface == interface.name }.map(\.unicast.address)
      var trouble = troubles[interface.name]?.joined(separator: "; ")
      if trouble == nil, addresses.isEmpty { trouble = interface.whyUnused }
      return InterfaceState(name: interface.name, addresses: addresses, trouble: trouble)
    }
    for name in settings.interfaces where !chosen.contains(where: { $0.name == name }) {
      if states.contains(where: { $0.name == name }) { continue }
      states.append(InterfaceState(name: name, addresses: [], trouble: "it is gone"))
    }
  }
}
