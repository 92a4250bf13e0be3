import Glibc
import ParleyPictures
import Testing

@Suite struct PreviewTests {
  private func previews(_ bytes: [UInt8], _ rules: PreviewRules = PreviewRules()) throws -> Previews {
    let file = TemporaryFile(bytes)
    return rules.previews(of: try #require(scan(bytes)), file: file.descriptor)
  }

  @Test(arguments: [
    (1_500, 1_000, 1, (1_080, 720), (255, 170)), (1_000, 1_500, 1, (720, 1_080), (170, 255)),
    (1_500, 1_000, 6, (720, 1_080), (170, 255)), (720, 900, 1, nil, (170, 213)), (721, 900, 1, (720, 899), (170, 212)),
    (900, 721, 6, (720, 899), (170, 212)),
    (170, 200, 1, nil, (170, 200)), (171, 200, 8, nil, (199, 170)), (100, 60, 1, nil, (100, 60)),
    (100, 60, 8, nil, (60, 100)),
  ])
  func sizes(
    _ width: Int, _ height: Int, _ orientation: Int, _ big: (Int, Int)?, _ thumbnail: (Int, Int)
  ) throws {
    let made = try previews(Samples.dirtyJPEG(width, height, orientation: orientation))
    #expect(made.notes == [])
    #expect(made.big.map { [$0.width, $0.height] } == big.map { [$0.0, $0.1] })
    let small = try #require(made.thumbnail)
    #expect((small.width, small.height) == thumbnail)
    for preview in [made.big, made.thumbnail].compactMap({ $0 }) {
      let headers = try Samples.headers(preview.bytes)
      #expect(headers.contains("width: \(preview.width)\n") && headers.contains("height: \(preview.height)\n"))
      #expect(!headers.contains("exif") && !preview.bytes.holds(Samples.secret))
    }
  }

  /// The left edge of a picture lying on its side is its upper edge.
  @Test func theOrientationIsApplied() throws {
    // Red grows to the right, so a picture that is turned clockwise to be upright grows redder downwards.
    let made = try previews(Samples.dirtyJPEG(160, 80, orientation: 6))
    let small = try #require(made.thumbnail)
    let file = TemporaryFile(small.bytes)
    let raw = try ConfinedTool("vipsthumbnail").run(
      ["stdin", "--size", "1000x1000>", "--output", ".ppm"], input: file.descriptor)
    let pixels = raw.suffix(80 * 160 * 3)
    let (top, bottom) = (pixels.first!, pixels[pixels.endIndex - 3])
    #expect(top < 40 && bottom > 200)
  }

  /// Blue stays blue, whether a profile says which blue or none does.
  @Test func coloursStay() throws {
    func blue(_ bytes: [UInt8]) throws -> [UInt8] {
      let small = try #require(previews(bytes).thumbnail)
      let file = TemporaryFile(small.bytes)
      let raw = try ConfinedTool("vipsthumbnail").run(
        ["stdin", "--size", "1000x1000>", "--output", ".ppm"], input: file.descriptor)
      return Array(raw.suffix(3))
    }
    let png = Samples.pngHead(200, 200) + Samples.chunk("IDAT", Samples.blue(200, 200)) + Samples.chunk("IEND", [])
    let tagged = try Samples.converted(png, to: "jpg[Q=90,profile=srgb]")
    #expect(try #require(scan(tagged)).hasProfile)
    let plain = try Samples.converted(png, to: "jpg[Q=90,strip]")
    #expect(try #require(scan(plain)).hasProfile == false)
    for picture in [png, tagged, plain] {
      let colour = try blue(picture)
      #expect(colour[0] < 16 && colour[1] < 16 && colour[2] > 240, "\(colour)")
    }
  }

  @Test func aRatioSaysHowSmall() throws {
    let picture = try Samples.jpeg(800, 800)
    let counts = try [0.001, 0.6, 1].map { quality in
      var rules = PreviewRules()
      rules.quality = quality
      return try #require(previews(picture, rules).big?.bytes.count)
    }
    #expect(counts[0] < counts[1] && counts[1] < counts[2])
  }

  @Test func aGIFHasAStillThumbnailAndNothingElse() throws {
    let made = try previews(Samples.gif(comment: true))
    #expect(made.big == nil && made.notes == [])
    #expect(made.thumbnail.map { ($0.width, $0.height) }! == (20, 10))
  }

  @Test func bombsAreNotDecoded() throws {
    // The tool would end with an error that can be told from these words.
    let claimed = Samples.pngHead(50_000, 50_000) + Samples.chunk("IDAT", []) + Samples.chunk("IEND", [])
    let made = try previews(claimed)
    #expect(made.thumbnail == nil)
    #expect(made.notes.first?.contains("50000 × 50000 pixels") == true)
    let endless = Samples.pngHead(0x7FFF_FFFF, 0x7FFF_FFFF)
    #expect(try previews(endless).thumbnail == nil)
  }

  /// A picture within the bound on pixels that needs more memory than it gets.
  @Test func memoryIsBounded() throws {
    var rules = PreviewRules()
    rules.limits.memoryByteCount = 48 << 20
    let made = try previews(Samples.png(200, 200), rules)
    #expect(made.thumbnail == nil && made.notes.count == 1)
  }

  @Test func brokenPicturesHaveANoteAndNoPreview() throws {
    let picture = try Samples.jpeg(400, 300)
    let made = try previews(Array(picture[..<200]))
    #expect(made.thumbnail == nil && made.big == nil && made.notes.count == 1)
    let lying = [0xFF, 0xD8, 0xFF, 0xC0, 0, 11, 8, 1, 0, 1, 0, 1, 1, 0x11, 0, 0xFF, 0xD9] as [UInt8]
    #expect(try previews(lying).notes.first?.contains("vipsthumbnail") == true)
  }

  @Test func withoutTheToolThereIsANote() throws {
    var rules = PreviewRules()
    rules.pictureTool = ConfinedTool("no-such-tool-of-parley")
    let made = try previews(Samples.png(10, 10), rules)
    #expect(made == Previews(notes: ["no preview: no-such-tool-of-parley is not installed"]))
  }

  @Test func aToolThatMakesSomethingElseIsNotBelieved() throws {
    let folder = ToolFolder()
    var rules = PreviewRules()
    rules.pictureTool = try folder.tool("exec printf 'not a picture'")
    #expect(try previews(Samples.png(10, 10), rules).thumbnail == nil)
    // Its own input, which is not cleaned and too large.
    rules.pictureTool = try folder.tool("exec cat")
    let made = try previews(Samples.dirtyJPEG(300, 300), rules)
    #expect(made.thumbnail == nil && made.notes.first?.contains("not the picture asked for") == true)
  }
}

@Suite struct VideoTests {
  private func video(_ arguments: [String]) throws -> TemporaryFile {
    let nothing = TemporaryFile([])
    return TemporaryFile(
      try ConfinedTool("ffmpeg").run(
        ["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=duration=3:size=640x360:rate=5"] + arguments
          + ["pipe:1"], input: nothing.descriptor))
  }

  @Test(arguments: ["mov", "matroska"])
  func aFrameAndTheFacts(_ format: String) throws {
    let movie = try video(
      format == "mov"
        ? ["-c:v", "mpeg4", "-f", "mp4", "-movflags", "frag_keyframe+empty_moov"] : ["-c:v", "mpeg4", "-f", format])
    let kind = try #require(VideoFormat(head: movie.bytes.prefix(12)))
    #expect(kind.rawValue == format)
    let rules = PreviewRules()
    let facts = try rules.facts(ofVideo: kind, file: movie.descriptor)
    #expect((facts.width, facts.height) == (640, 360))
    if format == "mov" { #expect(facts.seconds.map { abs($0 - 3) < 0.5 } == true) }
    let frame = try #require(try rules.thumbnail(ofVideo: kind, facts, file: movie.descriptor))
    #expect((frame.width, frame.height) == (302, 170))
    #expect(try Samples.headers(frame.bytes).contains("width: 302"))
  }

  @Test func playlistsAndStillsAreNoVideos() {
    #expect(VideoFormat(head: Array("#EXTM3U\nfile".utf8)) == nil)
    #expect(VideoFormat(head: [0, 0, 0, 24] + Array("ftypheic".utf8)) == nil)
  }

  @Test func brokenVideosFailInWords() throws {
    let broken = TemporaryFile([0, 0, 0, 24] + Array("ftypisom".utf8) + [UInt8](repeating: 7, count: 500))
    #expect(throws: ToolError.self) { try PreviewRules().facts(ofVideo: .mov, file: broken.descriptor) }
  }
}
