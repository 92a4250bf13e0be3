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
/// One home, one node: a second one on the same home is refused with `ParleyError.profileInUse`.
public actor Node {
  let settings: NodeSettings
  let profile: Profile
  let instance: Instance
  let hub: Hub
  let switchboard: Switchboard
  let displayName: DisplayName
  /// What runs while `run()` does.
  var engine: Engine?
  private var started: [CheckedContinuation<Void, Never>] = []
  private var hasEnded = false
  private var stopping: CheckedContinuation<Void, Never>?
  private var isStopRequested = false

  /// Opens and locks the profile; makes one at the first start. Throws `.profileInUse`, `.profileDamaged`, `.badName`.
  public init(_ settings: NodeSettings, trouble: @escaping @Sendable (String) -> Void = { _ in }) throws(ParleyError) {
    self.settings = settings
    let profile: Profile
    do { profile = try Profile.open(home: settings.home) } catch { throw ParleyError(error, home: settings.home) }
    self.profile = profile
    do {
      if let name = settings.displayName {
        displayName = try DisplayName(name)
        try profile.saveDisplayName(displayName)
      } else if let stored = try profile.loadDisplayName() {
        displayName = stored
      } else {
        displayName = try DisplayName(Self.loginName)
        try profile.saveDisplayName(displayName)
      }
    } catch let error as NameError {
      throw .badName(error)
    } catch {
      throw .profileDamaged(path: settings.home, reason: "\(error)")
    }
    instance = Sealing.randomInstance()
    let hub = Hub(me: profile.identity.peerID, instance: instance, trouble: trouble)
    self.hub = hub
    switchboard = Switchboard { hub.take($0) }
  }

  public nonisolated var peerID: PeerID { profile.identity.peerID }
  /// The name that others are shown; decoration, not identity.
  public nonisolated var name: String { displayName.text }

  /// Runs the node until `stop()` or until the same identity is started elsewhere (`.aborted`). Returns once everything
  /// is closed.
  public func run() async throws(ParleyError) {
    guard engine == nil, !hasEnded else { throw .stopped }
    let engine: Engine
    do {
      engine = try await Engine.start(
        settings: settings, profile: profile, instance: instance, displayName: displayName, switchboard: switchboard)
    } catch {
      end()
      throw error
    }
    self.engine = engine
    await withTaskGroup(of: Void.self) { group in
      engine.addTasks(to: &group)
      group.addTask { await self.lifetime(engine) }
      await group.waitForAll()
    }
    await engine.store.close()
    engine.close()
    end()
    if hub.connectionState == .aborted { throw .aborted }
  }

  /// Logs in, joins the channels of last time, waits for the end, says goodbye.
  private func lifetime(_ engine: Engine) async {
    await engine.logIn(displayName)
    await rejoin(engine)
    for waiting in started { waiting.resume() }
    started = []
    let abort = Task { await self.watchForAbort() }
    if !isStopRequested { await withCheckedContinuation { stopping = $0 } }
    abort.cancel()
    switchboard.login.post(.loggedOut)
    await engine.settle(switchboard)
    switchboard.close()
  }

  private func watchForAbort() async {
    for await event in hub.events(bufferingCount: 64) where event == .stateChanged(.aborted) { await stop() }
  }

  /// Leaves every channel properly and ends `run()`. The channels are joined again at the next start.
  public func stop() async {
    isStopRequested = true
    stopping?.resume()
    stopping = nil
  }

  private func end() {
    hasEnded = true
    engine = nil
    profile.release()
    for waiting in started { waiting.resume() }
    started = []
    hub.finish()
  }

  /// Returns once the node has logged in and is in the channels of last time.
  public func ready() async throws(ParleyError) { _ = try await running() }

  /// Waits until the node has logged in.
  func running() async throws(ParleyError) -> Engine {
    if engine == nil || !engine!.isLoggedIn, !hasEnded {
      await withCheckedContinuation { started.append($0) }
    }
    guard let engine, !hasEnded else { throw .stopped }
    return engine
  }

  private func rejoin(_ engine: Engine) async {
    let channels: [ChannelKeys]
    do { channels = try profile.loadChannels() } catch {
      hub.take(.trouble(error.description))
      return
    }
    for keys in channels {
      do { try await enter(keys, engine) } catch { hub.take(.trouble("\(keys.name.text.escapedLine): \(error)")) }
    }
  }

  public func status() async -> NodeStatus {
    let sessionCount = await engine?.links.sessionCount ?? 0
    let heard = await engine?.links.foreignCount() ?? 0
    return NodeStatus(
      peer: peerID, displayName: displayName.text, state: hub.connectionState,
      tcpPort: await engine?.links.tcpPort ?? 0, interfaces: hub.interfaceLines, sessionCount: sessionCount,
      nodesHeardCount: heard, channels: await channels())
  }

  public func nodesHeardElsewhere() async -> Int { await engine?.links.foreignCount() ?? 0 }

  /// Events from now on. A subscriber that does not keep up loses what does not fit `bufferingCount` (at least 1) and
  /// is told so by `.dropped`.
  public func events(bufferingCount: Int = 1_024) async -> AsyncStream<NodeEvent> {
    hub.events(bufferingCount: bufferingCount)
  }
}
