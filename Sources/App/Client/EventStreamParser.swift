import ParleyLocalAPI

/// An event that the node sent.
struct StreamEvent: Equatable {
  let type: String
  let data: JSON
}

/// Splits a stream of server-sent events (HTML standard, section 9.2) as bytes arrive in pieces.
struct EventStreamParser {
  private var line: [UInt8] = []
  private var type = ""
  private var data: [UInt8] = []
  /// The stream said that from here on nothing is missed.
  private(set) var isListening = false
  /// The last `id:` of a block that is complete: the cursor to go on after.
  private(set) var lastID: String?
  private var id: String?

  mutating func take(_ bytes: some Sequence<UInt8>) -> [StreamEvent] {
    var events: [StreamEvent] = []
    for byte in bytes {
      guard byte == UInt8(ascii: "\n") else {
        line.append(byte)
        continue
      }
      if let event = endLine() { events.append(event) }
      line.removeAll(keepingCapacity: true)
    }
    return events
  }

  private mutating func endLine() -> StreamEvent? {
    guard !line.isEmpty else {
      defer { (type, data) = ("", []) }
      if let id { lastID = id }
      guard !type.isEmpty, let json = try? JSON(parsing: data) else { return nil }
      return StreamEvent(type: type, data: json)
    }
    let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
    let name = String(decoding: line[..<colon], as: UTF8.self)
    var value = line[min(colon + 1, line.endIndex)...]
    if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
    switch name {
    case "event": type = String(decoding: value, as: UTF8.self)
    case "data": data = Array(value)
    case "id": id = String(decoding: value, as: UTF8.self)
    case "": isListening = isListening || String(decoding: value, as: UTF8.self) == "listening"
    default: break
    }
    return nil
  }
}
