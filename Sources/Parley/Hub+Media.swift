import ParleyVocabulary
import ParleyWire

/// What messages announce.
extension Hub {
  /// Remembers what media a message announces.
  func note(_ message: Message, in channel: ChannelID) {
    noteBundle(message, in: channel)
    guard let media = message.media else { return }
    let isTooMuch = state.withLock { state in
      state.media[channel, default: AnnouncedMedia()].note(media.id, message, countMaxEach: sharesMax)
    }
    if isTooMuch, message.sender != me, !isKnown(.shares, message.sender, channel) {
      overLimit(channel, message.sender, .shares)
    }
  }

  private func isKnown(_ excess: MemberExcess, _ peer: PeerID, _ channel: ChannelID) -> Bool {
    state.withLock { $0.suspicions[channel]?.excesses(of: peer).contains(excess) ?? false }
  }

  /// The messages that announce media in a channel, oldest first, one a media ID.
  func announcements(in channel: ChannelID) -> [Message] {
    state.withLock { $0.media[channel]?.messages ?? [] }.filter { !people.isBlocked($0.sender) }
  }

  func announcement(of media: MediaID) -> (Joined, Message)? {
    state.withLock { state in
      for (channel, announced) in state.media {
        if let joined = state.channels[channel], let message = announced[media], !people.isBlocked(message.sender) {
          return (joined, message)
        }
      }
      return otherAnnouncement(of: media, state)
    }
  }

  /// Where the messages of a combined one are.
  func noteBundle(_ message: Message, in channel: ChannelID) {
    guard let bundle = message.bundle else { return }
    state.withLock { _ = $0.bundled[channel, default: AnnouncedMedia()].note(bundle.id, message) }
  }

  /// What unpacked messages announce, as if whoever combined them had: nobody else answers for it.
  func noteUnpacked(_ messages: [UnpackedMessage], of outer: Message, in channel: ChannelID) {
    state.withLock { state in
      for unpacked in messages {
        let message = Message(
          channel: outer.channel, id: unpacked.id, sender: outer.sender, senderName: outer.senderName,
          timestamp: unpacked.timestamp, body: unpacked.body, json: unpacked.json, cursor: outer.cursor,
          deliveredTo: [])
        guard let media = message.media ?? message.bundle else { continue }
        _ = state.bundled[channel, default: AnnouncedMedia()].note(media.id, message)
      }
    }
  }

  /// The combined message that names this bundle, whatever else announces it.
  func combined(_ bundle: MediaID) -> (Joined, Message, CombinedMessages)? {
    state.withLock { state in
      for (channel, announced) in state.bundled {
        guard let joined = state.channels[channel], let message = announced[bundle],
          case .combine(let combined) = message.body, !people.isBlocked(message.sender)
        else { continue }
        return (joined, message, combined)
      }
      guard let (joined, message) = otherAnnouncement(of: bundle, state), case .combine(let combined) = message.body
      else { return nil }
      return (joined, message, combined)
    }
  }

  func notePeerMedia(_ message: Message) {
    guard message.sender != me, let media = message.media ?? message.bundle else { return }
    state.withLock { _ = $0.peerMedia.note(media.id, message) }
  }

  func forgetMedia(of messages: Set<MessageID>, in channel: ChannelID) {
    state.withLock { state in
      state.media[channel]?.forget(messages)
      state.bundled[channel]?.forget(messages)
    }
  }

  /// Bundles and what is in them; then what came from peer to peer, in a channel in which its sender is.
  func otherAnnouncement(of media: MediaID, _ state: State) -> (Joined, Message)? {
    for (channel, announced) in state.bundled {
      if let joined = state.channels[channel], let message = announced[media], !people.isBlocked(message.sender) {
        return (joined, message)
      }
    }
    guard let message = state.peerMedia[media], !people.isBlocked(message.sender),
      let channel = state.online.first(where: { $0.value.contains(message.sender) })?.key,
      let joined = state.channels[channel]
    else { return nil }
    return (joined, message)
  }
}
