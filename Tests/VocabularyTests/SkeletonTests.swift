import Testing

@testable import ParleyVocabulary

@Suite struct SkeletonTests {
  @Test func icuIsThere() { #expect(Skeleton.knowsLooks) }

  @Test func simpleNamesLookAsICUSays() {
    let all = (UInt8(ascii: " ")...UInt8(ascii: "~")).map { String(UnicodeScalar($0)) }
    for text in all + [all.joined()] { #expect(Skeleton.asciiSkeleton(text) == Skeleton.unicodeSkeleton(text)) }
  }

  @Test(arguments: [
    ("Bob", "Воb"), ("Bob", "ВоЬ"), ("Bob", "Bob"), ("Bob", "bob"), ("Bob", "𝐁𝐨𝐛"), ("Bob", "Ｂｏｂ"),
    ("Bob", "B\u{200B}ob"),
    ("Bob", "Bob\u{200D}"), ("Bob", " Bob  "), ("Ana Lima", "Ana\u{A0}\u{2003}Lima"), ("paypal", "раураl"),
    ("Ian", "lan"), ("Ian", "1an"), ("modern", "modem"), ("José", "Jose\u{301}"), ("Ana", "\u{202E}Ana"),
    ("rn", "m"), ("O'Neil", "0’Neil"), ("Müller", "MÜLLER"),
  ])
  func namesThatLookAlikeAreAlike(_ one: String, _ other: String) {
    #expect(Skeleton(one).resembles(Skeleton(other)))
    #expect(Skeleton(other).resembles(Skeleton(one)))
  }

  @Test(arguments: [
    ("Bob", "Rob"), ("Ana", "Anna"), ("Ana", "Ana 2"), ("José", "Jose"), ("李", "季"), ("Ana", "Añа"), ("a", "ä"),
  ])
  func otherNamesAreNot(_ one: String, _ other: String) {
    #expect(Skeleton(one).resembles(Skeleton(other)) == false)
  }

  /// What a display name may be at its worst is still compared, not refused.
  @Test func longNamesAreCompared() {
    let name = String(repeating: "ﷺ", count: 21)
    #expect(Skeleton(name).resembles(Skeleton(name)))
    #expect(Skeleton(name).resembles(Skeleton(String(repeating: "ﷺ", count: 20))) == false)
  }
}
