import Glibc
import Parley
import ParleyLocalAPI

enum MediaCommands {
  static func share(_ invocation: Invocation) throws {
    let name = try ChannelCommands.channelName(invocation)
    let kind = invocation.value("--as")
    let isOriginal = invocation.has("--original")
    if let kind, !["photo", "video", "voice", "file"].contains(kind) {
      throw Failure.usage("--as must be photo, video, voice or file")
    }
    if isOriginal, kind != nil, kind != "photo" { throw Failure.usage("--original is for photos") }
    let more = try shareMembers(invocation, kind: kind)
    let client = try NodeClient(home: Home.path(invocation))
    var firstFailure: Failure?
    for file in invocation.all("FILE") {
      do throws(Failure) {
        let media = try share(file, as: kind, isOriginal: isOriginal, more, in: name, client)
        for note in media["notes"]?.array ?? [] {
          Terminal.note("parley: \(file.escapedLine): \(note.string?.escapedLine ?? "")")
        }
        // Nothing but IDs on standard output, one a line: ID=$(parley share …).
        Terminal.line(invocation.isJSON ? media.text : media["media_id"]?.string?.escapedLine ?? "")
        if !invocation.isJSON, Terminal.isErrorTerminal, invocation.all("FILE").count > 1 {
          Terminal.note("  " + (media["file_name"]?.string?.escapedLine ?? ""))
        }
        if !invocation.isJSON { for line in notes(onSkipped: media) { Terminal.note(line) } }
      } catch {
        if error == .interrupted || error.status == .unavailable { throw error }
        // The other files can still be shared.
        if firstFailure != nil { Terminal.note("parley: \(firstFailure!.message)") }
        firstFailure = error
      }
    }
    if let firstFailure { throw firstFailure }
  }

  /// What is said of the file, and beside it.
  static func shareMembers(_ invocation: Invocation, kind: String?) throws(Failure) -> [JSON.Field] {
    var members: [JSON.Field] = []
    if let seconds: Int64 = try invocation.number("--duration", in: 0...Int64(Int32.max)) {
      guard kind == "voice" || kind == "video" else { throw .usage("--duration goes with --as voice or --as video") }
      members.append(.init("duration", .integer(seconds)))
    }
    if let path = invocation.value("--thumbnail") {
      guard kind == "video" else { throw .usage("--thumbnail goes with --as video") }
      members.append(.init("thumbnail", .string(Home.absolute(path))))
    }
    if let ext = try MessageCommands.ext(invocation) { members.append(.init("ext", ext)) }
    return members
  }

  /// Shows how far the reading is, where standard error is a terminal and nobody else writes to it.
  static func share(
    _ file: String, as kind: String?, isOriginal: Bool = false, _ more: [JSON.Field] = [], in name: String,
    _ client: NodeClient, isShowingProgress: Bool = true
  ) throws(Failure) -> JSON {
    var body: [JSON.Field] = [.init("path", .string(Home.absolute(file)))]
    if let kind { body.append(.init("as", .string(kind))) }
    if isOriginal { body.append(.init("original", .bool(true))) }
    body += more
    guard isShowingProgress else { return try client.call("POST", ["channels", name, "media"], body: .object(body)) }
    body.append(.init("progress", .bool(true)))
    let bar = ProgressBar()
    defer { bar.clear() }
    let last = try client.stream("POST", ["channels", name, "media"], body: .object(body)) { event in
      if event.type == "progress" { bar.show(event.data) }
      return event.type == "shared" || event.type == "failed"
    }
    guard let last else {
      throw Failure(.unavailable, "the node ended while it read \(file.escapedLine): share it again once it runs")
    }
    guard last.type == "shared" else { throw Failure(problem: last.data) }
    return last.data
  }

  /// What of a folder was left out, a line each.
  static func notes(onSkipped media: JSON) -> [String] {
    let count = media["skipped_count"]?.integer ?? 0
    let skipped = media["skipped"]?.array ?? []
    let lines = skipped.map {
      "left out: \($0["path"]?.string?.escapedLine ?? "?"): \($0["reason"]?.string?.escapedLine ?? "?")"
    }
    return count > skipped.count ? lines + ["left out: \(Int(count) - skipped.count) more"] : lines
  }

  static func unshare(_ invocation: Invocation) throws {
    let id = invocation["MEDIA_ID"]
    let answer = try NodeClient(home: Home.path(invocation)).call("DELETE", ["media", id])
    Terminal.line(invocation.isJSON ? answer.text : "No longer shared from here.")
  }

  static func media(_ invocation: Invocation) throws {
    let name = try ChannelCommands.channelName(invocation)
    let media = try NodeClient(home: Home.path(invocation)).call("GET", ["channels", name, "media"]).array ?? []
    if media.isEmpty, !invocation.isJSON { Terminal.note("Nothing was shared in \(name.escapedLine) yet.") }
    for item in media { Terminal.line(invocation.isJSON ? item.text : line(ofMedia: item)) }
  }

  static func line(ofMedia item: JSON) -> String {
    let size = item["size"]?.number.map(Presenter.byteCount) ?? "size unknown"
    let holders = item["holders"]?.integer ?? 0
    let sender = item["sender"]
    let from =
      "\(sender?["display_name"]?.string?.escapedLine ?? "?") "
      + Presenter.fingerprint(ofPeer: sender?["sender_id"]?.string)
    let held = holders == 0 ? "nobody present has it" : "\(holders) \(holders == 1 ? "has" : "have") it"
    let here = item["held_here"]?.bool == true ? ", you too" : ""
    return "\(item["media_id"]?.string?.escapedLine ?? "?")  \(item["file_name"]?.string?.escapedLine ?? "?")  "
      + "\(size)  from \(from)  \(held)\(here)"
  }

  static func files(_ invocation: Invocation) throws {
    let contents = try NodeClient(home: Home.path(invocation)).call("GET", ["media", invocation["MEDIA_ID"]])
    for file in contents["files"]?.array ?? [] {
      Terminal.line(invocation.isJSON ? file.text : line(ofFile: file))
    }
  }

  static func line(ofFile file: JSON) -> String {
    let size = file["size"]?.number.map(Presenter.byteCount) ?? "?"
    return Help.padded("", to: 9 - size.count) + size + (file["executable"]?.bool == true ? " * " : "   ")
      + (file["path"]?.string?.escapedLine ?? "?")
  }

  static func download(_ invocation: Invocation) throws {
    let range = try invocation.value("--range").map(DownloadCommands.range)
    let client = try NodeClient(home: Home.path(invocation))
    let id = invocation["MEDIA_ID"]
    let output = invocation.value("--output")
    if output == "-" {
      guard !invocation.has("--only") else {
        throw Failure.usage("--only gives a folder, which needs a place on the disk")
      }
      return try DownloadCommands.stream(id, range: range, to: STDOUT_FILENO, named: "standard output", client)
    }
    if let range {
      guard let output, !isFolder(output) else { throw Failure.usage("--range needs -o FILE or -o -") }
      try DownloadCommands.save(id, range: range, to: output, replacing: invocation.has("--force"), client)
      return Terminal.line(
        invocation.isJSON
          ? (["event": "finished", "path": .string(Home.absolute(output))] as JSON).text
          : Home.absolute(output).escapedLine)
    }
    var target: [JSON.Field]
    if let output, !isFolder(output) {
      target = [.init("path", .string(Home.absolute(output))), .init("replace", .bool(invocation.has("--force")))]
    } else {
      guard !invocation.has("--force") else { throw Failure.usage("--force needs -o FILE, the file to replace") }
      target = [.init("folder", .string(Home.absolute(output ?? ".")))]
    }
    if invocation.has("--only") {
      target.append(.init("only", .array(invocation.values("--only").map { .string($0) })))
    }
    if invocation.has("--executable") { target.append(.init("executable", .bool(true))) }
    let path = try download(id, to: target, client, isJSON: invocation.isJSON)
    if !invocation.isJSON { Terminal.line(path.escapedLine) }
  }

  /// As `cp` does: an existing folder takes the file under its own name.
  private static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Returns the path it is at.
  private static func download(
    _ id: String, to target: [JSON.Field], _ client: NodeClient, isJSON: Bool
  ) throws(Failure) -> String {
    let bar = ProgressBar()
    var number: Int64 = 0
    defer { bar.clear() }
    let last = try client.stream("POST", ["downloads"], body: .object([.init("media_id", .string(id))] + target)) {
      event in
      if isJSON {
        Terminal.line(JSON.object([.init("event", .string(event.type))] + (event.data.members ?? [])).text)
      } else if event.type == "progress" {
        bar.show(event.data)
      } else if event.type == "paused" {
        bar.clear()
        Terminal.note("Paused; it goes on with parley downloads resume \(number).")
      } else if event.type == "started" {
        number = event.data["download_id"]?.integer ?? 0
      }
      return event.type == "finished" || event.type == "failed"
    }
    guard let last else {
      throw Failure(.unavailable, "the node ended during the download: what was received is kept; try again")
    }
    guard last.type == "finished", let path = last.data["path"]?.string else { throw Failure(problem: last.data) }
    return path
  }
}
