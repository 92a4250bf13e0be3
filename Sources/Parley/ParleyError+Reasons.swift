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
    case .queueFull(let byteCount, let byteCountMax):
      self = .queueFull(
        "\(byteCount) bytes wait to be written and \(byteCountMax) may: nothing was sent; try again in a moment")
    case .outboxFull(let count, let countMax, let byteCount, let byteCountMax):
      self = .queueFull(
        "\(count) messages wait for people who are away and \(countMax) may (with this one \(byteCount) bytes, of "
          + "\(byteCountMax)): this one was not kept, the others are; try again when some have been fetched")
    case .diskRefuses(let reason): self = .queueFull("\(reason); this message was not sent")
    case .disk(let reason):
      self = .queueFull(
        "\(reason); the message is kept in memory and sent to those present, but is not on disk here: "
          + "make space, and it will be written")
    }
  }
}
