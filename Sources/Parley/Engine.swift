import Glibc
import ParleyActors
import ParleyDisk
import ParleyMachines
import ParleySealing
import ParleySockets
import ParleyStore
import ParleyTransport
import ParleyVocabulary
import ParleyWire

/// The actors of a running node and their threads.
final class Engine: Sendable {
  let links: LinksActor
  let login: LoginActor
  let membership: MembershipActor
  let messaging: MessagingActor
  let store: StoreActor
  let media: MediaActor
  private let switchboard: Switchboard
  private let alarms: Alarms
  private let storeThread: ThreadExecutor
  private let syncThread = ThreadExecutor()
  /// Keys of owned channels on their way to the profile.
  private let changedKeys = AsyncStream.makeStream(of: ChannelKeys.self)
  private let profile: Profile
  private let sync: SyncActor
  private let serveThread = ThreadExecutor()
  private let landThread = ThreadExecutor()
  private let pictureThread = ThreadExecutor()
  let pictures: PictureActor
  /// What was fetched beforehand, in a folder of its own.
  let received: PictureActor
  private let serveDisk: DiskActor
  private let landDisk: DiskActor
  private let serveMail = Mailbox<DiskMail>()
  private let landMail = Mailbox<DiskMail>()
  private let incarnation: UInt64
  private let introductions: [Address]
  private let pause: Pause
  /// It is time to look at the login token.
  let tokenAlarm: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)

  private static func linksMachine(
    _ me: PeerID, _ instance: Instance, _ limits: MemberLimits, _ rotateEvery: Int?
  ) -> LinksMachine {
    var machine = LinksMachine(me: me, instance: instance, limits: limits)
    machine.rotateEvery = rotateEvery.map { .seconds($0) }
    return machine
  }

  static func start(
    settings: NodeSettings, profile: Profile, instance: Instance, displayName: DisplayName, switchboard: Switchboard
  ) async throws(ParleyError) -> Engine {
    Sealing.initialize()
    let transport: UVTransport
    do { transport = try UVTransport() } catch { throw .network(error.description) }
    let introductions = try await Resolver.addresses(of: settings.peers)
    let storeThread = ThreadExecutor()
    let pause = Pause()
    let tokenAlarm = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let alarms = Alarms(handlers: [
      { switchboard.media.post(.woke) }, { pause.end() }, { switchboard.store.post(.prune) },
      { switchboard.store.post(.index) }, { tokenAlarm.continuation.yield() },
    ])
    let store: StoreActor
    let incarnation: UInt64
    do {
      do throws(ProfileError) {
        incarnation = try profile.nextIncarnation()
      } catch {
        guard error.isUnwritable else { throw error }
        incarnation = try profile.unkeptIncarnation()
        switchboard.notices(.trouble(error.description))
      }
      store = try await StoreActor.open(
        path: profile.storePath, me: profile.identity.peerID,
        channels: ((try? profile.loadChannels()) ?? []).map(\.id), keys: profile.restKeys,
        retention: Retention(
          days: settings.historyDays, entryCountMax: settings.historyEntryCountMax, renewingKind: EditKind.code),
        executor: storeThread, switchboard: switchboard, wake: { alarms.wake(2, at: $0) },
        wakeIndexing: { alarms.wake(3, at: $0) })
      let outbox = try await store.outbox()
      switchboard.post(.messaging(.outboxRestored(outbox)))
    } catch {
      alarms.stop()
      storeThread.stop()
      throw .profileDamaged(path: settings.home, reason: "\(error)")
    }
    if let trouble = await store.setAside { switchboard.notices(.trouble(trouble)) }
    let engine = Engine(
      profile, instance, switchboard, alarms, pause, tokenAlarm, store, storeThread, transport, incarnation,
      introductions,
      MediaLimits(
        uploadByteRate: settings.uploadByteRateMax.map { UInt64($0) },
        downloadByteRate: settings.downloadByteRateMax.map { UInt64($0) },
        partByteCountMax: settings.partByteCountMax.map { UInt64($0) }),
      OutboxLimits(
        countMax: settings.outboxCountMax, byteCountMax: settings.outboxByteCountMax,
        lifetime: .seconds(settings.outboxSeconds)), settings.pictures, settings.rotateEverySeconds,
      settings.memberLimits)
    do {
      try await engine.links.start(
        TransportSettings(interfaces: settings.interfaces, tcpPort: settings.port))
    } catch {
      engine.close()
      throw .network(error.description)
    }
    await engine.restoreDownloads()
    return engine
  }

  /// Those whose part file has not been touched for a week are given up.
  private func restoreDownloads() async {
    guard let stored = try? await store.downloads() else { return }
    let now = Int64(clamping: SystemClock.wallMilliseconds())
    var kept: [(part: KeptDownload, touched: Int64)] = []
    for download in stored {
      let touched = Landing.lastTouched(download.partPath)
      let isFresh = touched.map { now - $0 / 1_000_000 < Self.partAgeMax } ?? false
      guard isFresh, let good = KeptDownload(download) else {
        try? await store.apply([.downloadRemove(download.id)])
        if touched != nil { KeptDownload(download)?.removePart() }
        continue
      }
      kept.append((good, touched ?? 0))
    }
    // The one used longest ago first: it is the first to go when parts take too much.
    await media.restore(kept.sorted { $0.touched < $1.touched }.map(\.part))
  }

  /// Milliseconds.
  private static let partAgeMax: Int64 = 7 * 24 * 3_600 * 1_000

  private init(
    _ profile: Profile, _ instance: Instance, _ switchboard: Switchboard, _ alarms: Alarms, _ pause: Pause,
    _ tokenAlarm: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation), _ store: StoreActor,
    _ storeThread: ThreadExecutor, _ transport: UVTransport, _ incarnation: UInt64, _ introductions: [Address],
    _ limits: MediaLimits, _ outbox: OutboxLimits, _ pictures: PictureSettings, _ rotateEvery: Int?,
    _ members: MemberLimits
  ) {
    let me = profile.identity.peerID
    self.profile = profile
    self.switchboard = switchboard
    self.alarms = alarms
    self.pause = pause
    self.tokenAlarm = tokenAlarm
    self.store = store
    self.storeThread = storeThread
    sync = SyncActor(executor: syncThread, switchboard)
    self.pictures = PictureActor(
      executor: pictureThread, settings: pictures, folder: profile.path + "/pictures")
    received = PictureActor(executor: landThread, settings: pictures, folder: profile.path + "/received")
    serveDisk = DiskActor(executor: serveThread)
    landDisk = DiskActor(executor: landThread)
    self.incarnation = incarnation
    self.introductions = introductions
    media = MediaActor(
      switchboard, serveDisk: serveMail, landDisk: landMail, limits: limits, executor: transport.executor,
      wake: { alarms.wake(0, at: $0) })
    links = LinksActor(
      Self.linksMachine(me, instance, members, rotateEvery), identity: profile.identity, transport: transport,
      switchboard: switchboard, keep: { [changedKeys] in changedKeys.continuation.yield($0) })
    login = LoginActor(switchboard)
    membership = MembershipActor(
      MembershipMachine(
        me: me, instance: instance, nonceKey: Sealing.randomBytes(32), seed: Sealing.randomUInt64()),
      switchboard, executor: transport.executor)
    messaging = MessagingActor(
      MessagingMachine(
        me: me, instance: instance, seed: Sealing.randomUInt64(), outbox: outbox, members: members), profile.identity,
      switchboard, executor: transport.executor)
  }

  /// Each task stays on its actor's thread: mail wakes it there, not on a thread of Swift's pool that hands it over.
  func addTasks(to group: inout TaskGroup<Void>) {
    let loop = links.transport.executor
    group.addTask(executorPreference: loop) {
      await self.links.run()
      self.changedKeys.continuation.finish()
    }
    group.addTask { await self.login.run() }
    group.addTask(executorPreference: loop) { await self.membership.run() }
    group.addTask(executorPreference: loop) { await self.messaging.run() }
    group.addTask(executorPreference: storeThread) { await self.store.run() }
    group.addTask(executorPreference: syncThread) { await self.sync.run() }
    group.addTask { await self.runMedia() }
    group.addTask(executorPreference: storeThread) { await self.keepKeys() }
  }

  /// A disk that refuses costs no more than a meeting with somebody who has the keys, after the next start.
  private func keepKeys() async {
    for await keys in changedKeys.stream {
      do { try profile.updateChannel(keys) } catch { switchboard.notices(.trouble(error.description)) }
    }
  }

  /// Broken downloads are written down last: the store ends after them.
  private func runMedia() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask(executorPreference: self.links.transport.executor) { await self.media.run() }
      group.addTask(executorPreference: self.serveThread) { await self.serveDisk.run(self.serveMail, self.switchboard) }
      group.addTask(executorPreference: self.landThread) { await self.landDisk.run(self.landMail, self.switchboard) }
    }
    switchboard.store.close()
  }

  func logIn(_ displayName: DisplayName) async {
    switchboard.post(.login(.loggedIn(displayName, incarnation: incarnation)))
    let states = await links.interfaces
    switchboard.post(.login(NetworkNews(from: [], to: states).event))
    // Links dials these for as long as there is no session.
    for address in introductions { switchboard.post(.links(.introduce(address))) }
  }

  /// Until nothing waits any more, at most a second: goodbyes and what is said last go out. Also in a cancelled task.
  func settle() async {
    var quietCount = 0
    for _ in 0..<100 where quietCount < 3 {
      quietCount = switchboard.isQuiet ? quietCount + 1 : 0
      await pause.wait { self.alarms.wake(1, at: SystemClock.now() + .milliseconds(10)) }
    }
  }

  /// An earlier moment replaces a later one.
  func wakeForToken(after wait: Span) { alarms.wake(4, at: SystemClock.now() + wait) }

  func close() {
    alarms.stop()
    for thread in [storeThread, syncThread, serveThread, landThread, pictureThread] { thread.stop() }
  }
}
