import CEdit
import Glibc
import Parley

/// A line at the bottom of a terminal that can be edited while other lines appear above it. By libedit. One thread
/// only.
final class LineEditor {
  private var editor: OpaquePointer?
  private var past: OpaquePointer?
  private let name: String
  private var prompt: UnsafeMutablePointer<CChar>
  private var promptColumnCount: Int
  /// Of the line up to the cursor.
  private let offer: (String) -> Completions.Offer
  private var filter = PasteFilter()
  /// Read and not given to libedit yet.
  private var waiting: [UInt8] = []
  /// Waits until a byte can be read; false when the reading must end.
  private let waitForInput: () -> Bool
  private var isReading = false

  /// Nil when libedit cannot use this terminal. `waitForInput` may call `show` meanwhile.
  init?(prompt: String, offer: @escaping (String) -> Completions.Offer, waitForInput: @escaping () -> Bool) {
    name = prompt
    self.prompt = strdup(prompt)
    promptColumnCount = prompt.columnCount
    self.offer = offer
    self.waitForInput = waitForInput
    Self.chooseUTF8()
    editor = parley_edit_open(
      "parley", Unmanaged.passUnretained(self).toOpaque(),
      { LineEditor.of($0).prompt },
      { editor, character in LineEditor.of(editor).read(character!) },
      { editor, _ in LineEditor.of(editor).complete() })
    guard let editor else { return nil }
    past = parley_edit_history(editor, 500)
    WindowSize.watch()
    Terminal.raw(PasteFilter.on)
  }

  deinit {
    if editor != nil { Terminal.raw(PasteFilter.off) }
    if let editor { parley_edit_close(editor) }
    if let past { parley_edit_forget(past) }
    free(prompt)
  }

  private static func of(_ editor: OpaquePointer?) -> LineEditor {
    Unmanaged<LineEditor>.fromOpaque(parley_edit_context(editor)).takeUnretainedValue()
  }

  /// libedit counts columns by the locale; without one of UTF-8 it would show escapes for every letter beyond ASCII.
  private static func chooseUTF8() {
    setlocale(LC_CTYPE, "")
    if let name = nl_langinfo(Int32(CODESET)), String(cString: name) == "UTF-8" { return }
    setlocale(LC_CTYPE, "C.UTF-8")
  }

  /// Nil at the end of input or when `waitForInput` says so.
  func readLine() -> String? {
    guard let editor else { return nil }
    isReading = true
    defer { isReading = false }
    var count: Int32 = 0
    parley_edit_resize(editor)
    guard let line = parley_edit_read(editor, &count), count > 0 else { return nil }
    let text = String(cString: line)
    let content = text.hasSuffix("\n") ? String(text.dropLast()) : text
    if let past, !content.isEmpty { parley_edit_remember(past, content) }
    return content
  }

  /// Shows lines above the one being written.
  func show(_ lines: [String]) {
    guard !lines.isEmpty else { return }
    let text = lines.joined(separator: "\n").split(separator: "\n", omittingEmptySubsequences: false)
      .joined(separator: "\r\n")
    guard isReading, let editor else { return Terminal.raw(text + "\r\n") }
    Terminal.raw(goingToStart(of: editor) + text + "\r\n")
    parley_edit_redraw(editor)
  }

  /// Shows something in front of the prompt, or nothing, such as how far a download is.
  func show(note: String?) {
    let text = (note.map { $0 + " " } ?? "") + name
    guard text != String(cString: prompt) else { return }
    let start = isReading ? editor.map(goingToStart) : nil
    free(prompt)
    prompt = strdup(text)
    promptColumnCount = text.columnCount
    guard let start, let editor else { return }
    Terminal.raw(start)
    parley_edit_redraw(editor)
  }

  /// The window has another size: the line is wrapped anew.
  func followSize() {
    WindowSize.seen()
    guard isReading, let editor else { return }
    Terminal.raw(goingToStart(of: editor))
    parley_edit_resize(editor)
    parley_edit_redraw(editor)
  }

  /// Takes away the line that was just entered, so that it can be shown as everybody sees it.
  func eraseEntered(_ line: String) {
    let width = max(1, Terminal.columnCount)
    let rowCount = (promptColumnCount + line.columnCount) / width + 1
    Terminal.raw("\r\u{1B}[\(rowCount)A\u{1B}[J")
  }

  private func goingToStart(of editor: OpaquePointer) -> String {
    guard let info = parley_edit_line(editor) else { return "\r\u{1B}[J" }
    let byteCount = max(0, info.pointee.cursor - info.pointee.buffer)
    let bytes = UnsafeRawBufferPointer(start: info.pointee.buffer, count: byteCount)
    let before = String(decoding: bytes, as: UTF8.self)
    let rowCount = (promptColumnCount + before.columnCount) / max(1, Terminal.columnCount)
    return (rowCount > 0 ? "\r\u{1B}[\(rowCount)A" : "\r") + "\u{1B}[J"
  }

  // MARK: Called by libedit

  private func read(_ character: UnsafeMutablePointer<wchar_t>) -> Int32 {
    guard let first = nextByte() else { return 0 }
    let length =
      switch first {
      case 0xC2...0xDF: 2
      case 0xE0...0xEF: 3
      case 0xF0...0xF4: 4
      default: 1
      }
    var bytes = [first]
    while bytes.count < length {
      guard let next = nextByte() else { return 0 }
      bytes.append(next)
    }
    let scalar = String(validating: bytes, as: UTF8.self)?.unicodeScalars.first ?? "\u{FFFD}"
    character.pointee = wchar_t(scalar.value)
    return 1
  }

  private func nextByte() -> UInt8? {
    while waiting.isEmpty {
      // The Escape key alone begins like the mark of a paste; what terminals send at once comes at once.
      if filter.isHolding, !Self.isReady(milliseconds: 30) {
        waiting = filter.flush()
        continue
      }
      guard waitForInput() else { return nil }
      var byte: UInt8 = 0
      let count = Glibc.read(STDIN_FILENO, &byte, 1)
      if count == 1 {
        waiting = filter.take(byte)
        continue
      }
      guard count < 0, errno == EINTR || errno == EAGAIN else { return nil }
    }
    return waiting.removeFirst()
  }

  private static func isReady(milliseconds: Int32) -> Bool {
    var entry = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, milliseconds) > 0
  }

  private func complete() -> UInt8 {
    guard let editor, let info = parley_edit_line(editor) else { return UInt8(CC_ERROR) }
    let byteCount = max(0, info.pointee.cursor - info.pointee.buffer)
    let typed = String(
      decoding: UnsafeRawBufferPointer(start: info.pointee.buffer, count: byteCount), as: UTF8.self)
    guard !typed.isEmpty else { return UInt8(CC_REFRESH_BEEP) }
    let offer = offer(typed)
    let matching = Set(offer.words).filter { $0.hasPrefix(offer.begun) }.sorted()
    guard let common = Self.commonPrefix(of: matching) else { return UInt8(CC_REFRESH_BEEP) }
    let isWhole = matching.count == 1 && !common.hasSuffix("/")
    let rest = common.dropFirst(offer.begun.count) + (isWhole ? " " : "")
    if rest.isEmpty {
      let shown = matching.prefix(Self.shownMax).joined(separator: "  ")
      show([matching.count > Self.shownMax ? "\(shown)  … (\(matching.count) in all)" : shown])
      return UInt8(CC_NORM)
    }
    return parley_edit_insert(editor, String(rest)) == 0 ? UInt8(CC_REFRESH) : UInt8(CC_ERROR)
  }

  private static let shownMax = 60

  static func commonPrefix(of texts: [String]) -> String? {
    guard var common = texts.first else { return nil }
    for text in texts { common = String(zip(common, text).prefix { $0 == $1 }.map(\.0)) }
    return common
  }
}
