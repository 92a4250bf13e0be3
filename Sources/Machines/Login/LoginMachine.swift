import ParleyVocabulary
import ParleyWire

/// As the RTM tutorial names them.
package enum LoginState: String, Equatable, Sendable {
  /// → `connecting`: login.
  case disconnected
  /// → `connected`: an interface works. → `disconnected`: logout.
  case connecting
  /// → `reconnecting`: the last interface is gone, the network is another, or the machine slept. → `aborted`: the
  /// identity was started elsewhere.
  case connected
  /// → `connected`: an interface works again; at once when one still does.
  case reconnecting
  /// The end: another node runs this identity under a higher incarnation.
  case aborted
}

/// What became of our addresses.
package enum NetworkChange: Equatable, Sendable {
  /// All that were in use are still.
  case kept
  /// These, and more.
  case extended
  /// Some are gone, or were for a moment: what was bound to them is lost.
  case replaced
}

package enum LoginEvent: Equatable, Sendable {
  case loggedIn(DisplayName, incarnation: UInt64)
  case loggedOut
  /// How many interfaces work now and what changed; for people, what was lost and what is used.
  case interfacesChanged(workingCount: Int, NetworkChange = .kept, lost: String = "", using: String = "")
  /// This process did not run for so long; the others think it is gone.
  case slept(Span)
  case joinRequested(RequestID, ChannelName, ChannelID)
  /// What the disk had of the channel.
  case restored(ChannelID, logs: [RestoredLog], lamport: UInt64, members: [MemberRecord])
  case restoreFailed(ChannelID, reason: String)
  case leaveRequested(RequestID, ChannelName)
  /// Another run of this identity lives. `isAfterUs`: its instance is the greater, which decides between equals.
  case seenElsewhere(incarnation: UInt64, isAfterUs: Bool)
  /// Others know this identity under a later incarnation than ours, and listen to nothing below it.
  case incarnationRaised(UInt64)
}

package enum LoginEffect: Equatable, Sendable {
  /// Load what the disk has of this channel.
  case restore(ChannelID)
  /// With a sentence for people.
  case stateChanged(LoginState, reason: String)
  case answer(RequestID, LoginAnswer)
  /// The channel is open from now on, for the application and for the profile that remembers it.
  case opened(ChannelName, ChannelID)
  case closed(ChannelName, ChannelID)
  case tell(NodeEvent)
}

package enum LoginAnswer: Equatable, Sendable {
  case done
  case otherSecret
  case tooMany(countMax: Int)
  case notInChannel
  case disk(String)
  case aborted
}

/// Who we are in this run, the connection state, and which channels we are in.
package struct LoginMachine: Sendable {
  private enum Place: Equatable, Sendable {
    /// → `open`: the disk has answered.
    case opening(ChannelName, [RequestID])
    case open(ChannelName)

    var name: ChannelName {
      switch self {
      case .opening(let name, _), .open(let name): name
      }
    }
  }

  package private(set) var state = LoginState.disconnected
  private var displayName: DisplayName?
  private var incarnation: UInt64 = 0
  private var places: [ChannelID: Place] = [:]

  package init() {}

  package mutating func handle(_ event: LoginEvent, at now: Instant) -> [LoginEffect] {
    switch event {
    case .loggedIn(let name, let incarnation):
      displayName = name
      self.incarnation = incarnation
      return move(to: .connecting, "logging in")
    case .loggedOut: return loggedOut()
    case .interfacesChanged(let workingCount, let change, let lost, let using):
      return interfacesChanged(workingCount, change, lost, using)
    case .slept(let span):
      guard state == .connected else { return [] }
      let reason = "this process did not run for \(span.microseconds / 1_000_000) s"
      return move(to: .reconnecting, reason) + move(to: .connected, "running again") + Self.tellNetworkChanged
    case .joinRequested(let request, let name, let channel): return join(request, name, channel)
    case .restored(let channel, let logs, let lamport, let members):
      return restored(channel, logs, lamport, members)
    case .restoreFailed(let channel, let reason):
      guard case .opening(_, let requests) = places[channel] else { return [] }
      places[channel] = nil
      return requests.map { .answer($0, .disk(reason)) }
    case .leaveRequested(let request, let name): return leave(request, name)
    case .incarnationRaised(let raised):
      incarnation = max(incarnation, raised)
      return []
    case .seenElsewhere(let other, let isAfterUs):
      // The earlier one gives up; of two copies started alike, that with the smaller instance.
      guard other > incarnation || (other == incarnation && isAfterUs), state != .aborted, state != .disconnected else {
        return []
      }
      return leaveAll() + move(to: .aborted, "the same identity was started elsewhere")
    }
  }

  private mutating func move(to new: LoginState, _ reason: String) -> [LoginEffect] {
    guard new != state else { return [] }
    state = new
    return [.stateChanged(new, reason: reason)]
  }

  /// Those who knew us at another address, or as gone, are told; what stands is looked at.
  private static let tellNetworkChanged: [LoginEffect] = [
    .tell(.links(.networkChanged)), .tell(.membership(.networkChanged)),
  ]

  private mutating func interfacesChanged(
    _ workingCount: Int, _ change: NetworkChange, _ lost: String, _ using: String
  ) -> [LoginEffect] {
    switch state {
    case .connecting: return workingCount > 0 ? move(to: .connected, using) : []
    case .reconnecting: return workingCount > 0 ? move(to: .connected, using) + Self.tellNetworkChanged : []
    case .connected where workingCount == 0: return move(to: .reconnecting, lost)
    case .connected:
      switch change {
      case .kept: return []
      case .extended: return Self.tellNetworkChanged
      case .replaced:
        return move(to: .reconnecting, lost) + move(to: .connected, using) + Self.tellNetworkChanged
      }
    case .disconnected, .aborted: return []
    }
  }

  private mutating func loggedOut() -> [LoginEffect] {
    guard state != .disconnected else { return [] }
    return leaveAll() + (state == .aborted ? [] : move(to: .disconnected, "logged out"))
  }

  /// Says goodbye; the profile goes on remembering the channels.
  private mutating func leaveAll() -> [LoginEffect] {
    let all = places
    places = [:]
    return all.sorted { $0.key < $1.key }.flatMap { channel, place -> [LoginEffect] in
      switch place {
      // Nothing is open yet, but somebody waits for it.
      case .opening(_, let requests): return requests.map { .answer($0, .aborted) }
      case .open: return leaving(channel)
      }
    }
  }

  /// Membership closes the channel in the links once it has said goodbye.
  private func leaving(_ channel: ChannelID) -> [LoginEffect] {
    [
      .tell(.membership(.left(channel))), .tell(.messaging(.left(channel))), .tell(.media(.channelClosed(channel))),
    ]
  }

  private mutating func join(_ request: RequestID, _ name: ChannelName, _ channel: ChannelID) -> [LoginEffect] {
    guard state != .aborted else { return [.answer(request, .aborted)] }
    switch places[channel] {
    case .open: return [.answer(request, .done)]
    case .opening(let name, let requests):
      places[channel] = .opening(name, requests + [request])
      return []
    case nil:
      if places.values.contains(where: { $0.name == name }) { return [.answer(request, .otherSecret)] }
      guard places.count < Limit.channelsPerNodeMax else {
        return [.answer(request, .tooMany(countMax: Limit.channelsPerNodeMax))]
      }
      places[channel] = .opening(name, [request])
      return [.restore(channel)]
    }
  }

  private mutating func restored(
    _ channel: ChannelID, _ logs: [RestoredLog], _ lamport: UInt64, _ members: [MemberRecord]
  ) -> [LoginEffect] {
    guard case .opening(let name, let requests) = places[channel], let displayName else { return [] }
    places[channel] = .open(name)
    return [
      .opened(name, channel), .tell(.links(.channelOpened(channel))),
      .tell(.messaging(.joined(channel, logs: logs, lamport: lamport))),
      .tell(
        .membership(
          .joined(channel, displayName: displayName, incarnation: incarnation, remembered: members))),
    ] + requests.map { .answer($0, .done) }
  }

  private mutating func leave(_ request: RequestID, _ name: ChannelName) -> [LoginEffect] {
    guard let channel = places.first(where: { $0.value == .open(name) })?.key else {
      return [.answer(request, .notInChannel)]
    }
    places[channel] = nil
    return leaving(channel) + [.closed(name, channel), .answer(request, .done)]
  }
}
