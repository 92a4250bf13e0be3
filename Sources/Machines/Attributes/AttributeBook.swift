import ParleyVocabulary
import ParleyWire

/// The attributes of a channel: a function of the set of acts, whatever order they come in. Under one key acts count in
/// the channel's order: each takes the place of what stands, unless it is not to overwrite and another has set that.
/// Keys are decided one by one; of more than 100 with a value those stand whose values were set first.
///
/// What can change nothing any more is let go, so that nobody can fill memory or disk: what stands before something
/// that overwrites, under one key more than 16 acts, more than 128 keys with a value and 256 without. Only where
/// somebody passes the last three may members that heard acts in another order come to another end.
package struct AttributeBook: Sendable {
  package static let countMax = 100
  static let actsPerKeyMax = 16
  static let keysMax = 128
  /// Taken away: what comes late from before that stays away.
  static let emptyKeysMax = 256

  /// By the bytes of the key: texts that Unicode calls equivalent are two keys. Rising by place.
  private var acts: [[UInt8]: [AttributeAct]] = [:]

  package init() {}

  /// What stands under a key, and what made it so.
  struct Outcome {
    /// Nil: nothing.
    var standing: AttributeAct?
    /// The last act that changed something.
    var last: AttributeAct
  }

  /// Acts that came, in any order, again or not. `counts` is asked for what is not known to be void. Returns the
  /// entries that are needed no more: those of acts that were let go.
  package mutating func take(
    _ new: [AttributeAct], counts: (EntryFacts) -> Bool = { _ in true }
  ) -> Set<OrderKey> {
    var released: Set<OrderKey> = []
    for act in new {
      let key = Array(act.content.key.utf8)
      var line = acts[key] ?? []
      let index = line.firstIndex { act.place <= $0.place } ?? line.endIndex
      if index < line.endIndex, line[index].place == act.place { continue }
      line.insert(act, at: index)
      acts[key] = Self.shortened(line, counts, &released)
    }
    limitKeys(counts, &released)
    let needed = Set(acts.values.joined().map(\.place.order))
    return released.subtracting(needed)
  }

  private static func shortened(
    _ line: [AttributeAct], _ counts: (EntryFacts) -> Bool, _ released: inout Set<OrderKey>
  ) -> [AttributeAct] {
    var line = line
    if let last = line.lastIndex(where: { $0.content.isOverwriting && counts($0.facts) }), last > 0 {
      released.formUnion(line[..<last].map(\.place.order))
      line.removeFirst(last)
    }
    while line.count > actsPerKeyMax {
      // Between two of the same author nothing of another came that this one kept away; else what comes last counts
      // least, for it was most likely kept away.
      let between = line.indices.dropFirst().dropLast().first {
        line[$0 - 1].author == line[$0].author && line[$0].author == line[$0 + 1].author
          && line[$0].content.value != nil
      }
      released.insert(line.remove(at: between ?? line.endIndex - 1).place.order)
    }
    return line
  }

  private mutating func limitKeys(_ counts: (EntryFacts) -> Bool, _ released: inout Set<OrderKey>) {
    guard acts.count > Self.keysMax else { return }
    var full: [(place: Act.Place, key: [UInt8])] = []
    var empty: [(place: Act.Place, key: [UInt8])] = []
    for (key, line) in acts {
      let outcome = Self.outcome(line, counts)
      if let standing = outcome?.standing {
        full.append((standing.place, key))
      } else {
        empty.append((outcome?.last.place ?? line[0].place, key))
      }
    }
    full.sort { $0.place < $1.place }
    empty.sort { $1.place < $0.place }
    for (_, key) in full.dropFirst(Self.keysMax) + empty.dropFirst(Self.emptyKeysMax) {
      released.formUnion((acts.removeValue(forKey: key) ?? []).map(\.place.order))
    }
  }

  private static func outcome(_ line: [AttributeAct], _ counts: (EntryFacts) -> Bool) -> Outcome? {
    var outcome: Outcome?
    for act in line where counts(act.facts) {
      if let standing = outcome?.standing, !act.mayReplace(standing) { continue }
      // Nothing to take away: but whoever did so first is who did it.
      if act.content.value == nil, outcome != nil, outcome?.standing == nil { continue }
      outcome = Outcome(standing: act.content.value == nil ? nil : act, last: act)
    }
    return outcome
  }

  /// What stands, the keys' bytes rising, and who took away what does not. Of those who are there only what goes with
  /// its author stands; `run` gives the log of somebody's present run, nil for who is not there.
  package func state(
    counts: (EntryFacts) -> Bool = { _ in true }, run: (PeerID) -> Instance?
  ) -> AttributeState {
    var state = AttributeState()
    var full: [AttributeAct] = []
    for line in acts.values {
      guard let outcome = Self.outcome(line, counts) else { continue }
      if let standing = outcome.standing {
        full.append(standing)
      } else {
        state.removers[Array(outcome.last.content.key.utf8)] = outcome.last.author
      }
    }
    full.sort { $0.place < $1.place }
    for act in full.prefix(Self.countMax) {
      if act.content.isUntilLeave, run(act.author) != act.log.log {
        state.departed.append(act)
      } else {
        state.standing[Array(act.content.key.utf8)] = act
      }
    }
    state.isFull = full.count >= Self.countMax
    return state
  }
}

/// The attributes of a channel at a moment.
package struct AttributeState: Equatable, Sendable {
  /// By the key's bytes.
  package var standing: [[UInt8]: AttributeAct] = [:]
  /// Who took away what was there.
  package var removers: [[UInt8]: PeerID] = [:]
  /// Set until their authors leave, who have: anybody may replace them.
  package var departed: [AttributeAct] = []
  /// No key can be added, but in the place of one of the departed.
  package var isFull = false

  package init() {}

  package struct Change: Equatable, Sendable {
    package let key: String
    package let old: AttributeAct?
    package let new: AttributeAct?
    package let by: PeerID
  }

  /// What is another since `before`, by key.
  package func changes(since before: AttributeState) -> [Change] {
    let keys = Set(standing.keys).union(before.standing.keys)
    return keys.sorted { $0.lexicographicallyPrecedes($1) }.compactMap { key in
      let (old, new) = (before.standing[key], standing[key])
      guard old != new, let text = (new ?? old)?.content.key else { return nil }
      // Who was displaced by an earlier one, or is away, did it to themselves.
      return Change(key: text, old: old, new: new, by: new?.author ?? removers[key] ?? old!.author)
    }
  }
}
