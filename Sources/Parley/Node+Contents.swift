import Glibc
import ParleyActors
import ParleyVocabulary
import ParleyWire

/// What a media ID stands for, before anything of it is downloaded.
public struct MediaContents: Sendable, Equatable {
  public let id: MediaID
  /// Whether it is a folder; else one file.
  public let isFolder: Bool
  /// In bytes, of all files together.
  public let byteCount: UInt64
  /// In the order in which the protocol counts them.
  public let files: [ContainedFile]

  public init(id: MediaID, isFolder: Bool, byteCount: UInt64, files: [ContainedFile]) {
    self.id = id
    self.isFolder = isFolder
    self.byteCount = byteCount
    self.files = files
  }
}

/// A file of a folder, or the only one.
public struct ContainedFile: Sendable, Equatable {
  /// As the sharer's disk spells it, components joined by slashes: hostile until shown escaped. On this disk each
  /// component is made safe.
  public let path: String
  /// In bytes.
  public let byteCount: UInt64
  /// Whether it was executable where it was shared.
  public let isExecutable: Bool

  public init(path: String, byteCount: UInt64, isExecutable: Bool) {
    self.path = path
    self.byteCount = byteCount
    self.isExecutable = isExecutable
  }
}

extension Node {
  /// The files of what a message announces: their names and sizes, fetched from whoever has it and checked against the
  /// media ID; at most 16 MiB. Throws `.noSuchMedia` when no message known here announces it, `.noSource` when nobody
  /// present has it.
  public func contents(of id: MediaID) async throws(ParleyError) -> MediaContents {
    let manifest = try await manifest(of: id)
    return MediaContents(
      id: id, isFolder: manifest.isFolder, byteCount: manifest.byteCount,
      files: manifest.files.map {
        ContainedFile(
          path: $0.path.joined(separator: "/"), byteCount: $0.byteCount, isExecutable: $0.isExecutable)
      })
  }

  func manifest(of id: MediaID) async throws(ParleyError) -> MediaManifest {
    let engine = try await running()
    guard let (joined, message) = hub.announcement(of: id) else { throw .noSuchMedia(id) }
    let present = await engine.membership.presentPeers(in: joined.id)
    let (stream, continuation) = AsyncStream.makeStream(of: Result<MediaManifest, ParleyError>.self)
    var order = DownloadOrder(
      id: id, channel: joined.id, target: .folder("", SafeFileName(received: "")), folder: "",
      kind: message.kindName, likely: present.filter { $0 == message.sender }
    ) { news in
      switch news {
      case .contents(let manifest): continuation.yield(.success(manifest))
      case .failed(let end, let kept, let byteCount):
        continuation.yield(.failure(ParleyError(end, id, kept, byteCount)))
      case .progress: return
      case .finished: break
      }
      continuation.finish()
    }
    order.isForContents = true
    let tag = await engine.media.download(order)
    let media = switchboard.media
    continuation.onTermination = { reason in
      if case .cancelled = reason { media.post(.left(tag)) }
    }
    for await result in stream { return try result.get() }
    throw .cancelled
  }

  /// The files that any of the patterns means, by their place in the manifest. A pattern is a path below the folder, of
  /// a file or of a folder whose files are all meant, in which `*` stands for any characters but a slash, `?` for one
  /// and `[a-z]` for one of these.
  static func selection(
    _ patterns: [String], in manifest: MediaManifest
  ) throws(ParleyError) -> [Int] {
    var selected: Set<Int> = []
    for pattern in patterns {
      var trimmed = pattern
      while trimmed.hasSuffix("/") { trimmed.removeLast() }
      while trimmed.hasPrefix("./") { trimmed.removeFirst(2) }
      let matching = manifest.files.indices.filter { file in
        fnmatch(trimmed, manifest.files[file].path.joined(separator: "/"), Self.matchFlags) == 0
      }
      guard !matching.isEmpty else {
        throw .fileTrouble(path: pattern, reason: "no file in it matches this: see parley files \(manifest.id.text)")
      }
      selected.formUnion(matching)
    }
    return selected.sorted()
  }

  /// FNM_PATHNAME and, by GNU, FNM_LEADING_DIR: a folder stands for what is in it.
  private static let matchFlags: Int32 = 1 << 0 | 1 << 3
}
