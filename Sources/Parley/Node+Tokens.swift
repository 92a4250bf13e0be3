import Glibc
import ParleyActors
import ParleyMachines
import ParleySealing
import ParleyStore
import ParleyVocabulary
import ParleyWire

/// Login tokens of this node's user, and whose tokens count in a channel.
extension Node {
  /// How long before its end a token's user is warned.
  static let tokenWarningMilliseconds: Int64 = 30_000

  /// Logs in with this token, in every channel that it is for, in the place of an earlier one; sessions and messages go
  /// on undisturbed. It is shown to the members of channels whose organiser signed it, and of those that it names; what
  /// is accepted is kept, and shown again after a restart while it is valid.
  ///
  /// Throws `.badToken` when it is malformed, somebody else's (`.wrongSubject`), not valid yet or expired. Whether the
  /// organiser signed it shows in each channel: `NodeEvent.tokenRefused` says when not.
  public func logIn(with token: LoginToken) async throws(ParleyError) {
    let engine = try await running()
    try check(token)
    ownToken = token
    await showToken(engine)
    engine.tokenAlarm.continuation.yield()
  }

  func check(_ token: LoginToken) throws(ParleyError) {
    if token.subject != peerID { throw .badToken(.wrongSubject(token.subject)) }
    if let refusal = token.refusalNow() { throw .badToken(refusal) }
  }

  /// The login token in use; nil: none, or it expired.
  public func loginToken() async -> LoginToken? {
    ownToken?.refusalNow() == nil ? ownToken : nil
  }

  /// Whose login tokens are asked for in a channel (nil: nobody's): from now on, and looking back, what is said without
  /// a token that was valid then is not shown. The owner of an owned channel says so for all its members; anybody
  /// else's choice is for this node alone, is kept, and goes before the owner's (nil: the owner's counts). Throws
  /// `.notInChannel`, `.queueFull`, `.profileDamaged`.
  public func setOrganiser(_ key: OrganiserKey?, in name: ChannelName) async throws(ParleyError) {
    let engine = try await running()
    let joined = try channel(name)
    if let governance = hub.rulebook.governance(of: joined.id), governance.owner == peerID {
      try await act(OrganiserKind(key: key.map { PeerID($0.value) }), in: joined, engine)
      if hub.tokens.ownerSaid(key, in: joined.id) { await organiserChanged(joined, engine) }
      return
    }
    do { try await engine.store.apply([.organiser(joined.id, key)]) } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
    if hub.tokens.choose(key, in: joined.id) { await organiserChanged(joined, engine) }
  }

  /// Whose login tokens are asked for in a channel; nil: nobody's. Throws `.notInChannel`.
  public func organiser(of name: ChannelName) async throws(ParleyError) -> OrganiserKey? {
    hub.tokens.organiser(of: try channel(name).id)
  }

  func organiserChanged(_ joined: Hub.Joined, _ engine: Engine) async {
    hub.forgetAnnouncements(in: joined.id)
    await restoreAnnouncements(engine, in: joined)
    await showToken(engine, in: joined)
    for view in await engine.membership.members(of: joined.id) {
      hub.emit(.memberChanged(joined.name, hub.value(view, in: joined.id)))
    }
  }

  // MARK: Joining

  /// Nil when there is no file to be read.
  func ownTokenAtStart() throws(ParleyError) -> LoginToken? {
    guard let path = settings.tokenFile else { return nil }
    let token = try Self.token(inFile: path)
    try check(token)
    return token
  }

  /// Before the channel is joined, so that nothing is shown that should not be.
  func choose(_ key: OrganiserKey, _ channel: ChannelID, _ engine: Engine) async throws(ParleyError) {
    do { try await engine.store.apply([.organiser(channel, key)]) } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
  }

  /// Before anything of the channel is shown.
  func restoreTokens(_ keys: (id: ChannelID, name: ChannelName), _ engine: Engine) async {
    let stored = try? await engine.store.tokens(in: keys.id)
    let tokens = (stored?.tokens ?? []).compactMap { try? LoginToken($0) }
    hub.tokens.open(keys.id, keys.name, chosen: stored?.organiser, tokens)
    if ownToken == nil, let kept = hub.tokens.best(of: peerID, in: keys.id, at: .now) { ownToken = kept }
  }

  /// In a channel that was just joined, after what must be said there first.
  func greet(_ name: ChannelName, _ engine: Engine) async {
    guard let joined = hub.channel(named: name) else { return }
    await showToken(engine, in: joined)
    engine.tokenAlarm.continuation.yield()
  }

  func showToken(_ engine: Engine) async {
    for joined in hub.channels { await showToken(engine, in: joined) }
  }

  /// To the members of a channel that it is for.
  func showToken(_ engine: Engine, in joined: Hub.Joined) async {
    guard let token = ownToken, token.refusalNow() == nil else { return }
    if let organiser = hub.tokens.organiser(of: joined.id) {
      if let refusal = token.refusal(for: peerID, in: joined.name, signedBy: organiser, at: .now) {
        // Another channel's token says nothing about this one.
        if case .wrongChannel = refusal { return }
        return hub.tell(refusal, of: peerID, in: joined.id, joined.name)
      }
    } else if token.channel != joined.name {
      return
    }
    // What is said from now on counts here, even before the entry is on the disk.
    hub.take(token.text, from: peerID, in: joined.id, joined.name)
    guard let json = try? checked(message(TokenKind(token: token.text), Sealing.randomMessageID())) else { return }
    _ = await engine.messaging.submit(joined.id, kind: TokenKind.code, isHidden: true, json: json)
  }

  // MARK: Time

  /// Warns before the token ends, and looks for a new one in its file. Until the node ends.
  func watchToken(_ engine: Engine) async {
    var warned: LoginToken?
    for await _ in engine.tokenAlarm.stream {
      for joined in hub.takeNewOrganisers() { await organiserChanged(joined, engine) }
      guard let token = ownToken else { continue }
      let left = token.expires.milliseconds - Timestamp.now.milliseconds
      if left <= 0 {
        ownToken = nil
        for joined in hub.channels where hub.tokens.organiser(of: joined.id) != nil {
          hub.tell(.expired(at: token.expires), of: peerID, in: joined.id, joined.name)
        }
        continue
      }
      if left <= Self.tokenWarningMilliseconds, warned != token {
        warned = token
        if await renewed(token, engine) == false { hub.emit(.tokenExpiring(token)) }
      }
      let next = ownToken.map { $0.expires.milliseconds - Timestamp.now.milliseconds } ?? left
      // A clock may be set meanwhile: looked at once a minute.
      let wait = next > Self.tokenWarningMilliseconds ? next - Self.tokenWarningMilliseconds : next
      engine.wakeForToken(after: .milliseconds(Int(max(1, min(wait, 60_000)))))
    }
  }

  /// Whether the file has one by now that lasts longer.
  private func renewed(_ token: LoginToken, _ engine: Engine) async -> Bool {
    guard let path = settings.tokenFile, let next = try? Self.token(inFile: path), next.expires > token.expires,
      (try? check(next)) != nil
    else { return false }
    ownToken = next
    await showToken(engine)
    return true
  }

  /// Throws `.noSuchFile`, `.fileTrouble`, `.badToken`.
  static func token(inFile path: String) throws(ParleyError) -> LoginToken {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      let code = errno
      throw code == ENOENT
        ? .noSuchFile(path: path) : .fileTrouble(path: path, reason: String(cString: strerror(code)))
    }
    defer { Glibc.close(file) }
    // One byte more than is possible, with line ends, so that a longer file is refused as one.
    var bytes = [UInt8](repeating: 0, count: Limit.tokenByteCountMax + 17)
    var count = 0
    while count < bytes.count {
      let more = bytes.withUnsafeMutableBytes { read(file, $0.baseAddress! + count, $0.count - count) }
      if more < 0, errno == EINTR { continue }
      guard more >= 0 else { throw .fileTrouble(path: path, reason: String(cString: strerror(errno))) }
      if more == 0 { break }
      count += more
    }
    return try LoginToken(String(decoding: bytes[..<count], as: UTF8.self))
  }
}
