import ParleyMachines
import ParleySealing
import ParleyVocabulary
import ParleyWire

extension Hub {
  func remember(_ keys: ChannelKeys) {
    state.withLock { $0.secrets[keys.id] = (keys.isOpen, keys.type) }
    attributes.begin(keys.id, me, instance)
  }
  /// After a join that failed.
  func forgetUnjoined(_ channel: ChannelID) {
    let isUnjoined = state.withLock { state in
      if state.channels[channel] == nil { state.secrets[channel] = nil }
      return state.channels[channel] == nil
    }
    if isUnjoined { attributes.forget(channel) }
  }
}

extension RefusalReason {
  init(_ reason: ChannelRefusal) {
    switch reason {
    case .removed: self = .removed
    case .banned: self = .banned
    case .notAdmitted: self = .notAdmitted
    }
  }
}
