import Glibc
import ParleyActors
import ParleyMachines
import ParleySealing
import ParleySockets
import ParleyStore
import ParleyTransport
import ParleyVocabulary

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
  private let threads: [ThreadExecutor]
  private let incarnation: UInt64
  private let introductions: [Address]

  static func start(
    settings: NodeSettings, profile: Profile, instance: Instance, displayName: DisplayName, switchboard: Switchboard
  ) async throws(ParleyError) -> Engine {
    Sealing.initialize()
    var introductions: [Address] = []
    for peer in settings.peers { introductions.append(try Resolver.address(of: peer)) }
    let storeThread = ThreadExecutor()
    let store: StoreActor
    let incarnation: UInt64
    do {
      incarnation = try profile.nextIncarnation()
      store = try await StoreActor.open(
        path: profile.path + "/store.sqlite", me: profile.identity.peerID, executor: storeThread,
        switchboard: switchboard)
      let outbox = try await store.outbox()
      switchboard.post(.messaging(.outboxRestored(outbox)))
    } catch {
      storeThread.stop()
      throw .profileDamaged(path: settings.home, reason: "\(error)")
    }
    if let trouble = await store.setAside { switchboard.notices(.trouble(trouble)) }
    let alarms = Alarms(handlers: [
      { switchboard.post(.membership(.woke)) }, { switchboard.post(.messaging(.woke)) },
      { switchboard.media.post(.woke) },
    ])
    let engine = Engine(
      profile, instance, switchboard, alarms, store, storeThread, incarnation, introductions)
    do {
      try await engine.links.start(
        TransportSettings(interfaces: settings.interfaces, tcpPort: settings.port))
    } catch {
      engine.close()
      throw .network(error.description)
    }
    return engine
  }

  private init(
    _ profile: Profile, _ instance: Instance, _ switchboard: Switchboard, _ alarms: Alarms, _ store: StoreActor,
    _ storeThread: ThreadExecutor, _ incarnation: UInt64, _ introductions: [Address]
  ) {
    let me = profile.identity.peerID
    self.switchboard = switchboard
    self.alarms = alarms
    self.store = store
    let serveThread = ThreadExecutor()
    let landThread = ThreadExecutor()
    threads = [storeThread, serveThread, landThread]
    media = MediaActor(
      switchboard, serveDisk: DiskActor(executor: serveThread), landDisk: DiskActor(executor: landThread),
      wake: { alarms.wake(2, at: $0) })
    self.incarnation = incarnation
    self.introductions = introductions
    links = LinksActor(
      LinksMachine(me: me, instance: instance), identity: profile.identity, transport: UVTransport(),
      switchboard: switchboard)
    login = LoginActor(switchboard)
    membership = MembershipActor(
      MembershipMachine(
        me: me, instance: instance, nonceKey: Sealing.randomBytes(32), seed: Sealing.randomUInt64()),
      switchboard, wake: { alarms.wake(0, at: $0) })
    messaging = MessagingActor(
      MessagingMachine(me: me, instance: instance, seed: Sealing.randomUInt64()), profile.identity, switchboard,
      wake: { alarms.wake(1, at: $0) })
  }

  var isLoggedIn: Bool { loggedIn.isSet }
  private let loggedIn = Flag()

  func addTasks(to group: inout TaskGroup<Void>) {
    group.addTask { await self.links.run() }
    group.addTask { await self.login.run() }
    group.addTask { await self.membership.run() }
    group.addTask { await self.messaging.run() }
    group.addTask { await self.store.run() }
    group.addTask { await self.media.run() }
  }

  func logIn(_ displayName: DisplayName) async {
    switchboard.post(.login(.loggedIn(displayName, incarnation: incarnation)))
    let states = await links.interfaces
    switchboard.post(.login(.interfacesChanged(workingCount: states.count { $0.trouble == nil })))
    loggedIn.set()
  }

  /// Dials the nodes that a person named, for as long as there is no session.
  func introduce() { for address in introductions { switchboard.post(.links(.introduce(address))) } }

  /// Until nothing waits any more, at most a second: goodbyes and what is said last go out.
  func settle(_ switchboard: Switchboard) async {
    var quiet = 0
    for _ in 0..<100 where quiet < 5 {
      quiet = switchboard.isQuiet ? quiet + 1 : 0
      try? await Task.sleep(nanoseconds: 10_000_000)
    }
  }

  func close() {
    alarms.stop()
    for thread in threads { thread.stop() }
  }
}
