import ParleyVocabulary

/// Names one TCP connection within a node; the lower half is dialled by us, the numbers are never reused in a run.
package struct ConnectionID: Hashable, Sendable, CustomStringConvertible {
  package let value: UInt64
  package init(_ value: UInt64) { self.value = value }
  package var description: String { "connection \(value)" }
}

/// What a node asks of the network when it starts.
package struct TransportSettings: Sendable, Equatable {
  /// Names of interfaces to use; empty: every one that is up and can multicast, loopback excluded.
  package var interfaces: [String]
  /// TCP port to listen on; 0 lets the system choose.
  package var tcpPort: UInt16
  package var multicastPort: UInt16
  package init(interfaces: [String] = [], tcpPort: UInt16 = 0, multicastPort: UInt16 = 45_800) {
    self.interfaces = interfaces
    self.tcpPort = tcpPort
    self.multicastPort = multicastPort
  }
}

/// One interface in use, and why one is not.
package struct InterfaceState: Sendable, Equatable {
  package let name: String
  /// Our unicast addresses there, each with the port of its datagram socket.
  package let addresses: [Address]
  /// Nil when all of it works; else a sentence for people. `addresses` tells what works nevertheless.
  package let trouble: String?
  package init(name: String, addresses: [Address], trouble: String?) {
    self.name = name
    self.addresses = addresses
    self.trouble = trouble
  }
}

/// What came on a connection. Bytes that still lie in the transport's memory are there until the handler returns: who
/// keeps them copies them.
///
/// `@unchecked Sendable`: what is borrowed goes from the transport to its handler, on one thread, and no further.
package struct ReceivedBytes: @unchecked Sendable, Equatable {
  private enum Memory {
    case own([UInt8])
    case borrowed(UnsafeRawBufferPointer)
  }

  private let memory: Memory

  package init(_ bytes: [UInt8]) { memory = .own(bytes) }
  package init(borrowing bytes: UnsafeRawBufferPointer) { memory = .borrowed(bytes) }

  package var count: Int {
    switch memory {
    case .own(let bytes): bytes.count
    case .borrowed(let bytes): bytes.count
    }
  }

  package var copy: [UInt8] {
    switch memory {
    case .own(let bytes): bytes
    case .borrowed(let bytes): [UInt8](bytes)
    }
  }

  package func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    switch memory {
    case .own(let bytes): bytes.withUnsafeBytes(body)
    case .borrowed(let bytes): body(bytes)
    }
  }

  package static func == (a: Self, b: Self) -> Bool { a.copy == b.copy }
}

/// What the network did. Delivered on the transport's executor, one at a time.
package enum TransportEvent: Sendable, Equatable {
  case datagram([UInt8], from: Address, interface: String)
  /// Somebody dialled us. Reading has begun.
  case accepted(ConnectionID, from: Address)
  /// A dial of ours succeeded.
  case connected(ConnectionID)
  case received(ConnectionID, ReceivedBytes)
  /// The connection ended, for whatever reason (a dial that failed included). Nothing follows for this ID. When the
  /// other side stops sending, the connection ends once what is queued has gone out; what is written later is lost.
  case closed(ConnectionID, reason: String)
  /// Of what could not be sent at once, less than the low-water mark (256 KiB) still waits.
  case writable(ConnectionID)
  /// After `start`, not by it.
  case interfacesChanged([InterfaceState])
  /// Somebody dialled, and there are hardly descriptors left: whoever is wanted least should make room.
  case starved
  /// The moment given to `wake(at:)` has come.
  case woke
}

/// Datagrams that the system did not take.
package struct SendFailures: Sendable, Equatable {
  package var count: UInt64
  /// Of the newest, for people.
  package var reason: String
  package init(count: UInt64, reason: String) {
    self.count = count
    self.reason = reason
  }
}

package enum TransportError: Error, Sendable, Equatable, CustomStringConvertible {
  case noSuchInterface(name: String, existing: [String])
  case noUsableInterface([InterfaceState])
  case cannotListen(port: UInt16, reason: String)
  case system(String)

  package var description: String {
    switch self {
    case .noSuchInterface(let name, let existing):
      "there is no interface \(name.escapedLine); there are: \(existing.map(\.escapedLine).joined(separator: ", "))"
    case .noUsableInterface(let states):
      "no interface can be used"
        + states.map { "; \($0.name.escapedLine): \($0.trouble ?? "works")" }.joined()
        + ": connect to a network, or use the loopback interface (--interface lo)"
    case .cannotListen(let port, let reason): "cannot listen on TCP port \(port): \(reason)"
    case .system(let text): text
    }
  }
}

/// Multicast and unicast datagrams, TCP and one timer. All calls are made on `executor`; none blocks, and none calls
/// the handler before it returns: events come from the executor's own loop, so that who is called is never entered
/// twice. Calls for a connection that has ended are without effect, since its `.closed` may be on its way. Sockets
/// gives the real one (libuv), Simulation another.
package protocol Transport: AnyObject, Sendable {
  /// Where events arrive and calls must be made. An actor that returns this as its executor is entered without a hop,
  /// and its task, when it prefers this executor, goes on here after every wait.
  var executor: any SerialExecutor & TaskExecutor { get }

  /// Monotonic, goes on while the machine sleeps (CLOCK_BOOTTIME).
  func now() -> Instant

  /// Opens the sockets. Events go to `handler` until `stop()`.
  func start(_ settings: TransportSettings, handler: @escaping @Sendable (TransportEvent) -> Void)
    throws(TransportError)
  /// The TCP port in use; valid after `start`. 0 while there is no interface to listen on and no port was asked for:
  /// read it again at `.interfacesChanged`.
  var tcpPort: UInt16 { get }
  var interfaces: [InterfaceState] { get }
  /// Datagrams that the system did not take, by interface.
  var sendFailures: [String: SendFailures] { get }

  /// Sends one datagram on every interface in use. Best effort. It comes back to us too, from each.
  func multicast(_ datagram: [UInt8])
  func send(_ datagram: [UInt8], to address: Address)

  /// Begins to dial; `.connected` or `.closed` follows.
  func connect(_ connection: ConnectionID, to address: Address)
  /// Draws the ID for a dial.
  func nextConnectionID() -> ConnectionID
  /// Queues bytes, also before `.connected`. The caller watches `queuedByteCount` and waits for `.writable`.
  func write(_ bytes: [UInt8], to connection: ConnectionID)
  func queuedByteCount(_ connection: ConnectionID) -> Int
  /// Stops or goes on reading, for back-pressure.
  func setReading(_ reading: Bool, _ connection: ConnectionID)
  /// Closes; with `afterWrites` once what is queued has gone out. `.closed` follows.
  func close(_ connection: ConnectionID, afterWrites: Bool)

  /// One timer: a later call replaces the earlier moment; nil cancels.
  func wake(at instant: Instant?)
  /// Closes everything; the handler is not called again once this returns. Jobs on `executor` still run. May be called
  /// twice; a transport is not started again.
  func stop()
}

extension Transport {
  package var sendFailures: [String: SendFailures] { [:] }
}
