import Glibc
import Parley
import Testing

/// Recorded speech, and what is said of how long things are.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct VoiceTests {
  /// 3.4 s of a tone.
  private static func sound(_ home: TemporaryHome, _ name: String) throws -> String {
    let path = home.path + "/" + name
    try #require(
      system("ffmpeg -nostdin -v error -f lavfi -i sine=duration=3.4 -c:a libopus '\(path)'") == 0)
    return path
  }

  private func message(_ node: RunningNode, _ channel: ChannelName) async throws -> Message {
    try #require(try await node.node.history(of: channel, limit: 1).first)
  }

  @Test func voiceArrivesWithItsLengthAndToTheByte() async throws {
    let (channel, ana, ben) = try await pair("voice-tests")
    let path = try Self.sound(ana.home, "note.ogg")
    let options = ShareOptions(as: .voice, seconds: 99, ext: #"{"read":false}"#)
    let shared = try await ana.node.share(path: path, options, in: channel) { _ in }
    #expect(shared.notes == [] && shared.media.fileName == "note.ogg")
    try await ben.node.wait(forMedia: shared.media.id, in: channel)
    let heard = try await message(ben, channel)
    // What the file says counts, in whole seconds, not what the caller says.
    #expect(heard.body == .voice(shared.media, seconds: 3) && heard.ext == #"{"read":false}"#)
    let landed = try await finish(ben.node.download(shared.media.id, to: .folder(ben.home.path)))
    #expect(try TemporaryHome.read(landed) == TemporaryHome.read(path))
    #expect(try await ben.node.media(of: channel).map(\.kind) == ["voice"])
    try await ana.stop()
    try await ben.stop()
  }

  @Test func withoutTheToolALengthIsGivenOrItIsAFile() async throws {
    let channel = try name("voice-tests-given")
    let ana = try await RunningNode("Ana") { $0.pictures.videoFactsTool = "/no/such/tool" }
    try await ana.node.join(channel, secret: .open)
    let path = try Self.sound(ana.home, "note.ogg")
    let file = try await ana.node.share(path: path, ShareOptions(as: .voice), in: channel) { _ in }
    #expect(file.notes.count == 1 && file.notes[0].contains("/no/such/tool is not installed"))
    #expect(try await message(ana, channel).body == .file(file.media))
    for seconds in [0, 7, Int(Int32.max)] {
      let given = ShareOptions(as: .voice, seconds: seconds)
      let voice = try await ana.node.share(path: path, given, in: channel) { _ in }
      #expect(voice.notes == [])
      #expect(try await message(ana, channel).body == .voice(voice.media, seconds: seconds))
    }
    // What is no sound at all is nobody's voice, unless somebody says how long it is.
    let text = try ana.home.write(Array("words".utf8), "words.txt")
    let other = try await ana.node.share(path: text, ShareOptions(as: .voice), in: channel) { _ in }
    #expect(other.notes.count == 1 && other.notes[0].contains("no sound known here"))
    #expect(try await message(ana, channel).body == .file(other.media))
    try await ana.stop()
  }

  @Test func aLengthHasBoundsAndIsOfVoiceAndVideoOnly() async throws {
    let channel = try name("voice-tests-bounds")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    let path = try ana.home.write([1], "x")
    let wrong: [(ShareOptions, String)] = [
      (ShareOptions(as: .voice, seconds: -1), "duration"),
      (ShareOptions(as: .voice, seconds: Int(Int32.max) + 1), "duration"),
      (ShareOptions(as: .photo, seconds: 1), "duration"), (ShareOptions(seconds: 1), "duration"),
      (ShareOptions(as: .voice, thumbnailPath: path), "thumbnail"), (ShareOptions(as: .file, ext: "[]"), "ext"),
    ]
    for (options, field) in wrong {
      await #expect {
        _ = try await ana.node.share(path: path, options, in: channel) { _ in }
      } throws: { error in
        if case .badField(field, _, _)? = error as? ParleyError { true } else { false }
      }
    }
    #expect(try await ana.node.history(of: channel, limit: 10).isEmpty)
    try await ana.stop()
  }

  /// An audio file is somebody's music unless it is said to be speech.
  @Test func soundIsAFileUnlessItIsCalledVoice() async throws {
    let channel = try name("voice-tests-music")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    for ending in ["ogg", "mka", "mp4"] {
      let path = try Self.sound(ana.home, "song.\(ending)")
      let shared = try await ana.node.share(path: path, ShareOptions(), in: channel) { _ in }
      #expect(shared.notes == [])
      #expect(try await message(ana, channel).body == .file(shared.media), "\(ending)")
    }
    try await ana.stop()
  }

  @Test func aVideoHasTheThumbnailThatIsGiven() async throws {
    let channel = try name("voice-tests-thumbnail")
    let ana = try await RunningNode("Ana")
    try await ana.node.join(channel, secret: .open)
    let film = ana.home.path + "/film.mp4"
    let picture = ana.home.path + "/still.png"
    try #require(
      system("ffmpeg -nostdin -v error -f lavfi -i testsrc=duration=1:size=320x240:rate=5 -c:v mpeg4 '\(film)'") == 0)
    try #require(
      system("ffmpeg -nostdin -v error -f lavfi -i color=red:size=400x800 -frames:v 1 '\(picture)'") == 0)
    let options = ShareOptions(as: .video, thumbnailPath: picture)
    let shared = try await ana.node.share(path: film, options, in: channel) { _ in }
    #expect(shared.notes == [])
    let id = try #require(shared.media.picture?.thumbnailID)
    let small = try await finish(ana.node.download(id, to: .folder(ana.home.path)))
    // The picture's shape, not the film's.
    #expect(try PictureTests.size(ofJPEG: TemporaryHome.read(small)) == [170, 340])
    await #expect(throws: ParleyError.noSuchFile(path: "/no/such/picture")) {
      let missing = ShareOptions(as: .video, thumbnailPath: "/no/such/picture")
      _ = try await ana.node.share(path: film, missing, in: channel) { _ in }
    }
    let odd = ShareOptions(as: .video, thumbnailPath: film)
    let without = try await ana.node.share(path: film, odd, in: channel) { _ in }
    #expect(without.notes.count == 1 && without.media.picture?.thumbnailID == nil)
    try await ana.stop()
  }
}
