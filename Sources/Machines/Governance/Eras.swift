import ParleyVocabulary
import ParleyWire

/// Who owned the channel when: from the founder, each until he handed over.
struct Eras: Equatable, Sendable {
  struct Handover: Equatable, Sendable {
    let place: Act.Place
    let timestamp: UInt64
    let successor: PeerID
    let heads: ActHeads

    init?(_ act: Act) {
      guard case .role(let kind) = act.content, kind.role == .owner, kind.target != act.author else { return nil }
      place = act.place
      timestamp = act.timestamp
      successor = kind.target
      heads = kind.heads
    }

    /// Beyond it its author's acts are no owner's any more; in its own log it is itself the last one.
    func ends(_ order: OrderKey) -> Bool {
      order.log == place.order.log ? order.number > place.order.number : heads.isBelow(order)
    }
  }

  struct Era: Equatable, Sendable {
    let owner: PeerID
    /// Nil: from the beginning.
    let from: Act.Place?
    /// Nil: to this day.
    var end: Handover?
  }

  private(set) var eras: [Era]

  var owner: PeerID { eras.last!.owner }

  /// `transfers`: by author, in order.
  init(founder: PeerID, transfers: [PeerID: [Handover]]) {
    eras = [Era(owner: founder, from: nil, end: nil)]
    while let next = handover(transfers[owner] ?? []) {
      eras[eras.count - 1].end = next
      eras.append(Era(owner: next.successor, from: next.place, end: nil))
    }
  }

  /// The first in order that no other one puts an end to while it does not put an end to that: of two in one log it is
  /// the one with the lower number, whatever Lamport time the other has.
  private func handover(_ all: [Handover]) -> Handover? {
    // Of this era alone: who has the ownership back does not hand it over by what it said before.
    let candidates = all.filter { index(of: $0.place.order) == eras.count - 1 }
    return candidates.first { one in
      !candidates.contains { $0.ends(one.place.order) && !one.ends($0.place.order) }
    } ?? candidates.first
  }

  /// Whether what stands there was said by him who owned the channel then.
  func isOwners(_ order: OrderKey) -> Bool { era(of: order) != nil }

  func era(of order: OrderKey) -> Era? { index(of: order).map { eras[$0] } }

  private func index(of order: OrderKey) -> Int? {
    for (index, era) in eras.enumerated() where era.owner == order.author {
      // What his earlier era has, it keeps; what is beyond it may be that of a later one.
      if let from = era.from, order < from.order { continue }
      guard let end = era.end else { return index }
      if !end.ends(order) { return index }
    }
    return nil
  }

  /// Who owned it at that place, by order alone.
  func owner(at place: Act.Place) -> PeerID {
    eras.last { $0.from.map { $0 < place } ?? true }!.owner
  }
}
