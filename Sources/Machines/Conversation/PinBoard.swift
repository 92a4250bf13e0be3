import ParleyVocabulary
import ParleyWire

/// Which messages stand over a channel: a function of all acts on pins there and of who may what. A message that is
/// taken back stays on it, empty, until somebody takes it down: what one message became decides nothing about others.
package struct PinBoard: Equatable, Sendable {
  package struct Pin: Equatable, Sendable {
    package let target: MessageKey
    package let doing: Doing
  }

  /// In the order in which they were pinned, at most `ConversationRule.pinCountMax`.
  package private(set) var pins: [Pin] = []

  package static let empty = PinBoard([], nil)

  /// `acts`: all of the channel; others than on pins are passed over. In a channel with an owner he and admins pin, in
  /// an open one anybody does.
  package init(
    _ acts: [MessageAct], _ governance: Governance?, fault: (MessageAct, MessageActFault) -> Void = { _, _ in }
  ) {
    for act in acts.sorted(by: { $0.place < $1.place }) {
      guard case .pin(let isOn) = act.content else { continue }
      if let governance {
        if let reason = governance.voidReason(of: act) {
          fault(act, .excluded(reason))
          continue
        }
        guard governance.isModerators(act.place.order) else {
          fault(act, .notModerator)
          continue
        }
      }
      let index = pins.firstIndex { $0.target == act.target }
      if !isOn {
        if let index { pins.remove(at: index) }
      } else if index == nil {
        if pins.count < ConversationRule.pinCountMax {
          pins.append(Pin(target: act.target, doing: Doing(act)))
        } else {
          fault(act, .tooManyPins)
        }
      }
    }
  }

  package func pin(of key: MessageKey) -> Pin? { pins.first { $0.target == key } }
}
