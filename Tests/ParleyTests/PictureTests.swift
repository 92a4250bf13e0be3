import Glibc
import Parley
import Testing

/// Photos and videos from one node to another, with what is made of them.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct PictureTests {
  /// Anywhere in what is shared it would be found.
  private static let place = "48.8583N,2.2945E"

  /// 1,600 × 8 dots of one grey, compressed not at all, with a text chunk that says where.
  static func png(_ width: Int, _ height: Int, place: String? = nil) -> [UInt8] {
    func number(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
    func chunk(_ name: String, _ body: [UInt8]) -> [UInt8] {
      let checked = Array(name.utf8) + body
      let check = ~checked.reduce(UInt32.max) { sum, byte in
        (0..<8).reduce(sum ^ UInt32(byte)) { sum, _ in sum >> 1 ^ (sum & 1 == 1 ? 0xEDB8_8320 : 0) }
      }
      return number(body.count) + checked + number(Int(check))
    }
    let rows = [UInt8](repeating: 0, count: height * (width + 1))
    var coded: [UInt8] = [0x78, 0x01]
    var start = 0
    repeat {
      let part = rows[start..<min(start + 65_535, rows.count)]
      start += part.count
      let (low, high) = (UInt8(part.count & 0xFF), UInt8(part.count >> 8))
      coded += [start == rows.count ? 1 : 0, low, high, ~low, ~high] + part
    } while start < rows.count
    // Adler-32 of zeros.
    coded += number(rows.count % 65_521 << 16 | 1)
    return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
      + chunk("IHDR", number(width) + number(height) + [8, 0, 0, 0, 0])
      + (place.map { chunk("tEXt", Array("Comment\0\($0)".utf8)) } ?? []) + chunk("IDAT", coded) + chunk("IEND", [])
  }

  @Test func aPhotoArrivesWithoutItsPlaceAndWithPreviews() async throws {
    let (channel, ana, ben) = try await pair("picture-tests")
    let path = try ana.home.write(Self.png(900, 800, place: Self.place), "tower.png")
    let outcome = try await ana.node.share(path: path, in: channel) { _ in }
    let shared = outcome.media
    #expect(outcome.notes == [] && shared.fileName == "tower.png" && shared.mimeType == "image/png")
    let picture = try #require(shared.picture)
    #expect([picture.width, picture.height] == [900, 800] && !picture.isOriginal && !picture.isGIF)
    try await ben.node.wait(forMedia: shared.id, in: channel)
    let heard = try #require(try await ben.node.history(of: channel, limit: 1).first?.media)
    #expect(heard.picture == picture)

    let landed = try await finish(ben.node.download(shared.id, to: .folder(ben.home.path)))
    #expect(landed == ben.home.path + "/tower.png")
    #expect(try TemporaryHome.read(landed) == Self.png(900, 800))
    let thumbnail = try await finish(ben.node.download(#require(picture.thumbnailID), to: .folder(ben.home.path)))
    #expect(thumbnail == ben.home.path + "/tower-thumbnail.jpg")
    #expect(try Self.size(ofJPEG: TemporaryHome.read(thumbnail)) == [191, 170])
    let big = try await finish(ben.node.download(#require(picture.bigID), to: .folder(ben.home.path)))
    #expect(big == ben.home.path + "/tower-big.jpg")
    #expect(try Self.size(ofJPEG: TemporaryHome.read(big)) == [810, 720])
    // The smaller pictures are no media of their own in the list.
    #expect(try await ben.node.media(of: channel).map(\.media.id) == [shared.id])
    try await ana.stop()
    // After a restart they are served as before.
    let again = try await RunningNode("Ana", home: ana.home)
    try await again.node.wait(for: ben.node.peerID, in: channel)
    #expect(try await again.node.media(of: channel).first?.isHeldHere == true)
    try await again.node.unshare(shared.id)
    await #expect(throws: ParleyError.noSuchMedia(picture.thumbnailID!)) {
      try await again.node.unshare(picture.thumbnailID!)
    }
    #expect(try Self.names(in: again.home.path + "/home/pictures") == [])
    try await again.stop()
    try await ben.stop()
  }

  @Test func theOriginalGoesOutAsItIs() async throws {
    let channel = try name("picture-tests-original")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    let bytes = Self.png(40, 30, place: Self.place)
    let path = try ana.home.write(bytes, "tower.png")
    let shared = try await ana.node.share(path: path, as: .originalPhoto, in: channel)
    #expect(shared.picture?.isOriginal == true && shared.byteCount == UInt64(bytes.count))
    let message = try #require(try await ana.node.history(of: channel, limit: 1).first)
    #expect(message.json.contains(#""original":true"#) && message.media?.picture == shared.picture)
    let cleaned = try await ana.node.share(path: path, in: channel)
    #expect(cleaned.id != shared.id && cleaned.picture?.isOriginal == false)
    try await ana.stop()
  }

  /// Programs that are missing, that hang, and that are fed nonsense.
  @Test func withoutPreviewsAPhotoIsSharedAllTheSame() async throws {
    let channel = try name("picture-tests-missing")
    let ana = try await RunningNode("Ana") { $0.pictures.pictureTool = "/no/such/tool" }
    try await ana.node.join(channel, secret: .open)
    let whole = try await ana.node.share(path: ana.home.write(Self.png(40, 30), "a.png"), in: channel) { _ in }
    let shared = whole.media
    #expect(whole.notes == ["no preview: /no/such/tool is not installed"])
    #expect(shared.picture?.thumbnailID == nil && shared.picture?.width == 40)
    let broken = try await ana.node.share(path: ana.home.write([0xFF, 0xD8, 0xFF, 0xE0], "b.jpg"), in: channel) { _ in }
    #expect(broken.notes.count == 2 && broken.media.byteCount == 4)
    let other = try await ana.node.share(path: ana.home.write(Array("<svg/>".utf8), "c.svg"), as: .photo, in: channel) {
      _ in
    }
    #expect(other.notes.count == 1 && other.media.picture?.thumbnailID == nil)
    let kinds = try await ana.node.history(of: channel, limit: 3).map(\.body)
    #expect(kinds == [.photo(shared), .photo(broken.media), .photo(other.media)])
    let file = try await ana.node.share(path: ana.home.write(Self.png(1, 1), "d.png"), as: .file, in: channel)
    #expect(file.picture == nil)
    try await ana.stop()
  }

  @Test func aVideoHasAFrameAndALength() async throws {
    let channel = try name("picture-tests-video")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    let path = ana.home.path + "/clip.mp4"
    try #require(
      system(
        "ffmpeg -nostdin -v error -f lavfi -i testsrc=duration=2:size=320x240:rate=5 -c:v mpeg4 '\(path)'") == 0)
    let outcome = try await ana.node.share(path: path, in: channel) { _ in }
    let shared = outcome.media
    #expect(outcome.notes == [])
    let picture = try #require(shared.picture)
    #expect([picture.width, picture.height, picture.duration] == [320, 240, 2] && picture.bigID == nil)
    let id = try #require(picture.thumbnailID)
    let frame = try await finish(ana.node.download(id, to: .folder(ana.home.path)))
    #expect(try Self.size(ofJPEG: TemporaryHome.read(frame)) == [227, 170])
    guard case .video(let media) = try await ana.node.history(of: channel, limit: 1).first?.body else {
      Issue.record("not announced as a video")
      return
    }
    #expect(media == shared)
    try await ana.stop()
  }

  /// What was used longest ago goes, and its serving with it.
  @Test func whatIsKeptHasABound() async throws {
    let channel = try name("picture-tests-bound")
    let ana = try await RunningNode("Ana") { $0.pictures.keptByteCountMax = 1 << 20 }
    try await ana.node.join(channel, secret: .open)
    // Cleaned copies of 640 KB each.
    var shared: [MediaReference] = []
    for number in 0..<3 {
      let bytes = Self.png(800, 800 + number, place: Self.place)
      shared.append(try await ana.node.share(path: ana.home.write(bytes, "\(number).png"), in: channel))
    }
    let held = try await ana.node.media(of: channel).filter(\.isHeldHere).map(\.media.id)
    #expect(held == [shared[2].id])
    try await ana.stop()
  }

  @Test func settingsHaveBounds() throws {
    for quality in [0.001, 1] {
      let home = TemporaryHome()
      var settings = NodeSettings(home: home.path + "/home")
      settings.pictures.quality = quality
      #expect(throws: Never.self) { try Node(settings) }
    }
    for quality in [0, -1, 1.01, .nan, .infinity] {
      var settings = NodeSettings(home: "/no/such/home")
      settings.pictures.quality = quality
      #expect { _ = try Node(settings) } throws: { error in
        guard case .badSetting? = error as? ParleyError else { return false }
        return true
      }
    }
  }

  static func size(ofJPEG bytes: [UInt8]) -> [Int] {
    var offset = 2
    while offset + 9 < bytes.count {
      let marker = bytes[offset + 1]
      if (0xC0...0xC2).contains(marker) {
        return [
          Int(bytes[offset + 7]) << 8 | Int(bytes[offset + 8]), Int(bytes[offset + 5]) << 8 | Int(bytes[offset + 6]),
        ]
      }
      offset += 2 + (Int(bytes[offset + 2]) << 8 | Int(bytes[offset + 3]))
    }
    return []
  }

  static func names(in folder: String) throws -> [String] {
    let entries = try #require(opendir(folder))
    defer { closedir(entries) }
    var names: [String] = []
    while let entry = readdir(entries) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }
}
