import ParleyActors
import ParleyStore
import ParleyVocabulary
import ParleyWire

/// What the user wishes of channels and people. Kept on this node; nobody else learns of it.
extension Node {
  /// Throws `.notInChannel`.
  public func settings(of name: ChannelName) async throws(ParleyError) -> ChannelSettings {
    _ = try await running()
    return hub.wishes.settings(of: try channel(name).id)
  }

  /// From now on, and after a restart, also after leaving the channel and joining it again. Throws `.notInChannel` and
  /// `.badSetting`.
  public func set(_ settings: ChannelSettings, of name: ChannelName) async throws(ParleyError) {
    let engine = try await running()
    let joined = try channel(name)
    try settings.check()
    hub.wishes.set(settings, of: joined.id)
    for setting in settings.stored(of: joined.id) { hub.keep(.setting(setting)) }
    keepHistory(of: joined.id, engine)
  }

  /// `peer` as for `tell`; a full ID also of somebody never met. Throws `.noSuchPeer`, `.ambiguousPeer`.
  public func settings(ofPeer peer: String) async throws(ParleyError) -> PeerSettings {
    let engine = try await running()
    return hub.wishes.settings(of: try await find(peer, engine).peer)
  }

  /// From now on, and after a restart. Throws `.noSuchPeer`, `.ambiguousPeer`.
  public func set(_ settings: PeerSettings, ofPeer peer: String) async throws(ParleyError) {
    let engine = try await running()
    let peer = try await find(peer, engine).peer
    hub.wishes.set(settings, of: peer)
    for setting in settings.stored(of: peer) { hub.keep(.setting(setting)) }
  }

  /// How much of the channel is kept, as it is set now.
  func keepHistory(of channel: ChannelID, _ engine: Engine) {
    let wished = hub.wishes.settings(of: channel)
    switchboard.store.post(
      .retain(
        channel,
        Retention(
          days: wished.historyDays ?? settings.historyDays,
          entryCountMax: wished.historyEntryCountMax ?? settings.historyEntryCountMax, renewingKind: EditKind.code)))
  }
}
