import ParleyVocabulary
import ParleyWire

extension Message {
  /// What goes first in a room where there is too much.
  public enum Priority: String, Sendable, CaseIterable { case high, normal, low }

  /// A text in another language, as its sender had it translated. Hostile until shown escaped (`escapedText`).
  public struct Translated: Sendable, Equatable {
    /// A tag of BCP 47.
    public let language: String
    /// At most 30,000 bytes with the message around it.
    public let text: String

    public init(language: String, text: String) {
      self.language = language
      self.text = text
    }
  }

  /// What the sender of a message asked for beside what it says.
  public struct Options: Sendable, Equatable {
    /// Whether the sender asks to be told who has read it.
    public var needsReceipt = false
    /// What it counts in rooms.
    public var priority = Priority.normal
    /// Which of its sender's hooks were called; nil: those named `default`.
    public var webhookEnvironment: String?
    /// Whether an organiser said it in every room.
    public var isBroadcast = false
    /// Tags of BCP 47 of the languages that it was to be translated into.
    public var targetLanguages: [String] = []
    /// What came of that.
    public var translations: [Translated] = []
    /// It was for whoever was there: others do not have it, nor will.
    public var isOnlineOnly = false
    /// Who in the channel has it beside its sender; empty: all members.
    public var receivers: [PeerID] = []

    /// None of it.
    public static let none = Options()

    public init() {}

    init(_ options: MessageOptions) {
      needsReceipt = options.needsReceipt
      priority = Priority(rawValue: options.priority.rawValue)!
      webhookEnvironment = options.webhookEnvironment
      isBroadcast = options.isBroadcast
      targetLanguages = options.translation.languages
      translations = options.translation.texts.map { Translated(language: $0.language, text: $0.text) }
      isOnlineOnly = options.isOnlineOnly
      receivers = options.direction?.receivers ?? []
    }
  }
}
