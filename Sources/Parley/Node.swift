import ParleyActors
import ParleyMachines
import ParleySealing
import ParleySockets
import ParleyTransport
import ParleyVocabulary
import ParleyWire

/// A real-time messaging node: finds the other nodes of the network by itself, joins named channels, and carries
/// messages, hands and files. `run()` does the work until `stop()`; every other call may be made while it runs.
///
/// One home, one node: a second one on the same home is refused with `ParleyError.profileInUse`. The home is held from
/// `init` until `run()` returns, or until this object is gone when it is never run.
///
/// Calls wait until the node is ready and throw `ParleyError.stopped` once it stops.
public actor Node {
  let settings: NodeSettings
  let profile: Profile
  let instance: Instance
  let hub: Hub
  let switchboard: Switchboard
  let hooks: HookCaller
  let displayName: DisplayName
  private enum Phase {
    /// → `starting`: `run()`. → `ended`: `stop()`, and nobody runs it.
    case idle
    /// → `ready`: logged in and in the channels of last time. → `ended`: it could not start, or `stop()`.
    case starting
    /// → `ended`: `stop()`, `run()` cancelled, or the identity started elsewhere.
    case ready
    case ended
  }

  private var phase = Phase.idle
  /// There while `run()` works.
  var engine: Engine?
  /// Calls that came before the node was ready.
  private var waiting: [CheckedContinuation<Void, Never>] = []
  /// Finished when the node shall end.
  private var isStopRequested = false
  /// Nil: as many as one likes.
  var sendRate: SendRate?
  /// The user's own.
  var ownToken: LoginToken?
  private let end = AsyncStream.makeStream(of: Void.self)

  /// Opens and locks the profile; makes one at the first start. Throws `.profileInUse`, `.profileDamaged`, `.badName`,
  /// and `.badSetting`, which comes before anything is made. Of a home with a passphrase `.homePassphraseNeeded` and
  /// `.wrongHomePassphrase`; of one without `.homePassphraseMismatch` when one was given. With a passphrase the call
  /// takes 64 MiB and some tenths of a second.
  public init(_ settings: NodeSettings, trouble: @escaping @Sendable (String) -> Void = { _ in }) throws(ParleyError) {
    self.settings = settings
    try settings.check()
    sendRate = settings.messageRateMax.map { SendRate(perSecond: $0) }
    let profile: Profile
    do { profile = try Profile.open(home: settings.home, passphrase: settings.passphrase) } catch {
      throw ParleyError(error, home: settings.home)
    }
    self.profile = profile
    do {
      if try profile.isRetired { throw ParleyError.homeRetired(home: settings.home) }
      if try profile.isExported {
        trouble(
          "this identity was exported: once it is used elsewhere, this home is to be retired, for one identity runs in "
            + "one place")
      }
    } catch let error as ProfileError {
      throw ParleyError(error, home: settings.home)
    } catch { throw .homeRetired(home: settings.home) }
    do {
      if let name = settings.displayName {
        displayName = try DisplayName(name)
        if try profile.loadDisplayName() != displayName { try Self.save(displayName, profile, trouble) }
      } else if let stored = try profile.loadDisplayName() {
        displayName = stored
      } else {
        displayName = try DisplayName(Self.loginName)
        try Self.save(displayName, profile, trouble)
      }
    } catch let error as NameError {
      throw .badName(error)
    } catch {
      throw .profileDamaged(path: settings.home, reason: "\(error)")
    }
    instance = Sealing.randomInstance()
    let end = end.continuation
    let hub = Hub(
      me: profile.identity.peerID, instance: instance, sharesMax: settings.memberLimits.shares,
      fetchRules: FetchRules(thumbnails: settings.downloadsThumbnails, voice: settings.downloadsVoice),
      trouble: trouble,
      aborted: { end.finish() })
    self.hub = hub
    switchboard = Switchboard { hub.take($0) }
    hooks = HookCaller(settings.hooks) { hub.emit(.hookFailed($0)) }
  }

  /// A name that cannot be kept is used all the same.
  private static func save(
    _ name: DisplayName, _ profile: Profile, _ trouble: (String) -> Void
  ) throws(ProfileError) {
    do throws(ProfileError) { try profile.saveDisplayName(name) } catch {
      guard error.isUnwritable else { throw error }
      trouble(error.description)
    }
  }

  /// Who this node is; the same at every start on this home.
  public nonisolated var peerID: PeerID { profile.identity.peerID }
  /// The name that others are shown; decoration, not identity.
  public nonisolated var name: String { displayName.text }

  /// Runs the node until `stop()`, until the task is cancelled, or until the same identity is started elsewhere
  /// (`.aborted`). Returns once everything is closed and the home is free for another node.
  ///
  /// Throws `.badToken`, `.noSuchFile` and `.fileTrouble` for the token file, `.network` when an interface or port
  /// cannot be used or a named peer not be found, `.profileDamaged` when the store cannot be opened, and `.stopped`
  /// when it was run before.
  public func run() async throws(ParleyError) {
    guard case .idle = phase else { throw .stopped }
    phase = .starting
    let engine: Engine
    do {
      ownToken = try ownTokenAtStart()
      engine = try await Engine.start(
        settings: settings, profile: profile, instance: instance, displayName: displayName, switchboard: switchboard)
    } catch {
      ended()
      throw error
    }
    self.engine = engine
    hub.people.restore((try? await engine.store.contacts()) ?? [])
    hub.wishes.restore((try? await engine.store.settings()) ?? [])
    await engine.media.block(hub.people.blocked)
    if !Skeleton.knowsLooks {
      hub.take(.trouble("names are compared by their letters only, not by their looks: install ICU (libicu)"))
    }
    let alarm = engine.tokenAlarm.continuation
    hub.begin(
      after: (try? await engine.store.lastCursor()) ?? 0,
      keep: { [switchboard] write in switchboard.store.post(.apply([write])) }, wake: { alarm.yield() })
    await withTaskGroup(of: Void.self) { group in
      engine.addTasks(to: &group)
      group.addTask { await self.lifetime(engine) }
      group.addTask { await self.stateGenerations(engine) }
      group.addTask { await self.dropRecalled(engine) }
      group.addTask { await self.watchToken(engine) }
      group.addTask { await self.fetchBeforehand(engine) }
      await group.waitForAll()
    }
    await engine.store.close()
    engine.close()
    if hub.connectionState == .aborted {
      do { try profile.retireIfExported() } catch { hub.take(.trouble(error.description)) }
    }
    ended()
    if hub.connectionState == .aborted { throw .aborted }
  }

  /// Logs in, joins the channels of last time, waits for the end, says goodbye.
  private func lifetime(_ engine: Engine) async {
    await engine.logIn(displayName)
    await rejoin(engine)
    if case .starting = phase {
      phase = .ready
      letGo()
    }
    for await _ in end.stream {}
    // Calls from now on are refused; those under way may still end well.
    phase = .ended
    engine.tokenAlarm.continuation.finish()
    hub.drawn.continuation.finish()
    hub.recalled.continuation.finish()
    hub.offers.continuation.finish()
    switchboard.login.post(.loggedOut)
    await engine.settle()
    switchboard.close()
  }

  /// Leaves every channel properly and ends `run()`, which returns soon after. The channels are joined again at the
  /// next start. May be called twice, and before `run()`, which then ends at once.
  public func stop() async {
    isStopRequested = true
    end.continuation.finish()
    if case .idle = phase { letGo() }
  }

  private func ended() {
    phase = .ended
    engine = nil
    profile.release()
    letGo()
    hub.finish()
  }

  private func letGo() {
    for caller in waiting { caller.resume() }
    waiting = []
  }

  /// Returns once the node has logged in and is in the channels of last time. Waits for `run()` to be called. Throws
  /// `.stopped` when the node stops, or cannot start.
  public func ready() async throws(ParleyError) { _ = try await running() }

  /// Waits until the node is ready.
  func running() async throws(ParleyError) -> Engine {
    switch phase {
    case .idle where isStopRequested: throw .stopped
    case .idle, .starting: await withCheckedContinuation { waiting.append($0) }
    case .ready, .ended: break
    }
    guard case .ready = phase, let engine else { throw .stopped }
    return engine
  }

  private func rejoin(_ engine: Engine) async {
    let channels: [ChannelKeys]
    do { channels = try profile.loadChannels() } catch {
      hub.take(.trouble(error.description))
      return
    }
    for keys in channels {
      do {
        try await enter(keys, engine)
        await greet(keys.name, engine)
      } catch { hub.take(.trouble("\(keys.name.text.escapedLine): \(error)")) }
    }
  }

  /// The node as it is now; answers also before `run()` and after it.
  public func status() async -> NodeStatus {
    let sessionCount = await engine?.links.sessionCount ?? 0
    let heard = await engine?.links.foreignCount() ?? 0
    return NodeStatus(
      peer: peerID, displayName: displayName.text, state: hub.connectionState,
      tcpPort: await engine?.links.tcpPort ?? 0, interfaces: hub.interfaceLines, sessionCount: sessionCount,
      nodesHeardCount: heard, channels: await channels(), troubles: hub.troubles)
  }

  /// How many times a node was heard, within the last 10 s, in a channel that is none of ours: a node counts once for
  /// each such channel.
  public func nodesHeardElsewhere() async -> Int { await engine?.links.foreignCount() ?? 0 }
}
