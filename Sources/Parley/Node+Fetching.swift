import ParleyActors
import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// Previews and voice that come before anybody asks for them. An offer alone puts nothing on the disk: a file is
/// written when all of it is there and verified, within the bound on one and on all.
extension Node {
  /// Until the node ends.
  func fetchBeforehand(_ engine: Engine) async {
    hub.restoreFetched(await engine.received.kept())
    await withDiscardingTaskGroup { group in
      for await _ in hub.offers.stream {
        while let offer = hub.nextOffer() {
          group.addTask {
            let isHere = await self.fetch(offer, engine)
            self.hub.ended(offer, isHere: isHere)
          }
        }
      }
      group.cancelAll()
    }
  }

  private func fetch(_ offer: FetchOffer, _ engine: Engine) async -> Bool {
    guard hub.isWanted(offer) else { return false }
    if await engine.media.heldFile(offer.id) != nil { return true }
    do throws(ParleyError) {
      let present = await engine.membership.presentPeers(in: offer.channel)
      var order = DownloadOrder(
        id: offer.id, channel: offer.channel, target: nil, folder: "", kind: offer.kind,
        likely: present.filter { $0 == offer.sender }, report: { _ in })
      order.isListed = false
      guard let tag = await engine.media.read(order) else { return false }
      let source = ReadSource(id: offer.id, tag: tag, actor: engine.media)
      let byteCount = try await source.opened().byteCount
      // Before the first byte of the file itself is taken.
      guard byteCount <= offer.byteCountMax, let manifest = await engine.media.manifest(ofReading: tag) else {
        return false
      }
      var bytes: [UInt8] = []
      bytes.reserveCapacity(Int(byteCount))
      while let chunk = try await source.next() { bytes += chunk }
      // Somebody may have been blocked, or turned out to be nobody who is heard.
      guard hub.isWanted(offer), let joined = hub.joined(offer.channel) else { return false }
      try await keep(bytes, manifest, offer, joined, engine)
      return true
    } catch {
      // Nobody has it now, or the disk refuses: it is fetched when it is asked for.
      return false
    }
  }

  private func keep(
    _ bytes: [UInt8], _ manifest: MediaManifest, _ offer: FetchOffer, _ joined: Hub.Joined, _ engine: Engine
  ) async throws(ParleyError) {
    let path = try await engine.received.write(bytes)
    let held: HeldFile
    do throws(ParleyError) {
      let scanned = try await engine.received.hashed(path)
      guard scanned.root == manifest.files[0].root else { throw .sourceChanged(path: path) }
      let place = try await engine.received.name(path, manifest.id)
      held = HeldFile(
        path: place, facts: scanned.source.facts, manifest: manifest, pieceHashes: scanned.pieceHashes)
    } catch {
      await engine.received.discard([path])
      throw error
    }
    try await keep(held, in: joined, kind: offer.kind, engine)
    await engine.media.hold(held, in: joined.id)
    let gone = await engine.received.trim(
      toByteCount: settings.fetchedByteCountMax, count: FetchRules.keptCountMax, keeping: [manifest.id])
    for id in gone {
      hub.forgetFetched(id)
      let path = await engine.received.path(of: id)
      guard await engine.media.heldFile(id)?.path == path else { continue }
      _ = await engine.media.release(id)
      // One that cannot be written down is found missing at the next start.
      try? await engine.store.apply([.unshare(id, nil)])
    }
  }
}

extension Hub {
  /// What a message that counts offers, from now on.
  func offer(_ message: Message, in channel: ChannelID) {
    guard message.sender != me else { return }
    let wished = wishes.settings(of: channel)
    var rules = fetchRules
    rules.thumbnails = rules.thumbnails && wished.downloadsThumbnails
    rules.voice = rules.voice && wished.downloadsVoice
    guard let offer = rules.offer(message, in: channel) else { return }
    state.withLock { $0.queue.add(offer) }
    offers.continuation.yield()
  }

  func nextOffer() -> FetchOffer? { state.withLock { $0.queue.take() } }

  func ended(_ offer: FetchOffer, isHere: Bool) {
    let name = state.withLock { state -> ChannelName? in
      state.queue.end(offer)
      guard isHere else { return nil }
      state.fetched.insert(offer.id)
      return state.channels[offer.channel]?.name
    }
    if let name { emit(.fetched(name, offer.id)) }
    offers.continuation.yield()
  }

  /// While its message counts, its sender is not blocked, and this node is in the channel.
  func isWanted(_ offer: FetchOffer) -> Bool {
    guard !people.isBlocked(offer.sender) else { return false }
    return state.withLock { $0.media[offer.channel]?[offer.id]?.sender == offer.sender }
  }

  func joined(_ channel: ChannelID) -> Joined? { state.withLock { $0.channels[channel] } }

  func restoreFetched(_ ids: [MediaID]) { state.withLock { state in for id in ids { state.fetched.insert(id) } } }

  func forgetFetched(_ id: MediaID) { state.withLock { $0.fetched.remove(id) } }
}
