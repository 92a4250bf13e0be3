import ParleyActors
import ParleyVocabulary
import ParleyWire

/// Where a message is forwarded to.
public enum ForwardTarget: Sendable, Equatable {
  case channel(ChannelName)
  /// As for `Node.tell`.
  case peer(String)
}

extension Node {
  /// Messages forwarded at once.
  public static let forwardedCountRange = 1...300

  /// Says again, in another channel or to one person, what was said in a channel: body and ext, under this node's name
  /// and a new ID. Media is not sent again: a message that announces some can be forwarded to where it is announced
  /// already, and anywhere else only where this node has the file, which it then serves there too. Smaller pictures
  /// that are not here are left out. Nothing is sent unless all can be.
  ///
  /// Throws `.noSuchMessage`, `.mediaNotHeld`, `.notForwarded` for kinds that this version does not know, `.badField`
  /// for none or more than 300 messages, and what sending throws.
  public func forward(
    _ messages: [MessageReference], from name: ChannelName, to target: ForwardTarget
  ) async throws(ParleyError) -> [MessageID] {
    guard Self.forwardedCountRange.contains(messages.count) else {
      throw .badField(
        "messages", value: "\(messages.count)", allowed: "1 to \(Self.forwardedCountRange.upperBound) messages")
    }
    let engine = try await running()
    let source = try channel(name)
    let found = try await self.messages(messages, in: source)
    let places = try await places(target, engine)
    var drafts: [MessageDraft] = []
    for message in found {
      guard let schema = try? SchemaMessage(decoding: message.json.utf8, author: nil),
        !(schema.content is UnknownKind)
      else { throw .notForwarded(message.id, kind: message.kindName) }
      let content = try await served(schema.content, from: source, in: places, engine)
      drafts.append(MessageDraft(content, MessageOptions(ext: schema.options.ext)))
    }
    var ids: [MessageID] = []
    for draft in drafts {
      switch target {
      case .channel(let name): ids.append(try await send(draft, to: name).id)
      case .peer(let peer):
        switch try await tell(draft, peer: peer) {
        case .delivered(let id), .queued(let id): ids.append(id)
        }
      }
    }
    return ids
  }

  /// The channels in which those who get it may fetch what it announces.
  private func places(_ target: ForwardTarget, _ engine: Engine) async throws(ParleyError) -> [Hub.Joined] {
    switch target {
    case .channel(let name): return [try channel(name)]
    case .peer(let text):
      let peer = try await find(text, engine).peer
      var places: [Hub.Joined] = []
      for joined in hub.channels
      where await engine.membership.members(of: joined.id).contains(where: { $0.peer == peer }) {
        places.append(joined)
      }
      return places
    }
  }

  /// What it announces is served in these channels from now on.
  func served(
    _ content: any MessageKind, from source: Hub.Joined, in places: [Hub.Joined], _ engine: Engine
  ) async throws(ParleyError) -> any MessageKind {
    let whole: MediaID
    var picture: PictureMembers?
    switch content {
    case let photo as PhotoKind: (whole, picture) = (photo.file.id, photo.picture)
    case let video as VideoKind: (whole, picture) = (video.file.id, video.picture)
    case let voice as VoiceKind: whole = voice.file.id
    case let file as FileKind: whole = file.file.id
    case let combine as CombineKind: whole = combine.media
    default: return content
    }
    let others = places.filter { $0.id != source.id }
    // Where it was announced others have it.
    guard !others.isEmpty || places.isEmpty else { return content }
    guard !others.isEmpty, try await serve(whole, as: content.type, in: others, engine) else {
      throw .mediaNotHeld(whole)
    }
    if content is CombineKind { try await serveParts(of: whole, in: others, engine) }
    guard let picture else { return content }
    func small(_ id: MediaID?, _ kind: PreviewName) async throws(ParleyError) -> MediaID? {
      guard let id, try await serve(id, as: kind.rawValue, in: others, engine) else { return nil }
      return id
    }
    let left = PictureMembers(
      width: picture.width, height: picture.height, isOriginal: picture.isOriginal, isGIF: picture.isGIF,
      big: try await small(picture.big, .big), thumbnail: try await small(picture.thumbnail, .thumbnail))
    switch content {
    case let photo as PhotoKind: return PhotoKind(file: photo.file, picture: left)
    case let video as VideoKind: return VideoKind(file: video.file, duration: video.duration, picture: left)
    default: return content
    }
  }

  /// False when it is not here.
  private func serve(
    _ id: MediaID, as kind: String, in places: [Hub.Joined], _ engine: Engine
  ) async throws(ParleyError) -> Bool {
    guard let file = await engine.media.heldFile(id) else { return false }
    for joined in places {
      try await keep(file, in: joined, kind: kind, engine)
      await engine.media.hold(file, in: joined.id)
    }
    return true
  }

  /// Of a bundle held here, what there is of what its messages announce. The rest comes from those who have it.
  private func serveParts(of id: MediaID, in places: [Hub.Joined], _ engine: Engine) async throws(ParleyError) {
    var rest = [id]
    var seen: Set<MediaID> = []
    while let id = rest.popLast(), seen.count < Self.partsMax {
      guard seen.insert(id).inserted, let bytes = try? await data(of: id, byteCountMax: MessageBundle.byteCountMax),
        let bundle = try? MessageBundle(decoding: bytes, levels: MessageBundle.levelRange.upperBound)
      else { continue }
      for message in bundle.messages {
        for (media, kind) in message.content.allMedia { _ = try await serve(media, as: kind, in: places, engine) }
        if let inner = message.content as? CombineKind { rest.append(inner.media) }
      }
    }
  }

  /// Bundles in bundles that are looked through.
  private static let partsMax = 300
}

extension MessageKind {
  /// What it announces, and as what it is kept.
  var allMedia: [(id: MediaID, kind: String)] {
    func all(_ file: MediaMembers, _ picture: PictureMembers?) -> [(MediaID, String)] {
      let small = [(picture?.big, PreviewName.big), (picture?.thumbnail, .thumbnail)]
      return [(file.id, type)] + small.compactMap { id, name in id.map { ($0, name.rawValue) } }
    }
    switch self {
    case let photo as PhotoKind: return all(photo.file, photo.picture)
    case let video as VideoKind: return all(video.file, video.picture)
    case let voice as VoiceKind: return all(voice.file, nil)
    case let file as FileKind: return all(file.file, nil)
    case let combine as CombineKind: return [(combine.media, type)]
    default: return []
    }
  }
}
