import ParleyHashing
import ParleyVocabulary
import ParleyWire

/// The piece hashes of the wanted files, fetched in aligned runs, each verified by itself against the root of its file.
struct HashRuns: Sendable {
  struct Run: Sendable {
    let file: Int
    let first: Int
  }

  private(set) var runs: [Run] = []
  /// To be asked for; the last is the next.
  private(set) var unasked: [Int] = []
  private(set) var asked: [Int: PeerID] = [:]
  /// One list for each file; empty for files that are not wanted, zeros where nothing is known yet.
  private(set) var hashes: [[Hash32]]
  private var missingCount: Int

  /// `known`: all of them, from an earlier run.
  init(_ manifest: MediaManifest, wanted: [Bool], known: [[Hash32]]?, isShuffled: Bool, _ jitter: inout Jitter) {
    let zero = Hash32(Bytes32(words: (0, 0, 0, 0)))
    hashes = []
    hashes.reserveCapacity(manifest.files.count)
    for (file, facts) in manifest.files.enumerated() {
      let count = Int(facts.pieceCount)
      if !wanted[file] || count == 0 {
        hashes.append([])
      } else if count == 1 {
        // The root of a file of one piece is the hash of that piece.
        hashes.append([facts.root])
      } else if let known {
        hashes.append(known[file])
      } else {
        hashes.append([Hash32](repeating: zero, count: count))
        for first in stride(from: 0, to: count, by: MediaTree.runCount(pieceCount: count)) {
          runs.append(Run(file: file, first: first))
        }
      }
    }
    unasked = Array(runs.indices.reversed())
    if isShuffled { unasked.shuffle(using: &jitter) }
    missingCount = runs.count
  }

  var areComplete: Bool { missingCount == 0 }

  mutating func takeNext(for peer: PeerID) -> Int? {
    guard let run = unasked.popLast() else { return nil }
    asked[run] = peer
    return run
  }

  mutating func giveBack(from peer: PeerID) {
    for run in asked.keys.filter({ asked[$0] == peer }).sorted() {
      asked[run] = nil
      unasked.append(run)
    }
  }

  /// How many hashes of pieces belong to the run.
  func count(of run: Int) -> Int {
    let all = hashes[runs[run].file].count
    return min(MediaTree.runCount(pieceCount: all), all - runs[run].first)
  }

  /// False when they do not make the root of the file.
  mutating func put(_ bytes: ArraySlice<UInt8>, of run: Int, root: Hash32) -> Bool {
    let (file, first) = (runs[run].file, runs[run].first)
    let all = stride(from: bytes.startIndex, to: bytes.endIndex, by: 32).map { Hash32(bytes: bytes[$0..<$0 + 32])! }
    let count = count(of: run)
    guard
      MediaTree.accepts(
        Array(all[..<count]), uncles: Array(all[count...]), first: first, pieceCount: hashes[file].count, root: root)
    else { return false }
    hashes[file].replaceSubrange(first..<first + count, with: all[..<count])
    asked[run] = nil
    missingCount -= 1
    return true
  }
}
