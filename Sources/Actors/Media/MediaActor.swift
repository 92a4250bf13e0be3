import ParleyDisk
import ParleyHashing
import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// A file of this machine that is served under a media ID.
package struct HeldFile: Sendable {
  package let path: String
  package let facts: FileFacts
  package let manifest: MediaManifest
  package let pieceHashes: [Hash32]
  package init(path: String, facts: FileFacts, manifest: MediaManifest, pieceHashes: [Hash32]) {
    self.path = path
    self.facts = facts
    self.manifest = manifest
    self.pieceHashes = pieceHashes
  }
}

/// Runs the media machines: what is held and by whom, what is served, what is downloaded.
package actor MediaActor {
  let switchboard: Switchboard
  let serveDisk: DiskActor
  let landDisk: DiskActor
  let wake: @Sendable (Instant) -> Void
  var machine = MediaMachine()
  var serving = ServingMachine()
  var held: [MediaID: HeldFile] = [:]
  var sessions: [LinkID: MediaSession] = [:]
  /// The sessions in which we answer, and those in which we ask.
  var inbound: [PeerID: LinkID] = [:]
  var outbound: [PeerID: LinkID] = [:]
  var downloads: [UInt32: Download] = [:]
  var nextTag: UInt32 = 1
  private(set) var isClosed = false
  /// Media links are numbered apart from those of the links machine (even) and accepted ones (odd).
  var nextLink: UInt64 = 1 << 62

  package init(
    _ switchboard: Switchboard, serveDisk: DiskActor, landDisk: DiskActor, wake: @escaping @Sendable (Instant) -> Void
  ) {
    self.switchboard = switchboard
    self.serveDisk = serveDisk
    self.landDisk = landDisk
    self.wake = wake
  }

  /// Runs until the switchboard closes.
  package func run() async {
    while true {
      let mail = await switchboard.media.next()
      if mail.isEmpty { break }
      for letter in mail { take(letter) }
      switchboard.links.post(.mediaRelieved)
    }
    isClosed = true
    for tag in downloads.keys { fail(tag, .stopped) }
  }

  private func take(_ letter: MediaMail) {
    switch letter {
    case .event(let event): step(event)
    case .opened(let link, let peer, let channels, let isInitiator): opened(link, peer, channels, isInitiator)
    case .closed(let link): closed(link)
    case .payloads(let link, let payloads): for payload in payloads { received(link, payload) }
    case .writable(let link, let queuedByteCount):
      guard let session = sessions[link], !session.isAsking else { return }
      serve(.drained(session.peer, queuedByteCount: queuedByteCount))
    case .woke: woke()
    }
    flush()
  }

  private func step(_ event: MediaEvent) {
    for effect in machine.handle(event, at: SystemClock.now()) {
      switch effect {
      case .holderFound(let channel, let media, let peer):
        switchboard.notices(.holder(channel, media, peer))
        holderFound(media, peer)
      case .tell(let event): switchboard.post(event)
      }
    }
  }

  // MARK: What is held

  /// Serves the file to members of the channel from now on.
  package func hold(_ file: HeldFile, in channel: ChannelID) {
    let id = file.manifest.id
    if held[id] == nil {
      held[id] = file
      serve(.shared(ServedMedia(manifest: file.manifest, pieceHashes: [file.pieceHashes])))
    }
    step(.held(id, channel))
    flush()
  }

  package func release(_ id: MediaID, in channels: [ChannelID]) async {
    for channel in channels { step(.unheld(id, channel)) }
    held[id] = nil
    serve(.unshared(id))
    flush()
    await serveDisk.forget(id)
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
      for tag in downloads.keys.sorted() where downloads[tag]!.wanted.remove(peer) != nil {
        download(tag, .sourceLost(peer))
        failWithoutSource(tag)
      }
    }
    if let peer = session?.peer, inbound[peer] == link {
      inbound[peer] = nil
      serve(.peerLost(peer))
    }
  }

  private func received(_ link: LinkID, _ payload: [UInt8]) {
    guard let session = sessions[link] else { return }
    let message: MediaMessage
    do { message = try MediaMessage(decoding: payload) } catch {
      return switchboard.links.post(.closeMedia(link))
    }
    switch message {
    case .request(let number, let request):
      guard !session.isAsking else { return }
      let isMember = session.channels.contains { machine.isHeld(request.media, in: $0) }
      serve(.requested(session.peer, number, request, isMember: isMember))
    case .cancel(let number): if !session.isAsking { serve(.cancelled(session.peer, number)) }
    case .reply(let number, let reply):
      guard session.isAsking, let tag = UInt32(exactly: number >> 32) else { return }
      download(tag, .replied(session.peer, number, reply))
    }
  }

  func send(_ message: MediaMessage, _ link: LinkID) { sessions[link]?.outgoing.append(message.encoded) }

  /// What one step wanted sent goes out together.
  func flush() {
    for link in sessions.keys where !sessions[link]!.outgoing.isEmpty {
      switchboard.links.post(.sendMedia(link, sessions[link]!.outgoing))
      sessions[link]!.outgoing = []
    }
  }

  // MARK: Serving

  func serve(_ event: ServingEvent) {
    for effect in serving.handle(event) {
      switch effect {
      case .reply(let peer, let number, let reply):
        if let link = inbound[peer] { send(.reply(number, reply), link) }
      case .read(let read): beginRead(read)
      case .sourceChanged(let id):
        let path = held[id]?.path ?? ""
        switchboard.notices(
          .trouble("\(path.escapedLine) changed since it was shared and is no longer served: share it again"))
      }
    }
  }

  private func beginRead(_ read: ServedRead) {
    guard let file = held[read.media] else { return serve(.readFailed(read.id, .unknown)) }
    inFlight(Task { await self.finishRead(read, file) })
  }

  private func finishRead(_ read: ServedRead, _ file: HeldFile) async {
    do {
      serve(.readDone(read.id, try await serveDisk.read(read, path: file.path, facts: file.facts)))
    } catch {
      serve(.readFailed(read.id, .changed))
    }
    flush()
  }

  /// Work on the disk that this actor began. Each ends by itself, and none outlives the disk's thread.
  private func inFlight(_ task: Task<Void, Never>) { _ = task }
}

struct MediaSession {
  let peer: PeerID
  let channels: [ChannelID]
  let isAsking: Bool
  var outgoing: [[UInt8]] = []
}
