import Glibc
import Parley
import ParleyLocalAPI

/// Why a command did not do what it was asked. The numbers are those of sysexits(3).
struct Failure: Error, Equatable {
  enum Status: Int32 {
    /// Nothing failed; what was asked about is not as it should be.
    case notWell = 1
    case usage = 64
    case badData = 65
    case noInput = 66
    case unavailable = 69
    case cannotCreate = 73
    case tryAgain = 75
    case notPermitted = 77
    /// Ended by SIGINT, as shells count it.
    case interrupted = 130
  }
  let status: Status
  /// What happened and what to do; empty when there is nothing to say.
  let message: String

  init(_ status: Status, _ message: String) {
    self.status = status
    self.message = message
  }

  static func usage(_ message: String) -> Failure { Failure(.usage, message) }
  static let interrupted = Failure(.interrupted, "")

  /// From an answer with problem details, by its stable code.
  init(problem: JSON) {
    let code = problem["code"]?.string ?? ""
    self.init(
      Self.status(ofCode: code), problem["detail"]?.string?.escapedText ?? "the node refused without saying why")
  }

  init(_ error: ParleyError) { self.init(problem: Problem(error).json) }

  static func status(ofCode code: String) -> Status {
    switch code {
    case "bad_name", "bad_setting", "bad_passphrase", "home_passphrase_mismatch", "bad_media_id", "bad_field",
      "message_too_long", "empty_message", "not_a_file", "source_changed", "ambiguous_peer", "bad_token",
      "not_verified", "profile_damaged", "bad_request", "body_too_large", "unknown_cursor", "out_of_range",
      "too_large_for_memory", "bad_invitation", "bad_hook", "announcement_too_long":
      .badData
    case "not_in_channel", "no_such_peer", "no_such_media", "no_such_file", "no_such_download", "no_such_message":
      .noInput
    case "already_exists", "file_trouble", "no_space", "other_secret", "too_many_channels", "home_has_identity",
      "home_retired":
      .cannotCreate
    case "refused_by_hook": .notPermitted
    case "message_rate_limited", "queue_full", "cancelled", "download_broken", "profile_in_use": .tryAgain
    case "other_user", "not_admitted", "muted", "removed", "banned", "closed", "no_owner", "not_admin", "not_owner",
      "target_is_owner", "target_is_admin", "target_is_self", "not_muted", "not_banned", "not_permitted",
      "home_passphrase_needed", "wrong_home_passphrase", "not_author", "not_moderator", "too_late", "wrong_kind",
      "too_many_edits", "too_many_emoji", "too_many_pins", "recalled":
      .notPermitted
    default: .unavailable
    }
  }

  static func system(_ status: Status, _ what: String) -> Failure {
    let reason = String(cString: strerror(errno))
    return Failure(errno == EACCES || errno == EPERM ? .notPermitted : status, "\(what): \(reason)")
  }
}
