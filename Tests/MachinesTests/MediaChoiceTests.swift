import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

/// Downloads of some files of many, and of many small ones.
@Suite struct MediaChoiceTests {
  private static let rate = 12_500_000

  private func run(_ files: SwarmFiles, _ options: DownloadOptions) -> SwarmSimulation {
    var swarm = SwarmSimulation(files, seed: 3)
    swarm.add(2, rate: Self.rate, nil)
    swarm.add(rate: Self.rate, options)
    swarm.run(atMost: .seconds(60))
    return swarm
  }

  /// Neither pieces nor piece hashes of the others.
  @Test func onlyWhatIsWantedIsAskedFor() {
    let mib = Limit.mediaPieceByteCount
    let files = SwarmFiles([3 * mib, 2 * mib + 5, 0, 100, 5 * mib])
    let swarm = run(files, DownloadOptions(manifest: files.served.manifest, selected: [1, 3]))
    #expect(swarm.isGood)
    #expect(swarm.nodes[2].written.sorted() == [3, 4, 5, 6])
    #expect(swarm.nodes[2].receivedBlockByteCount == 2 * mib + 105)
    let hashes = swarm.nodes[2].download!.pieceHashes!
    #expect(hashes.map(\.count) == [0, 3, 0, 1, 0])
    let nothing = run(files, DownloadOptions(manifest: files.served.manifest, selected: [2]))
    #expect(nothing.isGood && nothing.nodes[2].written.isEmpty)
  }

  /// What readers get comes from the beginning, from several sources and however late one of them is.
  @Test func inOrderNothingComesMoreThanAWindowBeforeItsTime() {
    let files = SwarmFiles([40 * Limit.mediaPieceByteCount])
    let swarm = run(files, DownloadOptions(isInOrder: true))
    #expect(swarm.isGood)
    var next = 0
    var written = Set<Int>()
    for piece in swarm.nodes[2].written {
      #expect(piece < next + 16, "piece \(piece) while \(next) is missing")
      written.insert(piece)
      while written.contains(next) { next += 1 }
    }
    #expect(next == 40)
  }

  /// The same bytes in one file and in ten thousand.
  @Test func tenThousandSmallFilesTakeLittleLongerThanOneBigOne() {
    let many = run(SwarmFiles([Int](repeating: 3_000, count: 10_000)), DownloadOptions())
    let one = run(SwarmFiles([30_000_000]), DownloadOptions())
    let (slow, fast) = (many.wireTimes, one.wireTimes)
    #expect(many.isGood && one.isGood && many.nodes[2].written.count == 10_000)
    #expect(slow < fast * 1.25, "\(slow) and \(fast) of the wire's time")
  }
}
