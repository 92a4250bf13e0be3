import ParleyMachines
import ParleySealing
import ParleyVocabulary

extension ParleyError {
  init(_ error: ProfileError, home: String) {
    switch error {
    case .inUse(_, let processID): self = .profileInUse(home: home, processID: processID ?? 0)
    case .passphraseNeeded: self = .homePassphraseNeeded(home: home)
    case .wrongPassphrase: self = .wrongHomePassphrase(home: home)
    case .noPassphrase: self = .homePassphraseMismatch(home: home, hasPassphrase: false)
    case .hasPassphrase: self = .homePassphraseMismatch(home: home, hasPassphrase: true)
    case .hasIdentity: self = .homeHasIdentity(home: home)
    case .passphraseLength, .noMemory: self = .badPassphrase(error.description)
    case .notADirectory, .notPrivate, .ownedByAnother, .damaged, .newerVersion, .system:
      self = .profileDamaged(path: home, reason: error.description)
    }
  }

  init(_ failure: MessagingFailure, _ name: ChannelName?) {
    switch failure {
    case .notInChannel: self = name.map { .notInChannel($0) } ?? .stopped
    case .excluded(let reason): self = name.map { .excluded($0, Exclusion(reason)) } ?? .stopped
    case .queueFull(let byteCount, let byteCountMax):
      self = .queueFull(
        "\(byteCount) bytes wait to be written and \(byteCountMax) may: nothing was sent; try again in a moment")
    case .outboxFull(let count, let countMax, let byteCount, let byteCountMax):
      self = .queueFull(
        "\(count) messages wait for people who are away and \(countMax) may (with this one \(byteCount) bytes, of "
          + "\(byteCountMax)): this one was not kept, the others are; try again when some have been fetched")
    case .peerAway: self = .stopped
    case .diskRefuses(let reason): self = .queueFull("\(reason); this message was not sent")
    case .disk(let reason):
      self = .queueFull(
        "\(reason); the message is kept in memory and sent to those present, but is not on disk here: "
          + "make space, and it will be written")
    }
  }
}

extension ParleyError {
  /// Of what can befall a message on its way out.
  var sendingSentence: String {
    switch self {
    case .peerAway(let peer):
      "\(peer.fingerprint) is not there, or did not answer: what is for those who are there does not wait; send it "
        + "again when they are, or without that"
    case .refusedByHook(let name, let reason):
      "the hook \(name) refuses the message" + (reason.isEmpty ? "" : ": \(reason.escapedLine)")
        + "; nothing was sent"
    case .hookFailed(let name, let reason):
      "the hook \(name) gave no answer: \(reason.escapedLine); nothing was sent, as it is to be asked before"
    case .messageRateLimited(let perSecond):
      "this node may send \(perSecond) messages a second, by its own settings, and has: nothing was sent; send it "
        + "again in a moment (error 509)"
    default: preconditionFailure("asked for these cases only")
    }
  }
}

extension Exclusion {
  init(_ reason: VoidReason) {
    switch reason {
    case .notAdmitted(let refusal):
      let words: [JoinRefusal: String] = [
        .noInvitation: "no_invitation", .altered: "altered", .expired: "expired", .usedUp: "used_up",
        .inviterHadNoRight: "inviter_had_no_right",
      ]
      self = .notAdmitted(words[refusal]!)
    case .muted(let until): self = .muted(until: until.map { Timestamp(milliseconds: Int64(clamping: $0)) })
    case .removed: self = .removed
    case .banned: self = .banned
    case .closed: self = .closed
    }
  }

  func sentence(_ name: ChannelName) -> String {
    let channel = name.text.escapedLine
    switch self {
    case .notAdmitted(let reason):
      let why =
        switch reason {
        case "altered": "the invitation was altered"
        case "expired": "the invitation had expired"
        case "used_up": "the invitation was used up"
        case "inviter_had_no_right": "whoever invited you had no right to"
        default: "there is no invitation"
        }
      return "nobody in \(channel) hears you: \(why); nothing was sent; ask its owner or an admin for a new invitation"
    case .muted(let until):
      let end = until.map { "until \($0.text)" } ?? "until an admin lifts it"
      return "you are muted in \(channel) \(end): nothing was sent; you can still raise your hand"
    case .removed:
      return "you were removed from \(channel): nothing was sent; ask its owner or an admin for a new invitation"
    case .banned:
      return "you are banned from \(channel): nothing was sent; only its owner or an admin can lift that"
    case .closed: return "\(channel) is closed: nothing was sent; what was said before stays"
    }
  }
}

extension RoleRefusal {
  init(_ refusal: ActRefusal) {
    switch refusal {
    case .excluded, .notAdmin: self = .notAdmin
    case .notOwner: self = .notOwner
    case .targetIsOwner: self = .targetIsOwner
    case .targetIsAdmin: self = .targetIsAdmin
    case .targetIsSelf: self = .targetIsSelf
    case .closed: self = .closed
    }
  }

  func sentence(_ name: ChannelName) -> String {
    let channel = name.text.escapedLine
    return switch self {
    case .noOwner:
      "\(channel) has no owner, and so no roles: make a channel with one (parley create CHANNEL)"
    case .notAdmin: "only the owner and the admins of \(channel) can do that: nothing was sent"
    case .notOwner: "only the owner of \(channel) can do that: nothing was sent"
    case .targetIsOwner: "nobody can do that to the owner of \(channel): nothing was sent"
    case .targetIsAdmin: "only the owner of \(channel) can do that to an admin: nothing was sent"
    case .targetIsSelf: "nobody can do that to themselves: nothing was sent"
    case .closed: "\(channel) is closed: only its owner can do that; nothing was sent"
    case .notMuted: "they are not muted in \(channel): nothing was sent"
    case .notBanned: "they are neither removed nor banned in \(channel): nothing was sent"
    }
  }
}
