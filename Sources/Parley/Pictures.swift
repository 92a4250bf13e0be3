import ParleyPictures

/// How a photo or video looks, and under what else it can be had. Said by its sender: nothing of it is checked, and
/// what is downloaded is a stranger's picture.
public struct PictureReference: Sendable, Equatable {
  /// Dots, as it is shown upright; nil when the message does not say.
  public let width: Int?
  public let height: Int?
  /// Whole seconds, of a video.
  public let duration: Int?
  /// The photo is the file as it was, with what it says of the place.
  public let isOriginal: Bool
  /// It moves, and no big picture stands for it.
  public let isGIF: Bool
  /// A JPEG that fills a screen, to download like any media; nil when the photo itself is not larger.
  public let bigID: MediaID?
  /// A JPEG that fills a line of a list.
  public let thumbnailID: MediaID?

  public init(
    width: Int? = nil, height: Int? = nil, duration: Int? = nil, isOriginal: Bool = false, isGIF: Bool = false,
    bigID: MediaID? = nil, thumbnailID: MediaID? = nil
  ) {
    self.width = width
    self.height = height
    self.duration = duration
    self.isOriginal = isOriginal
    self.isGIF = isGIF
    self.bigID = bigID
    self.thumbnailID = thumbnailID
  }
}

/// How pictures are made smaller, and what is kept of that.
///
/// The work is done by `vipsthumbnail` (libvips), `ffmpeg` and `ffprobe` where they are installed: without network,
/// without writing, with 1 GiB of memory and 20 s each. Without them photos are shared all the same, without previews.
public struct PictureSettings: Sendable, Equatable {
  /// Dots of a big picture's short side, 16 to 8,192.
  public var bigSideMax = 720
  /// Dots of a thumbnail's short side, 16 to 8,192.
  public var thumbnailSideMax = 170
  /// Of the JPEG, above 0, at most 1.
  public var quality = 0.6
  /// Bytes of previews and cleaned photos kept in the home and served from there, 1,048,576 to 1,099,511,627,776.
  /// Beyond it the ones used longest ago go, and are no longer served from here.
  public var keptByteCountMax = 1 << 30
  /// Paths, or names that are looked for in PATH.
  public var pictureTool = "vipsthumbnail"
  public var videoTool = "ffmpeg"
  public var videoFactsTool = "ffprobe"

  public init() {}

  static let sideRange = 16...8_192
  static let keptByteCountRange = 1 << 20...1 << 40

  /// Throws `.badSetting` for a number outside its bounds; the quality is given there in hundredths.
  func check() throws(ParleyError) {
    let numbers = [
      ("dots of a big picture's short side", bigSideMax, Self.sideRange),
      ("dots of a thumbnail's short side", thumbnailSideMax, Self.sideRange),
      ("hundredths of a preview's quality", quality > 0 && quality <= 1 ? 100 : Int(clamping: quality), 1...100),
      ("bytes of previews kept", keptByteCountMax, Self.keptByteCountRange),
    ]
    for (name, value, allowed) in numbers where !allowed.contains(value) {
      throw .badSetting(name, value: value, allowed: allowed)
    }
  }

  var rules: PreviewRules {
    var rules = PreviewRules()
    rules.bigSideMax = bigSideMax
    rules.thumbnailSideMax = thumbnailSideMax
    rules.quality = quality
    rules.pictureTool = ConfinedTool(pictureTool)
    rules.videoTool = ConfinedTool(videoTool)
    rules.videoFactsTool = ConfinedTool(videoFactsTool)
    return rules
  }
}

extension Int {
  /// Hundredths; what is no number or out of reach is 0 or the bound.
  fileprivate init(clamping quality: Double) {
    let hundredths = (quality * 100).rounded()
    self = hundredths.isFinite ? Int(Swift.max(-1e9, Swift.min(hundredths, 1e9))) : 0
  }
}
