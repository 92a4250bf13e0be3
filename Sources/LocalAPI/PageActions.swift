import Glibc
import Parley

/// What the page asks for besides what the command line does.
extension Router {
  /// The address that lets a browser in; null when no page is served.
  func page() -> Reply { .json(["address": pageAddress.map { .string($0) } ?? .null]) }

  func peerMessages(_ peer: String, _ request: Request) async throws -> Reply {
    let limit = try Self.limit(request, max: Self.historyCountMax)
    let messages = try await node.messages(with: peer, before: try Self.before(request), limit: limit)
    return .json(.array(messages.map { JSON($0) }))
  }

  static func before(_ request: Request) throws(Problem) -> UInt64? {
    guard let text = request.query.first(where: { $0.name == "before" })?.value else { return nil }
    guard let cursor = UInt64(text) else { throw .badRequest("before must be a message's cursor, a number") }
    return cursor
  }

  /// Shares a file that comes as the body.
  func upload(_ name: String, _ request: Request) async throws -> Reply {
    guard let upload = request.upload else { throw Problem.badRequest("the body must be the file's bytes") }
    let channel: ChannelName
    let options: ShareOptions
    do {
      channel = try ChannelName(name)
      options = try Self.uploadOptions(request)
    } catch {
      upload.discard()
      throw error
    }
    let path = try upload.finish()
    do {
      let shared = try await node.share(path: path, options, in: channel) { _ in }
      upload.mark(shared.media.id)
      return .json(JSON(shared), status: 201)
    } catch {
      upload.remove()
      throw error
    }
  }

  private static func uploadOptions(_ request: Request) throws -> ShareOptions {
    func value(_ name: String) -> String? { request.query.first { $0.name == name }?.value }
    var options = ShareOptions(as: try kind(value("as")))
    if let text = value("duration") {
      guard let seconds = Int(text) else { throw Problem.badRequest("\"duration\" must be whole seconds") }
      options.seconds = seconds
    }
    return options
  }

  static func kind(_ text: String?) throws(Problem) -> ShareKind? {
    guard let text else { return nil }
    guard let kind = ["photo": ShareKind.photo, "video": .video, "voice": .voice, "file": .file][text] else {
      throw .badRequest("\"as\" must be \"photo\", \"video\", \"voice\" or \"file\"")
    }
    return kind
  }

  /// Made when it is not there; what else is wrong with it the download says.
  static func made(folder: String) -> String {
    mkdir(folder, 0o755)
    return folder
  }

  /// Begins a download that nobody has to watch: it is in the list, and goes on when the client is gone.
  func downloadDetached(_ id: MediaID, to target: DownloadTarget, _ choice: DownloadChoice) async throws -> Reply {
    let (download, events) = try await node.download(id, to: target, choice)
    return .jsonThen(["media_id": .string(id.text), "download_id": .count(download.value)], status: 202) {
      // Letting go of the events would pause it.
      for await _ in events {}
    }
  }
}
