import Glibc
import Parley
import Testing

/// Files as cameras, phones and programs make them, by the tools that Scripts/setup installs, from one node to another.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct RealFileTests {
  /// Nobody shall learn this from what is shared as a photo.
  private static let place = "48.8583N,2.2945E"

  /// Left half red, right half blue.
  private static func make(_ path: String, _ arguments: String) throws {
    try #require(system("ffmpeg -nostdin -v error -y \(arguments) '\(path)'") == 0, "\(path)")
  }

  private static func halves(_ width: Int, _ height: Int) -> String {
    let size = "size=\(width / 2)x\(height)"
    return "-f lavfi -i 'color=red:\(size)[a];color=blue:\(size)[b];[a][b]hstack' -frames:v 1"
  }

  /// EXIF 2.32 in a segment of its own: lying on its right side, and where it was taken.
  private static func withPlace(_ jpeg: [UInt8], orientation: UInt8) -> [UInt8] {
    func number(_ value: Int, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
    }
    func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: [UInt8]) -> [UInt8] {
      number(tag, 2) + number(type, 2) + number(count, 4) + value + [UInt8](repeating: 0, count: 4 - value.count)
    }
    let area = Array("ASCII\0\0\0".utf8) + Array(place.utf8)
    // Two directories: the first at 8 ends at 38, that of GPS at 68.
    let tiff =
      Array("MM".utf8) + number(42, 2) + number(8, 4) + number(2, 2) + entry(0x0112, 3, 1, [0, orientation])
      + entry(0x8825, 4, 1, number(38, 4)) + number(0, 4) + number(2, 2) + entry(1, 2, 2, Array("N\0".utf8))
      + entry(0x1B, 7, area.count, number(68, 4)) + number(0, 4) + area
    let body = Array("Exif\0\0".utf8) + tiff
    return Array(jpeg[..<2]) + [0xFF, 0xE1] + number(body.count + 2, 2) + body + jpeg[2...]
  }

  /// Red, green, blue at the middle of the upper and of the lower half.
  private static func colours(_ home: TemporaryHome, _ jpeg: String) throws -> (top: [UInt8], bottom: [UInt8]) {
    let raw = home.path + "/pixels-\(UInt32.random(in: 0...(.max)))"
    try make(raw, "-i '\(jpeg)' -vf scale=1:4 -frames:v 1 -pix_fmt rgb24 -f rawvideo")
    let bytes = try TemporaryHome.read(raw)
    try #require(bytes.count == 12)
    return (Array(bytes[0..<3]), Array(bytes[9..<12]))
  }

  private static func holdsPlace(_ bytes: [UInt8]) -> Bool {
    let wanted = Array(place.utf8)
    return bytes.indices.contains { bytes[$0] == wanted[0] && bytes[$0...].starts(with: wanted) }
  }

  private struct Got {
    let shared: SharedMedia
    let file: String
    let thumbnail: String?
    let big: String?
  }

  /// Shared by Ana, downloaded by Ben with all there is of it.
  private func send(
    _ path: String, as kind: ShareKind? = nil, _ channel: ChannelName, _ ana: RunningNode, _ ben: RunningNode
  ) async throws -> Got {
    let shared = try await ana.node.share(path: path, as: kind, in: channel) { _ in }
    try await ben.node.wait(forMedia: shared.media.id, in: channel)
    func get(_ id: MediaID?) async throws -> String? {
      guard let id else { return nil }
      return try await finish(ben.node.download(id, to: .folder(ben.home.path)))
    }
    let file = try #require(try await get(shared.media.id))
    let picture = shared.media.picture
    return Got(
      shared: shared, file: file, thumbnail: try await get(picture?.thumbnailID), big: try await get(picture?.bigID))
  }

  private func size(_ path: String?) throws -> [Int]? {
    guard let path else { return nil }
    return PictureTests.size(ofJPEG: try TemporaryHome.read(path))
  }

  @Test func aJPEGOnItsSideWithItsPlace() async throws {
    let (channel, ana, ben) = try await pair("real-jpeg")
    let plain = ana.home.path + "/plain.jpg"
    try Self.make(plain, Self.halves(1_600, 1_200) + " -q:v 3")
    let bytes = Self.withPlace(try TemporaryHome.read(plain), orientation: 6)
    let path = try ana.home.write(bytes, "tower.jpg")
    let got = try await send(path, channel, ana, ben)
    #expect(got.shared.notes == [])
    #expect([got.shared.media.picture?.width, got.shared.media.picture?.height] == [1_200, 1_600])
    #expect(try [size(got.thumbnail), size(got.big)] == [[170, 227], [720, 960]])
    for preview in [got.thumbnail, got.big] {
      let (top, bottom) = try Self.colours(ben.home, try #require(preview))
      // Upright, what was left is above.
      let isUpright = top[0] > 200 && top[2] < 60 && bottom[0] < 60 && bottom[2] > 200
      #expect(isUpright, "\(top) above \(bottom)")
    }
    for file in [got.file, got.thumbnail, got.big].compactMap(\.self) {
      #expect(try Self.holdsPlace(TemporaryHome.read(file)) == false, "\(file)")
    }
    // Only who asks for it gives it away.
    let whole = try await send(path, as: .originalPhoto, channel, ana, ben)
    #expect(try TemporaryHome.read(whole.file) == bytes && Self.holdsPlace(bytes))
    for preview in [whole.thumbnail, whole.big].compactMap(\.self) {
      #expect(try Self.holdsPlace(TemporaryHome.read(preview)) == false)
    }
    try await ana.stop()
    try await ben.stop()
  }

  @Test func aPNGWithTransparencyStandsOnWhite() async throws {
    let (channel, ana, ben) = try await pair("real-png")
    let path = ana.home.path + "/glass.png"
    try Self.make(path, "-f lavfi -i 'color=black@0.0:size=1000x900,format=rgba' -frames:v 1")
    let got = try await send(path, as: .originalPhoto, channel, ana, ben)
    #expect(got.shared.notes == [] && got.shared.media.mimeType == "image/png")
    #expect(try [size(got.thumbnail), size(got.big)] == [[189, 170], [800, 720]])
    let (top, bottom) = try Self.colours(ben.home, try #require(got.thumbnail))
    #expect((top + bottom).allSatisfy { $0 > 240 })
    #expect(try TemporaryHome.read(got.file) == TemporaryHome.read(path))
    try await ana.stop()
    try await ben.stop()
  }

  /// By its content: the name says something else.
  @Test func anAnimatedGIFStaysAsItIs() async throws {
    let (channel, ana, ben) = try await pair("real-gif")
    let gif = ana.home.path + "/moving.gif"
    try Self.make(gif, "-f lavfi -i testsrc=duration=1:size=1200x900:rate=5")
    let bytes = try TemporaryHome.read(gif)
    let path = try ana.home.write(bytes, "moving.jpg")
    let got = try await send(path, channel, ana, ben)
    #expect(got.shared.media.picture?.isGIF == true && got.shared.media.mimeType == "image/gif")
    #expect(try size(got.thumbnail) == [227, 170])
    #expect(got.big == nil)
    #expect(try TemporaryHome.read(got.file) == bytes)
    // And what is called a GIF is none for that.
    let still = ana.home.path + "/still.jpg"
    try Self.make(still, Self.halves(60, 40))
    let named = try ana.home.write(TemporaryHome.read(still), "still.gif")
    #expect(try await send(named, channel, ana, ben).shared.media.picture?.isGIF == false)
    try await ana.stop()
    try await ben.stop()
  }

  @Test func aWebPHasPreviews() async throws {
    let (channel, ana, ben) = try await pair("real-webp")
    let png = ana.home.path + "/plain.png"
    let path = ana.home.path + "/plain.webp"
    try Self.make(png, Self.halves(1_600, 800))
    try #require(system("vips copy '\(png)' '\(path)'") == 0)
    let got = try await send(path, as: .originalPhoto, channel, ana, ben)
    #expect(got.shared.notes == [] && got.shared.media.mimeType == "image/webp")
    #expect(try [size(got.thumbnail), size(got.big)] == [[340, 170], [1_440, 720]])
    #expect(try TemporaryHome.read(got.file) == TemporaryHome.read(path))
    try await ana.stop()
    try await ben.stop()
  }

  @Test func aHundredMegapixelsHavePreviews() async throws {
    let (channel, ana, ben) = try await pair("real-large")
    let path = ana.home.path + "/wall.jpg"
    try #require(system("vips black '\(path)' 12500 8000 --bands 3") == 0)
    let got = try await send(path, as: .originalPhoto, channel, ana, ben)
    #expect(got.shared.notes == [])
    #expect([got.shared.media.picture?.width, got.shared.media.picture?.height] == [12_500, 8_000])
    #expect(try [size(got.thumbnail), size(got.big)] == [[266, 170], [1_125, 720]])
    #expect(try TemporaryHome.read(got.file) == TemporaryHome.read(path))
    try await ana.stop()
    try await ben.stop()
  }

  @Test func aCutJPEGIsSharedWithAWord() async throws {
    let (channel, ana, ben) = try await pair("real-cut")
    let plain = ana.home.path + "/plain.jpg"
    try Self.make(plain, "-f lavfi -i testsrc=size=1600x1200 -frames:v 1 -q:v 3")
    let whole = try TemporaryHome.read(plain)
    let bytes = Self.withPlace(Array(whole[..<(whole.count / 2)]), orientation: 6)
    let path = try ana.home.write(bytes, "cut.jpg")
    let got = try await send(path, channel, ana, ben)
    #expect(got.shared.notes.contains { $0.contains("damaged") })
    for file in [got.file, got.thumbnail, got.big].compactMap(\.self) {
      #expect(try Self.holdsPlace(TemporaryHome.read(file)) == false, "\(file)")
    }
    let original = try await send(path, as: .originalPhoto, channel, ana, ben)
    #expect(try TemporaryHome.read(original.file) == bytes)
    try await ana.stop()
    try await ben.stop()
  }

  @Test func anMP4AndAnOggArriveToTheByte() async throws {
    let (channel, ana, ben) = try await pair("real-film")
    let film = ana.home.path + "/film.mp4"
    try Self.make(
      film, "-f lavfi -i testsrc=duration=2:size=720x1280:rate=5 -c:v mpeg4 -metadata 'comment=\(Self.place)'")
    let got = try await send(film, channel, ana, ben)
    let picture = try #require(got.shared.media.picture)
    #expect(got.shared.notes == [] && got.shared.media.mimeType == "video/mp4")
    #expect([picture.width, picture.height, picture.duration] == [720, 1_280, 2])
    #expect(try size(got.thumbnail) == [170, 302])
    #expect(try Self.holdsPlace(TemporaryHome.read(film)))
    #expect(try Self.holdsPlace(TemporaryHome.read(#require(got.thumbnail))) == false)
    #expect(try TemporaryHome.read(got.file) == TemporaryHome.read(film))
    let note = ana.home.path + "/note.ogg"
    try Self.make(note, "-f lavfi -i sine=duration=2.6 -c:a libopus")
    let voice = try await send(note, as: .voice, channel, ana, ben)
    #expect(voice.shared.notes == [] && voice.shared.media.mimeType == "audio/ogg")
    let last = try #require(try await ben.node.history(of: channel, limit: 1).first)
    #expect(last.body == .voice(voice.shared.media, seconds: 3))
    #expect(try TemporaryHome.read(voice.file) == TemporaryHome.read(note))
    try await ana.stop()
    try await ben.stop()
  }
}
