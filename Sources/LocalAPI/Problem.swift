import Parley

/// What a call that fails answers with: problem details (RFC 9457). `code` is stable, `detail` is for people.
package struct Problem: Error, Sendable, Equatable {
  package let status: UInt32
  package let code: String
  package let title: String
  package let detail: String
  /// Further members, such as the candidates of an ambiguous name.
  package var extra: [JSON.Field] = []
  /// The methods that a route has, for 405.
  var allowedMethods: [String] = []

  package var json: JSON {
    .object(
      [
        .init("type", .string("urn:parley:problem:\(code)")), .init("title", .string(title)),
        .init("status", .integer(Int64(status))), .init("detail", .string(detail)), .init("code", .string(code)),
      ] + extra)
  }

  static func badRequest(_ detail: String) -> Problem {
    Problem(status: 400, code: "bad_request", title: "The request is malformed", detail: detail)
  }

  static let noRoute = Problem(
    status: 404, code: "no_route", title: "No such address",
    detail: "nothing is served here; the addresses are listed in the documentation of the local API")

  static func wrongMethod(allowed: [String]) -> Problem {
    Problem(
      status: 405, code: "wrong_method", title: "Not possible here",
      detail: "this address takes \(allowed.joined(separator: ", "))", allowedMethods: allowed)
  }

  static let bodyTooLarge = Problem(
    status: 413, code: "body_too_large", title: "The body is too large",
    detail: "a request's body may be \(LocalServer.bodyByteCountMax) bytes; share long texts as a file")

  static let otherUser = Problem(
    status: 403, code: "other_user", title: "Not permitted",
    detail: "this node belongs to another user of this machine")

  static let stopping = Problem(
    status: 503, code: "stopped", title: "The node is stopping", detail: ParleyError.stopped.description)
}

extension Problem {
  package init(_ error: ParleyError) {
    let (status, code, title) = Self.kind(of: error)
    self.init(status: status, code: code, title: title, detail: error.description)
    if case .ambiguousPeer(_, let candidates) = error {
      extra = [.init("candidates", .array(candidates.map { JSON($0) }))]
    }
  }

  /// Whatever a route threw.
  init(any error: any Error) {
    switch error {
    case let problem as Problem: self = problem
    case let error as ParleyError: self.init(error)
    case let error as NameError: self.init(.badName(error))
    default: self.init(status: 500, code: "internal", title: "Something broke", detail: "\(error)")
    }
  }

  private static func kind(of error: ParleyError) -> (status: UInt32, code: String, title: String) {
    switch error {
    case .badName: (400, "bad_name", "The name cannot be used")
    case .badPassphrase: (400, "bad_passphrase", "The passphrase cannot be used")
    case .badToken: (403, "bad_token", "The login token is refused")
    case .badSetting: (400, "bad_setting", "The setting is out of bounds")
    case .badField: (400, "bad_field", "A member of the message cannot be what it is")
    case .notInChannel: (404, "not_in_channel", "Not in this channel")
    case .otherSecret: (409, "other_secret", "Joined under another secret")
    case .excluded(_, .notAdmitted): (403, "not_admitted", "Not admitted to this channel")
    case .excluded(_, .muted): (403, "muted", "Muted in this channel")
    case .excluded(_, .removed): (403, "removed", "Removed from this channel")
    case .excluded(_, .banned): (403, "banned", "Banned from this channel")
    case .excluded(_, .closed): (403, "closed", "The channel is closed")
    case .notAllowed(_, let refusal): (403, refusal.rawValue, "Not allowed in this channel")
    case .announcementTooLong: (413, "announcement_too_long", "The announcement is too long")
    case .messageDropped: (429, "message_dropped", "The room has too many messages")
    case .attribute(_, _, .heldBy): (409, "attribute_held", "The attribute is another's")
    case .attribute(_, _, .full): (409, "too_many_attributes", "Too many attributes")
    case .attribute(_, _, .notThere): (404, "no_such_attribute", "No such attribute")
    case .badInvitation: (400, "bad_invitation", "The invitation cannot be used")
    case .notPermitted: (403, "not_permitted", "Not permitted")
    case .tooManyChannels: (409, "too_many_channels", "Too many channels")
    case .messageTooLong: (413, "message_too_long", "The message is too long")
    case .searchTooLong: (413, "search_too_long", "The text to search for is too long")
    case .badHook: (400, "bad_hook", "The hook cannot be")
    case .refusedByHook: (403, "refused_by_hook", "A hook refuses the message")
    case .hookFailed: (502, "hook_failed", "A hook gave no answer")
    case .peerAway: (409, "peer_away", "Not there")
    // Its number in hosted systems.
    case .messageRateLimited: (509, "message_rate_limited", "Too many messages a second")
    case .emptyMessage: (400, "empty_message", "The message is empty")
    case .noSuchMessage, .unknownMessageID: (404, "no_such_message", "No such message")
    case .ambiguousMessage: (409, "ambiguous_message", "Several messages match")
    case .notForwarded: (409, "not_forwarded", "The message's kind is not known here")
    case .mediaNotHeld: (409, "media_not_held", "The file is not here")
    case .badBundle: (502, "bad_bundle", "The combined messages cannot be read")
    case .refusedDeed(_, let refusal): (403, refusal.code, "Not done to this message")
    case .noSuchPeer: (404, "no_such_peer", "No such person")
    case .ambiguousPeer: (409, "ambiguous_peer", "Several persons match")
    case .notVerified: (409, "not_verified", "The keys are not the same")
    case .noSuchMedia: (404, "no_such_media", "No such media ID")
    case .noSource: (503, "no_source", "Nobody present has it")
    case .downloadBroken: (503, "download_broken", "The download broke off")
    case .noSuchDownload: (404, "no_such_download", "No such download")
    case .outOfRange: (416, "out_of_range", "The range begins past the end")
    case .tooLargeForMemory: (413, "too_large_for_memory", "The file is too large")
    case .alreadyExists: (409, "already_exists", "The file exists")
    case .noSuchFile: (404, "no_such_file", "No such file")
    case .notAFile: (400, "not_a_file", "Not a regular file")
    case .fileTrouble: (500, "file_trouble", "The file system refused")
    case .noSpace: (507, "no_space", "No space left")
    case .sourceChanged: (409, "source_changed", "The shared file changed")
    case .profileInUse: (409, "profile_in_use", "The profile is in use")
    case .profileDamaged: (500, "profile_damaged", "The profile cannot be used")
    case .homePassphraseNeeded: (403, "home_passphrase_needed", "The home has a passphrase")
    case .wrongHomePassphrase: (403, "wrong_home_passphrase", "Not the passphrase of the home")
    case .homePassphraseMismatch: (409, "home_passphrase_mismatch", "The home has a passphrase, or has none")
    case .homeHasIdentity: (409, "home_has_identity", "The home has an identity")
    case .homeRetired: (409, "home_retired", "The identity lives elsewhere")
    case .network: (502, "network", "The network refused")
    case .queueFull: (503, "queue_full", "Too much is waiting")
    case .unknownCursor: (409, "unknown_cursor", "The cursor is not of this store")
    case .cancelled: (409, "cancelled", "Cancelled")
    case .stopped: (503, "stopped", "The node is stopping")
    case .aborted: (503, "aborted", "The identity was started elsewhere")
    }
  }
}
