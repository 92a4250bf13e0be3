import ParleyActors
import ParleyStore
import ParleyVocabulary
import ParleyWire

extension Hub {
  /// Login tokens that an entry shows.
  func heardTokens(_ entry: Entry, in channel: ChannelID, _ name: ChannelName) {
    let author = entry.key.author
    for item in entry.items where item.kind == TokenKind.code {
      guard let body = item.body, let message = try? SchemaMessage(decoding: body, author: author),
        let shown = message.content as? TokenKind
      else { continue }
      take(shown.token, from: author, in: channel, name)
    }
  }

  func take(_ text: String, from author: PeerID, in channel: ChannelID, _ name: ChannelName) {
    guard let token = tokens.take(text, from: author, in: channel) else {
      // One that is known already, or one that is not believed.
      if case .failure(let refusal) = tokens.word(for: author, in: channel, at: .now) {
        tell(refusal, of: author, in: channel, name)
      }
      return
    }
    keep(
      .token(
        StoredToken(channel: channel, peer: author, expires: token.expires.milliseconds, text: token.text),
        countMax: tokens.organiser(of: channel) == nil ? 1 : Tokens.tokenCountMax))
    switch tokens.word(for: author, in: channel, at: .now) {
    case .success(let word):
      emit(.tokenAccepted(name, author, word))
      attributesMayHaveChanged(in: channel)
    case .failure(let refusal): tell(refusal, of: author, in: channel, name)
    case nil: break
    }
  }

  /// Whose tokens the owner of a channel asks for.
  func ownerSaid(_ key: OrganiserKey?, in channel: ChannelID) {
    guard tokens.ownerSaid(key, in: channel) else { return }
    state.withLock { state in
      state.newOrganisers.insert(channel)
      return state.wake
    }?()
  }

  func takeNewOrganisers() -> [Joined] {
    state.withLock { state in
      defer { state.newOrganisers = [] }
      return state.newOrganisers.compactMap { state.channels[$0] }
    }
  }

  /// Once for each reason.
  func tell(_ refusal: TokenRefusal, of peer: PeerID, in channel: ChannelID, _ name: ChannelName) {
    if tokens.isNew(refusal, of: peer, in: channel) { emit(.tokenRefused(name, peer, refusal, isSelf: peer == me)) }
  }

  func forgetAnnouncements(in channel: ChannelID) { state.withLock { $0.media[channel] = nil } }
}

extension Tokens {
  /// Of its author, when it was signed.
  func word(of entry: Entry, in channel: ChannelID) -> Result<OrganiserWord, TokenRefusal>? {
    word(for: entry.key.author, in: channel, at: Timestamp(milliseconds: Int64(clamping: entry.timestamp)))
  }
}

extension Recognition {
  mutating func add(_ word: Result<OrganiserWord, TokenRefusal>?) {
    switch word {
    case .success(let word): organiserWord = word
    case .failure(let refusal): tokenRefusal = refusal
    case nil: break
    }
  }

  /// Whether what they say, and their hand, is shown.
  var isShown: Bool { !isBlocked && tokenRefusal == nil }
}

extension Timestamp {
  static var now: Timestamp { Timestamp(milliseconds: Int64(clamping: SystemClock.wallMilliseconds())) }
}
