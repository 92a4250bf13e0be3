import ParleyVocabulary
import ParleyWire

/// An event on its way to one of the five machines. What one machine must tell another is an effect that carries this.
package enum NodeEvent: Equatable, Sendable {
  case links(LinksEvent)
  case login(LoginEvent)
  case membership(MembershipEvent)
  case messaging(MessagingEvent)
  case media(MediaEvent)
}

/// The five machines of a node, by name.
package enum Room: Hashable, Sendable, CaseIterable { case links, login, membership, messaging, media }

/// Says whose an event is. Actors and simulator both ask it, so what is simulated is what ships.
package enum Router {
  package static func room(of event: NodeEvent) -> Room {
    switch event {
    case .links: .links
    case .login: .login
    case .membership: .membership
    case .messaging: .messaging
    case .media: .media
    }
  }
}

/// Names a call of the application that waits for an answer.
package struct RequestID: Hashable, Sendable {
  package let value: UInt64
  package init(_ value: UInt64) { self.value = value }
}

/// Steers timing (jitter, who is asked first), never anything secret. SplitMix64 (Steele, Lea, Flood 2014).
package struct Jitter: RandomNumberGenerator, Sendable {
  private var state: UInt64
  package init(seed: UInt64) { state = seed }
  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
  package mutating func span(_ low: Span, _ high: Span) -> Span {
    low >= high ? low : .init(microseconds: Int64.random(in: low.microseconds...high.microseconds, using: &self))
  }
}
