import ParleyMachines
import ParleyVocabulary

/// Runs the membership machine: who is in each channel, who is there, whose hand is up.
package actor MembershipActor {
  private var machine: MembershipMachine
  private let switchboard: Switchboard
  private let wake: @Sendable (Instant) -> Void

  package init(_ machine: MembershipMachine, _ switchboard: Switchboard, wake: @escaping @Sendable (Instant) -> Void) {
    self.machine = machine
    self.switchboard = switchboard
    self.wake = wake
  }

  package func members(of channel: ChannelID) -> [MemberView] { machine.members(of: channel) }
  package func presentPeers(in channel: ChannelID) -> [PeerID] { machine.presentPeers(in: channel) }

  /// Runs until the switchboard closes.
  package func run() async {
    while true {
      let events = await switchboard.membership.next()
      if events.isEmpty { return }
      for event in events { step(event) }
    }
  }

  private func step(_ event: MembershipEvent) {
    for effect in machine.handle(event, at: SystemClock.now()) {
      switch effect {
      case .announce(let channel, let view): switchboard.notices(.member(channel, view))
      case .persist(let channel, let record): switchboard.store.post(.member(channel, record))
      case .wake(let instant): wake(instant)
      case .tell(let event): switchboard.post(event)
      }
    }
  }
}
