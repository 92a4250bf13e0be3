import ParleyMachines
import ParleyVocabulary

/// The proof that somebody signed two different entries under one number.
public struct Equivocation: Sendable, Equatable {
  /// The run, and so the log, in which it did.
  public let log: Instance
  /// The number that stands twice.
  public let number: UInt64
  /// The two entries as they were signed, encoded as Wire.docc says.
  public let entries: [[UInt8]]

  init(_ proof: EquivocationProof) {
    log = proof.key.log
    number = proof.number
    entries = [proof.first, proof.second]
  }
}
