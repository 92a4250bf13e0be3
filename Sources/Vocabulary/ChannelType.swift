/// What a channel is for. Everybody in a channel agrees on it: its identifier follows from it.
public enum ChannelType: String, Sendable, CaseIterable {
  /// Keeps its history, and who has read what.
  case group
  /// Lively and lossy by choice: priorities decide what is sent when much is said, nobody reports what they have read.
  case room
}
