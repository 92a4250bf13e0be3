import ParleyActors
import ParleyDisk
import ParleyStore
import ParleyVocabulary
import ParleyWire

/// Photos, videos and voice. What is announced as a photo is the picture's own bytes without what says where it was
/// taken, not a smaller copy: nothing of the picture is lost, a clean file is shared from where it lies, and the
/// big picture is there for those who need less.
extension Node {
  /// Nil when it is to be shared as any file.
  func sharePicture(
    path: String, _ options: ShareOptions, _ said: MessageOptions, in name: ChannelName,
    _ progress: @escaping @Sendable (ShareProgress) -> Void
  ) async throws(ParleyError) -> SharedMedia? {
    let engine = try await running()
    let joined = try channel(name)
    guard let made = try await engine.pictures.look(at: path, options) else { return nil }
    let temporary = [made.cleanPath, made.bigPath, made.thumbnailPath].compactMap { $0 }
    do throws(ParleyError) {
      let shared = try await share(made, path, said, joined, engine, progress)
      // Renamed by now, but for what could not be.
      await engine.pictures.discard(temporary)
      return shared
    } catch {
      await engine.pictures.discard(temporary)
      throw error
    }
  }

  private func share(
    _ made: PictureActor.Made, _ path: String, _ said: MessageOptions, _ joined: Hub.Joined, _ engine: Engine,
    _ progress: @escaping @Sendable (ShareProgress) -> Void
  ) async throws(ParleyError) -> SharedMedia {
    let (whole, wholeName) = try await hold(made, path, joined, engine, progress)
    var small: [PreviewName: MediaID] = [:]
    for (kind, made) in [(PreviewName.thumbnail, made.thumbnailPath), (.big, made.bigPath)] {
      guard let made else { continue }
      let held = try await hold(
        made, named: kind.name(of: wholeName), "image/jpeg", kind.rawValue, joined, engine)
      small[kind] = held.manifest.id
    }
    let file = MediaMembers(
      id: whole.manifest.id, fileName: wholeName, byteCount: whole.facts.byteCount, mimeType: whole.manifest.mimeType)
    let content = Self.content(made, file, big: small[.big], thumbnail: small[.thumbnail])
    _ = try await say(content, said, in: joined.name, waiting: nil)
    await trimPictures(keeping: Set(small.values).union([file.id]), engine)
    let picture: PictureReference? =
      switch content {
      case let photo as PhotoKind: PictureReference(photo.picture)
      case let video as VideoKind: PictureReference(video.picture, duration: video.duration)
      default: nil
      }
    return SharedMedia(
      media: MediaReference(
        id: file.id, fileName: file.fileName, byteCount: file.byteCount, mimeType: file.mimeType, picture: picture),
      fileCount: 1, skippedCount: 0, skipped: [], notes: made.notes)
  }

  private static func content(
    _ made: PictureActor.Made, _ file: MediaMembers, big: MediaID?, thumbnail: MediaID?
  ) -> any MessageKind {
    func number(_ value: Int?) -> UInt32? {
      value.flatMap { (1...Int(PictureMembers.numberMax)).contains($0) ? UInt32($0) : nil }
    }
    let (width, height) = (number(made.width), number(made.height))
    switch made.content {
    case .file: return FileKind(file: file)
    case .voice(let seconds): return VoiceKind(file: file, duration: seconds)
    case .video(let seconds):
      return VideoKind(
        file: file, duration: seconds, picture: PictureMembers(width: width, height: height, thumbnail: thumbnail))
    case .photo(let isOriginal, let isGIF):
      return PhotoKind(
        file: file,
        picture: PictureMembers(
          width: width, height: height, isOriginal: isOriginal, isGIF: isGIF, big: big, thumbnail: thumbnail))
    }
  }

  /// The photo or video itself, from where it lies or, cleaned, from the home.
  private func hold(
    _ made: PictureActor.Made, _ path: String, _ joined: Hub.Joined, _ engine: Engine,
    _ progress: @escaping @Sendable (ShareProgress) -> Void
  ) async throws(ParleyError) -> (HeldFile, fileName: String) {
    let kind =
      switch made.content {
      case .photo: PhotoKind.type
      case .video: VideoKind.type
      case .voice: VoiceKind.type
      case .file: FileKind.type
      }
    if let cleanPath = made.cleanPath {
      let fileName = SharedName(path).text
      return (try await hold(cleanPath, named: fileName, made.mimeType, kind, joined, engine), fileName)
    }
    let (scanned, head) = try await scan(path, engine, progress)
    // What was found clean is what was hashed.
    guard scanned.files.first?.source.facts == made.facts else { throw .sourceChanged(path: path) }
    let manifest: MediaManifest
    do {
      let mimeType = made.mimeType ?? FileKindGuess.mimeType(head: head, name: scanned.name)
      manifest = try scanned.manifest(mimeType: mimeType)
    } catch { throw .fileTrouble(path: path, reason: error.description) }
    let held = HeldFile(scanned, manifest: manifest)
    try await keep(held, in: joined, kind: kind, engine)
    await engine.media.hold(held, in: joined.id)
    return (held, scanned.name)
  }

  /// A file made here, which is renamed to its media ID.
  func hold(
    _ path: String, named name: String, _ mimeType: String?, _ kind: String, _ joined: Hub.Joined, _ engine: Engine
  ) async throws(ParleyError) -> HeldFile {
    let scanned = try await engine.pictures.hashed(path)
    let file = MediaManifest.File(
      path: [name], byteCount: scanned.byteCount, root: scanned.root, isExecutable: false)
    let manifest: MediaManifest
    do { manifest = try MediaManifest(files: [file], mimeType: mimeType) } catch {
      throw .fileTrouble(path: path, reason: error.description)
    }
    let place = try await engine.pictures.name(path, manifest.id)
    let held = HeldFile(
      path: place, facts: scanned.source.facts, manifest: manifest, pieceHashes: scanned.pieceHashes)
    try await keep(held, in: joined, kind: kind, engine)
    await engine.media.hold(held, in: joined.id)
    return held
  }

  // MARK: What is kept

  func trimPictures(keeping kept: Set<MediaID>, _ engine: Engine) async {
    let gone = await engine.pictures.trim(toByteCount: settings.pictures.keptByteCountMax, keeping: kept)
    for id in gone { await forgetPicture(id, engine) }
  }

  /// Ends the serving of previews made here, and of a cleaned photo; their files go.
  func forgetPictures(of id: MediaID, _ engine: Engine) async {
    let previews = hub.announcement(of: id).map { $0.1.sender == peerID ? $0.1.previews : [] } ?? []
    for media in previews { await forgetPicture(media, engine) }
    await engine.pictures.discard([engine.pictures.path(of: id)])
  }

  /// Where it is shared from elsewhere too, as after a download, it stays shared from there.
  private func forgetPicture(_ id: MediaID, _ engine: Engine) async {
    let path = await engine.pictures.path(of: id)
    await engine.pictures.discard([path])
    guard await engine.media.heldFile(id)?.path == path else { return }
    _ = await engine.media.release(id)
    // One that cannot be written down is found missing at the next start.
    try? await engine.store.apply([.unshare(id, nil)])
  }
}

/// The last component of the path, as manifests name it.
private struct SharedName {
  let text: String
  init(_ path: String) {
    let last = path.unicodeScalars.split(separator: "/").last.map(String.init) ?? path
    let isFit = (1...Limit.fileNameByteCountMax).contains(last.utf8.count) && last != "." && last != ".."
    text = isFit && !last.utf8.contains(0) ? last : SafeFileName(received: last).text
  }
}

/// The smaller pictures of a photo or video, as they are kept and named.
enum PreviewName: String {
  case thumbnail, big

  func name(of fileName: String) -> String {
    var stem = fileName
    if let dot = fileName.lastIndex(of: "."), dot != fileName.startIndex { stem = String(fileName[..<dot]) }
    return SafeFileName(received: "\(stem)-\(rawValue).jpg").text
  }
}

extension PictureReference {
  init(_ picture: PictureMembers, duration: UInt32? = nil) {
    self.init(
      width: picture.width.map { Int($0) }, height: picture.height.map { Int($0) }, duration: duration.map { Int($0) },
      isOriginal: picture.isOriginal, isGIF: picture.isGIF, bigID: picture.big, thumbnailID: picture.thumbnail)
  }
}

extension MediaReference {
  init(_ file: MediaMembers, _ picture: PictureMembers? = nil, duration: UInt32? = nil) {
    self.init(
      id: file.id, fileName: file.fileName, byteCount: file.byteCount, mimeType: file.mimeType,
      picture: picture.map { PictureReference($0, duration: duration) })
  }
}

extension Message {
  /// Of the media it announces, or of a smaller picture of that.
  func fileName(of id: MediaID) -> String {
    guard let media = media ?? bundle else { return "" }
    if id == media.picture?.thumbnailID, id != media.id { return PreviewName.thumbnail.name(of: media.fileName) }
    if id == media.picture?.bigID, id != media.id { return PreviewName.big.name(of: media.fileName) }
    return media.fileName
  }
}
