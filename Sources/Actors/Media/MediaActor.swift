import ParleyDisk
import ParleyHashing
import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire
import Synchronization

/// Runs the media machines: what is held and by whom, what is served, what is downloaded. Shares the transport's thread
/// with the links actor, so that a block passes between them without a change of threads.
package actor MediaActor {
  let switchboard: Switchboard
  /// To the two actors of the disk.
  let serveDisk: Mailbox<DiskMail>
  let landDisk: Mailbox<DiskMail>
  let wake: @Sendable (Instant) -> Void
  private let executor: any SerialExecutor
  var machine = MediaMachine()
  var serving: ServingMachine
  let limits: MediaLimits
  var downloadLimit: RateLimit?
  /// Whose turn it is to be allowed more.
  var grantTurn = 0
  var held: [MediaID: HeldFile] = [:]
  /// In which channels, also for what was found changed and is no longer held.
  private var heldIn: [MediaID: Set<ChannelID>] = [:]
  var sessions: [LinkID: MediaSession] = [:]
  /// The sessions in which we answer, and those in which we ask.
  var inbound: [PeerID: LinkID] = [:]
  var outbound: [PeerID: LinkID] = [:]
  var downloads: [UInt32: Download] = [:]
  /// Downloads that broke off and can be gone on with.
  var kept: [MediaID: KeptDownload] = [:]
  /// The one used longest ago first; also some that are kept no more.
  var keptOrder: [MediaID] = []
  /// Media of which a download serves what it has so far.
  var offered: [MediaID: UInt32] = [:]
  /// From whom nothing is to be downloaded.
  private(set) var blocked: Set<PeerID> = []
  private var servingWakeAt: Instant?
  var nextTag: UInt32 = 1
  /// Downloads as users know them, by number.
  var listed: [UInt32: ListedDownload] = [:]
  /// Those of downloads that go to a reader, until it is gone.
  var readers: [UInt32: MediaReader] = [:]
  /// Left, and not yet told so by mail.
  nonisolated let endedReaders = Mutex<Set<UInt32>>([])
  private(set) var isClosed = false
  /// Media links are numbered apart from those of the links machine (even) and accepted ones (odd).
  var nextLink: UInt64 = 1 << 62

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  package init(
    _ switchboard: Switchboard, serveDisk: Mailbox<DiskMail>, landDisk: Mailbox<DiskMail>,
    limits: MediaLimits = MediaLimits(), executor: any SerialExecutor, wake: @escaping @Sendable (Instant) -> Void
  ) {
    self.limits = limits
    serving = ServingMachine(limit: limits.uploadByteRate.map { RateLimit(bytesPerSecond: $0) })
    downloadLimit = limits.downloadByteRate.map { RateLimit(bytesPerSecond: $0) }
    self.executor = executor
    self.switchboard = switchboard
    self.serveDisk = serveDisk
    self.landDisk = landDisk
    self.wake = wake
  }

  /// How long the transport's thread is kept from its sockets and timers at once.
  private static let slice = Span.milliseconds(2)

  /// Runs until the switchboard closes; then downloads end, and with them the work of the disk.
  package func run() async {
    while true {
      let mail = await switchboard.media.next()
      if mail.isEmpty { break }
      var sliceEnd = SystemClock.now() + Self.slice
      for letter in mail {
        take(letter)
        if SystemClock.now() < sliceEnd { continue }
        await Task.yield()
        sliceEnd = SystemClock.now() + Self.slice
      }
      let byteCount = mail.reduce(0) { sum, letter in
        guard case .payloads(_, let payloads) = letter else { return sum }
        return payloads.reduce(sum) { $0 + $1.count }
      }
      if byteCount > 0 { switchboard.links.post(.mediaRelieved(byteCount: byteCount)) }
    }
    for tag in downloads.keys.sorted().reversed() { fail(tag, .stopped) }
    serveDisk.close()
    landDisk.close()
  }

  private func take(_ letter: MediaMail) {
    switch letter {
    case .event(let event):
      step(event)
      if case .channelClosed(let channel) = event { closed(channel) }
    case .opened(let link, let peer, let channels, let isInitiator): opened(link, peer, channels, isInitiator)
    case .closed(let link): closed(link)
    case .payloads(let link, let payloads):
      if sessions[link]?.isAsking == false { asked(link, payloads) } else { answered(link, payloads) }
    case .writable(let link, let queuedByteCount):
      guard let session = sessions[link], !session.isAsking else { return }
      serve(.drained(session.peer, queuedByteCount: queuedByteCount))
    case .disk(let news): happened(news)
    case .left(let number): leave(number)
    case .endReading(let tag): endReading(tag)
    case .hold(let file, let channel): hold(file, in: channel)
    case .woke:
      if let at = servingWakeAt, at <= SystemClock.now() {
        servingWakeAt = nil
        serve(.woke)
      }
      woke()
    }
    flush()
  }

  func step(_ event: MediaEvent) {
    for effect in machine.handle(event, at: SystemClock.now()) {
      switch effect {
      case .holderFound(let channel, let media, let peer):
        guard !blocked.contains(peer) else { break }
        switchboard.notices(.holder(channel, media, peer))
        holderFound(media, peer)
      case .tell(let event): switchboard.post(event)
      }
    }
  }

  /// From now on these are no sources of downloads that begin, nor of others that do not ask them yet.
  package func block(_ peers: Set<PeerID>) { blocked = peers }

  // MARK: What is held

  /// Serves the file to members of the channel from now on. The last path given for the same bytes counts.
  package func hold(_ file: HeldFile, in channel: ChannelID) {
    let id = file.manifest.id
    if held[id]?.sources != file.sources {
      held[id] = file
      serveDisk.post(.forget(id))
      serve(file.served)
    }
    heldIn[id, default: []].insert(channel)
    step(.held(id, channel))
    flush()
  }

  /// False when it was not held here.
  package func release(_ id: MediaID) -> Bool {
    guard let channels = heldIn.removeValue(forKey: id) else { return false }
    for channel in channels { step(.unheld(id, channel)) }
    held[id] = nil
    serve(.unshared(id))
    serveDisk.post(.forget(id))
    flush()
    return true
  }

  /// No longer served. Those who ask are told why until it is shared again or not shared any more.
  func sourceChanged(_ id: MediaID) {
    guard let file = held.removeValue(forKey: id) else { return }
    for channel in heldIn[id] ?? [] { step(.unheld(id, channel)) }
    switchboard.notices(
      .trouble(
        "\(file.path.escapedLine) changed or is gone since it was shared or downloaded, and is no longer served: "
          + "share it again"))
  }

  private func fileChanged(_ id: MediaID, _ file: Int) {
    guard let folder = held[id] else { return }
    switchboard.notices(
      .trouble(
        "\(folder.sources[file].path.escapedLine) changed or is gone since it was shared or downloaded, and is no "
          + "longer served; the rest of its folder is: share it again"))
  }

  private func closed(_ channel: ChannelID) {
    for tag in downloads.keys.sorted() where downloads[tag]?.channel == channel { cancel(tag) }
    for id in heldIn.keys where heldIn[id]!.remove(channel) != nil && heldIn[id]!.isEmpty {
      heldIn[id] = nil
      held[id] = nil
      serve(.unshared(id))
      serveDisk.post(.forget(id))
    }
  }

  package func heldFile(_ id: MediaID) -> HeldFile? { held[id] }

  /// Asks who has these; answers arrive as notices.
  package func askHolders(_ channel: ChannelID, _ media: [MediaID]) {
    if !media.isEmpty { step(.holdersWanted(channel, media)) }
  }

  // MARK: Sessions

  private func opened(_ link: LinkID, _ peer: PeerID, _ channels: [ChannelID], _ isInitiator: Bool) {
    sessions[link] = MediaSession(peer: peer, channels: channels, isAsking: isInitiator)
    if isInitiator {
      for tag in downloads.keys.sorted() where downloads[tag]!.wanted.contains(peer) {
        download(tag, .sourceFound(peer))
      }
    } else {
      if let older = inbound.updateValue(link, forKey: peer) {
        serve(.peerLost(peer))
        switchboard.links.post(.closeMedia(older))
      }
    }
  }

  private func closed(_ link: LinkID) {
    let session = sessions.removeValue(forKey: link)
    if let (peer, _) = outbound.first(where: { $0.value == link }) {
      outbound[peer] = nil
      sourceLost(peer)
    }
    if let peer = session?.peer, inbound[peer] == link {
      inbound[peer] = nil
      serve(.peerLost(peer))
    }
  }

  /// What a member asks for, all that came together before any of it is served.
  private func asked(_ link: LinkID, _ payloads: [ArraySlice<UInt8>]) {
    guard let session = sessions[link] else { return }
    var events: [ServingEvent] = []
    for payload in payloads {
      guard let message = try? MediaMessage(decoding: payload) else {
        switchboard.links.post(.closeMedia(link))
        break
      }
      switch message {
      case .request(let number, let request):
        if let event = requested(link, session, number, request) { events.append(event) }
      case .cancel(let number, let count): events.append(.cancelled(session.peer, number, count: count))
      case .reply: continue
      }
    }
    serve(events)
  }

  /// What a member answers to our requests.
  private func answered(_ link: LinkID, _ payloads: [ArraySlice<UInt8>]) {
    guard let session = sessions[link] else { return }
    var tags: Set<UInt32> = []
    var last: UInt32?
    for payload in payloads {
      guard let message = try? MediaMessage(decoding: payload) else {
        switchboard.links.post(.closeMedia(link))
        break
      }
      guard case .reply(let number, let reply) = message, let tag = UInt32(exactly: number >> 32) else { continue }
      act(tag, .replied(session.peer, number, reply))
      if tag != last { tags.insert(tag) }
      last = tag
    }
    for tag in tags.sorted() { offer(tag) }
  }

  /// Who asks for what we are downloading ourselves may have some of it, now or later.
  private func requested(
    _ link: LinkID, _ session: MediaSession, _ number: UInt64, _ request: MediaRequest
  ) -> ServingEvent? {
    let id = request.media
    let tags = downloads.keys.filter {
      downloads[$0]!.id == id && session.channels.contains(downloads[$0]!.channel)
    }.sorted()
    if case .have = request { for tag in tags { want(tag, session.peer) } }
    let isMember =
      session.channels.contains { heldIn[id]?.contains($0) == true } || offered[id].map(tags.contains) ?? false
    if !isMember, !tags.isEmpty {
      send(.reply(number, .refused(.busy)), link)
      return nil
    }
    return .requested(session.peer, number, request, isMember: isMember)
  }

  func send(_ message: MediaMessage, _ link: LinkID) { sessions[link]?.outgoing.append(message) }

  /// What one step wanted sent goes out together.
  func flush() {
    for link in sessions.keys where !sessions[link]!.outgoing.isEmpty {
      switchboard.links.post(.sendMedia(link, sessions[link]!.outgoing))
      sessions[link]!.outgoing = []
    }
  }

  // MARK: Serving

  func serve(_ event: ServingEvent) { serve([event]) }

  private func serve(_ events: [ServingEvent]) {
    // Answers to one peer come in rows.
    var answers: (peer: PeerID, messages: [MediaMessage])?
    func sendAnswers() {
      guard let (peer, messages) = answers, let link = inbound[peer] else { return }
      sessions[link]?.outgoing += messages
    }
    for effect in serving.handle(events, at: SystemClock.now()) {
      switch effect {
      case .reply(let peer, let number, let reply):
        if answers?.peer != peer {
          sendAnswers()
          answers = (peer, [])
        }
        answers!.messages.append(.reply(number, reply))
      case .read(let read): self.read(read)
      case .sourceChanged(let id): sourceChanged(id)
      case .fileChanged(let id, let file): fileChanged(id, file)
      case .wake(let instant):
        servingWakeAt = instant
        wake(instant)
      }
    }
    sendAnswers()
  }

  func read(_ read: ServedRead) {
    if let file = held[read.media] {
      serveDisk.post(.read(read, file.sources[read.file]))
    } else if let tag = offered[read.media] {
      readPart(tag, read)
    } else {
      serve(.readFailed(read.id, .unknown))
    }
  }
}

struct MediaSession {
  let peer: PeerID
  let channels: [ChannelID]
  let isAsking: Bool
  var outgoing: [MediaMessage] = []
}
