import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// A text that stands in a channel under a name: what seats of a voice room, topics and states are built on.
public struct ChannelAttribute: Sendable, Equatable {
  /// 1 to 128 bytes of UTF-8; two are the same when their bytes are. Hostile until shown escaped.
  public let key: String
  /// At most 4,096 bytes of UTF-8; hostile until shown escaped.
  public let value: String
  /// Who set it.
  public let author: PeerID
  /// By the author's clock.
  public let timestamp: Timestamp
  /// It goes when its author leaves, or is gone.
  public let isUntilLeave: Bool

  public init(key: String, value: String, author: PeerID, timestamp: Timestamp, isUntilLeave: Bool) {
    self.key = key
    self.value = value
    self.author = author
    self.timestamp = timestamp
    self.isUntilLeave = isUntilLeave
  }

  init?(_ act: AttributeAct?) {
    guard let act, let value = act.content.value else { return nil }
    self.init(
      key: act.content.key, value: value, author: act.author,
      timestamp: Timestamp(milliseconds: Int64(clamping: act.timestamp)), isUntilLeave: act.content.isUntilLeave)
  }
}

/// An attribute of a channel is another now.
public struct AttributeChange: Sendable, Equatable {
  public let key: String
  /// Nil: there was none.
  public let old: ChannelAttribute?
  /// Nil: there is none any more.
  public let new: ChannelAttribute?
  /// Who set it or took it away; of one that went with its author, the author.
  public let by: PeerID

  public init(key: String, old: ChannelAttribute?, new: ChannelAttribute?, by: PeerID) {
    self.key = key
    self.old = old
    self.new = new
    self.by = by
  }

  init(_ change: AttributeState.Change) {
    self.init(key: change.key, old: ChannelAttribute(change.old), new: ChannelAttribute(change.new), by: change.by)
  }
}

/// Why an attribute was not set or taken away.
public enum AttributeRefusal: Sendable, Equatable {
  /// Somebody else has set it, and it was not to be overwritten.
  case heldBy(PeerID)
  /// The channel has 100, and this would be one more.
  case full(countMax: Int)
  /// There is none of this name.
  case notThere
}

extension AttributeRefusal {
  func sentence(_ key: String) -> String {
    switch self {
    case .heldBy(let peer):
      "\(key.escapedLine) was set by \(peer.fingerprint) and was not to be overwritten: nothing was sent"
    case .full(let countMax):
      "the channel has \(countMax) attributes, and \(key.escapedLine) would be one more: nothing was sent; delete one"
    case .notThere: "there is no attribute \(key.escapedLine): nothing was sent"
    }
  }
}
