import Glibc
import ParleyActors
import ParleyDisk
import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

extension Node: NodeServing {
  /// Stops serving in every channel; the file itself stays where it is. Throws `.noSuchMedia` when it is not shared
  /// from here, and `.profileDamaged` when that cannot be written down.
  public func unshare(_ id: MediaID) async throws(ParleyError) {
    let engine = try await running()
    let isKnown: Bool
    do {
      isKnown = try await engine.store.isShared(id)
      if isKnown { try await engine.store.apply([.unshare(id, nil)]) }
    } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
    // One whose file has changed is not held any more, and can be unshared all the same.
    let isHeld = await engine.media.release(id)
    await forgetPictures(of: id, engine)
    guard isKnown || isHeld else { throw .noSuchMedia(id) }
  }

  /// What messages of this channel announce, oldest first, and who present has it: members have a third of a second to
  /// answer.
  public func media(of name: ChannelName) async throws(ParleyError) -> [MediaSummary] {
    let engine = try await running()
    let joined = try channel(name)
    let announced = hub.announcements(in: joined.id)
    let ids = announced.compactMap { $0.media?.id }
    hub.forgetHolders(of: ids)
    await engine.media.askHolders(joined.id, ids)
    if !ids.isEmpty { try? await Task.sleep(nanoseconds: 330_000_000) }
    var summaries: [MediaSummary] = []
    for message in announced {
      guard let media = message.media else { continue }
      let isHeld = await engine.media.heldFile(media.id) != nil
      summaries.append(
        MediaSummary(
          media: media, kind: message.kindName, sender: message.sender, senderName: message.senderName,
          holderCount: hub.holders(of: media.id).count + (isHeld ? 1 : 0), isHeldHere: isHeld))
    }
    return summaries
  }
}

extension ParleyError {
  init(_ error: DiskError) {
    switch error {
    case .noSuchFile(let path): self = .noSuchFile(path: path)
    case .notARegularFile(let path, _): self = .notAFile(path: path)
    case .exists(let path): self = .alreadyExists(path: path)
    case .noSpace(let path, let need, let have):
      self = .noSpace(path: path, needByteCount: need, haveByteCount: have)
    case .changed(let path): self = .sourceChanged(path: path)
    case .noFiles(let path, _), .tooManyFiles(let path, _, _): self = .fileTrouble(path: path, reason: error.reason)
    case .stopped: self = .cancelled
    case .notAFolder(let path): self = .fileTrouble(path: path, reason: "it is not a folder")
    case .notPermitted(let path, let reason): self = .fileTrouble(path: path, reason: "not permitted: \(reason)")
    case .tooLarge(let path, let byteCount, let byteCountMax):
      self = .fileTrouble(path: path, reason: "it has \(byteCount) bytes, at most \(byteCountMax) can be shared")
    case .failed(let path, let operation, let reason):
      self = .fileTrouble(path: path, reason: "\(operation): \(reason)")
    }
  }
}
