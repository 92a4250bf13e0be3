import ParleyMachines
import ParleyVocabulary

/// Runs the membership machine: who is in each channel, who is there, whose hand is up. Shares the transport's thread,
/// since nearly all it hears comes from there, and from messaging with every batch.
package actor MembershipActor {
  private var machine: MembershipMachine
  private let switchboard: Switchboard
  private let executor: any SerialExecutor
  /// When the machine will be woken at the latest.
  private var wakeAt: Instant?

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  package init(_ machine: MembershipMachine, _ switchboard: Switchboard, executor: any SerialExecutor) {
    self.machine = machine
    self.switchboard = switchboard
    self.executor = executor
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
    if case .woke = event { wakeAt = nil }
    for effect in machine.handle(event, at: SystemClock.now()) {
      switch effect {
      case .announce(let channel, let view): switchboard.notices(.member(channel, view))
      case .typing(let channel, let peer, let isTyping): switchboard.notices(.typing(channel, peer, isTyping))
      case .persist(let channel, let record): switchboard.store.post(.member(channel, record))
      case .wake(let instant):
        if let wakeAt, wakeAt <= instant { break }
        wakeAt = instant
        switchboard.links.post(.wake(.membership, at: instant))
      case .tell(let event): switchboard.post(event)
      }
    }
  }
}
