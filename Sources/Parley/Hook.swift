import ParleyHooks
import ParleyVocabulary
import ParleyWire

/// A program of the user's, or an address, that is asked before a message of this node goes out, told after, or asked
/// for its translation. It gets one JSON object; see `NodeSettings.hooks`.
public struct Hook: Sendable, Equatable {
  /// When it is called.
  public enum Moment: String, Sendable, CaseIterable {
    /// May refuse the message or write it anew. Not for messages to some members only: where one would be called, they
    /// are refused.
    case beforeSend = "before_send"
    /// Is told of what was sent, in order; what it answers is not looked at.
    case afterSend = "after_send"
    /// Gives the text in the languages that were asked for (`MessageDraft.translated(into:)`), before `beforeSend`.
    case translate
  }

  /// What is called.
  public enum Target: Sendable, Equatable {
    /// The absolute path of a program. It is started without arguments, reads the object as its standard input, writes
    /// its answer to its standard output and ends with status 0. Of the environment it has PATH, HOME, USER, LANG,
    /// LC_ALL, TZ and TMPDIR.
    case command(String)
    /// An address of `http` or `https`, at most 2,048 bytes of printable ASCII, without name and password. It gets the
    /// object as the body of a POST and answers with a status from 200 to 299. Redirections are not followed.
    case address(String)
  }

  /// What becomes of a message when a hook answers not, not in time, or nonsense.
  public enum Policy: String, Sendable, CaseIterable {
    /// It goes out all the same.
    case open
    /// It does not.
    case closed
  }

  /// 1 to 8 letters and digits of ASCII. A message with a `webhook_env` calls those of exactly that name, and none when
  /// there is none; one without calls those named `default`.
  public let name: String
  /// When it is called; at each moment one of each name.
  public let moment: Moment
  /// What is called.
  public let target: Target
  /// Of a hook after the fact it changes nothing.
  public let policy: Policy
  /// How long it may take, 10 to 60,000; then it is cut off, a program with all that it started.
  public let milliseconds: Int

  /// The name that a message calls which names none.
  public static let defaultName = "default"
  static let millisecondsRange = 10...60_000

  /// Throws `.badHook`.
  public init(
    _ moment: Moment, named name: String = Hook.defaultName, _ target: Target, policy: Policy = .closed,
    milliseconds: Int = 5_000
  ) throws(ParleyError) {
    guard MessageOptions.isWebhookEnvironment(name) else {
      throw .badHook("\(name.escapedLine) is no name of a hook: 1 to 8 letters and digits of ASCII")
    }
    guard Self.millisecondsRange.contains(milliseconds) else {
      throw .badHook("\(milliseconds) ms is no time for a hook: 10 to 60000")
    }
    switch target {
    case .command(let path):
      guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0) else {
        throw .badHook("\(path.escapedLine) is no absolute path")
      }
    case .address(let url):
      guard RemoteMediaKind.isAddress(url) else {
        throw .badHook("\(url.escapedLine) is no address of http or https")
      }
    }
    self.moment = moment
    self.name = name
    self.target = target
    self.policy = policy
    self.milliseconds = milliseconds
  }

  var hookTarget: HookTarget {
    switch target {
    case .command(let path): .command(path)
    case .address(let url): .address(url)
    }
  }
}

/// A hook that gave no answer, or nonsense.
public struct HookFailure: Sendable, Equatable {
  /// Its name.
  public let name: String
  /// When it was called.
  public let moment: Hook.Moment
  /// The message of which it was asked.
  public let id: MessageID
  /// In words for people.
  public let reason: String
  /// Whether the message went out all the same, by the hook's policy, or had gone out.
  public let isSent: Bool

  public init(name: String, moment: Hook.Moment, id: MessageID, reason: String, isSent: Bool) {
    self.name = name
    self.moment = moment
    self.id = id
    self.reason = reason
    self.isSent = isSent
  }
}
