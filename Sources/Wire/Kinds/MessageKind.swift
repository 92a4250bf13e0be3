import ParleyVocabulary

/// One kind of message. A new kind is one file beside this one, a line in `KindRegistry`, a vector and a row of the
/// specification.
package protocol MessageKind: Equatable, Sendable {
  /// The schema's `type`.
  static var type: String { get }
  /// The number that stands for the type in an entry.
  static var code: UInt64 { get }
  /// Hidden kinds are ordered and reconciled like all entries, but are not part of the history that people see.
  static var isHidden: Bool { get }
  static var needsMessageID: Bool { get }
  /// Live kinds travel to whoever is there and are never kept: in an entry they count for nothing.
  static var isLive: Bool { get }
  static var takesOptions: Bool { get }
  /// Where the schema's examples put `type`; readers accept any order.
  static var typePlace: TypePlace { get }

  init(from members: [JSONMember]) throws(WireError)
  /// The members that are this kind's own.
  var members: [JSONMember] { get }
  var type: String { get }
}

package enum TypePlace: Sendable { case first, beforeBody, last }

extension MessageKind {
  package static var isHidden: Bool { false }
  package static var needsMessageID: Bool { true }
  package static var isLive: Bool { false }
  package static var takesOptions: Bool { needsMessageID && !isHidden }
  package static var typePlace: TypePlace { .beforeBody }
  package var type: String { Self.type }
  var typeComesFirst: Bool { Self.typePlace == .first }
  var typeComesLast: Bool { Self.typePlace == .last }
}

package enum KindRegistry {
  static let all: [any MessageKind.Type] =
    [
      StatusKind.self, RaiseHandKind.self, TextKind.self, PhotoKind.self, FileKind.self, VideoKind.self,
      VoiceKind.self, LocationKind.self, CustomKind.self, CmdKind.self, CombineKind.self, AttributeKind.self,
      TypingKind.self,
    ] + acts + messageActs

  /// What governs an owned channel.
  private static let acts: [any MessageKind.Type] = [
    JoinedKind.self, RoleKind.self, LowerHandKind.self, AnnouncementKind.self, CloseKind.self, GenerationKind.self,
    TokenKind.self, OrganiserKind.self,
  ]

  /// What is done to messages.
  private static let messageActs: [any MessageKind.Type] = [
    RecallKind.self, EditKind.self, ReactKind.self, PinKind.self, ReadKind.self,
  ]

  static func kind(named type: String) -> (any MessageKind.Type)? { all.first { $0.type == type } }

  /// What these members say: media that lie elsewhere are read as such.
  static func kind(named type: String, _ members: [JSONMember]) -> (any MessageKind.Type)? {
    if members["remote_url"] != nil, RemoteMediaKind.types.contains(type) { return RemoteMediaKind.self }
    return kind(named: type)
  }

  /// Zero stands for a kind this version does not know.
  package static func code(of type: String) -> UInt64 { kind(named: type)?.code ?? UnknownKind.code }

  /// Whether the number signed beside a message is that of its type: else what is indexed, shown and folded by number
  /// and what is read as JSON would be two things. Numbers of newer versions stand for types that are unknown here.
  package static func fits(_ code: UInt64, _ message: SchemaMessage) -> Bool {
    let known = all.first { $0.type == message.content.type }
    return known.map { $0.code == code } ?? !all.contains { $0.code == code }
  }
}

/// A kind from a newer peer: kept as it came, shown as unknown.
package struct UnknownKind: MessageKind {
  package static let type = ""
  package static let code: UInt64 = 0
  package static let needsMessageID = false
  package let type: String
  package let members: [JSONMember]

  package init(type: String, members: [JSONMember]) {
    self.type = type
    self.members = members.filter { !["sender", "message_id", "timestamp", "type"].contains($0.name) }
  }

  package init(from members: [JSONMember]) throws(WireError) {
    self.init(type: try members.string("type"), members: members)
  }
}
