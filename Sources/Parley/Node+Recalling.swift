import Glibc
import ParleyActors
import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

/// What becomes of the files that a message announced which was taken back: those that no other message announces are
/// not served any more, by nobody who honours it, and what is here of them in the home goes. Files that the user
/// downloaded elsewhere, or shared from elsewhere, are theirs.
extension Node {
  private static let entriesAtOnce = 256

  func dropRecalled(_ engine: Engine) async {
    for await media in hub.recalled.stream {
      for id in media {
        do {
          if try await !isAnnounced(id, engine) { try await drop(id, engine) }
        } catch {
          hub.take(.trouble("what was taken back is still served: \(error)"))
        }
      }
    }
  }

  /// Whether a message that stands announces it, in any channel this node is in.
  private func isAnnounced(_ id: MediaID, _ engine: Engine) async throws -> Bool {
    if hub.announcement(of: id) != nil { return true }
    for joined in hub.channels {
      var next: OrderKey?
      repeat {
        let page = try await engine.store.history(of: joined.id, before: next, limit: Self.entriesAtOnce)
        let mentions = page.entries.flatMap { entry, cursor in
          hub.messages(entry, channel: joined.id, name: joined.name, cursor: cursor)
        }.filter { $0.mediaIDs.contains(id) }
        if try await after(mentions, in: joined, engine).contains(where: { $0.state.recalled == nil }) { return true }
        next = page.next
      } while next != nil
    }
    return false
  }

  private func drop(_ id: MediaID, _ engine: Engine) async throws {
    let path = await engine.media.heldFile(id)?.path
    for download in await engine.media.listDownloads() where download.order.id == id {
      _ = await engine.media.cancelDownload(download.number, keepingPart: false)
    }
    try await engine.store.apply([.unshare(id, nil)])
    _ = await engine.media.release(id)
    hub.forgetFetched(id)
    await engine.pictures.discard([engine.pictures.path(of: id)])
    if let path, path.hasPrefix(settings.home + "/") { unlink(path) }
  }
}

extension Message {
  /// All that it announces: the media, its smaller pictures, the file of combined messages.
  var mediaIDs: [MediaID] { ([media?.id, bundle?.id].compactMap { $0 }) + previews }
}
