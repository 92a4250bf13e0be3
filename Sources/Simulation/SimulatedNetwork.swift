import ParleyMachines
import ParleySealing
import ParleyVocabulary
import ParleyWire

/// Parley nodes without sockets, disks or clocks: their machines are those that ship, all around them is simulated from
/// a seed, so a run can be repeated exactly. Datagrams are lost, doubled, reordered and delayed; ways are cut; nodes
/// crash, lose what was not committed, and start again. What must never happen is checked at every step.
///
/// ```swift
/// let network = SimulatedNetwork(seed: 7, loss: 0.1)
/// let ana = network.addNode("Ana"), ben = network.addNode("Ben")
/// for node in [ana, ben] { network.join(node, "garden") }
/// network.send(ana, "garden", "Hello World")
/// network.run(until: { network.history(ben, "garden") == ["Hello World"] }, within: .seconds(5))
/// ```
public final class SimulatedNetwork {
  enum Happening {
    case datagram(Datagram, to: Int, at: Address?)
    case wake(Int, run: Int, Room)
    case event(Int, run: Int, NodeEvent)
    case commit(Int, run: Int, UInt64)
    case sync(Int, run: Int)
    case stream(StreamArrival)
    case dial(DialAttempt, number: Int)
    case accepted(StreamID)
    case action((SimulatedNetwork) -> Void)
  }

  struct Way: Hashable {
    let from: Int
    let to: Int
  }

  struct Datagram {
    let channel: ChannelID
    let instance: Instance
    let from: Address
    let content: Content
    let byteCount: Int
    /// Of an owned channel: under which it is sealed.
    var generation: GenerationID?

    enum Content {
      case read([DatagramFrame])
      /// Each who hears it opens it.
      case sealed([UInt8])
    }
  }

  public let seed: UInt64
  public let sealing: SimulatedSealing
  /// May be changed while the network runs.
  public var conditions: SimulatedConditions
  /// What must not happen and did, the first one first.
  public internal(set) var violations: [String] = []
  /// Whether what is done to messages is compared, too.
  var hasDeeds = false
  var clock = ManualClock()
  var queue = EventQueue<Happening>()
  var dice: Jitter
  var nodes: [SimulatedNode] = []
  var streams: [StreamID: Stream] = [:]
  var nextStream: UInt64 = 1
  var cuts: Set<Way> = []
  var indices: [PeerID: Int] = [:]
  /// Real keys by channel, and every channel's identifier by its name.
  var channelKeys: [ChannelID: ChannelKeys] = [:]
  private(set) var channelIDs: [ChannelName: ChannelID] = [:]
  /// Of channels with an owner.
  var ownerships: [ChannelID: ChannelOwnership] = [:]
  var hosts: [[UInt8]: Int] = [:]
  var checker = Checker()
  private var stepsAtThisMoment = 0
  private var nextGhostCheck = Instant(microseconds: 0)
  public private(set) var stepCount = 0
  /// How often somebody was announced as offline who was running and in the channel: right when the ways were cut,
  /// else a false alarm.
  public internal(set) var falseAlarmCount = 0

  public init(seed: UInt64, conditions: SimulatedConditions, sealing: SimulatedSealing = .fake) {
    self.seed = seed
    self.conditions = conditions
    self.sealing = sealing
    dice = Jitter(seed: seed)
  }

  public convenience init(seed: UInt64, loss: Double = 0) {
    self.init(seed: seed, conditions: SimulatedConditions(loss: loss))
  }

  /// Since the simulation's start.
  public var now: Instant { clock.now }

  func node(of peer: PeerID) -> SimulatedNode? { indices[peer].map { nodes[$0] } }

  func channel(named name: ChannelName) -> ChannelID {
    if let known = channelIDs[name] { return known }
    var id = FakeSealer.channel(named: name)
    if sealing == .real {
      let keys = ChannelKeys.open(name: name)
      id = keys.id
      channelKeys[id] = keys
    }
    channelIDs[name] = id
    return id
  }

  // MARK: Running

  /// Lets so much simulated time pass. Ends early when something happened that must not.
  public func run(for span: Span) { run(until: { false }, within: span) }

  /// Runs until the condition holds, which is looked at every 20 ms of simulated time; false when it does not within
  /// `span` or when something happened that must not.
  @discardableResult
  public func run(until condition: () -> Bool, within span: Span) -> Bool {
    let end = now + span
    var next = now
    while violations.isEmpty {
      if now >= next {
        if condition() { return true }
        next = now + .milliseconds(20)
        if now >= nextGhostCheck {
          // With a thousand nodes there are a million pairs to look at.
          nextGhostCheck = now + (nodes.count > 64 ? .seconds(300) : .seconds(5))
          checkGhosts()
          checkOrders()
        }
      }
      let limit = min(next, end)
      if let at = queue.nextAt, at <= limit {
        step()
      } else {
        clock.move(to: limit)
        stepsAtThisMoment = 0
        if limit == end { return condition() }
      }
    }
    return false
  }

  private func step() {
    let (at, happening) = queue.takeFirst()!
    if at > now {
      clock.move(to: at)
      stepsAtThisMoment = 0
    }
    stepCount += 1
    stepsAtThisMoment += 1
    if stepsAtThisMoment > 200_000 { violate("time stands still: \(happening)") }
    switch happening {
    case .datagram(let datagram, let index, let address): deliver(datagram, to: index, at: address)
    case .wake(let index, let run, let room): nodes[index].wake(room, run: run)
    case .event(let index, let run, let event): nodes[index].post(event, run: run)
    case .commit(let index, let run, let id): nodes[index].commit(id, run: run)
    case .sync(let index, let run): nodes[index].sync(run: run)
    case .stream(let arrival): deliver(arrival)
    case .dial(let attempt, let number): tryDial(attempt, number: number)
    case .accepted(let stream): accept(stream)
    case .action(let act): act(self)
    }
  }

  func schedule(_ happening: Happening, after span: Span) { queue.add(happening, at: now + span) }

  /// Does something at a moment from now on.
  public func after(_ span: Span, _ act: @escaping (SimulatedNetwork) -> Void) { schedule(.action(act), after: span) }

  func violate(_ what: String) {
    let milliseconds = (now.microseconds - 1_000_000_000) / 1_000
    violations.append("at \(milliseconds) ms: \(what)")
  }

  func chance(_ probability: Double) -> Bool {
    probability > 0 && Double(dice.next() >> 11) / Double(1 << 53) < probability
  }

  // MARK: Datagrams

  func isCut(_ from: Int, _ to: Int) -> Bool {
    !nodes[from].isHostUp || !nodes[to].isHostUp || !cuts.isEmpty && cuts.contains(Way(from: from, to: to))
  }

  func loss(_ from: Int, _ to: Int) -> Double {
    guard conditions.differsByWay else { return conditions.loss }
    var own = Jitter(seed: seed ^ UInt64(from << 16 + to))
    return min(0.9, conditions.loss * (0.5 + Double(own.next() >> 11) / Double(1 << 53)))
  }

  func delay() -> Span { dice.span(conditions.delay.lowerBound, conditions.delay.upperBound) }

  func multicast(_ datagram: Datagram, from: Int) {
    nodes[from].traffic.sentDatagram(datagram.byteCount)
    for to in nodes.indices where to != from { carry(datagram, from, to, at: nil) }
  }

  func unicast(_ datagram: Datagram, from: Int, to address: Address) {
    nodes[from].traffic.sentDatagram(datagram.byteCount)
    guard let to = hosts[address.host] else { return }
    carry(datagram, from, to, at: address)
  }

  private func carry(_ datagram: Datagram, _ from: Int, _ to: Int, at address: Address?) {
    guard !isCut(from, to), !chance(loss(from, to)) else { return }
    let copies = chance(conditions.duplication) ? 2 : 1
    for _ in 0..<copies {
      var late = delay()
      if chance(conditions.reordering) { late = late + dice.span(.milliseconds(1), .milliseconds(200)) }
      schedule(.datagram(datagram, to: to, at: address), after: late)
    }
    if chance(conditions.replay) {
      schedule(.datagram(datagram, to: to, at: address), after: dice.span(.milliseconds(200), .seconds(30)))
    }
  }

  private func deliver(_ datagram: Datagram, to index: Int, at address: Address?) {
    let node = nodes[index]
    guard node.isHostUp, let process = node.process else { return }
    if let address { guard process.datagramAddress == address else { return } }
    node.traffic.heardDatagram(datagram.byteCount)
    guard !node.isPaused else {
      // A socket's buffer: what does not fit is lost.
      if node.heldDatagrams.count < 200 { node.heldDatagrams.append(datagram) }
      return
    }
    process.heard(datagram)
  }

  // MARK: Ways

  /// Cuts the ways from the first nodes to the second, and back unless `oneWay`.
  public func partition(_ some: [SimulatedNodeID], from others: [SimulatedNodeID], oneWay: Bool = false) {
    for a in some {
      for b in others where a != b {
        cuts.insert(Way(from: a.index, to: b.index))
        if !oneWay { cuts.insert(Way(from: b.index, to: a.index)) }
      }
    }
  }

  /// Opens all ways.
  public func heal() {
    cuts = []
    flushStreams()
  }
}
