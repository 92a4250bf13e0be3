import ParleyActors
import ParleyTransport
import ParleyVocabulary
import Synchronization

/// A network that only remembers what it was asked to do.
final class FakeTransport: Transport {
  struct State {
    var handler: (@Sendable (TransportEvent) -> Void)?
    var multicasts: [[UInt8]] = []
    var written: [ConnectionID: [UInt8]] = [:]
    var closed: [ConnectionID] = []
    var queuedByteCount: [ConnectionID: Int] = [:]
    var isReading: [ConnectionID: Bool] = [:]
    var stopCount = 0
    var dialledCount: UInt64 = 0
    var dials: [Address] = []
  }

  let thread = ThreadExecutor()
  let state = Mutex(State())
  let failure: TransportError?

  init(failure: TransportError? = nil) { self.failure = failure }

  deinit { thread.stop() }

  var executor: any SerialExecutor & TaskExecutor { thread }
  func now() -> Instant { Instant(microseconds: 1_000_000) }

  func start(
    _ settings: TransportSettings, handler: @escaping @Sendable (TransportEvent) -> Void
  ) throws(TransportError) {
    if let failure { throw failure }
    state.withLock { $0.handler = handler }
  }

  var tcpPort: UInt16 { 4_000 }
  var interfaces: [InterfaceState] { [InterfaceState(name: "lo", addresses: [], trouble: nil)] }
  func multicast(_ datagram: [UInt8]) { state.withLock { $0.multicasts.append(datagram) } }
  func send(_ datagram: [UInt8], to address: Address) {}
  func connect(_ connection: ConnectionID, to address: Address) { state.withLock { $0.dials.append(address) } }
  func nextConnectionID() -> ConnectionID {
    state.withLock { state in
      state.dialledCount += 1
      return ConnectionID(state.dialledCount)
    }
  }
  func write(_ bytes: [UInt8], to connection: ConnectionID) {
    state.withLock { $0.written[connection, default: []] += bytes }
  }
  func queuedByteCount(_ connection: ConnectionID) -> Int { state.withLock { $0.queuedByteCount[connection] ?? 0 } }
  func setReading(_ reading: Bool, _ connection: ConnectionID) {
    state.withLock { $0.isReading[connection] = reading }
  }
  func close(_ connection: ConnectionID, afterWrites: Bool) { state.withLock { $0.closed.append(connection) } }
  func wake(at instant: Instant?) {}
  func stop() {
    state.withLock { state in
      state.stopCount += 1
      state.handler = nil
    }
  }
}
