import CCurl
import Glibc
import Parley
import ParleyLocalAPI

enum DownloadCommands {
  static func downloads(_ invocation: Invocation) throws {
    let client = try NodeClient(home: Home.path(invocation))
    guard let action = invocation.arguments["pause|resume|cancel"]?.first else {
      if invocation.has("--keep-part") { throw Failure.usage("--keep-part goes with parley downloads cancel ID") }
      return try list(client, isJSON: invocation.isJSON)
    }
    guard let id = invocation.arguments["ID"]?.first else {
      throw Failure.usage("say which: parley downloads \(action.escapedLine) ID; parley downloads lists them")
    }
    guard action == "cancel" || !invocation.has("--keep-part") else {
      throw Failure.usage("--keep-part goes with parley downloads cancel ID")
    }
    let answer: JSON
    let done: String
    switch action {
    case "pause":
      answer = try client.call("POST", ["downloads", id, "pause"])
      done = "Paused; go on with parley downloads resume \(id.escapedLine)."
    case "resume":
      answer = try client.call("POST", ["downloads", id, "resume"])
      done = "It goes on."
    case "cancel":
      let keeps = invocation.has("--keep-part")
      answer = try client.call("DELETE", ["downloads", id], query: keeps ? [("keep_part", "true")] : [])
      done = keeps ? "Cancelled; what was received is kept." : "Cancelled; nothing of it is left."
    default:
      throw Failure.usage("parley downloads can pause, resume or cancel, not \(action.escapedLine)")
    }
    Terminal.line(invocation.isJSON ? answer.text : done)
  }

  private static func list(_ client: NodeClient, isJSON: Bool) throws(Failure) {
    let downloads = try client.call("GET", ["downloads"]).array ?? []
    if downloads.isEmpty, !isJSON { Terminal.note("Nothing is being downloaded: parley download MEDIA_ID") }
    for line in isJSON ? downloads.map(\.text) : table(downloads) { Terminal.line(line) }
  }

  static func table(_ downloads: [JSON]) -> [String] {
    guard !downloads.isEmpty else { return [] }
    var rows = [["ID", "STATE", "DONE", "SIZE", "RATE", "LEFT", "FROM", "NAME"]]
    for item in downloads {
      let size = item["size"]?.number
      let received = item["received"]?.number ?? 0
      let state = item["state"]?.string ?? "?"
      let isRunning = state == "running"
      let done = size.map { $0 > 0 ? "\(Int(min(1, received / $0) * 100))%" : "100%" } ?? Presenter.byteCount(received)
      rows.append([
        "\(item["download_id"]?.integer ?? 0)", state.escapedLine, state == "finished" ? "100%" : done,
        size.map(Presenter.byteCount) ?? "?",
        isRunning ? "\(Presenter.byteCount(item["rate"]?.number ?? 0))/s" : "",
        isRunning ? item["seconds_left"]?.number.map(Presenter.duration) ?? "?" : "",
        isRunning ? "\(item["sources"]?.integer ?? 0)" : "", item["file_name"]?.string?.escapedLine ?? "?",
      ])
    }
    let widths = rows[0].indices.map { column in rows.map { $0[column].columnCount }.max() ?? 0 }
    var lines = rows.map { row in
      zip(row, widths).enumerated().map { index, cell in
        index == row.count - 1 ? cell.0 : Help.padded(cell.0, to: cell.1)
      }.joined(separator: "  ")
    }
    for item in downloads {
      guard let why = item["problem"]?["detail"]?.string?.escapedLine else { continue }
      lines.append("\(item["download_id"]?.integer ?? 0): \(why)")
    }
    return lines
  }

  /// `FROM-TO`, both counted from 0 and included, as in HTTP; `FROM-` to the end, `-COUNT` the last bytes.
  static func range(_ text: String) throws(Failure) -> String {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false).map(String.init)
    let numbers = parts.map { UInt64($0) }
    guard parts.count == 2, !(parts[0].isEmpty && parts[1].isEmpty),
      zip(parts, numbers).allSatisfy({ $0.isEmpty || $1 != nil && !$0.hasPrefix("+") })
    else {
      throw .usage("--range needs FROM-TO, FROM- or -COUNT in bytes, such as 0-1023, not \(text.escapedLine)")
    }
    if let from = numbers[0], let to = numbers[1], from > to {
      throw .usage("--range \(text.escapedLine) ends before it begins")
    }
    if numbers[0] == nil, numbers[1] == 0 { throw .usage("--range -0 is nothing: the last how many bytes?") }
    return text
  }

  /// The bytes in order while they arrive. Nothing that is not verified gets out.
  static func stream(
    _ id: String, range: String?, to descriptor: Int32, named name: String, _ client: NodeClient
  ) throws(Failure) {
    // A reader that goes away is an error of write(2) then, and not the end of this process.
    signal(SIGPIPE, SIG_IGN)
    let bar = ProgressBar()
    var received = 0.0
    var failure: Failure?
    defer { bar.clear() }
    // Where the output goes to a terminal as well the line would get between.
    let showsBar = isatty(descriptor) == 0
    let transfer = client.start("GET", ["media", id, "bytes"], headers: range.map { ["Range: bytes=\($0)"] } ?? []) {
      bytes, size in
      guard Terminal.writeAll(bytes, to: descriptor) else {
        failure = errno == EPIPE ? Failure(.cannotCreate, "") : .system(.cannotCreate, name)
        return false
      }
      received += Double(bytes.count)
      if showsBar, let size { bar.show(["received": .number(received), "size": .number(size)]) }
      return Interruption.count == 0
    }
    defer { client.end(transfer) }
    while transfer.outcome == nil {
      client.advance()
      if transfer.outcome != nil { break }
      if Interruption.count > 0 { throw .interrupted }
      _ = client.wait(for: [Interruption.descriptor])
    }
    if Interruption.count > 0 { throw .interrupted }
    if let failure { throw failure }
    guard transfer.outcome != CURLE_OK, let download = transfer.downloadID else { return try client.check(transfer) }
    // It broke off; the list of downloads knows why.
    let item = try? client.call("GET", ["downloads"]).array?.first { "\($0["download_id"]?.integer ?? 0)" == download }
    if let problem = item?["problem"], problem.members != nil { throw Failure(problem: problem) }
    throw Failure(.unavailable, "the node ended during the transfer: what was given is right, the rest is missing")
  }

  /// A range, into a file that is made for it.
  static func save(
    _ id: String, range: String, to path: String, replacing: Bool, _ client: NodeClient
  ) throws(Failure) {
    let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (replacing ? O_TRUNC : O_EXCL), 0o666)
    guard file >= 0 else {
      if errno == EEXIST {
        throw Failure(
          .cannotCreate,
          "\(path.escapedLine) exists and was left as it is: choose another name, or replace it with --force")
      }
      throw .system(.cannotCreate, path.escapedLine)
    }
    defer { close(file) }
    do throws(Failure) {
      try stream(id, range: range, to: file, named: path.escapedLine, client)
    } catch {
      unlink(path)
      throw error
    }
  }
}
