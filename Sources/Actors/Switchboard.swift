import ParleyMachines
import ParleySealing
import ParleyVocabulary
import ParleyWire

/// The mailboxes of a node, and the way from one machine to another: the Router says whose an event is.
package final class Switchboard: Sendable {
  package let links = Mailbox<LinksMail>()
  package let login = Mailbox<LoginEvent>()
  package let membership = Mailbox<MembershipEvent>()
  package let messaging = Mailbox<MessagingEvent>()
  package let media = Mailbox<MediaMail>()
  package let store = Mailbox<StoreMail>()
  package let sync = Mailbox<SyncMail>()
  package let notices: @Sendable (Notice) -> Void

  /// `notices` is called from any thread, in order for each actor, and must not block.
  package init(notices: @escaping @Sendable (Notice) -> Void) { self.notices = notices }

  package func post(_ event: NodeEvent) {
    switch event {
    case .links(let event): links.post(.event(event))
    case .login(let event): login.post(event)
    case .membership(let event): membership.post(event)
    case .messaging(let event): messaging.post(event)
    case .media(let event): media.post(.event(event))
    }
  }

  /// Whether nothing waits to be handled.
  package var isQuiet: Bool {
    links.count + login.count + membership.count + messaging.count + media.count + store.count + sync.count
      == 0
  }

  /// All but the store, which others write to as they end, and its syncing.
  package func close() {
    links.close()
    login.close()
    membership.close()
    messaging.close()
    media.close()
  }
}

/// Who shares the transport's timer with the links actor.
package enum Sleeper: Hashable, Sendable { case messaging, membership }

/// What reaches the links actor beside the events of its machine.
package enum LinksMail: Sendable {
  case event(LinksEvent)
  /// Somebody wants to join with these keys. They are used from `.channelOpened` on.
  case install(ChannelKeys)
  /// That attempt is over, well or not.
  case uninstall(ChannelID)
  /// A connection for media to this peer; answered by `MediaMail.opened` or `.closed` under this link.
  case openMedia(LinkID, PeerID)
  case sendMedia(LinkID, [MediaMessage])
  case closeMedia(LinkID)
  /// Post `.woke` then. An earlier moment replaces a later one.
  case wake(Sleeper, at: Instant)
  /// The media actor has worked off so many bytes of what it was sent.
  case mediaRelieved(byteCount: Int)
}

package enum MediaMail: Sendable {
  case event(MediaEvent)
  case opened(LinkID, PeerID, channels: [ChannelID], isInitiator: Bool)
  case closed(LinkID)
  /// Opened payloads of one read.
  case payloads(LinkID, [ArraySlice<UInt8>])
  /// Of what was queued for this link, so much still waits.
  case writable(LinkID, queuedByteCount: Int)
  case disk(DiskNews)
  /// Nobody listens to this download any more.
  case left(UInt32)
  case endReading(UInt32)
  /// Serve this file in this channel: behind the news that the channel was left before.
  case hold(HeldFile, ChannelID)
  case woke
}

/// What a node tells whoever uses it.
package enum Notice: Sendable, Equatable {
  case state(LoginState, reason: String)
  case opened(ChannelName, ChannelID)
  case closed(ChannelName, ChannelID)
  case member(ChannelID, MemberView)
  /// A member is writing, or not any more.
  case typing(ChannelID, PeerID, Bool)
  case messaging(MessagingNotice)
  /// Somebody does more than a member may.
  case overLimit(ChannelID, PeerID, MemberExcess)
  case interfaces([String])
  case holder(ChannelID, MediaID, PeerID)
  /// What the disk refuses, until it is nil again: then everything is written once more.
  case disk(String?)
  /// A generation was made here because it was time to: an act shall name it.
  case keysDrawn(ChannelID, GenerationID)
  /// An owned channel is sent under another generation from now on.
  case keysChanged(ChannelID, GenerationID)
  /// A member says nothing of this channel to us, and why.
  case refused(ChannelID, PeerID, ChannelRefusal)
  /// What the entry that was stored under this cursor does to messages, before it is told itself.
  case acted(ChannelID, cursor: UInt64, [ActedOn])
  /// What is done to messages of a channel that are not here, and all about its pins; before it is opened.
  case waiting(ChannelID, [MessageAct], pins: [MessageAct])
  /// Something went wrong that people should know; the node goes on.
  case trouble(String)
}
