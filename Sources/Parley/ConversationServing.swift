/// What is done to messages, of what a node does for its users.
public protocol ConversationServing: Sendable {
  func recall(_ message: MessageReference, in name: ChannelName) async throws(ParleyError)
  func edit(_ message: MessageReference, _ edit: MessageEdit, in name: ChannelName) async throws(ParleyError)
  func react(
    _ emoji: String, to message: MessageReference, isOn: Bool, in name: ChannelName
  ) async throws(ParleyError)
  func pin(_ message: MessageReference, isOn: Bool, in name: ChannelName) async throws(ParleyError)
  func markRead(_ messages: [MessageReference], in name: ChannelName) async throws(ParleyError)
  /// As it is now; nil when it is not here.
  func message(_ message: MessageReference, in name: ChannelName) async throws(ParleyError) -> Message?
  /// In the order in which they were pinned.
  func pins(in name: ChannelName) async throws(ParleyError) -> [Message]
}
