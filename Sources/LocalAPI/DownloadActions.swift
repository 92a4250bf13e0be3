import Parley

/// Downloads and the bytes of media.
extension Router {
  func downloads() async throws -> Reply { .json(.array(try await node.downloads().map { JSON($0) })) }

  func pause(_ text: String) async throws -> Reply {
    let id = try Self.downloadID(text)
    try await node.pause(id)
    return .json(["download_id": .count(id.value)])
  }

  func resume(_ text: String) async throws -> Reply {
    let id = try Self.downloadID(text)
    try await node.resume(id)
    return .json(["download_id": .count(id.value)])
  }

  func cancelDownload(_ text: String, _ request: Request) async throws -> Reply {
    let id = try Self.downloadID(text)
    let keeps = request.query.first { $0.name == "keep_part" }?.value ?? "false"
    guard keeps == "true" || keeps == "false" else { throw Problem.badRequest("keep_part must be true or false") }
    try await node.cancel(id, keepingPart: keeps == "true")
    return .json(["download_id": .count(id.value)])
  }

  /// In order while they arrive. What a browser makes of them must not be a page that acts for this user: a file to
  /// save, of the type that was announced, in a sandbox.
  func bytes(_ text: String, _ request: Request) async throws -> Reply {
    let media = try await node.bytes(of: try mediaID(text), range: ByteRangeHeader.range(request.range))
    var headers = [
      ("Content-Type", Self.contentType(media.media.mimeType)),
      ("Content-Disposition", "attachment; filename*=UTF-8''\(PercentEncoding.encoded(media.media.fileName))"),
      ("X-Content-Type-Options", "nosniff"), ("Content-Security-Policy", "sandbox; default-src 'none'"),
      ("Cache-Control", "no-store"), ("Accept-Ranges", "bytes"), ("Parley-Download", "\(media.download.value)"),
    ]
    let isPart = ByteRangeHeader.range(request.range) != .all
    if isPart {
      headers.append(
        ("Content-Range", "bytes \(media.range.lowerBound)-\(media.range.upperBound - 1)/\(media.byteCount)"))
    }
    let head = EventOutlet.Head(status: isPart ? 206 : 200, byteCount: UInt64(media.range.count), headers: headers)
    return .bytes(head) { outlet in
      do {
        for try await chunk in media {
          guard await outlet.write(chunk) else { return }
        }
      } catch {
        // Cut, so that nobody takes it for whole; GET /v1/downloads says why.
        outlet.close()
      }
    }
  }

  /// Of a picture, sound or film what was announced, if it looks like a type; else bytes.
  static func contentType(_ announced: String?) -> String {
    let unknown = "application/octet-stream"
    guard let announced, announced.utf8.count <= 127 else { return unknown }
    let parts = announced.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count == 2, ["image", "audio", "video"].contains(String(parts[0])), !parts[1].isEmpty,
      parts[1].allSatisfy({
        switch $0 {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"),
          UInt8(ascii: "-"), UInt8(ascii: "."):
          true
        default: false
        }
      })
    else { return unknown }
    return announced
  }

  static func downloadID(_ text: String) throws(Problem) -> DownloadID {
    guard let number = UInt64(text) else {
      throw .badRequest("a download's ID is a number: see parley downloads")
    }
    return DownloadID(number)
  }
}

extension JSON {
  package init(_ download: DownloadSummary) {
    let (state, path, failure): (String, String?, ParleyError?) =
      switch download.state {
      case .queued: ("queued", nil, nil)
      case .running: ("running", nil, nil)
      case .paused: ("paused", nil, nil)
      case .finished(let path): ("finished", path, nil)
      case .failed(let error): ("failed", nil, error)
      }
    self = [
      "download_id": .count(download.id.value), "media_id": .string(download.media.text),
      "file_name": .string(download.fileName), "target": download.target.map { .string($0) } ?? .null,
      "state": .string(state), "size": download.byteCount.map { .count($0) } ?? .null,
      "received": .count(download.doneByteCount), "rate": .count(download.bytesPerSecond),
      "seconds_left": download.secondsLeft.map { .count($0) } ?? .null, "sources": .count(download.sourceCount),
      "path": path.map { .string($0) } ?? .null, "opens": path.map { .bool(Desktop.opens($0)) } ?? .null,
      "problem": failure.map { Problem($0).json } ?? .null,
    ]
  }
}
