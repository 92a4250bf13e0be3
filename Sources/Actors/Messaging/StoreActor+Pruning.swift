import ParleyMachines
import ParleyStore
import ParleyVocabulary

// What is too old or too much goes, while nothing else is to do.
extension StoreActor {
  static let pruneFirst = Span.seconds(10)
  static let pruneEvery = Span.seconds(3_600)
  static let pruneAfterJoin = Span.seconds(10)

  func kept(of channel: ChannelID) -> Retention { retentions[channel] ?? retention }

  func retain(_ channel: ChannelID, _ retention: Retention) {
    guard kept(of: channel) != retention else { return }
    retentions[channel] = retention
    if !toPrune.contains(channel) { toPrune.append(channel) }
  }

  /// Of every channel, also of those that were left.
  func pruneEverything() {
    guard opened?.readOnlyReason == nil else { return wake(SystemClock.now() + Self.pruneEvery) }
    let now = SystemClock.now()
    wake(now < pruneFrom ? pruneFrom : now + Self.pruneEvery)
    guard now >= pruneFrom else { return }
    do {
      for channel in try store.channels() where !toPrune.contains(channel) { toPrune.append(channel) }
    } catch {
      report(error)
    }
  }

  /// A hundredth over what is kept is let gather, so that there is work for a step.
  func noteSurplus(in writes: [StoreWrite]) {
    var seen: Set<ChannelID> = []
    for case .entry(let entry) in writes where seen.insert(entry.channel).inserted {
      let countMax = kept(of: entry.channel).entryCountMax
      guard let count = try? store.entryCount(in: entry.channel), count > countMax + countMax / 100,
        !toPrune.contains(entry.channel)
      else { continue }
      toPrune.append(entry.channel)
    }
  }

  /// Step by step as long as nothing waits. Where so much comes that something always waits, one step is made for each
  /// batch once a channel is a tenth over: it cannot grow without end.
  func pruneWhileIdle() {
    while let channel = toPrune.first {
      guard SystemClock.now() >= pruneFrom else { return wake(pruneFrom) }
      let count = (try? store.entryCount(in: channel)) ?? 0
      let countMax = kept(of: channel).entryCountMax
      let isPressing = count > countMax + countMax / 10
      guard isPressing || switchboard.store.isEmpty else { return }
      prune(channel)
      if isPressing, !switchboard.store.isEmpty { return }
    }
  }

  private func prune(_ channel: ChannelID) {
    do {
      let step = try store.prune(channel, keeping: kept(of: channel))
      if step.isDone { toPrune.removeFirst() }
      if !step.floors.isEmpty {
        let floors = step.floors.map { LogFloor(key: $0.key, floor: $0.floor) }
        switchboard.post(.messaging(.pruned(channel, floors)))
      }
    } catch {
      // A full disk has no room for the log of a deletion either: the next hour, or the next surplus, tries again.
      toPrune.removeFirst()
      report(error)
    }
  }
}
