import ParleyVocabulary
import Testing

@Suite struct SearchTextTests {
  private func tokens(_ text: String) -> String { SearchText(text, byteCountMax: 65_536).tokens }

  @Test(arguments: [
    ("Hello, World!", "hello world"), ("don't_stop-now", "don t stop now"), ("3.14", "3 14"), ("", ""), ("«…»\0\n", ""),
    ("C++ and C#, $5", "c + + and c # $ 5"), ("a\"b'c*d^e:f", "a b c d ^ e f"),
    ("Café CAFE\u{301} ﬁn ＡＢＣ ①", "cafe cafe fin abc 1"), ("Straße", "strasse"),
    ("ÅNGSTRÖM Łódź Ærø", "angstrom lodz aero"),
    ("ΣΊΣΥΦΟΣ", "σισυφοσ"), ("Ёлка", "елка"), ("soft\u{AD}hyphen", "softhyphen"),
    ("明天开会。OK吗", "明 天 开 会 ok 吗"), ("カﾞギ 東京タワー", "ガ ギ 東 京 タ ワ ー"), ("ハ\u{309A}ン", "パ ン"),
    ("회의는", "회 의 는"), ("\u{1112}\u{116C}\u{110B}\u{1174}", "회 의"),
    ("مُحَمَّد", "محمد"), ("الأَحَد", "الاحد"), ("مـــرحبا", "مرحبا"), ("می\u{200C}خواهم ۱۲", "ميخواهم 12"),
    ("שָׁלוֹם", "שלום"), ("हिन्दी में", "हिन्दी में"), ("ประชุม", "ป ร ะ ช ุ ม"),
    ("Party🎉time", "party 🎉 time"), ("👩‍👩‍👧", "👩 👩 👧"), ("👍🏽", "👍 🏽"), ("❤️", "❤"), ("❤", "❤"), ("1️⃣", "1"),
    ("🇩🇪🇫🇷 🇪", "🇩🇪 🇫🇷 🇪"), ("🇩 🇪", "🇩 🇪"), ("\u{1FAE0}\u{1FADF}", "\u{1FAE0} \u{1FADF}"),
  ])
  func textsAreFoldedAndCut(_ text: String, _ wanted: String) {
    #expect(tokens(text).unicodeScalars.elementsEqual(wanted.unicodeScalars), "\(tokens(text))")
  }

  @Test(arguments: [("lunch", true), ("lunch!", true), ("开会", false), ("c+", false), ("1", true), ("", false)])
  func onlyWordsCanGoOn(_ text: String, _ endsInWord: Bool) {
    #expect(SearchText(text, byteCountMax: 100).endsInWord == endsInWord)
  }

  /// What the index's tokenizer would take for a separator or an operator never stands in a token.
  @Test func everyScalarGivesTokensOfKnownCharacters() {
    let allowed = Set("abcdefghijklmnopqrstuvwxyz0123456789 ".unicodeScalars).union(SearchText.symbols.unicodeScalars)
    var brokenCount = 0
    // The two planes that hold nearly all, and the one of tags and selectors.
    for value in [0...0x1FFFF, 0xE0000...0xE0FFF].joined() as FlattenSequence<[ClosedRange<UInt32>]> {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let text = String(String.UnicodeScalarView([scalar]))
      let once = tokens(text)
      if once.unicodeScalars.contains(where: { $0.isASCII && !allowed.contains($0) }) { brokenCount += 1 }
      // Folding again changes nothing: what is found on one machine is found on all.
      if tokens(once) != once { brokenCount += 1 }
    }
    #expect(brokenCount == 0)
  }

  @Test func lengthIsBounded() {
    let sentence = "\u{FDFA}"
    #expect(tokens(sentence).utf8.count > 30)
    for bound in [0, 1, 2, 7, 100] {
      for text in [String(repeating: sentence, count: 9), "开会开会", "ab cd ef", "🇩🇪🇩🇪"] {
        let part = SearchText(text, byteCountMax: bound).tokens
        #expect(part.utf8.count <= bound)
        #expect(tokens(text).unicodeScalars.starts(with: part.unicodeScalars))
      }
    }
    #expect(SearchText("ab cd", byteCountMax: 5).tokens == "ab cd")
    // Marks without end, each before one that comes earlier in canonical order.
    #expect(tokens("x" + String(repeating: "\u{E48}\u{E38}", count: 15_000)).utf8.count == 65_533)
  }
}
