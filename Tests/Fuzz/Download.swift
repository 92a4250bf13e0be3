// A download from sources of which any may lie: what is written is what was shared, and little is held in memory.
import ParleyHashing
import ParleyMachines
import ParleyVocabulary
import ParleyWire

private let file = (0..<(1 << 20) + 40_000).map { UInt8(truncatingIfNeeded: $0 >> 3) }
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
  // Somebody may also share what nobody can hold: a manifest of their own, with the right hash.
  var forged: [UInt8]?
  if input.choice(4) == 0 { forged = manifest(&input) }
  var run = Run(id: forged.map { MediaID(MediaTree.sha256($0).value) } ?? served.manifest.id, manifest: forged)
  run.handle(.started)
  for _ in 0..<400 where !input.isAtEnd && !run.hasEnded { run.step(&input) }
  return 0
}

private func manifest(_ input: inout Input) -> [UInt8] {
  if input.bool() { return input.block(400) + [0] }
  let files = (0...input.choice(3)).map { index in
    MediaManifest.File(
      path: ["\(index)"], byteCount: max(1, input.counter()), root: Hash32(Bytes32(words: (1, 2, 3, 4))))
  }
  return (try? MediaManifest(files: files))?.encoded ?? [1]
}

private struct Run {
  var machine: DownloadMachine
  let manifest: [UInt8]?
  var now = Instant(microseconds: 0)
  var requests: [(peer: PeerID, number: UInt64, request: MediaRequest)] = []
  var hasEnded = false

  init(id: MediaID, manifest: [UInt8]?) {
    machine = DownloadMachine(id: id, tag: 7, seed: 1)
    self.manifest = manifest
  }

  mutating func handle(_ event: DownloadEvent) {
    var events = [event]
    for _ in 0..<1_000 where !events.isEmpty {
      for effect in machine.handle(events.removeFirst(), at: now) { carryOut(effect, &events) }
      precondition(machine.piecesInMemoryCount <= DownloadMachine.piecesInMemoryMax, "few pieces in memory")
      precondition(machine.byteCountInMemory <= DownloadMachine.byteCountInMemoryMax, "few bytes in memory")
    }
    precondition(events.isEmpty, "it comes to rest")
  }

  private mutating func carryOut(_ effect: DownloadEffect, _ events: inout [DownloadEvent]) {
    switch effect {
    case .request(let peer, let number, .block(let id, let file, let index, let count)):
      for block in 0..<count {
        requests.append((peer, number + UInt64(block), .block(id, file: file, index: index + block)))
      }
    case .request(let peer, let number, let request): requests.append((peer, number, request))
    case .cancel(let peer, let number, let count):
      let numbers = number..<number + UInt64(count)
      requests.removeAll { $0.peer == peer && numbers.contains($0.number) }
    case .prepare(let manifest):
      events.append(.prepared(holding: PieceSet(pieceCount: MediaLayout(manifest).pieceCount)))
    case .verify(let check, let bytes): events.append(.pieceVerified(check.piece, isGood: check.accepts(bytes)))
    case .write(let piece, _, let offset, let bytes):
      let end = Int(offset) + bytes.count
      precondition(end <= file.count && file[Int(offset)..<end].elementsEqual(bytes), "what is written was shared")
      events.append(.pieceWritten(piece))
    case .finished:
      precondition(machine.isFinished && machine.served == served, "what is finished is whole")
      hasEnded = true
    case .failed:
      precondition(manifest != nil, "only a manifest that nobody can hold fails a download")
      hasEnded = true
    case .progress, .dropSource, .wake: break
    }
  }

  mutating func step(_ input: inout Input) {
    now = now + .milliseconds(Int(input.byte()))
    let peer = PeerID(Bytes32(words: (UInt64(input.choice(3)), 0, 0, 0)))
    switch input.choice(8) {
    case 0: handle(.sourceFound(peer))
    case 1 where input.choice(4) == 0: handle(.sourceLost(peer))
    case 2:
      now = now + .milliseconds(Int(input.byte()) * 40)
      handle(.woke)
    case 3: lie(peer, &input)
    default: for _ in 0...input.choice(32) { answer(&input) }
    }
  }

  /// As somebody honest would.
  private mutating func answer(_ input: inout Input) {
    guard !requests.isEmpty else { return }
    let asked = requests.remove(at: input.choice(requests.count))
    handle(.replied(asked.peer, asked.number, reply(to: asked.request)))
  }

  private func reply(to request: MediaRequest) -> MediaReply {
    if let manifest {
      guard case .manifest(_, let offset) = request, offset < manifest.count else { return .holdingAll }
      return .manifestPart(
        total: manifest.count, offset: offset, manifest[offset..<min(manifest.count, offset + 24_000)])
    }
    switch served.answer(request) {
    case .reply(let reply): return reply
    case .read(_, let offset, let byteCount): return .block(file[Int(offset)..<Int(offset) + byteCount])
    }
  }

  /// An answer that the decoder takes, to whatever was asked or to nothing.
  private mutating func lie(_ peer: PeerID, _ input: inout Input) {
    var number = input.counter()
    var author = peer
    if input.choice(8) > 0, !requests.isEmpty {
      let asked = requests.remove(at: input.choice(requests.count))
      (author, number) = (asked.peer, asked.number)
      if input.bool() {
        if case .block(var bytes) = reply(to: asked.request) {
          bytes[bytes.startIndex] ^= input.byte()
          return handle(.replied(author, number, .block(bytes)))
        }
      }
    }
    var bytes = ByteWriter()
    bytes.uint8(0x81 + UInt8(input.choice(6)))
    bytes.varint(number & ((1 << 62) - 1))
    bytes.raw(input.block(17_000))
    guard case .reply(_, let reply) = try? MediaMessage(decoding: bytes.bytes) else { return }
    handle(.replied(author, number, reply))
  }
}
