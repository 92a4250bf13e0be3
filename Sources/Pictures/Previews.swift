import Glibc
import ParleyVocabulary

/// How previews are made.
package struct PreviewRules: Sendable {
  /// Pixels of the short side, at most.
  package var bigSideMax = 720
  package var thumbnailSideMax = 170
  /// Above 0, at most 1.
  package var quality = 0.6
  package var pictureTool = ConfinedTool("vipsthumbnail")
  package var videoTool = ConfinedTool("ffmpeg")
  package var videoFactsTool = ConfinedTool("ffprobe")
  package var limits = ConfinedTool.Limits()
  package init() {}
}

/// A JPEG without metadata.
package struct Preview: Equatable, Sendable {
  package let bytes: [UInt8]
  package let width: Int
  package let height: Int
}

/// What could be made of a file, and a sentence for everything that could not.
package struct Previews: Equatable, Sendable {
  package var big: Preview?
  package var thumbnail: Preview?
  package var notes: [String]
  package init(big: Preview? = nil, thumbnail: Preview? = nil, notes: [String] = []) {
    self.big = big
    self.thumbnail = thumbnail
    self.notes = notes
  }
}

/// Of a video, as it is shown.
package struct VideoFacts: Equatable, Sendable {
  package let width: Int?
  package let height: Int?
  package let seconds: Double?
}

extension PreviewRules {
  /// More is not decoded: 200 million pixels are four times what cameras make, and what takes a few seconds.
  package static let pixelCountMax = 200_000_000
  /// Of a preview: a JPEG's limit is 65,535, and a strip this long shows enough.
  private static let longSideMax = 8_192

  /// Of a picture; big only where the picture is larger, and never of a GIF. `file`: its bytes from the start. Blocks.
  package func previews(of scan: PictureScan, file: Int32) -> Previews {
    var previews = Previews()
    let (width, height) = (scan.width, scan.height)
    guard width > 0, height > 0 else {
      previews.notes.append("no preview: the picture does not say how large it is")
      return previews
    }
    guard width.multipliedReportingOverflow(by: height).partialValue <= Self.pixelCountMax else {
      previews.notes.append(
        "no preview: the picture says it has \(width) × \(height) pixels, at most \(Self.pixelCountMax) are decoded")
      return previews
    }
    do throws(ToolError) {
      previews.thumbnail = try picture(file, scan, sideMax: thumbnailSideMax)
      if scan.format != .gif, min(width, height) > bigSideMax {
        previews.big = try picture(file, scan, sideMax: bigSideMax)
      }
    } catch {
      previews.notes.append("no preview: \(error)")
    }
    return previews
  }

  /// Of a picture that stands for something else, such as a video.
  package func thumbnail(ofPicture file: Int32) throws(ToolError) -> Preview {
    var source = ByteSource(file: file)
    guard let scan = PictureScan(&source), scan.width > 0, scan.height > 0,
      scan.width.multipliedReportingOverflow(by: scan.height).partialValue <= Self.pixelCountMax
    else {
      throw .failed(
        tool: pictureTool.name,
        reason: "is given no picture that it may decode (JPEG, PNG, GIF, WebP of \(Self.pixelCountMax) pixels)",
        words: "")
    }
    return try picture(file, scan, sideMax: thumbnailSideMax)
  }

  private func picture(_ file: Int32, _ scan: PictureScan, sideMax: Int) throws(ToolError) -> Preview {
    let box = Self.box(scan.width, scan.height, sideMax: sideMax)
    lseek(file, 0, SEEK_SET)
    // The profile is applied before it goes with the rest of what is stripped. Without one libvips would take the
    // colours for others and change them.
    let export = scan.hasProfile ? ["--export-profile", "srgb"] : []
    let bytes = try pictureTool.run(
      [
        "stdin", "--size", "\(box.width)x\(box.height)>", "--output",
        ".jpg[Q=\(max(1, Int((quality * 100).rounded()))),strip,optimize_coding,background=255]",
      ] + export, input: file, limits)
    return try Self.checked(bytes, pictureTool.name, box)
  }

  /// A frame from near the beginning. Blocks.
  package func thumbnail(ofVideo format: VideoFormat, _ facts: VideoFacts, file: Int32) throws(ToolError) -> Preview? {
    guard let width = facts.width, let height = facts.height, width > 0, height > 0,
      width.multipliedReportingOverflow(by: height).partialValue <= Self.pixelCountMax
    else { return nil }
    let box = Self.box(width, height, sideMax: thumbnailSideMax)
    // First frames are often black.
    let start = min(1, (facts.seconds ?? 0) / 3)
    lseek(file, 0, SEEK_SET)
    let bytes = try videoTool.run(
      ["-nostdin", "-v", "error", "-ss", "\(start)"] + Self.input(format.rawValue) + [
        "-map", "0:V:0", "-frames:v", "1", "-an", "-sn", "-dn", "-map_metadata", "-1", "-vf",
        "scale=\(box.width):\(box.height)", "-pix_fmt", "yuvj420p", "-q:v", "\(2 + (1 - quality) * 8)", "-f", "mjpeg",
        "pipe:1",
      ], input: file, limits)
    return try Self.checked(bytes, videoTool.name, box)
  }

  /// Its size and length. Blocks.
  package func facts(ofVideo format: VideoFormat, file: Int32) throws(ToolError) -> VideoFacts {
    let values = try values(
      [
        "-select_streams", "V:0", "-show_entries",
        "format=duration:stream=width,height:stream_tags=rotate:stream_side_data=rotation",
      ], format.rawValue, file)
    let sizes = [values["width"], values["height"]].map { $0.flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil } }
    let turn = (values["rotation"] ?? values["rotate"]).flatMap { Int($0) } ?? 0
    let isOnItsSide = turn % 180 != 0
    return VideoFacts(
      width: sizes[isOnItsSide ? 1 : 0], height: sizes[isOnItsSide ? 0 : 1], seconds: Self.seconds(values))
  }

  /// How long the sound is; nil when the file has none, or does not say. Blocks.
  package func seconds(ofSound format: SoundFormat, file: Int32) throws(ToolError) -> Double? {
    let values = try values(
      ["-select_streams", "a:0", "-show_entries", "format=duration:stream=codec_type"], format.rawValue, file)
    return values["codec_type"] == "audio" ? Self.seconds(values) : nil
  }

  private static func seconds(_ values: [Substring: Substring]) -> Double? {
    values["duration"].flatMap { Double($0) }.flatMap { $0.isFinite && $0 >= 0 ? $0 : nil }
  }

  /// What ffprobe says, by the last part of each name.
  private func values(
    _ wanted: [String], _ demuxer: String, _ file: Int32
  ) throws(ToolError) -> [Substring: Substring] {
    lseek(file, 0, SEEK_SET)
    var limits = limits
    limits.outputByteCountMax = 1 << 16
    let text = String(
      decoding: try videoFactsTool.run(
        ["-v", "error"] + wanted + ["-of", "flat"] + Self.input(demuxer), input: file, limits), as: UTF8.self)
    var values: [Substring: Substring] = [:]
    for line in text.split(separator: "\n") {
      guard let equals = line.firstIndex(of: "="), let dot = line[..<equals].lastIndex(of: ".") else { continue }
      values[line[line.index(after: dot)..<equals]] = line[line.index(after: equals)...].drop { $0 == "\"" }.prefix {
        $0 != "\""
      }
    }
    return values
  }

  /// One demuxer, no other file, and no address.
  private static func input(_ demuxer: String) -> [String] {
    ["-protocol_whitelist", "file", "-threads", "1", "-f", demuxer, "-i", "/proc/self/fd/0"]
  }

  /// The largest of the same shape whose short side is not above `sideMax`; never larger than the picture.
  static func box(_ width: Int, _ height: Int, sideMax: Int) -> (width: Int, height: Int) {
    let scale = min(1, Double(sideMax) / Double(min(width, height)), Double(longSideMax) / Double(max(width, height)))
    func side(_ length: Int) -> Int { max(1, min(length, Int((Double(length) * scale).rounded()))) }
    return (side(width), side(height))
  }

  /// What came from the program is to be announced: it must be a whole JPEG of the size asked for, with nothing in it
  /// that is not shared.
  private static func checked(
    _ bytes: [UInt8], _ tool: String, _ box: (width: Int, height: Int)
  ) throws(ToolError) -> Preview {
    var source = ByteSource(bytes: bytes)
    guard let scan = PictureScan(&source), scan.format == .jpeg, scan.isWhole, scan.orientation == 1,
      (1...box.width).contains(scan.width), (1...box.height).contains(scan.height)
    else { throw .failed(tool: tool, reason: "made something that is not the picture asked for", words: "") }
    return Preview(bytes: scan.bytes(from: bytes), width: scan.width, height: scan.height)
  }
}
