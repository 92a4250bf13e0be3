import ParleyActors
import ParleyVocabulary
import ParleyWire

extension Node {
  /// Puts 1 to 300 messages of a channel together and says them as one, in the same channel or in another: texts,
  /// photos, voice, videos, files, custom and combined ones, these at most 10 levels deep. The file with them is kept
  /// in the home and served from there. In another channel what they announce must be here, and is served there too.
  ///
  /// Throws `.noSuchMessage`, `.mediaNotHeld`, `.badField` (messages: how many, or of which kind; levels), and what
  /// sending throws. Nothing is sent then.
  public func combine(
    _ messages: [MessageReference], from name: ChannelName, to target: ChannelName? = nil, _ draft: CombineDraft
  ) async throws(ParleyError) -> SendReceipt {
    guard CombineDraft.countRange.contains(messages.count) else {
      throw .badField(
        "messages", value: "\(messages.count)", allowed: "1 to \(CombineDraft.countRange.upperBound) messages")
    }
    let engine = try await running()
    let (source, joined) = (try channel(name), try channel(target ?? name))
    var found: [SchemaMessage] = []
    for message in try await self.messages(messages, in: source) {
      guard let schema = try? SchemaMessage(decoding: message.json.utf8, author: nil) else {
        throw .notForwarded(message.id, kind: message.kindName)
      }
      found.append(schema)
    }
    // Before anything is served.
    _ = try Self.bundle(found)
    for index in found.indices {
      let content = try await served(found[index].content, from: source, in: [joined], engine)
      found[index] = SchemaMessage(
        sender: found[index].sender, messageID: found[index].messageID, timestamp: found[index].timestamp,
        content: content, options: MessageOptions(ext: found[index].options.ext, replyTo: found[index].options.replyTo))
    }
    let bundle = try Self.bundle(found)
    let path = try await engine.pictures.write(bundle.encoded)
    let held: HeldFile
    do throws(ParleyError) {
      held = try await hold(
        path, named: MessageBundle.fileName, MessageBundle.mimeType, CombineKind.type, joined, engine)
    } catch {
      await engine.pictures.discard([path])
      throw error
    }
    let content = CombineKind(
      title: draft.title, summary: draft.summary, compatibleText: draft.compatibleText, media: held.manifest.id,
      byteCount: UInt64(bundle.encoded.count), levels: bundle.levels)
    let receipt = try await say(content, in: joined.name, waiting: nil)
    await trimPictures(keeping: [held.manifest.id], engine)
    return receipt
  }

  private static func bundle(_ messages: [SchemaMessage]) throws(ParleyError) -> MessageBundle {
    do throws(WireError) { return try MessageBundle(messages) } catch {
      switch error {
      case .tooMany("levels", let count, let countMax):
        throw .badField("levels", value: "\(count)", allowed: "1 to \(countMax)")
      default:
        let kinds = messages.map(\.content.type)
        let combined = [TextKind.type, PhotoKind.type, VoiceKind.type, VideoKind.type, FileKind.type, CustomKind.type]
        let other = kinds.first { !combined.contains($0) && $0 != CombineKind.type }
        throw .badField(
          "messages", value: other ?? "\(error)", allowed: "\(combined.joined(separator: ", ")) and combine")
      }
    }
  }

  /// The messages of a combined one, by the media ID of its bundle: from a message of a channel, or from one unpacked
  /// before. What they announce can be downloaded from then on. Throws `.noSuchMedia` when no combined message known
  /// here names it, `.badBundle` when it is not what a bundle must be, and what `data(of:byteCountMax:)` throws.
  public func unpack(_ id: MediaID) async throws(ParleyError) -> [UnpackedMessage] {
    guard let (joined, message, combined) = hub.combined(id) else { throw .noSuchMedia(id) }
    let bytes = try await data(of: id, byteCountMax: MessageBundle.byteCountMax)
    let bundle: MessageBundle
    do throws(WireError) { bundle = try MessageBundle(decoding: bytes, levels: combined.levels) } catch {
      throw .badBundle(id, reason: error.description)
    }
    let messages = bundle.messages.compactMap { UnpackedMessage($0) }
    hub.noteUnpacked(messages, of: message, in: joined.id)
    return messages
  }
}
