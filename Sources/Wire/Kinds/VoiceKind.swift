import ParleyVocabulary

/// Recorded speech: a file's members and a `duration`.
package struct VoiceKind: MessageKind {
  package static let type = "voice"
  package static let code: UInt64 = 6
  package let file: MediaMembers
  /// Whole seconds, 0 to 2³¹ − 1.
  package let duration: UInt32

  package init(file: MediaMembers, duration: UInt32) {
    precondition(duration <= PictureMembers.numberMax, "made here, within what readers take")
    self.file = file
    self.duration = duration
  }

  package init(from members: [JSONMember]) throws(WireError) {
    file = try MediaMembers(from: members, needsSize: false)
    guard let seconds = try PictureMembers.number("duration", members, from: 0) else {
      throw .malformed(field: "duration", reason: "missing")
    }
    duration = seconds
  }

  package var members: [JSONMember] { file.members + [JSONMember("duration", .integer(Int64(duration)))] }
}
