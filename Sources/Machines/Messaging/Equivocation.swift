import ParleyHashing
import ParleyVocabulary
import ParleyWire

/// Two entries under one number, both signed: the proof that their author says different things to different people.
package struct EquivocationProof: Equatable, Sendable {
  package let key: LogKey
  package let number: UInt64
  /// Encoded, the lesser first, so that all hold the same.
  package let first: [UInt8]
  package let second: [UInt8]

  init(_ a: Entry, _ b: Entry) {
    key = a.key
    number = a.number
    (first, second) = a.encoded.lexicographicallyPrecedes(b.encoded) ? (a.encoded, b.encoded) : (b.encoded, a.encoded)
  }
}

/// What was signed under which number, as far as it was heard in this run, and who was caught.
struct SignedTwice: Sendable {
  struct Place: Hashable, Sendable {
    let channel: ChannelID
    let key: LogKey
    let number: UInt64

    init(_ channel: ChannelID, _ entry: Entry) {
      self.channel = channel
      key = entry.key
      number = entry.number
    }
  }

  /// Numbers remembered: about 2 MB. Of older ones the disk is asked.
  static let tagsMax = 16_384
  static let proofsMax = 256
  /// LoadIDs of answers to others count up from 1.
  static let firstLoad: UInt64 = 1 << 63

  private var tags: [Place: UInt64] = [:]
  private var order: [Place] = []
  private var start = 0
  /// A second entry, genuine, while the first is read from the disk.
  private var loading: [LoadID: (channel: ChannelID, entry: Entry)] = [:]
  private var nextLoad = Self.firstLoad
  /// Their first is on its way to the disk.
  private var waiting: [(channel: ChannelID, entry: Entry)] = []
  private static let waitingMax = 64
  /// Comparing costs a signature and a look at the disk.
  private var comparisons = RateAllowance(perSecond: 10, burst: 50)
  /// Saying it again to all costs two datagrams.
  private var tellings = RateAllowance(perSecond: 1, burst: 8)
  private(set) var proofs: [ChannelID: [EquivocationProof]] = [:]
  private var toldProofs: [ChannelID: Set<PeerID>] = [:]

  static func tag(_ entry: Entry) -> UInt64 { BLAKE2b.hash256(entry.signedPart).words.0 }

  mutating func note(_ channel: ChannelID, _ entry: Entry) {
    let place = Place(channel, entry)
    guard tags[place] == nil else { return }
    tags[place] = Self.tag(entry)
    order.append(place)
    guard order.count - start > Self.tagsMax else { return }
    tags[order[start]] = nil
    start += 1
    if start > Self.tagsMax {
      order.removeFirst(start)
      start = 0
    }
  }

  /// Whether this may be another entry than the one that is here under its number.
  mutating func isSuspicious(_ channel: ChannelID, _ entry: Entry, at now: Instant) -> Bool {
    if let tag = tags[Place(channel, entry)] {
      guard tag != Self.tag(entry) else { return false }
    }
    guard !isProven(channel, entry.key) else { return false }
    return comparisons.take(1, at: now)
  }

  func isProven(_ channel: ChannelID, _ key: LogKey) -> Bool { proofs[channel]?.contains { $0.key == key } ?? false }

  mutating func load(_ channel: ChannelID, _ entry: Entry) -> MessagingEffect {
    let id = LoadID(nextLoad)
    nextLoad &+= 1
    loading[id] = (channel, entry)
    let range = LogRange(key: entry.key, from: entry.number, through: entry.number)
    return .load(id, channel, [range], byteCountMax: 1)
  }

  /// Nil when it was not for a comparison.
  mutating func loaded(_ id: LoadID) -> (channel: ChannelID, entry: Entry)? { loading.removeValue(forKey: id) }

  mutating func wait(_ channel: ChannelID, _ entry: Entry) {
    if waiting.count < Self.waitingMax { waiting.append((channel, entry)) }
  }

  mutating func takeWaiting() -> [(channel: ChannelID, entry: Entry)] {
    defer { waiting = [] }
    return waiting
  }

  mutating func keep(_ proof: EquivocationProof, _ channel: ChannelID) {
    var known = proofs[channel] ?? []
    if known.count == Self.proofsMax { known.removeFirst() }
    proofs[channel] = known + [proof]
    toldProofs[channel] = nil
  }

  mutating func mayTell(at now: Instant) -> Bool { tellings.take(1, at: now) }

  /// Those that this peer has not been given yet in a session.
  mutating func untold(to peer: PeerID, _ channel: ChannelID) -> [EquivocationProof] {
    guard let known = proofs[channel], toldProofs[channel, default: []].insert(peer).inserted else { return [] }
    return known
  }

  mutating func forget(_ peer: PeerID, _ channel: ChannelID) { toldProofs[channel]?.remove(peer) }
  mutating func left(_ channel: ChannelID) {
    proofs[channel] = nil
    toldProofs[channel] = nil
  }
}

extension MessagingMachine {
  /// Something is here under its number already: most often the same, and whoever repeats it has not heard that we have
  /// it.
  mutating func heardAgain(_ channel: ChannelID, _ entry: Entry, _ now: Instant) -> [MessagingEffect] {
    if entry.key.author != me, twice.isSuspicious(channel, entry, at: now) { return [.verify(channel, entry)] }
    guard channels[channel]!.present[entry.key.author] != nil else { return [] }
    acknowledgeSoon(channel, entry.key.author, now)
    return []
  }

  /// Both are needed: the other one is on the disk.
  mutating func verifiedAgain(_ channel: ChannelID, _ entry: Entry) -> [MessagingEffect] {
    guard entry.key.author != me, !twice.isProven(channel, entry.key) else { return [] }
    return [twice.load(channel, entry)]
  }

  /// Nil when it was loaded for somebody who asked.
  mutating func compared(_ id: LoadID, _ entries: [[UInt8]], _ now: Instant) -> [MessagingEffect]? {
    guard let (channel, entry) = twice.loaded(id) else { return nil }
    guard channels[channel] != nil else { return [] }
    if entries.isEmpty, channels[channel]!.logs[entry.key].map({ entry.number > $0.highestStored }) ?? false {
      twice.wait(channel, entry)
      return []
    }
    guard let bytes = entries.first, let kept = try? Entry(decoding: bytes[...]),
      kept.key == entry.key, kept.number == entry.number, !twice.isProven(channel, entry.key)
    else { return [] }
    // A body that was let go is not another entry: what was signed decides.
    guard kept.signedPart != entry.signedPart else {
      twice.note(channel, kept)
      return []
    }
    let proof = EquivocationProof(kept, entry)
    twice.keep(proof, channel)
    var effects: [MessagingEffect] = [
      .notify(.equivocated(channel, proof)), .notify(.overLimit(channel, entry.key.author, .equivocation)),
    ]
    // Whoever has the one hears the other now, and finds out by itself: the proof needs no message of its own.
    if twice.mayTell(at: now) {
      for bytes in [proof.first, proof.second] {
        effects.append(.tell(.links(.multicast(channel, [.plain(.entry(bytes))]))))
      }
    }
    return effects
  }

  /// For one who was not there.
  mutating func tellProofs(_ channel: ChannelID, to peer: PeerID) -> [MessagingEffect] {
    twice.untold(to: peer, channel).flatMap { proof in
      [proof.first, proof.second].map { bytes in
        .tell(.links(.send(peer, .entries(channel, request: 0, [bytes], isLast: true))))
      }
    }
  }
}
