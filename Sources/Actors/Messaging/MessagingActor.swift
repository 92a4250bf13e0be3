import ParleyMachines
import ParleySealing
import ParleyVocabulary
import ParleyWire

/// Runs the messaging machine: entries of channels and messages from peer to peer. Signs and verifies; never reads.
/// Shares the transport's thread with the links actor: what arrives reaches the machine, and what is said the wire,
/// without a change of threads, which would cost as much as all the rest.
package actor MessagingActor {
  package enum Answer: Sendable, Equatable {
    case stored(LogKey, number: UInt64)
    case sent
    case queued
    case failed(MessagingFailure)
    case stopped
  }

  private var machine: MessagingMachine
  private let identity: Identity
  private let switchboard: Switchboard
  private let executor: any SerialExecutor
  /// When the machine will be woken at the latest.
  private var wakeAt: Instant?
  private var waiting: [RequestID: CheckedContinuation<Answer, Never>] = [:]
  private var nextRequest: UInt64 = 1
  private var isClosed = false
  /// Many join by one grant.
  private var grants: [ChannelID: [Grant: Bool]] = [:]
  private static let grantsMax = 256

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  package init(
    _ machine: MessagingMachine, _ identity: Identity, _ switchboard: Switchboard, executor: any SerialExecutor
  ) {
    self.executor = executor
    self.machine = machine
    self.identity = identity
    self.switchboard = switchboard
  }

  /// How long the transport's thread is kept from its sockets and timers at once: thousands of signatures may wait.
  /// One event, a full session message, takes up to 15 ms more.
  private static let slice = Span.milliseconds(4)

  /// Runs until the switchboard closes; calls that still wait then learn that the node has stopped.
  package func run() async {
    while true {
      let events = await switchboard.messaging.next()
      if events.isEmpty { break }
      var sliceEnd = SystemClock.now() + Self.slice
      for event in events {
        step(event)
        if SystemClock.now() < sliceEnd { continue }
        await Task.yield()
        sliceEnd = SystemClock.now() + Self.slice
      }
    }
    isClosed = true
    for continuation in waiting.values { continuation.resume(returning: .stopped) }
    waiting = [:]
  }

  /// Returns once the message is on the disk and on the wire.
  package func submit(_ channel: ChannelID, kind: UInt64, isHidden: Bool, json: [UInt8]) async -> Answer {
    await answer { request in
      .submitted(
        channel,
        Submission(
          request: request, kind: kind, isHidden: isHidden, json: json, timestamp: SystemClock.wallMilliseconds()))
    }
  }

  /// Returns once the message waits on the disk; `.messaging(.peerDelivered)` follows when the peer has it.
  package func tell(_ message: OutboxMessage) async -> Answer {
    await answer { .told($0, message, queuedAt: SystemClock.wallMilliseconds()) }
  }

  /// To whoever is in the channel. Returns once it is on the wire, and on the disk if it is kept.
  package func submitLive(
    _ channel: ChannelID, _ id: MessageID, kind: UInt64, json: [UInt8], isKept: Bool
  ) async -> Answer {
    await answer { .submittedLive(channel, Self.live($0, id, kind, json, isKept)) }
  }

  /// To a peer who is there; `.messaging(.peerDelivered)` follows when they have it.
  package func tellLive(_ peer: PeerID, _ id: MessageID, kind: UInt64, json: [UInt8], isKept: Bool) async -> Answer {
    await answer { .toldLive(peer, Self.live($0, id, kind, json, isKept)) }
  }

  /// To some members of a channel, or to those of them who are there.
  package func direct(
    _ channel: ChannelID, _ id: MessageID, to receivers: [PeerID], kind: UInt64, json: [UInt8], isLive: Bool,
    isKept: Bool
  ) async -> Answer {
    await answer {
      .directed(
        channel, Self.live($0, id, kind, json, isKept), to: receivers, isLive: isLive,
        queuedAt: SystemClock.wallMilliseconds())
    }
  }

  private static func live(
    _ request: RequestID, _ id: MessageID, _ kind: UInt64, _ json: [UInt8], _ isKept: Bool
  ) -> LiveSubmission {
    LiveSubmission(
      request: request, id: id, kind: kind, json: json, timestamp: SystemClock.wallMilliseconds(), isKept: isKept)
  }

  /// The question goes through the mailbox, behind what was posted before it: who has just joined may write.
  private func answer(_ event: (RequestID) -> MessagingEvent) async -> Answer {
    guard !isClosed else { return .stopped }
    let request = RequestID(nextRequest)
    nextRequest += 1
    return await withCheckedContinuation { continuation in
      waiting[request] = continuation
      switchboard.messaging.post(event(request))
    }
  }

  private func step(_ event: MessagingEvent) {
    if case .woke = event { wakeAt = nil }
    for effect in machine.handle(event, at: SystemClock.now()) { carryOut(effect) }
  }

  private func carryOut(_ effect: MessagingEffect) {
    switch effect {
    case .sign(let channel, var entry):
      entry.signature = identity.sign(
        context: Entry.context, channel: channel, log: entry.key.log, object: entry.signedPart)
      step(.entrySigned(channel, entry))
    case .verify(let channel, let entry):
      let isGenuine = Signature.verify(
        entry.signature, by: entry.key.author, context: Entry.context, channel: channel, log: entry.key.log,
        object: entry.signedPart)
      step(.entryVerified(channel, entry, isGenuine: isGenuine))
    case .readActs(let channel, let entries):
      let acts = entries.flatMap { Act.acts(of: $0) { isGenuine($0, in: channel) } }
      step(.actsRead(channel, acts))
    case .loadActs(let channel, let authors): switchboard.store.post(.loadActs(channel, of: authors))
    case .persist(let batch, let records):
      switchboard.store.post(.write(batch: batch, records, keeping: machine.kept(of: records)))
    case .load(let load, let channel, let ranges, let byteCountMax):
      switchboard.store.post(.load(load, channel, ranges, byteCountMax: byteCountMax))
    case .notify(let notice): notify(notice)
    case .wake(let instant):
      if let wakeAt, wakeAt <= instant { break }
      wakeAt = instant
      switchboard.links.post(.wake(.messaging, at: instant))
    case .tell(let event): switchboard.post(event)
    }
  }

  private func isGenuine(_ grant: Grant, in channel: ChannelID) -> Bool {
    if let known = grants[channel]?[grant] { return known }
    let isGenuine = Signature.verify(
      grant.signature, by: grant.inviter, context: Grant.context, channel: channel, log: Grant.log,
      object: grant.signedPart)
    if grants[channel]?.count ?? 0 >= Self.grantsMax { grants[channel] = [:] }
    grants[channel, default: [:]][grant] = isGenuine
    return isGenuine
  }

  /// Our clock in a channel; 0 where we are not.
  package func lamport(in channel: ChannelID) -> UInt64 { machine.lamport(in: channel) }

  private func notify(_ notice: MessagingNotice) {
    switch notice {
    case .stored(let request, _, let key, let number): resume(request, .stored(key, number: number))
    case .queued(let request): resume(request, .queued)
    case .sent(let request): resume(request, .sent)
    case .failed(let request, let failure): resume(request, .failed(failure))
    case .entryStored, .governed, .synced, .delivered, .peerMessage, .peerDelivered, .peerExpired, .overLimit,
      .equivocated, .localStored, .live:
      switchboard.notices(.messaging(notice))
    }
  }

  private func resume(_ request: RequestID, _ answer: Answer) {
    waiting.removeValue(forKey: request)?.resume(returning: answer)
  }
}
