import Glibc
import ParleyActors
import ParleyDisk
import ParleyHashing
import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire
import Testing

/// Part files of an earlier run: what of them is hashed again before it is believed.
@Suite(.timeLimit(.minutes(1)))
final class ResumedPartTests {
  private static let pieceCount = 10
  private let folder: String
  private let bytes: [UInt8]
  private let hashes: [Hash32]
  private let manifest: MediaManifest

  init() throws {
    var template = Array("/tmp/parley-resumed-XXXXXX".utf8CString)
    folder = template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
    let piece = Limit.mediaPieceByteCount
    let bytes = (0..<Self.pieceCount * piece).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 7 &+ $0 >> 20) }
    hashes = (0..<Self.pieceCount).map { number in
      bytes[number * piece..<(number + 1) * piece].withUnsafeBytes { MediaTree.pieceHash(of: $0, isOnlyPiece: false) }
    }
    let root = MediaTree.root(pieceHashes: hashes, byteCount: UInt64(bytes.count))
    manifest = try MediaManifest(files: [.init(path: ["film"], byteCount: UInt64(bytes.count), root: root)])
    self.bytes = bytes
  }

  deinit {
    unlink(folder + "/film")
    rmdir(folder)
  }

  /// What a run leaves in the folder that was killed: pieces below `written` are there, the store knows those of
  /// `recorded`.
  private func leave(written: Int, recorded: Range<Int>) throws -> (StoredDownload, path: String) {
    let landing = try Landing(
      .folder(folder, SafeFileName(received: "film")), byteCount: UInt64(bytes.count))
    let piece = Limit.mediaPieceByteCount
    for number in 0..<written {
      try landing.write(Array(bytes[number * piece..<(number + 1) * piece]), at: UInt64(number * piece))
    }
    landing.abort(keepingPart: true)
    var holding = PieceSet(pieceCount: Self.pieceCount)
    for number in recorded { holding.insert(number) }
    let path = folder + "/" + landing.partName
    let stored = StoredDownload(
      id: manifest.id, channel: ChannelID(Bytes32(words: (1, 1, 1, 1))), targetPath: folder, partPath: path,
      manifest: manifest.encoded, pieceHashes: hashes.flatMap(\.bytes), bitmap: holding.bytes, replacing: false)
    return (stored, path)
  }

  /// Goes on with it. Returns the bytes hashed, and those known to be there when it went to the network.
  private func resume(_ stored: StoredDownload) async throws -> (hashed: Int, held: Int) {
    let switchboard = Switchboard { _ in }
    let (serve, land) = (Mailbox<DiskMail>(), Mailbox<DiskMail>())
    let (executor, diskExecutor) = (ThreadExecutor(), ThreadExecutor())
    let media = MediaActor(switchboard, serveDisk: serve, landDisk: land, executor: executor) { _ in }
    let disk = DiskActor(executor: diskExecutor)
    let (progress, continuation) = AsyncStream.makeStream(of: DownloadNews.self)
    await media.restore([try #require(KeptDownload(stored))])
    let order = DownloadOrder(
      id: stored.id, channel: stored.channel, target: .folder(folder, SafeFileName(received: "film")), folder: folder,
      kind: "file", likely: []
    ) { news in
      continuation.yield(news)
    }
    async let running: Void = media.run()
    async let landing: Void = disk.run(land, switchboard)
    _ = await media.download(order)
    var held = 0
    for await news in progress {
      if case .progress(let progress) = news { held = Int(progress.doneByteCount) }
      if held > 0 { break }
    }
    switchboard.close()
    await running
    await landing
    let hashed = Int(await disk.recheckedByteCount)
    executor.stop()
    diskExecutor.stop()
    return (hashed, held)
  }

  private static let piece = Limit.mediaPieceByteCount

  /// What was never written is hashed only where the file system does not know that.
  private func expect(_ outcome: (hashed: Int, held: Int), hashed: Int, held: Int) {
    #expect([hashed, hashed + 2].contains(outcome.hashed / Self.piece) && outcome.hashed % Self.piece == 0)
    #expect(outcome.held == held * Self.piece)
  }

  @Test func whatWasRecordedIsNotHashedAgain() async throws {
    let (stored, path) = try leave(written: 8, recorded: 0..<8)
    expect(try await resume(stored), hashed: 0, held: 8)
    // Nor the next time.
    expect(try await resume(stored), hashed: 0, held: 8)
    unlink(path)
  }

  @Test func whatWasWrittenAndNotRecordedIsHashed() async throws {
    let (stored, path) = try leave(written: 8, recorded: 2..<6)
    expect(try await resume(stored), hashed: 4, held: 8)
    unlink(path)
  }

  /// A write of somebody else's, or one of ours that was cut off: all is hashed, and once it is found right believed.
  @Test func aFileThatWasTouchedIsHashedOnce() async throws {
    let (stored, path) = try leave(written: 8, recorded: 0..<8)
    #expect(utimensat(AT_FDCWD, path, nil, 0) == 0)
    expect(try await resume(stored), hashed: 8, held: 8)
    expect(try await resume(stored), hashed: 0, held: 8)
    unlink(path)
  }

  /// What was recorded is not all there: whatever is recorded later, the part is hashed each time.
  @Test func aFileThatWasChangedIsNeverBelievedAgain() async throws {
    let (stored, path) = try leave(written: 8, recorded: 0..<8)
    let file = open(path, O_WRONLY)
    #expect(pwrite(file, [~bytes[5]], 1, 5) == 1)
    close(file)
    expect(try await resume(stored), hashed: 8, held: 7)
    expect(try await resume(stored), hashed: 8, held: 7)
    unlink(path)
  }
}
