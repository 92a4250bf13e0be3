import CUV
import Glibc
import ParleyTransport
import ParleyVocabulary

/// The real network, through libuv, on a thread of its own.
///
/// `start` throws when a named interface does not exist or TCP cannot listen. Everything else is no reason not to
/// start, not even that there is no interface at all (a laptop before it joins the Wi-Fi): those that cannot be used
/// are in `interfaces` with their trouble and are tried again when the system reports a change and every 2 seconds;
/// `.interfacesChanged` tells when that changed something. While there is nothing to listen on, a `tcpPort` that the
/// system shall choose is 0; once chosen it stays for the run. An address that changes gets new sockets, hence another
/// datagram port.
///
/// Our own multicasts come back to us, as to every other node on this host. Multicast is heard only from the interfaces
/// in use, TCP listens only on their addresses, and dials leave only from these addresses.
///
/// `@unchecked Sendable`: every stored property but the constant `loop` is touched on the loop's thread only; each call
/// of `Transport` traps elsewhere, and all else is called by these and by libuv's callbacks, which run there.
package final class UVTransport: Transport, @unchecked Sendable {
  private enum Phase {
    /// → `started`: `start` succeeds. → `stopped`: `stop`.
    case idle
    /// → `stopped`: `stop`.
    case started
    case stopped
  }

  /// Milliseconds. Connections that are waited for are looked at so often.
  private static let deadlineInterval: UInt64 = 200
  private static let acceptedIDBase: UInt64 = 1 << 63

  let loop: LoopExecutor
  let readBuffer = ReadBuffer()
  private var phase = Phase.idle
  private var handler: (@Sendable (TransportEvent) -> Void)?
  private var links: Links?
  private var connections: [ConnectionID: Connection] = [:]
  private(set) var acceptedCount = 0
  let acceptedCountMax: Int
  private var dialledIDCount: UInt64 = 0
  private var acceptedIDCount: UInt64 = 0
  private var wakeTimer: LoopTimer?
  private var deadlineTimer: LoopTimer?
  private var wakeInstant: Instant?

  /// Starts the loop's thread; throws when the system has neither descriptors nor memory for it.
  package init() throws(TransportError) {
    do throws(SocketError) { loop = try LoopExecutor() } catch { throw .system(error.description) }
    acceptedCountMax = StreamLimit.acceptedCountMax(descriptorCountMax: Self.descriptorCountMax)
  }

  private static var descriptorCountMax: Int {
    var limit = rlimit()
    return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? Int(clamping: limit.rlim_cur) : 1_024
  }

  deinit { loop.end() }

  package var executor: any SerialExecutor & TaskExecutor { loop }

  package func now() -> Instant {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return Instant(microseconds: UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1_000)
  }

  // MARK: start and stop

  package func start(_ settings: TransportSettings, handler: @escaping @Sendable (TransportEvent) -> Void)
    throws(TransportError)
  {
    loop.checkIsolated()
    guard case .idle = phase else { preconditionFailure("a transport is started once") }
    let links = Links(settings, self)
    try links.start()
    self.links = links
    self.handler = handler
    phase = .started
    if wakeInstant != nil { armWake() }
  }

  package func stop() {
    loop.checkIsolated()
    guard phase != .stopped else { return }
    phase = .stopped
    handler = nil
    links?.close()
    links = nil
    for connection in connections.values { connection.finish(afterWrites: false) }
    wakeTimer?.close()
    deadlineTimer?.close()
    wakeTimer = nil
    deadlineTimer = nil
    loop.end()
  }

  /// Only from the loop's callbacks, so that no caller is entered while it calls us.
  func deliver(_ event: TransportEvent) { handler?(event) }

  package var tcpPort: UInt16 {
    loop.checkIsolated()
    return links?.tcpPort ?? 0
  }

  package var interfaces: [InterfaceState] {
    loop.checkIsolated()
    return links?.states ?? []
  }

  package var sendFailures: [String: SendFailures] {
    loop.checkIsolated()
    return links?.sendFailures ?? [:]
  }

  // MARK: datagrams

  package func multicast(_ datagram: [UInt8]) {
    loop.checkIsolated()
    links?.multicast(datagram)
  }

  package func send(_ datagram: [UInt8], to address: Address) {
    loop.checkIsolated()
    guard let (endpoint, address) = links?.route(to: address) else { return }
    endpoint.unicast.send(datagram, to: address)
  }

  // MARK: connections

  package func nextConnectionID() -> ConnectionID {
    loop.checkIsolated()
    dialledIDCount += 1
    return ConnectionID(dialledIDCount)
  }

  func nextAcceptedID() -> ConnectionID {
    acceptedIDCount += 1
    return ConnectionID(Self.acceptedIDBase + acceptedIDCount)
  }

  package func connect(_ id: ConnectionID, to address: Address) {
    loop.checkIsolated()
    guard case .started = phase else { return }
    precondition(connections[id] == nil && id.value <= dialledIDCount, "\(id) was drawn and not used")
    let connection = Connection(id, self, isAccepted: false)
    connections[id] = connection
    if let (endpoint, address) = links?.route(to: address) {
      connection.dial(address, from: endpoint.local)
    } else {
      connection.fail("cannot connect: no interface in use has \(address.isIPv6 ? "IPv6" : "IPv4")")
    }
  }

  func admit(_ connection: Connection, from address: Address) {
    connections[connection.id] = connection
    acceptedCount += 1
    deliver(.accepted(connection.id, from: address))
    if !connection.isClosing { connection.begin() }
  }

  /// Those that were never admitted end silently.
  func ended(_ connection: Connection, reason: String) {
    guard connections.removeValue(forKey: connection.id) != nil else { return }
    if connection.isAccepted { acceptedCount -= 1 }
    deliver(.closed(connection.id, reason: reason))
  }

  package func write(_ bytes: [UInt8], to id: ConnectionID) {
    loop.checkIsolated()
    connections[id]?.write(bytes)
  }

  package func queuedByteCount(_ id: ConnectionID) -> Int {
    loop.checkIsolated()
    return connections[id]?.queuedByteCount ?? 0
  }

  package func setReading(_ reading: Bool, _ id: ConnectionID) {
    loop.checkIsolated()
    connections[id]?.setReading(reading)
  }

  package func close(_ id: ConnectionID, afterWrites: Bool) {
    loop.checkIsolated()
    connections[id]?.finish(afterWrites: afterWrites)
  }

  func watchDeadlines() {
    guard phase == .started else { return }
    let timer = deadlineTimer ?? LoopTimer(loop.loop) { [unowned self] in expireDeadlines() }
    deadlineTimer = timer
    if !timer.isRunning { timer.start(milliseconds: Self.deadlineInterval, repeating: Self.deadlineInterval) }
  }

  private func expireDeadlines() {
    let now = now()
    var isAnyLeft = false
    for connection in connections.values {
      guard let deadline = connection.deadline else { continue }
      if deadline <= now { connection.expire() } else { isAnyLeft = true }
    }
    if !isAnyLeft { deadlineTimer?.stop() }
  }

  // MARK: the timer

  package func wake(at instant: Instant?) {
    loop.checkIsolated()
    wakeInstant = instant
    if case .started = phase { armWake() }
  }

  private func armWake() {
    guard let wakeInstant else {
      wakeTimer?.stop()
      return
    }
    let timer = wakeTimer ?? LoopTimer(loop.loop) { [unowned self] in wakeIfDue() }
    wakeTimer = timer
    let microseconds = UInt64((wakeInstant - now()).microseconds)
    // At least a millisecond: libuv before 1.45 runs a timer set for now within the round that is running, for ever if
    // its callback sets it again, and reads no socket meanwhile.
    timer.start(milliseconds: max(1, (microseconds + 999) / 1_000))
  }

  /// libuv's timers stand still while the machine sleeps and round to milliseconds; `now()` decides. `Links` asks every
  /// 2 seconds, so that a wake is at most so late after a sleep.
  func wakeIfDue() {
    guard phase == .started, let instant = wakeInstant else { return }
    guard instant <= now() else { return armWake() }
    wakeInstant = nil
    wakeTimer?.stop()
    deliver(.woke)
  }
}
