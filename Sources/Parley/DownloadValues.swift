/// Names one download within a run of the node: for progress, pausing, going on and cancelling.
public struct DownloadID: Hashable, Sendable {
  /// Not reused within a run.
  public let value: UInt64
  public init(_ value: UInt64) { self.value = value }
}

/// Where a download goes. Nothing appears there before it is whole and verified.
public enum DownloadTarget: Sendable, Equatable {
  /// Into this folder, under the sender's name made safe; a name that is taken gets a number.
  case folder(String)
  /// To exactly this path. `replacing` allows an existing file to be replaced.
  case file(String, replacing: Bool)
}

/// How a download goes; `finished` or `failed` is the last.
public enum DownloadEvent: Sendable, Equatable {
  /// Verified and written so far, in bytes, of how many, from how many members at once; bytes a second over the last
  /// five seconds.
  case progress(receivedByteCount: UInt64, byteCount: UInt64, sourceCount: Int, bytesPerSecond: UInt64)
  /// Somebody paused it; `progress` follows when it is resumed.
  case paused
  /// All verified, synced and in place.
  case finished(path: String)
  /// The error says how much is kept.
  case failed(ParleyError)
}

/// What a download is doing.
public enum DownloadState: Sendable, Equatable {
  /// Waits until others have ended.
  case queued
  case running
  /// Until somebody resumes it: paused, left by its reader, or ended with an earlier run of the node.
  case paused
  /// In place under this path.
  case finished(path: String)
  /// The error says how much is kept; `resume` tries again.
  case failed(ParleyError)
}

/// One download as it is at this moment.
public struct DownloadSummary: Sendable, Equatable {
  /// For `pause`, `resume` and `cancel`.
  public let id: DownloadID
  /// What is downloaded.
  public let media: MediaID
  /// As announced: hostile until shown escaped.
  public let fileName: String
  /// The folder or file it goes to; nil when it is read to memory or to a pipe.
  public let target: String?
  /// Bytes in all; nil while unknown. Of a range, those of the range.
  public let byteCount: UInt64?
  /// Bytes verified and written, or taken by the reader.
  public let doneByteCount: UInt64
  /// Over the last five seconds; 0 when it does not run.
  public let bytesPerSecond: UInt64
  /// Members it is fetched from now.
  public let sourceCount: Int
  /// What it is doing.
  public let state: DownloadState

  /// At the rate of the last five seconds; nil when nothing came in them, or the size is unknown.
  public var secondsLeft: UInt64? {
    guard let byteCount, bytesPerSecond > 0, case .running = state else { return nil }
    let left = byteCount - min(doneByteCount, byteCount)
    return left / bytesPerSecond + (left % bytesPerSecond == 0 ? 0 : 1)
  }

  public init(
    id: DownloadID, media: MediaID, fileName: String, target: String?, byteCount: UInt64?, doneByteCount: UInt64,
    bytesPerSecond: UInt64, sourceCount: Int, state: DownloadState
  ) {
    self.id = id
    self.media = media
    self.fileName = fileName
    self.target = target
    self.byteCount = byteCount
    self.doneByteCount = doneByteCount
    self.bytesPerSecond = bytesPerSecond
    self.sourceCount = sourceCount
    self.state = state
  }
}

/// Which bytes of a file are wanted. What lies past its end is left out; a range that begins there is refused.
public enum ByteRange: Sendable, Equatable {
  case all
  case bytes(Range<UInt64>)
  /// To the end.
  case from(UInt64)
  /// The last so many, or all when the file is shorter.
  case last(UInt64)
}

/// The bytes of a file, in order, as they arrive; chunks of at most 1 MiB. To be iterated once. Letting go of it ends
/// the transfer. The iteration throws `.downloadBroken`, `.noSource`, `.cancelled` or `.stopped` when the rest does not
/// come; what was given is right.
public struct MediaBytes: AsyncSequence, Sendable {
  public typealias Element = [UInt8]
  public typealias Failure = ParleyError

  /// As announced.
  public let media: MediaReference
  /// In the list of downloads.
  public let download: DownloadID
  /// Of the whole file.
  public let byteCount: UInt64
  /// What of it comes.
  public let range: Range<UInt64>
  private let source: any MediaByteSource

  package init(
    media: MediaReference, download: DownloadID, byteCount: UInt64, range: Range<UInt64>, source: any MediaByteSource
  ) {
    self.media = media
    self.download = download
    self.byteCount = byteCount
    self.range = range
    self.source = source
  }

  public func makeAsyncIterator() -> Iterator { Iterator(source: source) }

  public struct Iterator: AsyncIteratorProtocol {
    let source: any MediaByteSource
    public mutating func next() async throws(ParleyError) -> [UInt8]? { try await source.next() }
    public mutating func next(isolation actor: isolated (any Actor)?) async throws(ParleyError) -> [UInt8]? {
      try await source.next()
    }
  }
}

/// Where the bytes come from. Letting go of it ends the reading.
package protocol MediaByteSource: Sendable {
  /// Nil at the end.
  func next() async throws(ParleyError) -> [UInt8]?
}
