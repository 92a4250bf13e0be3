import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

/// What the store is told of an entry that it cannot read itself: what people look for in it, under which keys its
/// messages are found. Reads an entry once for both. For one thread.
final class EntryReader {
  private var last: (cursor: UInt64, entry: Entry?, messages: [(place: Int, message: SchemaMessage)])?

  private func read(_ stored: StoredEntry) -> (entry: Entry?, messages: [(place: Int, message: SchemaMessage)]) {
    if let last, last.cursor == stored.cursor { return (last.entry, last.messages) }
    let entry = try? Entry(decoding: stored.bytes[...])
    let messages = entry.map { $0.isHidden ? [] : Self.messages(of: $0) } ?? []
    last = (stored.cursor, entry, messages)
    return (entry, messages)
  }

  /// Those that are well-formed, with their places.
  static func messages(of entry: Entry) -> [(place: Int, message: SchemaMessage)] {
    entry.items.enumerated().compactMap { place, item in
      guard let body = item.body, let message = try? SchemaMessage(decoding: body, author: entry.key.author),
        KindRegistry.fits(item.kind, message)
      else { return nil }
      return (place, message)
    }
  }

  func texts(_ stored: StoredEntry) -> [(place: Int, text: String)] {
    read(stored).messages.compactMap { place, message in Self.text(message.content).map { (place, $0) } }
  }

  /// What people can look for: texts and the names of files.
  private static func text(_ content: any MessageKind) -> String? {
    switch content {
    case let text as TextKind: return text.body
    case let photo as PhotoKind: return photo.file.fileName
    case let video as VideoKind: return video.file.fileName
    case let file as FileKind: return file.file.fileName
    case let voice as VoiceKind: return voice.file.fileName
    case let combine as CombineKind: return combine.title + "\n" + combine.summary
    case let location as LocationKind:
      let words = [location.buildingName, location.address].compactMap { $0 }
      return words.isEmpty ? nil : words.joined(separator: "\n")
    default: return nil
    }
  }

  func names(_ stored: StoredEntry) -> StoredNames {
    let (entry, messages) = read(stored)
    var names = StoredNames()
    guard let entry else { return names }
    names.acts = StoreActor.storedActs(of: entry)
    names.messages = messages.compactMap { place, message in
      message.messageID.map { (place, MessageKey(sender: entry.key.author, id: $0).digest) }
    }
    return names
  }
}
