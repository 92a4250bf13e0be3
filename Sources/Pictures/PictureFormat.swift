/// The formats that are read here and handed to a program that decodes them. All others, above all those that refer to
/// other files (SVG, PDF), never are: what is not in this list has no preview.
package enum PictureFormat: String, Sendable {
  case jpeg, png, gif, webp

  /// By the first 12 bytes, never by the name.
  package init?(head: some Collection<UInt8>) {
    let head = Array(head.prefix(12))
    if head.starts(with: [0xFF, 0xD8, 0xFF]) {
      self = .jpeg
    } else if head.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
      self = .png
    } else if head.starts(with: Array("GIF87a".utf8)) || head.starts(with: Array("GIF89a".utf8)) {
      self = .gif
    } else if head.count == 12, head.starts(with: Array("RIFF".utf8)), Array(head[8...]) == Array("WEBP".utf8) {
      self = .webp
    } else {
      return nil
    }
  }

  package var mimeType: String { "image/\(rawValue)" }
  package var fileEnding: String { self == .jpeg ? "jpg" : rawValue }
}

/// Files with recorded sound of which it can be found out how long they are; the demuxer that reads each and no other.
package enum SoundFormat: String, Sendable {
  case ogg, wav, mp3, flac, aac, amr, mov, matroska

  /// By the first 12 bytes, never by the name.
  package init?(head: some Collection<UInt8>) {
    let head = Array(head.prefix(12))
    if head.starts(with: Array("OggS".utf8)) {
      self = .ogg
    } else if head.count == 12, head.starts(with: Array("RIFF".utf8)), Array(head[8...]) == Array("WAVE".utf8) {
      self = .wav
    } else if head.starts(with: Array("fLaC".utf8)) {
      self = .flac
    } else if head.starts(with: Array("#!AMR".utf8)) {
      self = .amr
    } else if head.starts(with: Array("ID3".utf8)) {
      self = .mp3
    } else if let format = VideoFormat(head: head) {
      self = format == .mov ? .mov : .matroska
    } else if head.count > 1, head[0] == 0xFF, head[1] & 0xE0 == 0xE0 {
      // Eleven bits of a frame's start; of ADTS twelve, with a layer of 0 (ISO/IEC 11172-3, 13818-7).
      self = head[1] & 0xF6 == 0xF0 ? .aac : .mp3
    } else {
      return nil
    }
  }

  /// As players know it: of containers for film as well, that of sound in them.
  package var mimeType: String {
    switch self {
    case .mp3: "audio/mpeg"
    case .mov: "audio/mp4"
    case .matroska: "audio/webm"
    case .ogg, .wav, .flac, .aac, .amr: "audio/\(rawValue)"
    }
  }
}

/// Files with moving pictures of which a frame can be shown; the demuxer that reads each and no other.
package enum VideoFormat: String, Sendable {
  case mov, matroska

  package init?(head: some Collection<UInt8>) {
    let head = Array(head.prefix(12))
    // Not the still pictures that use the same boxes (HEIF, AVIF).
    let stills = ["heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1", "avif", "avis"]
    if head.count == 12, Array(head[4..<8]) == Array("ftyp".utf8),
      !stills.contains(String(decoding: head[8...], as: UTF8.self))
    {
      self = .mov
    } else if head.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) {
      self = .matroska
    } else {
      return nil
    }
  }
}
