import ParleyHashing
import ParleyVocabulary
import Testing

@Suite struct MediaTreeRunTests {
  private static func hashes(_ count: Int) -> [Hash32] {
    (0..<count).map { Hash32(Bytes32(words: (UInt64($0), 1, 2, 3))) }
  }

  @Test(arguments: [2, 3, 7, 511, 512, 513, 1_024, 1_025, 2_600])
  func eachRunProvesItselfAndNoOther(_ count: Int) {
    let hashes = Self.hashes(count)
    let root = MediaTree.root(pieceHashes: hashes, byteCount: UInt64(count) << 20)
    let width = MediaTree.runCount(pieceCount: count)
    let runRoots = MediaTree.runRoots(pieceHashes: hashes)
    #expect(runRoots.count == (count + width - 1) / width)
    for first in stride(from: 0, to: count, by: width) {
      var run = Array(hashes[first..<min(first + width, count)])
      var uncles = MediaTree.uncles(of: first / width, runRoots: runRoots, pieceCount: count)
      #expect(uncles.count == MediaTree.uncleCount(pieceCount: count))
      func isAccepted(_ first: Int) -> Bool {
        MediaTree.accepts(run, uncles: uncles, first: first, pieceCount: count, root: root)
      }
      #expect(isAccepted(first))
      if count > width { #expect(isAccepted(first == 0 ? width : 0) == false, "another place") }
      #expect(isAccepted(first + 1) == false)
      run.swapAt(0, run.count - 1)
      #expect(isAccepted(first) == (run.count == 1))
      run.swapAt(0, run.count - 1)
      guard !uncles.isEmpty else { continue }
      uncles[0] = root
      #expect(isAccepted(first) == false, "a wrong uncle")
      uncles = []
      #expect(isAccepted(first) == false, "none at all")
    }
  }
}
