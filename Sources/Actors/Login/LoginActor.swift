import ParleyMachines
import ParleyVocabulary

/// Runs the login machine: who we are, the connection state, which channels we are in.
package actor LoginActor {
  private var machine = LoginMachine()
  private let switchboard: Switchboard
  private var waiting: [RequestID: CheckedContinuation<LoginAnswer?, Never>] = [:]
  private var nextRequest: UInt64 = 1
  private var isClosed = false

  package init(_ switchboard: Switchboard) { self.switchboard = switchboard }

  package var state: LoginState { machine.state }

  /// Runs until the switchboard closes.
  package func run() async {
    while true {
      let events = await switchboard.login.next()
      if events.isEmpty { break }
      for event in events { step(event) }
    }
    isClosed = true
    for continuation in waiting.values { continuation.resume(returning: atTheEnd) }
    waiting = [:]
  }

  private var atTheEnd: LoginAnswer? { machine.state == .aborted ? .aborted : nil }

  /// Nil when the node stops first.
  package func join(_ name: ChannelName, _ channel: ChannelID) async -> LoginAnswer? {
    await answer { .joinRequested($0, name, channel) }
  }

  /// Nil when the node stops first.
  package func leave(_ name: ChannelName) async -> LoginAnswer? { await answer { .leaveRequested($0, name) } }

  /// The question goes through the mailbox, behind what was posted before it.
  private func answer(_ event: (RequestID) -> LoginEvent) async -> LoginAnswer? {
    guard !isClosed else { return atTheEnd }
    let request = RequestID(nextRequest)
    nextRequest += 1
    return await withCheckedContinuation { continuation in
      waiting[request] = continuation
      switchboard.login.post(event(request))
    }
  }

  private func step(_ event: LoginEvent) {
    var opened: [ChannelID] = []
    for effect in machine.handle(event, at: SystemClock.now()) {
      switch effect {
      case .restore(let channel): switchboard.store.post(.restore(channel))
      case .stateChanged(let state, let reason): switchboard.notices(.state(state, reason: reason))
      case .answer(let request, let answer): waiting.removeValue(forKey: request)?.resume(returning: answer)
      case .opened(let name, let channel):
        switchboard.notices(.opened(name, channel))
        opened.append(channel)
      case .closed(let name, let channel): switchboard.notices(.closed(name, channel))
      case .tell(let event): switchboard.post(event)
      }
    }
    // Only once membership has been told of the channel.
    for channel in opened { switchboard.store.post(.tellHidden(channel)) }
  }
}
