import ParleyPictures
import Testing

/// What of a picture is shared.
@Suite struct CleaningTests {
  @Test func aJPEGLosesItsPlaceAndKeepsItsPixels() throws {
    let dirty = try Samples.dirtyJPEG(300, 200)
    #expect(try Samples.headers(dirty).contains("GPSLatitude"))
    let clean = try Samples.clean(dirty)
    let headers = try Samples.headers(clean)
    #expect(!headers.contains("GPS") && !headers.contains("xmp") && !headers.contains("iptc"))
    #expect(!clean.holds(Samples.secret))
    // The coded data are the same bytes; only segments are gone.
    #expect(clean == (try Samples.clean(try Samples.jpeg(300, 200))))
    let again = try #require(scan(clean))
    #expect(again.isClean(byteCount: UInt64(clean.count)) && again.isWhole)
    #expect((again.width, again.height) == (300, 200))
  }

  @Test(arguments: 2...8)
  func theOrientationStays(_ orientation: Int) throws {
    let dirty = try Samples.dirtyJPEG(64, 32, orientation: orientation)
    let clean = try Samples.clean(dirty)
    let again = try #require(scan(clean))
    #expect(again.orientation == orientation && again.isClean(byteCount: UInt64(clean.count)))
    #expect((again.width, again.height) == (orientation >= 5 ? (32, 64) : (64, 32)))
    #expect(try Samples.headers(clean).contains("orientation: \(orientation)"))
    #expect(!clean.holds(Samples.secret))
  }

  @Test func aColourProfileStays() throws {
    let profiled = try Samples.converted(Samples.png(40, 30), to: "jpg[profile=srgb]")
    #expect(try Samples.headers(profiled).contains("icc-profile-data"))
    #expect(try Samples.headers(Samples.clean(profiled)).contains("icc-profile-data"))
  }

  @Test func aPNGLosesItsTextsAndWhatHangsBehind() throws {
    let plain = Samples.png(50, 40)
    let text = Samples.chunk("tEXt", Array("Comment\0\(Samples.secret)".utf8))
    let xmp = Samples.chunk("iTXt", Array("XML:com.adobe.xmp\0\0\0\0\0".utf8) + Samples.xmp)
    let place = Samples.chunk("eXIf", Samples.exif(orientation: 6))
    let dirty = plain[..<33] + text + place + plain[33..<plain.count - 12] + xmp + plain[(plain.count - 12)...]
    let hanging = Array(dirty) + Array(Samples.secret.utf8)
    #expect(try Samples.headers(hanging).contains("GPSLatitude"))
    let clean = try Samples.clean(hanging)
    #expect(!clean.holds(Samples.secret) && clean.count == plain.count + 38)
    #expect(try Samples.headers(clean).contains("orientation: 6"))
    let again = try #require(scan(clean))
    #expect(again.isClean(byteCount: UInt64(clean.count)))
    #expect((again.width, again.height) == (40, 50))
    #expect(try #require(scan(plain)).isClean(byteCount: UInt64(plain.count)))
  }

  @Test(arguments: [1, 8])
  func aWebPLosesItsPlace(_ orientation: Int) throws {
    let made = try Samples.converted(Samples.png(60, 40), to: "webp")
    let start = try #require(made.indices.first { made[$0...].starts(with: Array("VP8 ".utf8)) })
    let count = (0..<4).reduce(0) { $0 | Int(made[start + 4 + $1]) << (8 * $1) }
    let coded = Array("WEBP".utf8) + made[start..<start + 8 + count + count & 1]
    let plain = Array("RIFF".utf8) + Samples.number(coded.count, 4).reversed() + coded
    func chunk(_ name: String, _ body: [UInt8]) -> [UInt8] {
      Array(name.utf8) + Samples.number(body.count, 4).reversed() + body + (body.count & 1 == 1 ? [0] : [])
    }
    let body =
      Array("WEBP".utf8) + chunk("VP8X", [0x0C, 0, 0, 0, 59, 0, 0, 39, 0, 0]) + plain[12...]
      + chunk("EXIF", Samples.exif(orientation: orientation)) + chunk("XMP ", Samples.xmp)
    let dirty = Array("RIFF".utf8) + Samples.number(body.count, 4).reversed() + body
    #expect(try Samples.headers(dirty).contains("GPSLatitude"))
    let clean = try Samples.clean(dirty)
    #expect(!clean.holds(Samples.secret))
    #expect(!(try Samples.headers(clean).contains("GPS")))
    let again = try #require(scan(clean))
    #expect(again.orientation == orientation && again.isClean(byteCount: UInt64(clean.count)) && again.isWhole)
    #expect((again.width, again.height) == (orientation == 8 ? (40, 60) : (60, 40)))
    let simple = try #require(scan(plain))
    #expect(simple.isClean(byteCount: UInt64(plain.count)))
    #expect((simple.width, simple.height) == (60, 40))
  }

  @Test func aGIFKeepsItsFramesToTheByte() throws {
    let (plain, dirty) = (Samples.gif(comment: false), Samples.gif(comment: true))
    #expect(dirty.holds(Samples.secret) && dirty.count > plain.count)
    #expect(try Samples.clean(dirty) == plain)
    let found = try #require(scan(plain))
    #expect(found.format == .gif && found.isClean(byteCount: UInt64(plain.count)))
    #expect((found.width, found.height) == (20, 10))
    #expect(try Samples.headers(plain).contains("width: 20"))
  }

  /// Wherever a file is cut off, nothing is told, and nothing traps.
  @Test func brokenFilesTellNothing() throws {
    let dirty = [
      try Samples.dirtyJPEG(8, 8, orientation: 3),
      Array(Samples.png(4, 4)[..<33]) + Samples.chunk("eXIf", Samples.exif(orientation: 2)) + Samples.png(4, 4)[33...],
      Samples.gif(comment: true),
    ]
    for bytes in dirty {
      #expect(bytes.holds(Samples.secret))
      // Cut off, and with a byte lost, which shifts every length after it.
      for count in 12..<bytes.count {
        let cut = Array(bytes[..<count])
        #expect(!(try Self.shared(cut).holds(Samples.secret)), "cut at \(count)")
      }
      for place in 12..<bytes.count {
        var flipped = bytes
        flipped[place] ^= 0xFF
        _ = try Self.shared(flipped)
      }
    }
  }

  /// What is left out must not change what the rest means: behind coded data, two bytes that were no marker before
  /// would go on with it.
  @Test(arguments: UInt8.min...UInt8.max)
  func whatFollowsCodedDataMeansTheSameWithoutAComment(_ marker: UInt8) throws {
    let head: [UInt8] = [0xFF, 0xD8, 0xFF, 0xC0, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0]
    let coded: [UInt8] = [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0, 0x55, 0xFF, 0, 0x55]
    let comment: [UInt8] = [0xFF, 0xFE, 0, 3, 0x61]
    // A segment with a frame of another size in it, which nobody sees who passes over it.
    let odd: [UInt8] = [0xFF, marker, 0, 13, 0xFF, 0xC0, 0, 11, 8, 0, 9, 0, 9, 1, 1]
    let scanned = try #require(scan(head + coded + comment + odd + [0xFF, 0xD9]))
    guard scanned.isWhole else { return }
    let clean = scanned.bytes(from: head + coded + comment + odd + [0xFF, 0xD9])
    let again = try #require(scan(clean))
    #expect(again.isWhole && again.isClean(byteCount: UInt64(clean.count)))
    #expect((again.width, again.height) == (scanned.width, scanned.height))
  }

  /// The first stretch decides what it is; these bytes have a head that is known.
  private static func shared(_ bytes: [UInt8]) throws -> [UInt8] {
    let found = try #require(scan(bytes))
    let (from, to) = (TemporaryFile(bytes), TemporaryFile([]))
    #expect(found.write(from: from.descriptor, to: to.descriptor) == 0)
    return to.bytes
  }

  @Test func whatIsNoPictureIsNotRead() {
    let vector = Array(#"<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>"#.utf8)
    for bytes in [vector, Array("%PDF-1.7".utf8), Array("II*\0".utf8), Array("RIFF\0\0\0\0WAVE".utf8), []] {
      #expect(scan(bytes) == nil)
    }
  }
}
