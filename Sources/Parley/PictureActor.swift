import Glibc
import ParleyActors
import ParleyDisk
import ParleyPictures
import ParleyVocabulary

/// Looks at pictures, videos and voice on a thread of its own, one after the other: what decodes them takes a core and
/// much memory. Keeps what is made of them in a folder, under media IDs.
actor PictureActor {
  private let executor: ThreadExecutor
  private let rules: PreviewRules
  let folder: String
  private var nextNumber = 0

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(executor: ThreadExecutor, settings: PictureSettings, folder: String) {
    self.executor = executor
    rules = settings.rules
    self.folder = folder
  }

  /// What is to be shared for a photo or video. Paths are those of new files in the folder.
  struct Made: Sendable {
    enum Content: Sendable {
      case photo(isOriginal: Bool, isGIF: Bool)
      case video(seconds: UInt32)
      case voice(seconds: UInt32)
      case file
    }
    var content: Content
    var mimeType: String?
    /// Nil: the file itself, as it was when it was looked at.
    var cleanPath: String?
    var facts: FileFacts?
    var width: Int?
    var height: Int?
    var bigPath: String?
    var thumbnailPath: String?
    var notes: [String] = []
  }

  /// Nil: a file like any other. Also when it cannot be opened, which sharing it says better.
  func look(at path: String, _ options: ShareOptions) throws(ParleyError) -> Made? {
    let kind = options.kind
    var status = stat()
    guard kind != .file, stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard file >= 0 else { return nil }
    defer { close(file) }
    guard let before = try? FileFacts(path: path) else { return nil }
    var head = [UInt8](repeating: 0, count: 12)
    head.removeLast(12 - max(0, pread(file, &head, 12, 0)))
    var made: Made
    let format = VideoFormat(head: head)
    switch (kind, PictureFormat(head: head)) {
    case (.voice, _): made = voice(file, SoundFormat(head: head), options)
    case (.video, _), (nil, nil):
      guard kind != nil || format != nil, let film = try video(file, format, options) else { return nil }
      made = film
    case (_, .some): made = try photo(file, path, isOriginal: kind == .originalPhoto)
    default:
      made = Made(content: .photo(isOriginal: kind == .originalPhoto, isGIF: false))
      made.notes = [
        "it has no preview and goes out as it is, with all it may say of its place: it is no JPEG, PNG, GIF or WebP"
      ]
    }
    made.facts = before
    return made
  }

  private func photo(_ file: Int32, _ path: String, isOriginal: Bool) throws(ParleyError) -> Made {
    var source = ByteSource(file: file)
    guard let scan = PictureScan(&source) else { throw .sourceChanged(path: path) }
    var made = Made(content: .photo(isOriginal: isOriginal, isGIF: scan.format == .gif))
    made.mimeType = scan.format.mimeType
    if scan.width > 0, scan.height > 0 { (made.width, made.height) = (scan.width, scan.height) }
    if !scan.isWhole { made.notes.append("the picture is damaged: it may not look as it should") }
    if !isOriginal, !scan.isClean(byteCount: source.byteCount) {
      made.cleanPath = try write { scan.write(from: file, to: $0) }
    }
    let previews = rules.previews(of: scan, file: file)
    made.notes += previews.notes
    keep(&made, big: previews.big, thumbnail: previews.thumbnail)
    return made
  }

  /// Nil: sound alone, which nobody called a video. `format`: nil for what is not known here; it is a video all the
  /// same when it is said how long it is.
  private func video(_ file: Int32, _ format: VideoFormat?, _ options: ShareOptions) throws(ParleyError) -> Made? {
    var facts: VideoFacts?
    var reason = "it is no video known here (MP4, QuickTime, WebM)"
    if let format {
      do throws(ToolError) {
        facts = try rules.facts(ofVideo: format, file: file)
        reason = "the file does not say"
      } catch { reason = error.description }
    }
    if options.kind == nil, let facts, facts.width == nil { return nil }
    guard let seconds = Self.seconds(facts?.seconds, options) else { return Self.shortOfLength("video", reason) }
    var made = Made(content: .video(seconds: seconds))
    (made.width, made.height) = (facts?.width, facts?.height)
    var given: OpenFile?
    if let path = options.thumbnailPath { given = try OpenFile(path) }
    do throws(ToolError) {
      if let given {
        keep(&made, big: nil, thumbnail: try rules.thumbnail(ofPicture: given.descriptor))
      } else if let format, let facts {
        keep(&made, big: nil, thumbnail: try rules.thumbnail(ofVideo: format, facts, file: file))
      } else {
        made.notes.append("no preview: \(reason)")
      }
    } catch {
      made.notes.append("no preview: \(error)")
    }
    return made
  }

  private func voice(_ file: Int32, _ format: SoundFormat?, _ options: ShareOptions) -> Made {
    var found: Double?
    var reason = "it is no sound known here (Ogg, WebM, MP4, MP3, AAC, AMR, FLAC, WAV)"
    if let format {
      do throws(ToolError) {
        found = try rules.seconds(ofSound: format, file: file)
        reason = "the file does not say"
      } catch { reason = error.description }
    }
    guard let seconds = Self.seconds(found, options) else { return Self.shortOfLength("sound", reason) }
    return Made(content: .voice(seconds: seconds), mimeType: format?.mimeType)
  }

  /// What the file says counts; the caller's word where it says nothing.
  private static func seconds(_ found: Double?, _ options: ShareOptions) -> UInt32? {
    if let found, found < Double(Int32.max) { return UInt32(found.rounded()) }
    return options.seconds.flatMap { UInt32(exactly: $0) }
  }

  private static func shortOfLength(_ what: String, _ reason: String) -> Made {
    Made(
      content: .file,
      notes: [
        "it is shared as a file: how long the \(what) is cannot be found out (\(reason)): say it with the share"
      ])
  }

  /// Previews that cannot be kept are no reason not to share.
  private func keep(_ made: inout Made, big: Preview?, thumbnail: Preview?) {
    do throws(ParleyError) {
      if let thumbnail { made.thumbnailPath = try write(thumbnail.bytes) }
      if let big { made.bigPath = try write(big.bytes) }
    } catch {
      made.notes.append("no preview: \(error)")
    }
  }

  // MARK: The folder

  func write(_ bytes: [UInt8]) throws(ParleyError) -> String {
    try write { file in
      var done = 0
      while done < bytes.count {
        let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress! + done, $0.count - done) }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return count == 0 ? EIO : errno }
        done += count
      }
      return 0
    }
  }

  /// A new file, on the disk when this returns: it is announced with its size and time, so that a torn one would count.
  private func write(_ fill: (Int32) -> Int32) throws(ParleyError) -> String {
    mkdir(folder, 0o700)
    nextNumber += 1
    let path = "\(folder)/.new-\(getpid())-\(nextNumber)-\(String(UInt64.random(in: 0...(.max)), radix: 36))"
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw .fileTrouble(path: path, reason: String(cString: strerror(errno))) }
    defer { close(file) }
    var code = fill(file)
    if code == 0, fsync(file) != 0 { code = errno }
    guard code == 0 else {
      unlink(path)
      throw .fileTrouble(path: path, reason: String(cString: strerror(code)))
    }
    return path
  }

  /// Of a file in the folder. Its hashes are not remembered by its name, which it does not keep.
  func hashed(_ path: String) throws(ParleyError) -> ScannedFile {
    let scanned: ScannedShare
    do { scanned = try SharedFile.scan(path) } catch { throw ParleyError(error) }
    guard let file = scanned.files.first else { throw .sourceChanged(path: path) }
    return file
  }

  func discard(_ paths: [String]) { for path in paths { unlink(path) } }

  /// Under the media ID, in place of the same from before.
  func name(_ path: String, _ id: MediaID) throws(ParleyError) -> String {
    let named = "\(folder)/\(id.text)"
    guard rename(path, named) == 0 else { throw .fileTrouble(path: named, reason: String(cString: strerror(errno))) }
    return named
  }

  func path(of id: MediaID) -> String { "\(folder)/\(id.text)" }

  /// Media IDs of what the folder holds, in no order.
  func kept() -> [MediaID] {
    var ids: [MediaID] = []
    guard let entries = opendir(folder) else { return [] }
    defer { closedir(entries) }
    while let entry = readdir(entries) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if let id = MediaID(text: name) { ids.append(id) }
    }
    return ids
  }

  /// Removes what was used longest ago (read, or shared again) until the rest fits, and what was left half-made an hour
  /// ago or more. Returns what is gone.
  func trim(toByteCount byteCountMax: Int, count countMax: Int = .max, keeping kept: Set<MediaID>) -> [MediaID] {
    var files: [(id: MediaID, byteCount: Int, used: Int)] = []
    guard let entries = opendir(folder) else { return [] }
    defer { closedir(entries) }
    while let entry = readdir(entries) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      var status = stat()
      guard lstat("\(folder)/\(name)", &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
      if let id = MediaID(text: name) {
        files.append((id, Int(status.st_size), max(status.st_atim.nanoseconds, status.st_mtim.nanoseconds)))
      } else if name.hasPrefix(".new-"), time(nil) - status.st_mtim.tv_sec > 3_600 {
        unlink("\(folder)/\(name)")
      }
    }
    var byteCount = files.reduce(0) { $0 + $1.byteCount }
    var gone: [MediaID] = []
    for file in files.sorted(by: { $0.used < $1.used })
    where (byteCount > byteCountMax || files.count - gone.count > countMax) && !kept.contains(file.id) {
      unlink(path(of: file.id))
      byteCount -= file.byteCount
      gone.append(file.id)
    }
    return gone
  }
}

/// Closed with the last reference to it.
private final class OpenFile {
  let descriptor: Int32

  init(_ path: String) throws(ParleyError) {
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else {
      if errno == ENOENT { throw .noSuchFile(path: path) }
      throw .fileTrouble(path: path, reason: String(cString: strerror(errno)))
    }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }
}

extension timespec {
  fileprivate var nanoseconds: Int { tv_sec &* 1_000_000_000 &+ tv_nsec }
}
