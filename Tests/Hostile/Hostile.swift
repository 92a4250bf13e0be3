import Glibc
import ParleyHashing
import ParleySealing
import ParleyVocabulary
import ParleyWire

/// The test peer of Tests/LANTests that speaks the real protocol and means ill:
///
///     ParleyHostile ATTACK LOCAL_ADDRESS CHANNEL [ARGUMENT…]
///
/// CHANNEL is an open one. What it did is printed as JSON, an object a line.
@main enum Hostile {
  static func main() {
    Sealing.initialize()
    let words = Array(CommandLine.arguments.dropFirst())
    guard words.count >= 3 else {
      say(#"{"usage":"ParleyHostile ATTACK LOCAL_ADDRESS CHANNEL [ARGUMENT…]"}"#)
      exit(64)
    }
    do {
      let attacker = try Attacker(channel: words[2], local: words[1])
      try run(words[0], attacker, Array(words[3...]))
    } catch {
      say(#"{"failed":"\#("\(error)".escapedLine)"}"#)
      exit(1)
    }
  }

  private static func run(_ attack: String, _ attacker: Attacker, _ words: [String]) throws {
    let count = words.first.flatMap { Int($0) } ?? 0
    switch attack {
    case "identities": try identities(attacker, count)
    case "flood": try flood(attacker, seconds: count)
    case "offers": try offers(attacker, count)
    case "lamport": try lamport(attacker)
    case "forge": try forge(attacker, words)
    case "move": try move(attacker, words)
    case "claim": try claim(attacker)
    case "equivocate": try equivocate(attacker, words)
    default: throw Refused("there is no attack \(attack)")
    }
  }

  /// As many people as it likes, each genuine as far as a signature goes.
  private static func identities(_ attacker: Attacker, _ count: Int) throws {
    for number in 0..<count {
      let other = Identity.random()
      let instance = Sealing.randomInstance()
      try attacker.multicast(
        [attacker.presence(of: other.peerID, signedBy: other, as: instance)], as: instance)
      if number % 10_000 == 9_999 { say(#"{"identities":\#(number + 1)}"#) }
    }
    say(#"{"done":\#(count)}"#)
  }

  /// Entries as fast as they can be signed and sent.
  private static func flood(_ attacker: Attacker, seconds: Int) throws {
    try attacker.multicast([attacker.presence()])
    say(#"{"flooding":"\#(attacker.identity.peerID.text)"}"#)
    let end = SystemTime.milliseconds + UInt64(min(max(0, seconds), 120)) * 1_000
    var sent = 0
    while SystemTime.milliseconds < end {
      let number = attacker.nextNumber()
      let bytes = attacker.entry(TextKind(body: "flood \(number)"), id: "f\(number)", number: number)
      try attacker.multicast([.entry(bytes)])
      sent += 1
    }
    say(#"{"done":\#(sent)}"#)
  }

  /// Files of 100 MB that nobody asked for, and photos and voice that others fetch unasked, but that nobody has.
  private static func offers(_ attacker: Attacker, _ count: Int) throws {
    try attacker.multicast([attacker.presence()])
    for _ in 0..<count {
      let number = attacker.nextNumber()
      let media = MediaID(BLAKE2b.hash256(Array("\(number)".utf8)))
      let isFile = number % 3 == 0
      let file = MediaMembers(
        id: media, fileName: "offer \(number)", byteCount: isFile ? 100 << 20 : 1_000, mimeType: nil)
      let small = MediaID(BLAKE2b.hash256(Array("small \(number)".utf8)))
      let offers: [any MessageKind] = [
        FileKind(file: file), PhotoKind(file: file, picture: PictureMembers(thumbnail: small)),
        VoiceKind(file: file, duration: 1),
      ]
      let offer = offers[Int(number % 3)]
      try attacker.multicast([.entry(attacker.entry(offer, id: "o\(number)", number: number))])
    }
    say(#"{"done":\#(count)}"#)
  }

  /// Near the end of time, and then before its beginning.
  private static func lamport(_ attacker: Attacker) throws {
    try attacker.multicast([attacker.presence()])
    for (text, lamport) in [("late", Limit.counterMax), ("early", 0)] {
      let number = attacker.nextNumber()
      try attacker.multicast([
        .entry(attacker.entry(TextKind(body: text), id: text, number: number, lamport: lamport))
      ])
    }
    say(#"{"done":2}"#)
  }

  /// Words: the victim's PeerID. Entries and presences in its name, signed with another key.
  private static func forge(_ attacker: Attacker, _ words: [String]) throws {
    guard let victim = words.first.flatMap({ PeerID(text: $0) }) else { throw Refused("whose?") }
    for _ in 0..<100 {
      let number = attacker.nextNumber()
      try attacker.multicast([
        .entry(attacker.entry(TextKind(body: "forged"), id: "x\(number)", number: number, author: victim))
      ])
      try attacker.multicast([attacker.presence(of: victim, incarnation: Limit.counterMax)])
    }
    say(#"{"done":200}"#)
  }

  /// Words: another channel. What somebody says in the one is said again in the other.
  private static func move(_ attacker: Attacker, _ words: [String]) throws {
    guard let name = words.first else { throw Refused("whereto?") }
    let other = ChannelKeys.open(name: try ChannelName(name))
    let (bytes, instance) = try attacker.overhear(seconds: 20)
    for _ in 0..<10 { try attacker.multicast([.entry(bytes)], as: instance, in: other) }
    say(#"{"done":10}"#)
  }

  /// Says that the instance of whoever speaks first is its own.
  private static func claim(_ attacker: Attacker) throws {
    let (_, instance) = try attacker.overhear(seconds: 20)
    for _ in 0..<20 { try attacker.multicast([attacker.presence(as: instance)], as: instance) }
    say(#"{"done":20}"#)
  }

  /// Words: where two nodes hear datagrams, HOST:PORT. Each is told something else under one number; then the first
  /// hears what the second was told.
  private static func equivocate(_ attacker: Attacker, _ words: [String]) throws {
    guard words.count == 2 else { throw Refused("to whom?") }
    try attacker.multicast([attacker.presence()])
    let yes = attacker.entry(TextKind(body: "yes"), id: "e", number: 1)
    let no = attacker.entry(TextKind(body: "no"), id: "e", number: 1)
    try attacker.send([.entry(yes)], toPlace: words[0])
    try attacker.send([.entry(no)], toPlace: words[1])
    say(#"{"said":"\#(attacker.identity.peerID.text)"}"#)
    // The test says when both have it.
    _ = readLine()
    try attacker.send([.entry(no)], toPlace: words[0])
    for number in 2...4 as ClosedRange<UInt64> {
      try attacker.multicast([
        .entry(attacker.entry(TextKind(body: "later"), id: "l\(number)", number: number))
      ])
    }
    say(#"{"done":true}"#)
  }
}
