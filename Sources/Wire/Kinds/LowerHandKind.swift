import ParleyVocabulary

/// `{…,"type":"lower_hand","target":"…","heads":[["…",12]]}`: a hand that the target raised up to there is down.
package struct LowerHandKind: ActKind {
  package static let type = "lower_hand"
  package static let code: UInt64 = 10
  package let target: PeerID
  package let heads: ActHeads

  package init(target: PeerID, heads: ActHeads) {
    self.target = target
    self.heads = heads
  }
  package init(from members: [JSONMember]) throws(WireError) {
    target = try members.peer("target")
    heads = try ActHeads(from: members)
  }
  package var members: [JSONMember] { [JSONMember("target", .string(target.text)), heads.member] }
}
