import ParleyWire

extension Message.Body {
  init(_ content: any MessageKind) {
    self =
      switch content {
      case let text as TextKind: .text(text.body)
      case let photo as PhotoKind: .photo(MediaReference(photo.file, photo.picture))
      case let video as VideoKind: .video(MediaReference(video.file, video.picture, duration: video.duration))
      case let file as FileKind: .file(MediaReference(file.file))
      case let voice as VoiceKind: .voice(MediaReference(voice.file), seconds: Int(voice.duration))
      case let location as LocationKind: .location(Location(location))
      case let custom as CustomKind: .custom(CustomContent(custom))
      case let combine as CombineKind: .combine(CombinedMessages(combine))
      case let media as RemoteMediaKind: .remote(RemoteMedia(media))
      default: .unknown(kind: content.type)
      }
  }
}
