import ParleyHooks
import ParleyVocabulary
import ParleyWire

/// Calls the hooks of a node. Asked from any task.
final class HookCaller: Sendable {
  /// What is asked before a message goes out is asked at once for so many messages.
  private static let askedAtOnceMax = 8
  /// Messages that wait for a hook.
  private static let countMax = 1_024

  private let hooks: [Hook]
  private let asked: HookLane
  /// A hook that is told has a lane of its own: one that hangs holds up nobody else, and each hears of messages in
  /// order.
  private let told: [String: HookLane]
  private let failed: @Sendable (HookFailure) -> Void

  init(_ hooks: [Hook], failed: @escaping @Sendable (HookFailure) -> Void) {
    self.hooks = hooks
    self.failed = failed
    asked = HookLane(threadsMax: Self.askedAtOnceMax, countMax: Self.countMax)
    let names = hooks.filter { $0.moment == .afterSend }.map(\.name)
    told = Dictionary(
      uniqueKeysWithValues: names.map { ($0, HookLane(threadsMax: 1, countMax: HookCaller.countMax)) })
  }

  /// By exact name; a message that names none calls the one named `default`.
  func hook(_ moment: Hook.Moment, for options: MessageOptions) -> Hook? {
    let name = options.webhookEnvironment ?? Hook.defaultName
    return hooks.first { $0.moment == moment && $0.name == name }
  }

  /// Where a message is said.
  enum Place {
    case channel(ChannelName)
    case peer(PeerID)
  }

  /// The message as it shall go out, translated and let through. Throws `.refusedByHook` and `.hookFailed`.
  func before(_ message: SchemaMessage, _ place: Place) async throws(ParleyError) -> SchemaMessage {
    let translated = try await translate(message, place)
    guard let hook = hook(.beforeSend, for: translated.options) else { return translated }
    let reason: String
    switch await asked.ask(call(hook, translated, place)) {
    case .success(let bytes):
      switch Self.verdict(bytes, translated) {
      case .goes(let message): return message
      case .refused(let why): throw .refusedByHook(hook.name, reason: why)
      case .nonsense(let why): reason = why
      }
    case .failure(let error): reason = error.description
    }
    try note(reason, of: hook, translated)
    return translated
  }

  private enum Verdict {
    case goes(SchemaMessage)
    case refused(String)
    case nonsense(String)
  }

  private static func verdict(_ bytes: [UInt8], _ message: SchemaMessage) -> Verdict {
    do throws(HookAnswer.Nonsense) {
      switch try HookAnswer(bytes) {
      case .allow: return .goes(message)
      case .refuse(let reason): return .refused(reason)
      case .rewrite(let changes): return .goes(try HookAnswer.apply(changes, to: message))
      }
    } catch { return .nonsense(error.reason) }
  }

  private func call(_ hook: Hook, _ message: SchemaMessage, _ place: Place) -> HookCall {
    var members = [JSONMember("event", .string(hook.moment.rawValue)), JSONMember("hook", .string(hook.name))]
    switch place {
    case .channel(let name): members.append(JSONMember("channel", .string(name.text)))
    case .peer(let peer): members.append(JSONMember("peer_id", .string(peer.text)))
    }
    if let json = try? JSONValue(decoding: message.encoded) { members.append(JSONMember("message", json)) }
    return HookCall(hook.hookTarget, milliseconds: hook.milliseconds, question: JSONValue.object(members).encoded)
  }

  /// By the hook's policy. Throws `.hookFailed`.
  private func note(_ reason: String, of hook: Hook, _ message: SchemaMessage) throws(ParleyError) {
    let isSent = hook.policy == .open
    failed(
      HookFailure(name: hook.name, moment: hook.moment, id: message.messageID!, reason: reason, isSent: isSent))
    if !isSent { throw .hookFailed(hook.name, reason: reason) }
  }

  private func translate(_ message: SchemaMessage, _ place: Place) async throws(ParleyError) -> SchemaMessage {
    let languages = message.options.translation.languages
    guard !languages.isEmpty, let hook = hook(.translate, for: message.options) else { return message }
    let reason: String
    switch await asked.ask(call(hook, message, place)) {
    case .success(let bytes):
      do throws(HookAnswer.Nonsense) {
        var options = message.options
        options.translation.texts = try HookAnswer.translations(bytes, into: languages)
        return SchemaMessage(
          sender: message.sender, messageID: message.messageID, timestamp: message.timestamp,
          content: message.content, options: options)
      } catch { reason = error.reason }
    case .failure(let error): reason = error.description
    }
    try note(reason, of: hook, message)
    return message
  }

  /// It is out.
  func after(_ message: SchemaMessage, _ place: Place) {
    guard let hook = hook(.afterSend, for: message.options), let lane = told[hook.name] else { return }
    lane.ask(call(hook, message, place)) { [failed] answer in
      guard case .failure(let error) = answer else { return }
      failed(
        HookFailure(
          name: hook.name, moment: .afterSend, id: message.messageID!, reason: error.description, isSent: true))
    }
  }
}
