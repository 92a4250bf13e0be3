import Parley

extension JSON {
  /// The sender's own JSON with `channel` (null from peer to peer) and `recognition`.
  package init(_ command: Command) {
    let base = (try? JSON(parsing: command.json)) ?? .null
    let json = (base.members == nil ? Self.fromFields(of: command) : base)
      .setting("channel", to: command.channel.map { .string($0.text) } ?? .null)
    self = json.setting("recognition", to: JSON(command.recognition))
  }

  private static func fromFields(of command: Command) -> JSON {
    [
      "sender": ["display_name": .string(command.senderName), "sender_id": .string(command.sender.text)],
      "message_id": .string(command.id.text), "timestamp": .string(command.timestamp), "type": "cmd",
      "action": .string(command.content.action),
      "params": .object(command.content.parameters.map { .init($0.name, .string($0.value)) }),
    ]
  }
}

extension JSON {
  package init(_ failure: HookFailure) {
    self = [
      "hook": .string(failure.name), "when": .string(failure.moment.rawValue), "message_id": .string(failure.id.text),
      "reason": .string(failure.reason), "sent": .bool(failure.isSent),
    ]
  }
}
