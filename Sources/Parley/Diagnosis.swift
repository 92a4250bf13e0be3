/// What works of the network and this machine, and what to try where it does not.
public struct Diagnosis: Sendable, Equatable {
  /// One of the network interfaces that the node uses, or would if it could.
  public struct Interface: Sendable, Equatable {
    public let name: String
    /// Our addresses there, without ports.
    public let addresses: [String]
    /// Why it, or a part of it, is not used; nil when all of it is.
    public let trouble: String?
    /// Datagrams to everybody that the system was given, and those of them that came back to us.
    public let sentCount, returnedCount: UInt64
    /// Datagrams of other nodes, in whatever channel, and of nodes that speak another version of the protocol.
    public let heardCount, otherVersionCount: UInt64
    /// Hosts of those, the one heard last first; at most 64 are remembered.
    public let heardFrom: [String]
    /// Why the system did not take a datagram, the newest; nil when it took all.
    public let sendFailure: String?

    public init(
      name: String, addresses: [String] = [], trouble: String? = nil, sentCount: UInt64 = 0, returnedCount: UInt64 = 0,
      heardCount: UInt64 = 0, otherVersionCount: UInt64 = 0, heardFrom: [String] = [], sendFailure: String? = nil
    ) {
      self.name = name
      self.addresses = addresses
      self.trouble = trouble
      self.sentCount = sentCount
      self.returnedCount = returnedCount
      self.heardCount = heardCount
      self.otherVersionCount = otherVersionCount
      self.heardFrom = heardFrom
      self.sendFailure = sendFailure
    }
  }

  /// A host that could not be reached over TCP, and has not been since.
  public struct Unreachable: Sendable, Equatable {
    public let address, reason: String
    public init(address: String, reason: String) {
      self.address = address
      self.reason = reason
    }
  }

  /// Somebody whom an encrypted session over TCP reaches now.
  public struct Reached: Sendable, Equatable {
    public let peer: PeerID
    public let address: String
    public init(peer: PeerID, address: String) {
      self.peer = peer
      self.address = address
    }
  }

  /// One thing that was looked at.
  public struct Finding: Sendable, Equatable {
    public enum Level: String, Sendable {
      case good
      /// Worth knowing; may be as it should be.
      case notice
      /// Does not work as it should.
      case problem
    }
    public let level: Level
    /// The same between versions, such as `own_datagrams_lost`.
    public let code: String
    /// What is so, a sentence.
    public let text: String
    /// What to try; nil when there is nothing to do.
    public let advice: String?

    public init(_ level: Level, _ code: String, _ text: String, advice: String? = nil) {
      self.level = level
      self.code = code
      self.text = text
      self.advice = advice
    }
  }

  public let interfaces: [Interface]
  public let reached: [Reached]
  public let unreachable: [Unreachable]
  /// What concerns the network first.
  public let findings: [Finding]
  /// Whether there is no problem among the findings.
  public var isWell: Bool { !findings.contains { $0.level == .problem } }

  public init(interfaces: [Interface], reached: [Reached], unreachable: [Unreachable], findings: [Finding]) {
    self.interfaces = interfaces
    self.reached = reached
    self.unreachable = unreachable
    self.findings = findings
  }
}
