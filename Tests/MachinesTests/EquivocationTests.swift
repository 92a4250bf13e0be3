@testable import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

/// Ben says one thing to Ana and another to Cho, under one number.
private let toAna = entry(ben, run: run(2), 1, bodies: [text(ben, "yes", id: "m")])
private let toCho = entry(ben, run: run(2), 1, bodies: [text(ben, "no", id: "m")])

extension Messages {
  fileprivate var proofs: [EquivocationProof] {
    notices.compactMap { if case .equivocated(garden, let proof) = $0 { proof } else { nil } }
  }

  fileprivate var again: [[UInt8]] {
    told.compactMap { event in
      guard case .links(.multicast(garden, let frames)) = event, case .plain(.entry(let bytes))? = frames.first else {
        return nil
      }
      return bytes
    }
  }

  /// The disk has this one under the number that is asked for.
  fileprivate mutating func load(_ entry: Entry?) {
    for case .load(let id, _, _, _) in effects { handle(.loaded(id, entry.map { [$0.encoded] } ?? [])) }
  }
}

@Test func twoEntriesUnderOneNumberAreProvedAndToldToAll() {
  var ana = Messages()
  ana.hear(toAna)
  ana.commit()
  ana.hear(toCho)
  #expect(ana.proofs.isEmpty)
  ana.load(toAna)
  #expect(ana.proofs.count == 1)
  #expect(ana.proofs.first?.number == 1)
  #expect(ana.notices.contains(.overLimit(garden, ben, .equivocation)))
  #expect(Set(ana.again) == [toAna.encoded, toCho.encoded])
  let said = ana.again
  let proof = ana.proofs
  // Cho, who has the other, hears the two and has the same proof.
  var other = Messages()
  other.hear(toCho)
  other.commit()
  for bytes in said {
    guard let entry = try? Entry(decoding: bytes[...]) else { continue }
    other.hear(entry)
    other.load(toCho)
    if !other.proofs.isEmpty { #expect(other.proofs == proof) }
  }
  #expect(other.machine.twice.isProven(garden, toCho.key))
  // Said once: it does not go round for ever.
  ana.hear(toCho)
  #expect(ana.effects.contains { if case .verify = $0 { true } else { false } } == false)
  #expect(ana.again.isEmpty)
}

@Test func whoComesLaterIsGivenTheProof() {
  var ana = Messages()
  ana.hear(toAna)
  ana.commit()
  ana.hear(toCho)
  ana.load(toAna)
  let dee = person(4)
  ana.come(dee, run: run(4))
  let heads = SessionMessage.heads(garden, .all, [], isLast: true, answerWanted: false)
  ana.handle(.sessionMessage(dee, heads))
  let given = ana.sent(to: dee).flatMap { message -> [[UInt8]] in
    if case .entries(garden, 0, let entries, true) = message { entries } else { [] }
  }
  #expect(Set(given) == [toAna.encoded, toCho.encoded])
  ana.handle(.sessionMessage(dee, heads))
  #expect(ana.sent(to: dee).isEmpty)
  // Both come before the first is on the disk.
  var late = Messages()
  late.hear(toAna)
  late.hear(toCho)
  late.load(nil)
  #expect(late.proofs.isEmpty)
  late.commit()
  late.load(toAna)
  #expect(late.proofs.count == 1)
}

@Test func aRepetitionIsNoSecondEntry() {
  var ana = Messages()
  ana.hear(toAna)
  ana.commit()
  for _ in 0..<1_000 {
    ana.hear(toAna)
    #expect(ana.effects.contains { if case .verify = $0 { true } else { false } } == false)
  }
  // Nor is one whose body was let go: what was signed is the same.
  var ringed = Messages(
    logs: [RestoredLog(key: toAna.key, contiguous: 1)])
  ringed.hear(toAna)
  ringed.load(toAna)
  #expect(ringed.proofs.isEmpty)
  ringed.hear(toAna)
  #expect(ringed.effects.contains { if case .verify = $0 { true } else { false } } == false)
}

/// A forged second entry proves nothing, and comparing costs a bounded amount.
@Test func whatIsNotSignedProvesNothing() {
  var ana = Messages()
  ana.hear(toAna)
  ana.commit()
  var verifiedCount = 0
  for number in 0..<1_000 {
    let forged = entry(ben, run: run(2), 1, bodies: [text(ben, "\(number)", id: "m")])
    ana.handle(.entryHeard(garden, forged.encoded, from: cho))
    guard ana.effects.contains(.verify(garden, forged)) else { continue }
    verifiedCount += 1
    ana.handle(.entryVerified(garden, forged, isGenuine: false))
    #expect(ana.effects.contains { if case .load = $0 { true } else { false } } == false)
  }
  #expect(verifiedCount == 50)
  #expect(ana.proofs.isEmpty)
}
