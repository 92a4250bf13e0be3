import Parley
import ParleyLocalAPI

/// What is done to messages from a chat. What comes of it is shown when the node tells it.
extension Chat {
  private static let looksBack = 1_000

  func change(_ command: ChatCommand) throws(Failure) {
    switch command {
    case .ids(let count):
      let messages = try client.call("GET", ["channels", channel, "messages"], query: [("limit", "\(count)")])
      show(
        (messages.array ?? []).map {
          Terminal.dim("#" + ($0["message_id"]?.string?.escapedLine ?? "?")) + " "
            + Presenter.message($0, isChannelShown: false)
        })
    case .recall(let message):
      _ = try client.call("POST", try target(message, isOwn: true).path + ["recall"])
    case .edit(let message, let text):
      _ = try client.call("PUT", try target(message, isOwn: true).path, body: ["body": .string(text)])
    case .react(let message, let emoji):
      let path = try target(message, isOwn: false).path + ["reaction"]
      _ = try client.call("PUT", path, body: ["emoji": .string(emoji)])
    case .reply(let message, let text):
      let target = try target(message, isOwn: false)
      _ = try client.call(
        "POST", ["channels", channel, "messages"], body: ["body": .string(text), "reply_to": target.json])
    default: preconditionFailure("asked for these cases only")
    }
  }

  private func target(_ message: String?, isOwn: Bool) throws(Failure) -> ConversationCommands.Target {
    if let message { return try ConversationCommands.target(message, in: channel, client) }
    let messages = try client.call(
      "GET", ["channels", channel, "messages"], query: [("limit", "\(Self.looksBack)")])
    let last = messages.array?.last {
      ($0["sender"]?["sender_id"]?.string == ownID) == isOwn && $0["state"]?["recalled"] == nil
    }
    guard let sender = last?["sender"]?["sender_id"]?.string, let id = last?["message_id"]?.string else {
      throw Failure(.noInput, "there is no such message here yet: name one by its ID (/ids)")
    }
    return .init(channel: channel, sender: sender, id: id)
  }
}
