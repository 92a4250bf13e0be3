import ParleyVocabulary

/// At most so many within any second.
struct SendRate: Sendable {
  let perSecond: Int
  /// When the last ones were, a ring once it is full.
  private var times: [Instant] = []
  private var oldest = 0

  init(perSecond: Int) { self.perSecond = perSecond }

  /// False when it would be one too many; what is refused does not count.
  mutating func take(at now: Instant) -> Bool {
    if times.count < perSecond {
      times.append(now)
      return true
    }
    guard now - times[oldest] >= .seconds(1) else { return false }
    times[oldest] = now
    oldest = (oldest + 1) % perSecond
    return true
  }
}

extension Node {
  /// Of all that the application says, in channels and from peer to peer. Throws `.messageRateLimited`.
  func takeRate() throws(ParleyError) {
    guard let perSecond = sendRate?.perSecond else { return }
    guard sendRate!.take(at: settings.clock()) else { throw .messageRateLimited(perSecond: perSecond) }
  }
}
