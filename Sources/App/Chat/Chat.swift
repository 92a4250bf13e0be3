import Glibc
import Parley
import ParleyLocalAPI

/// `parley chat`: a conversation at the terminal, or line by line from a script.
final class Chat {
  let client: NodeClient
  let channel: String
  let ownID: String
  private let events: Transfer
  private var downloads: [Transfer] = []
  /// How far they are.
  private var progress: [ObjectIdentifier: JSON] = [:]
  private let ownName: String
  /// Whether it rings when somebody speaks of us.
  private let rings: Bool
  private var isMentioned = false
  private var editor: LineEditor?
  private var isEnding = false
  private var whyEnded: Failure?
  /// That the user writes is being said; and when it was last.
  private var typing: Transfer?
  private var typedAt: timespec?
  /// Sender and ID of messages that are on the screen already and will come, or came, as events too.
  private var shown: Set<String> = []

  static func run(_ invocation: Invocation) throws {
    let channel = try ChannelCommands.channelName(invocation)
    let client = try NodeClient(home: Home.path(invocation))
    var started: pid_t?
    do throws(Failure) { _ = try client.call("GET", ["id"]) } catch {
      guard error.status == .unavailable else { throw error }
      started = try NodeStarter.start(client, passphrase: try homePassphrase(client.home))
      Terminal.note("Started your node. Its log: \((client.home + "/node.log").escapedLine)")
    }
    try joinIfNeeded(channel, client, invocation)
    let me = try client.call("GET", ["id"])
    let chat = Chat(client: client, channel: channel, me: me, rings: !invocation.has("--no-bell"))
    try chat.converse()
    guard started != nil else { return }
    if invocation.has("--down") {
      _ = try client.call("POST", ["down"])
    } else {
      Terminal.note("Your node goes on running, so you stay in \(channel.escapedLine). To end it: parley down")
    }
  }

  private static func joinIfNeeded(
    _ channel: String, _ client: NodeClient, _ invocation: Invocation
  ) throws(Failure) {
    let joined = try client.call("GET", ["channels"]).array ?? []
    guard !joined.contains(where: { $0["name"]?.string == channel }) else { return }
    var secret: [JSON.Field]
    if Terminal.isInputTerminal, !invocation.has("--open"), !invocation.has("--passphrase-file") {
      let question = "Passphrase of \(channel.escapedLine) (empty: an open channel, which anyone may read): "
      guard let bytes = try Terminal.askSecret(question) else { throw .interrupted }
      secret = [.init("open", true)]
      if !bytes.isEmpty {
        let passphrase = try ChannelCommands.checked(passphrase: bytes, what: "the passphrase")
        secret = [.init("passphrase", .string(passphrase))]
      }
    } else {
      secret = try ChannelCommands.secret(for: channel, invocation)
    }
    let answer = try ChannelCommands.join(channel, secret: secret, client)
    for line in ChannelCommands.lines(ofJoin: answer) { Terminal.note(line) }
  }

  private static func homePassphrase(_ home: String) throws(Failure) -> [UInt8]? {
    let isSet: Bool
    do { isSet = try HomePassphrase.isSet(home: home) } catch { throw Failure(error) }
    guard isSet else { return nil }
    guard Terminal.isInputTerminal, let bytes = try Terminal.askSecret("Passphrase of \(home.escapedLine): ") else {
      throw .usage("the node's home has a passphrase: start it with parley up --passphrase-file F")
    }
    return bytes
  }

  private init(client: NodeClient, channel: String, me: JSON, rings: Bool) {
    self.client = client
    self.channel = channel
    self.rings = rings
    ownID = me["peer_id"]?.string ?? ""
    ownName = me["display_name"]?.string ?? ""
    events = client.start("GET", ["events"])
  }

  private func converse() throws(Failure) {
    defer { client.end(events) }
    // What is said from here on comes as an event, so nothing falls between history and events.
    while true {
      client.advance()
      if events.isListening { break }
      if events.outcome != nil { try client.check(events) }
      if Interruption.count > 0 { throw .interrupted }
      _ = client.wait(for: [Interruption.descriptor])
    }
    try showHistory(count: 20)
    try showAnnouncement()
    if Terminal.isInputTerminal, Terminal.isOutputTerminal {
      show(Presenter.members(try members()) + [Terminal.dim("/help lists what you can do; Ctrl-D leaves.")])
      // A cycle, which the end of this call breaks.
      editor = LineEditor(
        prompt: "\(channel.escapedLine)> ", offer: { self.offer($0) }, waitForInput: { self.waitForInput() })
    }
    defer { editor = nil }
    while !isEnding {
      guard let line = editor != nil ? editor!.readLine() : readPlainLine() else { break }
      editor?.eraseEntered(line)
      let text = editor == nil ? line : PasteFilter.text(of: line)
      do throws(Failure) { try carryOut(ChatCommand(text)) } catch {
        if error == .interrupted { break }
        guard editor != nil else { throw error }
        show([error.message])
      }
    }
    if editor != nil { Terminal.raw("\n") }
    if let whyEnded { throw whyEnded }
  }

  func show(_ lines: [String]) {
    if let editor { editor.show(lines) } else { for line in lines { Terminal.line(line) } }
  }

  private func members() throws(Failure) -> [JSON] {
    try client.call("GET", ["channels", channel, "members"]).array ?? []
  }

  private func showHistory(count: Int) throws(Failure) {
    let messages = try client.call("GET", ["channels", channel, "messages"], query: [("limit", "\(count)")])
    for message in messages.array ?? [] { shown.insert(key(of: message)) }
    show((messages.array ?? []).map { Presenter.message($0, isChannelShown: false) })
  }

  private func showAnnouncement() throws(Failure) {
    let answer = try client.call("GET", ["channels", channel, "announcement"])
    guard answer["body"]?.string != nil,
      let line = Presenter.event(StreamEvent(type: "announcement", data: answer), isChannelShown: false)
    else { return }
    show([line])
  }

  /// Oldest first, so that the newest stands above the line that is written next.
  private func showFound(_ words: String) throws(Failure) {
    let messages = try client.call(
      "GET", ["search"], query: [("text", words), ("channel", channel), ("limit", "20")])
    let lines = (messages.array ?? []).reversed().map { Presenter.message($0, isChannelShown: false) }
    show(lines.isEmpty ? [Terminal.dim("· nothing found")] : lines)
  }

  private func key(of message: JSON) -> String {
    "\(message["sender"]?["sender_id"]?.string ?? "") \(message["message_id"]?.string ?? "")"
  }

  // MARK: What comes in

  /// Shows what happens until there is something to read. False when the chat is over.
  private func waitForInput() -> Bool {
    while true {
      advance()
      if isEnding || Interruption.count > 0 { return false }
      let descriptors = [STDIN_FILENO, Interruption.descriptor, WindowSize.descriptor].filter { $0 >= 0 }
      let ready = client.wait(for: descriptors)
      if ready.contains(WindowSize.descriptor) { editor?.followSize() }
      if ready.contains(STDIN_FILENO) {
        if editor != nil { sayTyping() }
        return true
      }
    }
  }

  /// At most every three seconds; whether it arrives is no matter.
  private func sayTyping() {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    if let typedAt, now.tv_sec < typedAt.tv_sec + 3 { return }
    guard typing == nil || typing?.outcome != nil else { return }
    typedAt = now
    typing = client.start("PUT", ["channels", channel, "typing"], body: ["typing": true])
  }

  private func advance() {
    client.advance()
    show(events.takeEvents().compactMap(line(for:)))
    if isMentioned {
      isMentioned = false
      if editor != nil, rings { Terminal.raw("\u{07}") }
    }
    for download in downloads {
      for event in download.takeEvents() { show(event, of: download) }
      if download.outcome != nil {
        downloads.removeAll { $0 === download }
        do throws(Failure) { try client.check(download) } catch { show([error.message]) }
      }
    }
    if events.outcome != nil, !isEnding {
      isEnding = true
      whyEnded = Failure(.unavailable, "the node has ended: start it again with parley chat \(channel.escapedLine)")
    }
  }

  private func line(for event: StreamEvent) -> String? {
    let place = event.data["channel"]?.string
    if let place, place != channel { return nil }
    switch event.type {
    case "message":
      guard shown.insert(key(of: event.data)).inserted else { return nil }
      let line = Presenter.message(event.data, isChannelShown: false)
      guard speaksOfMe(event.data) else { return line }
      isMentioned = true
      return Terminal.loud("» ") + line
    case "member": return event.data["self"]?.bool == true ? nil : Presenter.event(event, isChannelShown: false)
    case "delivered": return nil
    case "left":
      isEnding = true
      return Presenter.event(event, isChannelShown: false)
    default: return Presenter.event(event, isChannelShown: false)
    }
  }

  private func show(_ event: StreamEvent, of download: Transfer) {
    switch event.type {
    case "started", "progress":
      if event.type == "progress" { progress[ObjectIdentifier(download)] = event.data }
      showProgress()
    case "finished":
      progress[ObjectIdentifier(download)] = nil
      showProgress()
      show(["downloaded: \(event.data["path"]?.string?.escapedLine ?? "")"])
    case "failed":
      progress[ObjectIdentifier(download)] = nil
      showProgress()
      show([Failure(problem: event.data).message])
    default: break
    }
  }

  private func readPlainLine() -> String? {
    var line: [UInt8] = []
    while waitForInput() {
      var byte: UInt8 = 0
      guard read(STDIN_FILENO, &byte, 1) == 1 else { break }
      if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
      line.append(byte)
      if line.count > 1_000_000 { break }
    }
    if line.isEmpty { finishDownloads() }
    return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
  }

  /// A script's downloads are not cut off by the end of its input.
  private func finishDownloads() {
    while !downloads.isEmpty, !isEnding, Interruption.count == 0 {
      advance()
      if !downloads.isEmpty { _ = client.wait(for: [Interruption.descriptor]) }
    }
  }

  // MARK: What is asked

  private func carryOut(_ command: ChatCommand) throws(Failure) {
    switch command {
    case .nothing: break
    case .quit: isEnding = true
    case .wrong(let text): show([text])
    case .say(let text): try say(text)
    case .members: show(Presenter.members(try members()))
    case .history(let count): try showHistory(count: count)
    case .search(let words): try showFound(words)
    case .help:
      let width = ChatCommand.entries.map(\.form.count).max() ?? 0
      show(ChatCommand.entries.map { "  \(Help.padded($0.form, to: width))  \($0.meaning)" })
    case .recall, .edit, .react, .reply, .ids: try change(command)
    case .hand(let isUp):
      _ = try client.call("PUT", ["channels", channel, "hand"], body: ["raised": .bool(isUp)])
      show([Terminal.dim(isUp ? "· your hand is up ✋" : "· your hand is down")])
    case .tell(let peer, let text):
      let answer = try client.call("POST", ["peers", peer, "messages"], body: ["body": .string(text)])
      show([
        Terminal.dim("· to \(peer.escapedLine) only, \(MessageCommands.outcome(answer, peer: peer)): ")
          + text.escapedText
      ])
    case .share(let path):
      let media = try MediaCommands.share(
        Self.withHome(path), as: nil, in: channel, client, isShowingProgress: false)
      show([
        Terminal.dim("· shared \(media["file_name"]?.string?.escapedLine ?? "") \(media["media_id"]?.string ?? "")")
      ])
      show(MediaCommands.notes(onSkipped: media).map { Terminal.dim("· " + $0) })
    case .media:
      let media = try client.call("GET", ["channels", channel, "media"]).array ?? []
      show(media.isEmpty ? ["Nothing was shared here yet."] : media.map(MediaCommands.line(ofMedia:)))
    case .download(let what): try download(what)
    case .organiser(let key): show([try organiser(key)])
    case .token(let file): show([try token(file)])
    case .verify(let peer, let isConfirmed):
      let answer = try client.call(
        isConfirmed ? "POST" : "GET", ["peers", peer, "verification"], body: isConfirmed ? [:] : nil)
      show(PeopleCommands.lines(ofVerification: answer, peer: peer, confirm: "/verify \(peer.escapedLine) confirm"))
    case .block(let peer, let isBlocked):
      let contact = try client.call("PUT", ["peers", peer, "block"], body: ["blocked": .bool(isBlocked)])
      show([Terminal.dim("· " + PeopleCommands.line(ofContact: contact))])
    }
  }

  private func say(_ text: String) throws(Failure) {
    let receipt = try client.call("POST", ["channels", channel, "messages"], body: ["body": .string(text)])
    let id = receipt["message_id"]?.string ?? ""
    guard shown.insert("\(ownID) \(id)").inserted else { return }
    let lines = text.escapedText
    show([Terminal.bold("you") + ": " + lines])
  }

  private func download(_ what: String) throws(Failure) {
    let media = try client.call("GET", ["channels", channel, "media"]).array ?? []
    let matching = media.filter { item in
      item["media_id"]?.string?.hasPrefix(what) == true || item["file_name"]?.string == what
    }
    let ids = Set(matching.compactMap { $0["media_id"]?.string })
    guard let id = ids.first, ids.count == 1 else {
      return show([
        ids.isEmpty
          ? "nothing of that name was shared here: see /media" : "several files match: say more of the ID (/media)"
      ])
    }
    downloads.append(
      client.start(
        "POST", ["downloads"], body: ["media_id": .string(id), "folder": .string(Home.absolute("."))]))
  }

  private func speaksOfMe(_ message: JSON) -> Bool {
    guard message["sender"]?["sender_id"]?.string != ownID, let body = message["body"]?.string else { return false }
    return Mention.isMade(of: ownName, in: body)
  }

  private func offer(_ typed: String) -> Completions.Offer {
    Completions.offer(
      typed,
      names: {
        ((try? members()) ?? []).compactMap { $0["self"]?.bool == true ? nil : $0["display_name"]?.string }
          .filter { $0 == $0.escapedLine && !$0.contains("\"") }
      },
      media: {
        let media = (try? client.call("GET", ["channels", channel, "media"]).array) ?? []
        return media.flatMap { [$0["file_name"]?.string, $0["media_id"]?.string] }.compactMap { $0 }
          .filter { $0 == $0.escapedLine }
      })
  }

  /// All that runs as one.
  private func showProgress() {
    guard let editor else { return }
    let received = progress.values.reduce(0) { $0 + ($1["received"]?.number ?? 0) }
    let size = progress.values.reduce(0) { $0 + ($1["size"]?.number ?? 0) }
    let rate = progress.values.reduce(0) { $0 + ($1["rate"]?.number ?? 0) }
    guard !progress.isEmpty, size > 0 else { return editor.show(note: nil) }
    let left = rate >= 1 && received < size ? ", \(Presenter.duration((size - received) / rate)) left" : ""
    let share = Int(min(1, received / size) * 100)
    editor.show(note: "[\(share)% of \(Presenter.byteCount(size)), \(Presenter.byteCount(rate))/s\(left)]")
  }

  private func organiser(_ key: String) throws(Failure) -> String {
    let answer =
      key.isEmpty
      ? try client.call("GET", ["channels", channel, "organiser"])
      : try client.call(
        "PUT", ["channels", channel, "organiser"],
        body: ["organiser": key == "none" ? .null : .string(try TokenCommands.organiser(key).text)])
    let now = answer["organiser"]?.string?.escapedLine
    return Terminal.dim("· " + (now.map { "login tokens signed by \($0) are asked for" } ?? "no tokens are asked for"))
  }

  /// From a file: what is typed here is kept among the lines to go back to.
  private func token(_ file: String) throws(Failure) -> String {
    var answer: JSON
    if file.isEmpty {
      answer = try client.call("GET", ["token"])
    } else {
      do throws(ParleyError) {
        let token = try LoginToken(try TokenCommands.text(from: Self.withHome(file)))
        answer = ["token": .string(token.text)]
      } catch { throw Failure(error) }
      answer = try client.call("PUT", ["token"], body: answer)
    }
    guard answer["token"]?.string != nil else { return Terminal.dim("· no login token is in use: /token FILE") }
    let (name, end) = (answer["name"]?.string?.escapedLine ?? "?", answer["exp"]?.string?.escapedLine ?? "?")
    return Terminal.dim("· logged in as \(name) until \(end)")
  }

  private static func withHome(_ path: String) -> String {
    guard path.hasPrefix("~/"), let home = getenv("HOME") else { return path }
    return String(cString: home) + path.dropFirst(1)
  }
}
