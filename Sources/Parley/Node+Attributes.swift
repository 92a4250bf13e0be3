import ParleyActors
import ParleyMachines
import ParleySealing
import ParleyVocabulary
import ParleyWire

/// Attributes of channels: texts by name that every member sees and may set.
extension Node {
  /// What stands in the channel, by key. Throws `.notInChannel`.
  public func attributes(of name: ChannelName) async throws(ParleyError) -> [ChannelAttribute] {
    let joined = try channel(name)
    let state = attributeState(of: joined)
    return state.standing.sorted { $0.key.lexicographicallyPrecedes($1.key) }.compactMap { ChannelAttribute($0.value) }
  }

  private func attributeState(of joined: Hub.Joined) -> AttributeState {
    hub.attributes.state(of: joined.id) { self.hub.doesCount($0, in: joined.id) }
  }

  /// Sets a text under a name, for everybody in the channel. Returns once it is stored and on the wire.
  ///
  /// With `isOverwriting` it takes the place of whatever stands there; without, what somebody else has set stays, and
  /// of two who do so at once the one counts that every member has first in order: `attributes(of:)` and
  /// `NodeEvent.attributeChanged` say which. With `isUntilLeave` it goes when this node leaves the channel, stops, or
  /// is gone for the others.
  ///
  /// Throws `.badField` for a key that has not 1 to 128 bytes of UTF-8 and a value of more than 4,096, `.attribute`
  /// when somebody else holds the key or there are 100 already, `.excluded`, `.notInChannel`, `.queueFull`.
  public func setAttribute(
    _ key: String, to value: String, isOverwriting: Bool = true, isUntilLeave: Bool = false, in name: ChannelName
  ) async throws(ParleyError) {
    let engine = try await running()
    let joined = try channel(name)
    try Self.check(key)
    guard value.utf8.count <= AttributeKind.valueByteCountMax else {
      throw .badField(
        "value", value: "\(value.utf8.count) bytes", allowed: "at most \(AttributeKind.valueByteCountMax) bytes")
    }
    let state = attributeState(of: joined)
    let departed = state.departed.first { $0.content.key.utf8.elementsEqual(key.utf8) }
    let standing = state.standing[Array(key.utf8)]
    if let standing, !isOverwriting, standing.author != peerID {
      throw .attribute(name, key: key, .heldBy(standing.author))
    }
    if standing == nil, departed == nil, state.isFull {
      guard let gone = state.departed.first else {
        throw .attribute(name, key: key, .full(countMax: AttributeBook.countMax))
      }
      // It makes room only if nobody has set it anew meanwhile.
      try await act(
        AttributeKind(key: gone.content.key, value: nil, isOverwriting: false, replaces: gone.log.log), in: joined,
        engine)
    }
    try await act(
      AttributeKind(
        key: key, value: value, isUntilLeave: isUntilLeave, isOverwriting: isOverwriting,
        replaces: isOverwriting ? nil : departed?.log.log), in: joined, engine)
  }

  /// Takes an attribute away; without `isOverwriting` only one that this node has set. Throws as `setAttribute`, and
  /// `.attribute` where there is none.
  public func removeAttribute(
    _ key: String, isOverwriting: Bool = true, in name: ChannelName
  ) async throws(ParleyError) {
    let engine = try await running()
    let joined = try channel(name)
    try Self.check(key)
    guard let standing = attributeState(of: joined).standing[Array(key.utf8)] else {
      throw .attribute(name, key: key, .notThere)
    }
    if !isOverwriting, standing.author != peerID { throw .attribute(name, key: key, .heldBy(standing.author)) }
    try await act(AttributeKind(key: key, value: nil, isOverwriting: isOverwriting), in: joined, engine)
  }

  private static func check(_ key: String) throws(ParleyError) {
    guard AttributeKind.keyByteCounts.contains(key.utf8.count) else {
      throw .badField("key", value: key, allowed: "1 to \(AttributeKind.keyByteCounts.upperBound) bytes")
    }
  }

  /// Whoever comes back in the same run has not left for good: so what goes with this node is taken away.
  func removeOwnAttributes(in joined: Hub.Joined, _ engine: Engine) async {
    for act in attributeState(of: joined).standing.values where act.content.isUntilLeave && act.author == peerID {
      try? await self.act(
        AttributeKind(key: act.content.key, value: nil, isOverwriting: false), in: joined, engine)
    }
  }

  /// What was set before this run.
  func restoreAttributes(_ engine: Engine, in joined: Hub.Joined) async {
    var cursor: UInt64? = 0
    while let after = cursor, let page = try? await engine.store.attributeEntries(in: joined.id, after: after) {
      let acts = page.entries.flatMap { AttributeAct.acts(of: $0) }
      let released = hub.attributes.take(acts, in: joined.id) { self.hub.doesCount($0, in: joined.id) }
      hub.release(released, in: joined.id)
      cursor = page.next
    }
    _ = hub.attributes.refresh(joined.id, isLoaded: true) { self.hub.doesCount($0, in: joined.id) }
  }
}
