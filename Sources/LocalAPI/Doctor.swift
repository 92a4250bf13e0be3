import Parley

/// What works, what does not, what to try.
extension Router {
  func doctor() async -> Reply { .json(JSON(await node.diagnosis())) }
}

extension JSON {
  package init(_ diagnosis: Diagnosis) {
    self = [
      "well": .bool(diagnosis.isWell), "interfaces": .array(diagnosis.interfaces.map { JSON($0) }),
      "reached": .array(
        diagnosis.reached.map {
          [
            "peer_id": .string($0.peer.text), "fingerprint": .string($0.peer.fingerprint),
            "address": .string($0.address),
          ]
        }),
      "unreachable": .array(
        diagnosis.unreachable.map { ["address": .string($0.address), "reason": .string($0.reason)] }),
      "findings": .array(
        diagnosis.findings.map { finding in
          [
            "level": .string(finding.level.rawValue), "code": .string(finding.code), "text": .string(finding.text),
            "advice": finding.advice.map { .string($0) } ?? .null,
          ]
        }),
    ]
  }

  private init(_ interface: Diagnosis.Interface) {
    self = [
      "name": .string(interface.name), "addresses": .array(interface.addresses.map { .string($0) }),
      "trouble": interface.trouble.map { .string($0) } ?? .null, "sent": .count(interface.sentCount),
      "came_back": .count(interface.returnedCount), "heard": .count(interface.heardCount),
      "heard_other_version": .count(interface.otherVersionCount),
      "heard_from": .array(interface.heardFrom.map { .string($0) }),
      "send_failure": interface.sendFailure.map { .string($0) } ?? .null,
    ]
  }
}
