import Glibc
import ParleyVocabulary
import Synchronization

@testable import ParleyStore

/// A directory of the test's own, removed with everything in it.
final class Folder {
  let path: String

  init() {
    var template = Array("/tmp/parley-store-XXXXXX".utf8CString)
    precondition(mkdtemp(&template) != nil, "tests need a writable /tmp")
    path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  deinit {
    chmod(path, 0o700)
    for name in names { unlink(path + "/" + name) }
    rmdir(path)
  }

  var store: String { path + "/store.sqlite" }

  var names: [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }
}

func contents(_ path: String) -> [UInt8] {
  guard let file = fopen(path, "r") else { return [] }
  defer { fclose(file) }
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 65_536)
  while true {
    let count = fread(&buffer, 1, buffer.count, file)
    if count == 0 { return bytes }
    bytes += buffer.prefix(count)
  }
}

func write(_ bytes: some Collection<UInt8>, to path: String) {
  let file = fopen(path, "w")!
  let bytes = Array(bytes)
  precondition(fwrite(bytes, 1, bytes.count, file) == bytes.count, "tests need room in /tmp")
  fclose(file)
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers for the same seed.
struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}

/// Clocks that stand still until they are set, in milliseconds.
final class TestClocks: Sendable {
  static let day: Int64 = 24 * 3_600 * 1_000
  private let times: Mutex<(wall: Int64, boot: Int64)>

  init(wall: Int64, boot: Int64 = 100) { times = Mutex((wall, boot)) }

  var clocks: StoreClocks {
    StoreClocks(wall: { self.times.withLock { $0.wall } }, boot: { self.times.withLock { $0.boot } })
  }

  /// As time passes: both go on.
  func pass(days: Int64 = 0, milliseconds: Int64 = 0) {
    times.withLock {
      $0.wall += days * Self.day + milliseconds
      $0.boot += days * Self.day + milliseconds
    }
  }

  /// As somebody sets the clock.
  func set(wall: Int64) { times.withLock { $0.wall = wall } }
  /// As the machine starts anew.
  func restartMachine() { times.withLock { $0.boot = 3 } }
}

func key32(_ number: UInt8) -> Bytes32 { Bytes32([number] + [UInt8](repeating: 7, count: 30) + [number])! }
func peer(_ number: UInt8) -> PeerID { PeerID(key32(number)) }
func channel(_ number: UInt8) -> ChannelID { ChannelID(key32(number)) }
func media(_ number: UInt8) -> MediaID { MediaID(key32(number)) }
func message(_ text: String) -> MessageID { MessageID(text)! }

func entry(
  _ number: UInt64, author: UInt8 = 1, log: UInt64 = 9, lamport: UInt64? = nil, hidden: Bool = false,
  kept: Bool = false,
  in place: ChannelID = channel(1), bytes: [UInt8]? = nil
) -> StoredEntry {
  StoredEntry(
    channel: place, key: LogKey(author: peer(author), log: Instance(log)), number: number, lamport: lamport ?? number,
    isHidden: hidden || kept, isKept: kept, bytes: bytes ?? Array("entry \(number)".utf8))
}

/// A message of a channel that is no entry.
func local(
  _ id: String, author: UInt8 = 2, lamport: UInt64 = 1, in place: ChannelID = channel(1), json: [UInt8]? = nil
) -> StoredLocalMessage {
  StoredLocalMessage(
    channel: place, author: peer(author), id: message(id), lamport: lamport, kind: 3,
    json: json ?? Array("local \(id)".utf8))
}

func share(_ id: UInt8, in place: UInt8, path: String = "/home/ana/Bild é.jpg", byteCount: UInt64 = 5) -> StoredShare {
  StoredShare(
    id: media(id), channel: channel(place), path: path, byteCount: byteCount, modifiedNanoseconds: -3, inode: .max,
    kind: "photo", manifest: [1, 2, id], pieceHashes: [UInt8](repeating: id, count: 64))
}

func download(_ id: UInt8, in place: UInt8, bitmap: [UInt8] = [0], replacing: Bool = false) -> StoredDownload {
  StoredDownload(
    id: media(id), channel: channel(place), targetPath: "/tmp/ziel", partPath: "/tmp/.ziel.part", manifest: [],
    pieceHashes: [UInt8](repeating: 1, count: 32), bitmap: bitmap, replacing: replacing)
}

extension Store {
  @discardableResult
  func add(_ entries: [StoredEntry]) throws -> [UInt64] { try apply(entries.map { .entry($0) }) }
}
