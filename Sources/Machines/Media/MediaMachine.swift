import ParleyVocabulary
import ParleyWire

package enum MediaEvent: Equatable, Sendable {
  /// We hold it and may serve it in this channel.
  case held(MediaID, ChannelID)
  case unheld(MediaID, ChannelID)
  case channelClosed(ChannelID)
  /// A member asks who has these.
  case asked(ChannelID, PeerID, [MediaID])
  case holdingHeard(ChannelID, PeerID, [MediaID])
  /// The application wants to know who has these.
  case holdersWanted(ChannelID, [MediaID])
}

package enum MediaEffect: Equatable, Sendable {
  case holderFound(ChannelID, MediaID, PeerID)
  case tell(NodeEvent)
}

/// What this node holds in which channel, and who else said that they hold it. Downloads and serving have machines of
/// their own.
package struct MediaMachine: Sendable {
  /// Most media of which holders are remembered; the oldest question goes first.
  private static let rememberedCountMax = 4_096

  private var held: [ChannelID: Set<MediaID>] = [:]
  private var holders: [MediaID: Set<PeerID>] = [:]
  private var order: [MediaID] = []

  package init() {}

  package func holders(of media: MediaID) -> Set<PeerID> { holders[media] ?? [] }
  package func isHeld(_ media: MediaID, in channel: ChannelID) -> Bool { held[channel]?.contains(media) == true }

  package mutating func handle(_ event: MediaEvent, at now: Instant) -> [MediaEffect] {
    switch event {
    case .held(let media, let channel):
      held[channel, default: []].insert(media)
      return []
    case .unheld(let media, let channel):
      held[channel]?.remove(media)
      return []
    case .channelClosed(let channel):
      held[channel] = nil
      return []
    case .asked(let channel, let peer, let media):
      let ours = media.filter { held[channel]?.contains($0) == true }
      guard !ours.isEmpty else { return [] }
      return [.tell(.links(.unicast(channel, peer, [], direct: [.holding(ours)])))]
    case .holdingHeard(let channel, let peer, let media):
      // Only what was asked for: nobody makes us remember media we never heard of.
      return media.filter { holders[$0] != nil }.compactMap {
        holders[$0]!.insert(peer).inserted ? .holderFound(channel, $0, peer) : nil
      }
    case .holdersWanted(let channel, let media):
      for id in media { ask(id) }
      return stride(from: 0, to: media.count, by: 32).map { start in
        .tell(.links(.multicast(channel, [.plain(.whoHas(Array(media[start..<min(start + 32, media.count)])))])))
      }
    }
  }

  /// Asked anew, whoever does not answer any more is no holder.
  private mutating func ask(_ media: MediaID) {
    if holders.updateValue([], forKey: media) == nil { order.append(media) }
    if order.count > Self.rememberedCountMax { holders[order.removeFirst()] = nil }
  }
}
