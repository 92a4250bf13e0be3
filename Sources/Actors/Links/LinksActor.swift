import ParleyMachines
import ParleySealing
import ParleyTransport
import ParleyVocabulary
import ParleyWire

/// Carries bytes: opens and seals datagrams and sessions, and runs the links machine. Its executor is the transport's
/// thread, so what the network does enters it without a hop.
package actor LinksActor {
  package nonisolated let transport: any Transport
  let identity: Identity
  let instance: Instance
  let switchboard: Switchboard
  /// Keeps an owned channel's keys on the disk; must not block.
  let keep: @Sendable (ChannelKeys) -> Void
  var machine: LinksMachine
  /// Of the channels that are open.
  var keys: [ChannelID: ChannelKeys] = [:]
  /// Of joins under way, and how many of each.
  private var offered: [ChannelID: (keys: ChannelKeys, count: Int)] = [:]
  /// How often more a channel was opened than closed. Login opens and membership closes: when somebody leaves and joins
  /// again at once, the new opening can come before the old closing, which then must not end it.
  private var openCounts: [ChannelID: Int] = [:]
  /// Somebody asks for a generation, and says so in the channel.
  var isRotatingByHand = false
  var tags = TagTable()
  var connections: [ConnectionID: Connection] = [:]
  var byLink: [LinkID: Connection] = [:]
  /// Half-open ones that others dialled, oldest first.
  var halfOpen: [ConnectionID] = []
  var nextAccepted: UInt64 = 1
  /// How often others dialled, by address, and shook hands, by identity.
  var dialsIn: ConnectionMeters
  /// The header of the datagram whose frames are being handled: what is sealed for us inside was sealed with it.
  var currentHeader: ArraySlice<UInt8> = []
  var machineWake: Instant?
  var traffic = Traffic()
  private var sleepers: [Sleeper: Instant] = [:]
  /// As they were told last.
  private var interfaceStates: [InterfaceState] = []
  /// Messaging has more waiting than it should: sessions are not read until it has caught up.
  var isHeldBack = false
  /// Bytes of chat handed on since messaging last had next to nothing to do.
  var chatBacklog = 0
  var isMediaHeldBack = false
  /// Bytes handed to the media actor and not worked off.
  var mediaBacklog = 0

  package nonisolated var unownedExecutor: UnownedSerialExecutor { transport.executor.asUnownedSerialExecutor() }

  package init(
    _ machine: LinksMachine, identity: Identity, transport: any Transport, switchboard: Switchboard,
    keep: @escaping @Sendable (ChannelKeys) -> Void = { _ in }
  ) {
    self.keep = keep
    self.machine = machine
    dialsIn = ConnectionMeters(machine.limits)
    self.identity = identity
    instance = machine.instance
    self.transport = transport
    self.switchboard = switchboard
  }

  /// Opens the sockets; when that fails, the transport's thread ends.
  package func start(_ settings: TransportSettings) throws(TransportError) {
    do throws(TransportError) {
      try transport.start(settings) { event in self.assumeIsolated { $0.happened(event) } }
    } catch {
      transport.stop()
      throw error
    }
    machine.tcpPort = transport.tcpPort
    report(transport.interfaces)
  }

  /// Runs until the switchboard closes, then lets what is queued go out and closes everything.
  package func run() async {
    while true {
      let mail = await switchboard.links.next()
      if mail.isEmpty { break }
      for letter in mail { take(letter) }
    }
    transport.stop()
  }

  package var sessionCount: Int { machine.sessionCount }
  package var tcpPort: UInt16 { transport.tcpPort }
  package var interfaces: [InterfaceState] { transport.interfaces }

  /// Channels of other people heard within the last ten seconds, a node a channel counting one.
  package func foreignCount() -> Int {
    let now = transport.now()
    return tags.foreignCount(since: Instant(microseconds: now.microseconds - min(now.microseconds, 10_000_000)))
  }

  func take(_ letter: LinksMail) {
    switch letter {
    case .event(.channelOpened(let channel)): open(channel)
    case .event(.channelClosed(let channel)): close(channel)
    case .event(.trustChanged(let channel, let trust)):
      step(.trustChanged(channel, trust))
      endMedia(ofRefused: trust)
    case .event(let event): step(event)
    case .install(let channelKeys): offered[channelKeys.id, default: (channelKeys, 0)].count += 1
    case .uninstall(let channel):
      offered[channel]?.count -= 1
      if offered[channel]?.count == 0 { offered[channel] = nil }
    case .openMedia(let link, let peer): openMedia(link, peer)
    case .sendMedia(let link, let payloads): sendMedia(link, payloads)
    case .closeMedia(let link): byLink[link].map { transport.close($0.id, afterWrites: true) }
    case .wake(let sleeper, let instant):
      if let due = sleepers[sleeper], due <= instant { break }
      sleepers[sleeper] = instant
      schedule()
    case .mediaRelieved(let byteCount): relieveMedia(byteCount)
    }
  }

  private func open(_ channel: ChannelID) {
    openCounts[channel, default: 0] += 1
    guard openCounts[channel] == 1 else { return }
    keys[channel] = offered[channel]?.keys
    tags.reset()
    restoreGenerations(channel)
    step(.channelOpened(channel))
  }

  private func close(_ channel: ChannelID) {
    guard let count = openCounts[channel] else { return }
    openCounts[channel] = count == 1 ? nil : count - 1
    guard count == 1 else { return }
    step(.channelClosed(channel))
    keys[channel] = nil
    tags.reset()
  }

  // MARK: The transport

  private func happened(_ event: TransportEvent) {
    switch event {
    case .datagram(let bytes, let address, let interface): datagram(bytes, address, interface)
    case .accepted(let id, let remote): accepted(id, remote)
    case .connected(let id): connected(id)
    case .received(let id, let bytes): received(id, bytes)
    case .closed(let id, let reason): closed(id, reason)
    case .writable(let id): writable(id)
    case .interfacesChanged(let states):
      // A node that started without a network has only now a port to be dialled at.
      machine.tcpPort = transport.tcpPort
      report(states)
    case .starved: endOldestHalfOpen()
    case .woke: woke()
    }
  }

  private func report(_ states: [InterfaceState]) {
    switchboard.notices(
      .interfaces(
        states.map { state in
          let addresses = state.addresses.map(\.description).joined(separator: " ")
          return "\(state.name.escapedLine): " + (state.trouble.map { "not used: \($0)" } ?? addresses)
        }))
    switchboard.post(.login(NetworkNews(from: interfaceStates, to: states).event))
    interfaceStates = states
  }

  private func woke() {
    let now = transport.now()
    if let at = machineWake, at <= now {
      machineWake = nil
      step(.woke)
    }
    for (sleeper, at) in sleepers where at <= now {
      sleepers[sleeper] = nil
      switchboard.post(sleeper == .messaging ? .messaging(.woke) : .membership(.woke))
    }
    for connection in connections.values where connection.isHalfOpen && connection.handshakeEnd <= now {
      connection.isGivenUp = true
      transport.close(connection.id, afterWrites: false)
    }
    if isHeldBack, switchboard.messaging.count < BacklogRule.countToGoOn {
      isHeldBack = false
      chatBacklog = 0
      for connection in connections.values where connection.session?.purpose == .chat {
        transport.setReading(true, connection.id)
      }
    }
    schedule()
  }

  func schedule() {
    var due = sleepers.values.min()
    if let machineWake { due = due.map { min($0, machineWake) } ?? machineWake }
    if let end = connections.values.lazy.filter(\.isHalfOpen).map(\.handshakeEnd).min() {
      due = due.map { min($0, end) } ?? end
    }
    if isHeldBack {
      let soon = transport.now() + .milliseconds(5)
      due = due.map { min($0, soon) } ?? soon
    }
    transport.wake(at: due)
  }

  // MARK: Datagrams

  private func datagram(_ bytes: [UInt8], _ address: Address, _ interface: String) {
    guard let header = DatagramHeader.parse(bytes) else { return traffic.unknown(bytes, on: interface) }
    guard header.instance != instance else { return traffic.returned(on: interface) }
    let now = transport.now()
    traffic.heard(bytes.count, from: address, on: interface, at: now)
    guard let channel = tags.channel(header.tag, header.instance, keys, now) else {
      traffic.datagramsForeign += 1
      return
    }
    guard let channelKeys = keys[channel],
      let generation = channelKeys.generation(tag: header.tag, of: header.instance),
      let body = DatagramSealer.open(bytes, generation: generation),
      let frames = try? DatagramFrame.decodeAll(body)
    else { return }
    // Datagrams are let go while messaging has too much to do: whoever misses something asks for it.
    guard switchboard.messaging.count < BacklogRule.datagramCountMax else {
      traffic.datagramsDropped += 1
      return
    }
    currentHeader = bytes[..<DatagramHeader.byteCount]
    step(
      .datagramOpened(
        channel, header.instance, from: address, frames, under: channelKeys.ownership == nil ? nil : generation.id))
  }

  private func seal(_ channel: ChannelID, _ frames: [DatagramFrame], _ direct: DirectFor?) -> [UInt8]? {
    guard let channelKeys = keys[channel] else { return nil }
    var body = ByteWriter(reserving: 512)
    for frame in frames { frame.write(to: &body) }
    let plain = direct.map { (to: $0.peer, plaintext: $0.message.encoded) }
    do {
      return try DatagramSealer.seal(
        frames: body.bytes, direct: plain, identity: identity, channel: channelKeys, instance: instance)
    } catch {
      switchboard.notices(.trouble("a datagram was not sent: \(error)"))
      return nil
    }
  }

  /// Signs what must be signed.
  func wire(_ frame: OutboundFrame, _ channel: ChannelID) -> DatagramFrame {
    switch frame {
    case .presence(let presence): .presence(sign(Presence.context, channel, presence.encoded))
    case .live(let live): .live(sign(LiveObject.context, channel, live.encoded))
    case .plain(let frame): frame
    }
  }

  private func sign(_ context: String, _ channel: ChannelID, _ object: [UInt8]) -> Signed {
    Signed(
      signature: identity.sign(context: context, channel: channel, log: instance, object: object), object: object)
  }

  // MARK: The machine

  func step(_ event: LinksEvent) {
    for effect in machine.handle(event, at: transport.now()) { carryOut(effect) }
  }

  private func carryOut(_ effect: LinksEffect) {
    switch effect {
    case .multicast(let channel, let frames):
      for frames in FragmentRule.datagrams(of: frames.map { wire($0, channel) }) {
        guard let datagram = seal(channel, frames, nil) else { continue }
        transport.multicast(datagram)
        traffic.multicast(datagram.count, on: interfaceStates)
      }
    case .unicast(let channel, let address, let frames, let direct):
      guard let datagram = seal(channel, frames.map({ wire($0, channel) }), direct) else { break }
      transport.send(datagram, to: address)
      traffic.unicast(datagram.count)
    case .verify(let channel, let claim, let address, let generation): verify(claim, channel, address, generation)
    case .openDirect(let channel, let sealed, let address, let author, let instance):
      guard let channelKeys = keys[channel],
        let plain = DatagramSealer.openDirect(
          sealed, header: currentHeader, from: author, identity: identity, channel: channelKeys),
        let message = try? DirectMessage(decoding: plain)
      else { return }
      step(.directOpened(channel, author, instance, from: address, message))
    case .dial(let link, let address, let peer, let channels): dial(link, address, peer, channels, .chat)
    case .sendFrame(let link, let message): sendFrame(link, message)
    case .sendSigned(let link, let channel, let frame):
      switch wire(frame, channel) {
      case .presence(let signed): sendFrame(link, .presence(channel, signed))
      case .live(let signed): sendFrame(link, .live(channel, signed))
      case .entry, .fragment, .liveFragment, .direct, .suspect, .whoHas:
        preconditionFailure("only signed frames are sent so")
      }
    case .prove(let link, let channels): prove(link, channels)
    case .close(let link, let afterWrites):
      byLink[link].map { transport.close($0.id, afterWrites: afterWrites) }
    case .wake(let instant):
      if machineWake.map({ instant < $0 }) ?? true {
        machineWake = instant
        schedule()
      }
    case .report(let channel, let peer, let excess): switchboard.notices(.overLimit(channel, peer, excess))
    case .tell(let event): switchboard.post(event)
    case .drawGeneration(let channel, let number, let excluded): drawGeneration(channel, number, excluded)
    case .checkGeneration(let channel, let signed, let secret, let peer):
      checkGeneration(channel, signed, secret, from: peer)
    case .sendUnder(let channel, let id): sendUnder(channel, id)
    case .handOver(let link, let channel, let id): handOver(link, channel, id)
    case .refusalHeard(let channel, let peer, let reason): switchboard.notices(.refused(channel, peer, reason))
    }
  }

  private func verify(
    _ claim: LiveClaim, _ channel: ChannelID, _ address: Address?, _ generation: GenerationID?
  ) {
    let (author, instance, _) = claim.origin
    guard
      Signature.verify(
        claim.signed.signature, by: author, context: claim.context, channel: channel, log: instance,
        object: claim.signed.object)
    else { return }
    step(.claimVerified(channel, claim, from: address, under: generation))
  }
}
