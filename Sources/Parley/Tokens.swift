import ParleyVocabulary
import Synchronization

/// Login tokens: whose word counts in which channel, and what it says of whom. Called from any thread; never blocks for
/// long.
final class Tokens: Sendable {
  private struct Channel {
    let name: ChannelName
    /// The user's choice, which goes before the owner's.
    var chosen: OrganiserKey?
    var owners: OrganiserKey?
    /// Those signed by the organiser, the one that lasts longest last; while there is no organiser the last one shown.
    var tokens: [PeerID: [LoginToken]] = [:]
    /// Why the last token of somebody who has none that is good was refused.
    var refusals: [PeerID: TokenRefusal] = [:]
    /// What was told of whom, so that it is told once.
    var told: [PeerID: TokenRefusal] = [:]

    var organiser: OrganiserKey? { chosen ?? owners }
  }

  /// A token of eight hours each day of the 30 that a history goes back, and some that were renewed.
  static let tokenCountMax = 64
  /// Of how many people at most what they showed is remembered.
  private static let peopleCountMax = Limit.membersPerChannelMax

  private let state = Mutex<[ChannelID: Channel]>([:])

  func open(_ channel: ChannelID, _ name: ChannelName, chosen: OrganiserKey?, _ tokens: [LoginToken]) {
    state.withLock { state in
      var opened = Channel(name: name, chosen: chosen, owners: state[channel]?.owners)
      for token in tokens { _ = Self.take(token, from: token.subject, &opened) }
      state[channel] = opened
    }
  }

  func close(_ channel: ChannelID) { state.withLock { $0[channel] = nil } }

  func organiser(of channel: ChannelID) -> OrganiserKey? { state.withLock { $0[channel]?.organiser } }

  /// The user's choice. True when another organiser counts now.
  func choose(_ key: OrganiserKey?, in channel: ChannelID) -> Bool { change(channel) { $0.chosen = key } }

  /// What the owner of an owned channel says. True when another organiser counts now.
  func ownerSaid(_ key: OrganiserKey?, in channel: ChannelID) -> Bool { change(channel) { $0.owners = key } }

  private func change(_ channel: ChannelID, _ body: (inout Channel) -> Void) -> Bool {
    state.withLock { state in
      guard var changed = state[channel] else { return false }
      let before = changed.organiser
      body(&changed)
      guard changed.organiser != before else {
        state[channel] = changed
        return false
      }
      let tokens = changed.tokens
      changed.tokens = [:]
      changed.refusals = [:]
      changed.told = [:]
      for (peer, shown) in tokens { for token in shown { _ = Self.take(token, from: peer, &changed) } }
      state[channel] = changed
      return true
    }
  }

  /// What somebody showed. True when it is to be kept.
  func take(_ text: String, from peer: PeerID, in channel: ChannelID) -> LoginToken? {
    state.withLock { state in
      guard state[channel] != nil else { return nil }
      let token: LoginToken
      do throws(ParleyError) { token = try LoginToken(text) } catch {
        if case .badToken(let refusal) = error { Self.note(refusal, of: peer, &state[channel]!) }
        return nil
      }
      return Self.take(token, from: peer, &state[channel]!) ? token : nil
    }
  }

  private static func take(_ token: LoginToken, from peer: PeerID, _ channel: inout Channel) -> Bool {
    guard channel.tokens[peer] != nil || channel.tokens.count < peopleCountMax else { return false }
    guard let organiser = channel.organiser else {
      guard token.subject == peer else { return false }
      channel.tokens[peer] = [token]
      return true
    }
    // Its time is looked at where it is used.
    if let refusal = token.refusal(for: peer, in: channel.name, signedBy: organiser, at: token.validFrom) {
      note(refusal, of: peer, &channel)
      return false
    }
    var tokens = channel.tokens[peer] ?? []
    guard !tokens.contains(token) else { return false }
    let place = tokens.firstIndex { token.expires < $0.expires } ?? tokens.count
    tokens.insert(token, at: place)
    if tokens.count > tokenCountMax { tokens.removeFirst() }
    channel.tokens[peer] = tokens
    channel.refusals[peer] = nil
    channel.told[peer] = nil
    return true
  }

  private static func note(_ refusal: TokenRefusal, of peer: PeerID, _ channel: inout Channel) {
    if channel.refusals[peer] != nil || channel.refusals.count < peopleCountMax { channel.refusals[peer] = refusal }
  }

  /// The organiser's word for somebody at a moment, or why there is none; nil where nobody asks for tokens.
  func word(
    for peer: PeerID, in channel: ChannelID, at moment: Timestamp
  ) -> Result<OrganiserWord, TokenRefusal>? {
    state.withLock { state in
      guard let channel = state[channel], channel.organiser != nil else { return nil }
      // Of several the reason is that of the one that lasts longest.
      var refusal: TokenRefusal?
      for token in (channel.tokens[peer] ?? []).reversed() {
        guard let reason = token.refusal(at: moment) else {
          return .success(OrganiserWord(name: token.name, role: token.role, expires: token.expires))
        }
        refusal = refusal ?? reason
      }
      return .failure(channel.refusals[peer] ?? refusal ?? .missing)
    }
  }

  /// True the first time that this is to be told of somebody.
  func isNew(_ refusal: TokenRefusal, of peer: PeerID, in channel: ChannelID) -> Bool {
    state.withLock { state in
      guard state[channel] != nil, state[channel]!.told[peer] != refusal else { return false }
      if state[channel]!.told.count >= Self.peopleCountMax { state[channel]!.told = [:] }
      state[channel]!.told[peer] = refusal
      return true
    }
  }

  /// The one of them that lasts longest and counts there now.
  func best(of peer: PeerID, in channel: ChannelID, at moment: Timestamp) -> LoginToken? {
    state.withLock { state in
      guard let channel = state[channel], channel.organiser != nil else { return nil }
      return (channel.tokens[peer] ?? []).last { $0.refusal(at: moment) == nil }
    }
  }
}
