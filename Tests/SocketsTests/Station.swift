import ParleySockets
import ParleyTransport
import ParleyVocabulary

/// A transport with an actor on its loop, as the node's link actor is. Keeps events until a test asks for them.
actor Station {
  typealias Reaction = @Sendable (isolated Station, TransportEvent) -> Void

  private struct Waiter {
    let take: (TransportEvent) -> Bool
  }

  nonisolated let transport = try! UVTransport()
  nonisolated var unownedExecutor: UnownedSerialExecutor { transport.executor.asUnownedSerialExecutor() }
  private(set) var unread: [TransportEvent] = []
  private var waiters: [Waiter] = []
  private let reaction: Reaction

  init(_ reaction: @escaping Reaction = { _, _ in }) { self.reaction = reaction }

  func start(
    multicastPort: UInt16, interfaces: [String] = ["lo"], tcpPort: UInt16 = 0
  ) throws(TransportError) {
    let settings = TransportSettings(interfaces: interfaces, tcpPort: tcpPort, multicastPort: multicastPort)
    try transport.start(settings) { event in self.assumeIsolated { $0.handle(event) } }
  }

  /// Runs `body` on the loop, where the transport's calls are made.
  func run<Value: Sendable>(_ body: @Sendable (UVTransport) -> Value) -> Value { body(transport) }

  private func handle(_ event: TransportEvent) {
    reaction(self, event)
    var event = event
    // It is kept longer than the transport keeps the bytes.
    if case .received(let id, let bytes) = event { event = .received(id, ReceivedBytes(bytes.copy)) }
    if let index = waiters.firstIndex(where: { $0.take(event) }) {
      waiters.remove(at: index)
    } else {
      unread.append(event)
    }
  }

  /// The first event, past or to come, of which `pick` makes something; it is taken out.
  func next<Value: Sendable>(_ pick: @escaping @Sendable (TransportEvent) -> Value?) async -> Value {
    for (index, event) in unread.enumerated() {
      if let value = pick(event) {
        unread.remove(at: index)
        return value
      }
    }
    return await withCheckedContinuation { continuation in
      waiters.append(
        Waiter { event in
          guard let value = pick(event) else { return false }
          continuation.resume(returning: value)
          return true
        })
    }
  }

  func datagram(where isWanted: @escaping @Sendable ([UInt8]) -> Bool = { _ in true }) async -> Heard {
    await next {
      if case .datagram(let bytes, let from, let interface) = $0, isWanted(bytes) {
        return Heard(bytes: bytes, from: from, interface: interface)
      }
      return nil
    }
  }

  func accepted() async -> ConnectionID {
    await next { if case .accepted(let id, _) = $0 { id } else { nil } }
  }

  func connected() async -> ConnectionID {
    await next { if case .connected(let id) = $0 { id } else { nil } }
  }

  func closed(_ wanted: ConnectionID) async -> String {
    await next { if case .closed(wanted, let reason) = $0 { reason } else { nil } }
  }

  func received(_ id: ConnectionID, byteCount: Int) async -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < byteCount {
      bytes += await next { if case .received(id, let bytes) = $0 { bytes.copy } else { nil } }
    }
    return bytes
  }

  func dial(port: UInt16) -> ConnectionID {
    let id = transport.nextConnectionID()
    transport.connect(id, to: .loopback(port))
    return id
  }
}

struct Heard: Sendable, Equatable {
  let bytes: [UInt8]
  let from: Address
  let interface: String
}

extension Address {
  static func loopback(_ port: UInt16) -> Address { Address(host: [127, 0, 0, 1], port: port) }
}

/// Bytes in which a lost, doubled or swapped piece shows.
func pattern(byteCount: Int) -> [UInt8] {
  var state: UInt32 = 0x9e37_79b9
  return [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
    for index in 0..<byteCount {
      state = state &* 1_664_525 &+ 1_013_904_223
      buffer.initializeElement(at: index, to: UInt8(state >> 24))
    }
    count = byteCount
  }
}
