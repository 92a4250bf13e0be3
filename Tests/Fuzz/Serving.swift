// What members ask of somebody who shares: anything, in any order, with a disk that fails.
import ParleyHashing
import ParleyMachines
import ParleyVocabulary
import ParleyWire

private let file = (0..<2_200_000).map { UInt8(truncatingIfNeeded: $0 >> 3) }
private let served: ServedMedia = {
  let piece = Limit.mediaPieceByteCount
  let hashes = stride(from: 0, to: file.count, by: piece).map { start in
    file[start..<min(start + piece, file.count)].withUnsafeBytes { MediaTree.pieceHash(of: $0, isOnlyPiece: false) }
  }
  let root = MediaTree.root(pieceHashes: hashes, byteCount: UInt64(file.count))
  let manifest = try! MediaManifest(
    files: [.init(path: ["a"], byteCount: UInt64(file.count), root: root)], mimeType: "text/plain")
  return ServedMedia(manifest: manifest, pieceHashes: [hashes])
}()

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  var input = Input(data, count)
  var machine = ServingMachine()
  var reads: [ServedRead] = []
  var now = Instant(microseconds: 0)
  _ = machine.handle(.shared(served), at: now)
  for _ in 0..<1_000 where !input.isAtEnd {
    now = now + .milliseconds(Int(input.byte()) * (input.choice(8) == 0 ? 20 : 1))
    for effect in machine.handle(event(&input, &reads), at: now) {
      switch effect {
      case .read(let read):
        precondition(read.offset + UInt64(read.byteCount) <= UInt64(file.count), "no read past the end")
        reads.append(read)
      case .reply(_, _, .block(let bytes)): precondition(!bytes.isEmpty, "a block has bytes")
      case .reply, .sourceChanged, .fileChanged, .wake: break
      }
    }
    check(machine)
  }
  return 0
}

private func peer(_ input: inout Input) -> PeerID {
  PeerID(Bytes32(words: (UInt64(input.choice(4)), 0, 0, 0)))
}

private func event(_ input: inout Input, _ reads: inout [ServedRead]) -> ServingEvent {
  switch input.choice(10) {
  case 0: return .cancelled(peer(&input), UInt64(input.byte()), count: 1 + input.choice(64))
  case 1: return .peerLost(peer(&input))
  case 2, 3:
    guard !reads.isEmpty else { return .readFailed(input.counter(), .changed) }
    let read = reads.remove(at: input.choice(reads.count))
    guard input.choice(8) > 0 else { return .readFailed(read.id, .changed) }
    return .readDone(read.id, Array(file[Int(read.offset)..<Int(read.offset) + read.byteCount]))
  case 4: return .drained(peer(&input), queuedByteCount: Int(input.uint16()) * 16)
  case 5:
    guard input.bool() else { return .gained(served.manifest.id, piece: input.choice(4)) }
    let holding = PieceSet(pieceCount: 3, bytes: [input.byte()])!
    let states: [ServingEvent] = [
      .unshared(served.manifest.id), .shared(served), .partShared(served, holding: holding), .woke,
    ]
    return states[input.choice(4)]
  default:
    var bytes: [UInt8] = [UInt8(input.choice(4) + 1), input.byte() & 0x3F]
    bytes += input.choice(8) == 0 ? input.take(32) : served.manifest.id.bytes
    var numbers = ByteWriter()
    let small = input.bool()
    for _ in 0..<3 { numbers.varint(small ? UInt64(input.byte() & 15) : input.counter()) }
    let fields = [1, 3, input.bool() ? 2 : 3, 1][Int(bytes[0]) - 1]
    var reader = ByteReader(numbers.bytes)
    for _ in 0..<fields {
      var one = ByteWriter()
      if let value = try? reader.varint("number") { one.varint(value) }
      bytes += one.bytes
    }
    guard case .request(let number, let request) = try? MediaMessage(decoding: bytes) else {
      return .cancelled(peer(&input), 0)
    }
    return .requested(peer(&input), number, request, isMember: input.choice(16) > 0)
  }
}

private func check(_ machine: ServingMachine) {
  precondition(machine.readingCount <= ServingMachine.readsMax, "few reads at once")
  for number in 0..<4 {
    let peer = PeerID(Bytes32(words: (UInt64(number), 0, 0, 0)))
    precondition(machine.requestCount(of: peer) <= ServingMachine.requestsPerPeerMax, "few requests a peer")
  }
}
