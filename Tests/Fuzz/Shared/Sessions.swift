import ParleySealing
import ParleyVocabulary

/// Two people who share one of the channels that each of them is in.
enum Pair {
  static let alice = Identity(seed: [UInt8](repeating: 1, count: 32))
  static let bob = Identity(seed: [UInt8](repeating: 2, count: 32))
  static let shared = ChannelKeys.open(name: try! ChannelName("shared"))
  static let hers = ChannelKeys.open(name: try! ChannelName("hers"))
  static let his = ChannelKeys.open(name: try! ChannelName("his"))

  static func initiator(_ purpose: SessionPurpose = .chat) -> SessionHandshake {
    SessionHandshake(
      initiator: purpose, channels: [hers, shared], identity: alice, instance: Instance(1), expecting: bob.peerID)
  }

  static func responder() -> SessionHandshake {
    SessionHandshake(responder: [his, shared], identity: bob, instance: Instance(2))
  }

  /// Both ends of a session, Alice's first.
  static func session() -> (EstablishedSession, EstablishedSession) {
    var initiator = initiator()
    var responder = responder()
    var toBob = initiator.start()
    var ends: (EstablishedSession?, EstablishedSession?) = (nil, nil)
    while ends.1 == nil {
      guard let (toAlice, end) = try? responder.receive(toBob) else { preconditionFailure("a handshake succeeds") }
      ends.1 = end
      if end == nil {
        guard let (send, end) = try? initiator.receive(toAlice) else { preconditionFailure("a handshake succeeds") }
        toBob = send
        ends.0 = end
      }
    }
    return (ends.0!, ends.1!)
  }
}
